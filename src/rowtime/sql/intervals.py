"""Interval literals as numbers: a duration in microseconds, or a count of months.

The two are different types: a duration is the same everywhere on the time line; a year-month interval is not, and it
breaks the order of timestamps (semantics 6).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from rowtime.core.time import DAY, HOUR, MINUTE, SECOND

MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": SECOND,
    "MINUTE": MINUTE,
    "HOUR": HOUR,
    "DAY": DAY,
    "WEEK": 7 * DAY,
}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}

_RANGES = (("DAY", "HOUR", "MINUTE", "SECOND"), ("YEAR", "MONTH"))
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?", re.ASCII)
_PART = re.compile(r"\s*([+-]?\s*[\d.]+)\s*([A-Za-z]+)\s*,?")


@dataclass(frozen=True)
class Duration:
    """A length of time in microseconds."""

    micros: int

    def __neg__(self) -> Duration:
        return Duration(-self.micros)


@dataclass(frozen=True)
class Months:
    """A number of calendar months."""

    count: int

    def __neg__(self) -> Months:
        return Months(-self.count)


def singular(unit: str) -> str:
    """Return ``MINUTES`` as ``MINUTE``, in upper case."""
    return unit.upper().removesuffix("S")


def span_of(interval: exp.Expr) -> Duration | Months:
    """Return the value of a literal interval.

    Raises ``ValueError`` (a sentence without its full stop) for invalid text, for a mixture of months and durations,
    and for anything but a literal.
    """
    # One type of exception for everything but a literal interval (hence noqa: TRY004 below).
    if isinstance(interval, exp.Paren):
        return span_of(interval.this)
    if isinstance(interval, exp.Neg):
        return -span_of(interval.this)
    if isinstance(interval, exp.Add):
        return _sum([span_of(interval.this), span_of(interval.expression)])
    if not isinstance(interval, exp.Interval):
        raise ValueError("an interval literal is expected, for example INTERVAL '10' SECOND")  # noqa: TRY004
    return _literal(interval)


def of_micros(length: int) -> exp.Interval:
    """Return an interval of so many µs, in the largest possible unit."""
    units = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000), ("SECOND", 1_000_000))
    unit, width = next(((u, w) for u, w in units if length and length % w == 0), ("MICROSECOND", 1))
    return exp.Interval(this=exp.Literal.string(str(length // width)), unit=exp.var(unit))


def duration_of(node: exp.Expr | None) -> int | None:
    """Return the µs of a literal duration; ``None`` for months and for anything but a literal interval."""
    span = _span(node)
    return span.micros if isinstance(span, Duration) else None


def months_of(node: exp.Expr | None) -> int | None:
    """Return the months of a literal year-month interval; ``None`` for anything else."""
    span = _span(node)
    return span.count if isinstance(span, Months) else None


def since_midnight(node: exp.Expr) -> int | None:
    """Return the µs since midnight of a literal ``TIME 'hh:mm:ss.ffffff'``; ``None`` for anything else."""
    if not (isinstance(node, exp.Cast) and node.is_type(exp.DataType.Type.TIME) and isinstance(node.this, exp.Literal)):
        return None
    read = _TIME_OF_DAY.fullmatch(node.this.name.strip())
    if read is None:
        return None
    hours, minutes, seconds = read.groups(default="0")
    return int(hours) * HOUR + int(minutes) * MINUTE + int(Decimal(seconds) * SECOND)


def _span(node: exp.Expr | None) -> Duration | Months | None:
    try:
        return None if node is None else span_of(node)
    except ValueError:
        return None


def _literal(interval: exp.Interval) -> Duration | Months:
    sign, text = 1, interval.this
    while isinstance(text, exp.Neg):
        sign, text = -sign, text.this
    if not isinstance(text, exp.Literal):
        raise ValueError("the amount of an interval must be a literal, as in INTERVAL '10' SECOND")  # noqa: TRY004
    unit = interval.args.get("unit")
    if unit is None:
        value = _parts(text.name)
    elif isinstance(unit, exp.IntervalSpan):
        value = _range(text.name, singular(unit.this.name), singular(unit.expression.name))
    else:
        value = _amount(text.name, unit.name)
    return value if sign == 1 else -value


def _parts(text: str) -> Duration | Months:
    """Parse ``'1 hour 30 minutes'``: amounts with their units."""
    parts, at = [], 0
    while match := _PART.match(text, at):
        parts.append(_amount(match[1], match[2]))
        at = match.end()
    if not parts or text[at:].strip():
        raise ValueError(f"INTERVAL '{text}' needs a unit, as in INTERVAL '10' SECOND")
    return _sum(parts)


def _range(text: str, first: str, last: str) -> Duration | Months:
    """Parse ``'1:30' MINUTE TO SECOND``: one amount for each unit from the first to the last."""
    for units in _RANGES:
        if first in units and last in units and units.index(first) < units.index(last):
            wanted = units[units.index(first) : units.index(last) + 1]
            amounts = re.split(r"[ :-]+", text.strip().lstrip("+-"))
            if len(amounts) != len(wanted):
                break
            total = _sum([_amount(a, u) for a, u in zip(amounts, wanted, strict=True)])
            return -total if text.strip().startswith("-") else total
    raise ValueError(f"'{text}' is not an interval {first} TO {last}")


def _amount(text: str, unit: str) -> Duration | Months:
    unit = singular(unit)
    if unit not in MICROS and unit not in MONTHS:
        raise ValueError(f"{unit} is not a unit of an interval; the units are {', '.join((*MICROS, *MONTHS))}")
    try:
        amount = Decimal(text.replace(" ", ""))
    except InvalidOperation:
        raise ValueError(f"'{text}' is not an amount of {unit}") from None
    if not amount.is_finite() or (unit != "SECOND" and amount != int(amount)):
        raise ValueError(f"'{text}' is not a whole number of {unit}; only seconds have fractions")
    if unit in MONTHS:
        return Months(int(amount) * MONTHS[unit])
    micros = amount * MICROS[unit]
    if micros != int(micros):
        raise ValueError(f"INTERVAL '{text}' SECOND is finer than a microsecond")
    return Duration(int(micros))


def _sum(values: list[Duration | Months]) -> Duration | Months:
    durations = [v.micros for v in values if isinstance(v, Duration)]
    months = [v.count for v in values if isinstance(v, Months)]
    if durations and months:
        raise ValueError("an interval has either years and months or days and smaller units, not both")
    return Months(sum(months)) if months else Duration(sum(durations))


def interval_text(micros: int) -> str:
    """Return a length as users write it, in the greatest unit of which it is a multiple, else in seconds."""
    for unit, size in (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000)):
        if micros % size == 0:
            return f"INTERVAL '{micros // size}' {unit}"
    return f"INTERVAL '{micros / 1_000_000:f}' SECOND"
