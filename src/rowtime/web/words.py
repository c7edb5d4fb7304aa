"""The notation of numbers, instants and durations on the pages."""

from __future__ import annotations

from typing import Final

from rowtime.core.counts import counted
from rowtime.core.time import BEGINNING, DAY, END, HOUR, MINUTE, SECOND, to_text

_UNITS: Final = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
_SIZES: Final = ("B", "kB", "MB", "GB", "TB")
_THOUSAND: Final = 1_000
UNKNOWN: Final = "\N{EN DASH}"


def number(value: float | None) -> str:
    """Return a count with thousands separators; a dash if unknown."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def instant(micros: int | None) -> str:
    """Return an instant as text (UTC)."""
    return UNKNOWN if micros is None else to_text(micros)


def span(micros: float | None) -> str:
    """Return a duration in its two greatest units: ``3 d 4 h``, ``2 min 5 s``, ``0.3 s``."""
    if micros is None:
        return UNKNOWN
    sign, left = ("\N{MINUS SIGN}" if micros < 0 else ""), abs(int(micros))
    if left < 10 * SECOND:
        return f"{sign}{left / SECOND:.1f} s"
    parts: list[str] = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
    return sign + " ".join(part for part in parts[:2] if not part.startswith("0 "))


def milliseconds(value: float | None) -> str:
    """Return a duration in milliseconds, or in seconds from one on."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f} ms" if value < _THOUSAND else f"{value / _THOUSAND:,.2f} s"


def size(value: float | None) -> str:
    """Return a size in bytes or larger units."""
    if value is None:
        return UNKNOWN
    for unit in _SIZES:
        if value < _THOUSAND or unit == _SIZES[-1]:
            break
        value /= _THOUSAND
    return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"


def amount(count: int, unit: str) -> str:
    """Return how much of a stream is unread, in its unit: rows, bytes, versions of a table."""
    if unit == "bytes":
        return size(count)
    return counted(count, unit)


def is_instant(micros: int) -> bool:
    """Return True unless it is infinite."""
    return BEGINNING < micros < END
