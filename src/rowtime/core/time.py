"""Time: microseconds since 1970-01-01 00:00:00 UTC, as whole numbers.

Every instant in the control plane is such a number. ``BEGINNING`` and ``END`` stand for minus and plus infinity; real
instants are in the years 0001 to 9999.
"""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from typing import Final

from rowtime.core.errors import refuse

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MIN_MICROS: Final = -62_135_596_800_000_000
MAX_MICROS: Final = 253_402_300_799_999_999

BEGINNING: Final = -(2**62)
END: Final = 2**62
UNREACHED: Final = 2**61  # µs: more than the distance between any two instants


def wall_clock() -> int:
    """Return the time of day, µs UTC."""
    return time.time_ns() // 1000


def to_micros(value: datetime | date | str | int) -> int:
    """Return the instant of a timestamp, an ISO text or a number of microseconds; naive times are UTC.

    Raises ``Refused`` (R301) for anything else and for years outside 0001-9999.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _in_range(value)
    if isinstance(value, str):
        return _parse(value)
    if not isinstance(value, date):
        raise refuse("R301", f"{value!r} is not a timestamp")
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - EPOCH) // timedelta(microseconds=1)


def _parse(text: str) -> int:
    cleaned = text.strip()
    if cleaned.lower() in {"infinity", "+infinity", "end"}:
        return END
    try:
        return to_micros(datetime.fromisoformat(cleaned))
    except ValueError:
        raise refuse(
            "R301", f"{text!r} is not a timestamp", "Write it as 2024-01-31 23:59:59.123456, in UTC."
        ) from None


def _in_range(micros: int) -> int:
    if micros in (BEGINNING, END) or MIN_MICROS <= micros <= MAX_MICROS:
        return micros
    raise refuse("R301", f"{micros} µs lies outside the years 0001 to 9999")


def to_datetime(micros: int) -> datetime:
    """Return an instant in 0001-9999 as an aware UTC datetime."""
    return EPOCH + timedelta(microseconds=micros)


def to_text(micros: int) -> str:
    """Return an instant as text: ``2024-01-31 23:59:59[.ffffff]``, ``-∞`` or ``+∞``."""
    if micros <= BEGINNING:
        return "-∞"
    if micros >= END:
        return "+∞"
    if not MIN_MICROS <= micros <= MAX_MICROS:
        return f"{micros} µs"
    moment = to_datetime(micros).replace(tzinfo=None)
    text = moment.isoformat(sep=" ", timespec="microseconds" if moment.microsecond else "seconds")
    return text.rstrip("0") if moment.microsecond else text


def shift(bound: int, by: int) -> int:
    """Move a bound by a duration; infinite bounds stay where they are."""
    return bound if bound in (BEGINNING, END) else bound + by
