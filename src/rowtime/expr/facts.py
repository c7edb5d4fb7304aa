"""What is known about the values of an expression over a stream: order, kind, range.

The range is in the kind's own unit: numbers as they are, times in µs UTC since 1970, day-time intervals in µs,
year-month intervals in months. A fact holds for every row that is not refused; it never guesses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum

from rowtime.core.time import MAX_MICROS, MIN_MICROS
from rowtime.expr.order import Order


class Kind(Enum):
    """A class of Spark types that the rules do not distinguish any further."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "floating point"
    DATE = "date"
    TIMESTAMP = "timestamp"
    DAYS = "day-time interval"
    MONTHS = "year-month interval"
    TEXT = "text"
    BOOLEAN = "boolean"
    OTHER = "unknown"

    @property
    def number(self) -> bool:
        """Return True for a number."""
        return self in NUMBERS

    @property
    def exact(self) -> bool:
        """Return True for a number or interval without rounding, NaN and infinities."""
        return self in (Kind.INTEGER, Kind.DECIMAL, Kind.DAYS, Kind.MONTHS)

    @property
    def time(self) -> bool:
        """Return True for a date or timestamp."""
        return self in (Kind.DATE, Kind.TIMESTAMP)


NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)  # the wider one comes later
_WORDS = {
    "TINYINT": Kind.INTEGER, "BYTE": Kind.INTEGER, "SMALLINT": Kind.INTEGER, "SHORT": Kind.INTEGER,
    "INT": Kind.INTEGER, "INTEGER": Kind.INTEGER, "BIGINT": Kind.INTEGER, "LONG": Kind.INTEGER,
    "DECIMAL": Kind.DECIMAL, "DEC": Kind.DECIMAL, "NUMERIC": Kind.DECIMAL,
    "FLOAT": Kind.FLOAT, "REAL": Kind.FLOAT, "DOUBLE": Kind.FLOAT,
    "DATE": Kind.DATE, "TIMESTAMP": Kind.TIMESTAMP, "TIMESTAMP_LTZ": Kind.TIMESTAMP, "TIMESTAMP_NTZ": Kind.TIMESTAMP,
    "TIMESTAMPTZ": Kind.TIMESTAMP, "TIMESTAMPLTZ": Kind.TIMESTAMP, "TIMESTAMPNTZ": Kind.TIMESTAMP,
    "STRING": Kind.TEXT, "TEXT": Kind.TEXT, "BOOLEAN": Kind.BOOLEAN,
}  # fmt: skip


def kind_of(type_text: str) -> Kind:
    """Return the kind of a Spark type by its text; ``OTHER`` if no rule knows it."""
    words = type_text.upper().replace("(", " ").split()
    if words[:1] == ["INTERVAL"]:
        return Kind.MONTHS if "YEAR" in words or "MONTH" in words else Kind.DAYS
    return _WORDS.get(words[0], Kind.OTHER) if words and "COLLATE" not in words else Kind.OTHER


def is_short(type_text: str) -> bool:
    """Return True for a whole-number type of at most 32 bits."""
    return type_text.upper().split()[:1] in (["TINYINT"], ["BYTE"], ["SMALLINT"], ["SHORT"], ["INT"], ["INTEGER"])


def wider(left: Kind, right: Kind) -> Kind:
    """Return the kind of a sum of two numbers."""
    return max(left, right, key=NUMBERS.index) if left.number and right.number else Kind.OTHER


@dataclass(frozen=True)
class Fact:
    """``low`` ≤ every value ≤ ``high``; ``zero``: 0 may be among them; ``null``: every value is NULL.

    ``short``: every value is a whole number of at most 32 bits, so it is exact as a DOUBLE. If ``order`` is monotonic
    and not constant, no value is NULL or NaN. ``days``: the order of the days of a time that has no order itself, as a
    local time, which goes back when clocks do.
    """

    order: Order = Order.NONE
    kind: Kind = Kind.OTHER
    low: Decimal | None = None
    high: Decimal | None = None
    zero: bool = True
    null: bool = False
    short: bool = False
    days: Order = Order.NONE

    def by_day(self) -> Fact:
        """Return the fact about a time for functions that depend on its day alone."""
        return replace(self, order=self.days) if self.order is Order.NONE else self

    @property
    def sign(self) -> int | None:
        """Return 1 if no value is below 0, -1 if none is above 0, 0 if all are 0, ``None`` if unknown."""
        if self.low is not None and self.low >= 0:
            return 0 if self.high == 0 else 1
        return -1 if self.high is not None and self.high <= 0 else None

    @property
    def constant(self) -> Decimal | None:
        """Return the one value, if it is constant and known."""
        return self.low if self.order is Order.CONSTANT and self.low == self.high else None

    def as_(self, order: Order, kind: Kind | None = None) -> Fact:
        """Return a fact with another order and kind, and without a range."""
        return Fact(order, self.kind if kind is None else kind)

    def signed(self) -> Fact:
        """Return the fact with only the sign of its range, which rounding does not change."""
        if not self.sign:
            return replace(self, low=None, high=None)
        return replace(self, low=Decimal(0), high=None) if self.sign > 0 else replace(self, low=None, high=Decimal(0))

    def within(self, low: Decimal | int | None, high: Decimal | int | None, *, zero: bool = True) -> Fact:
        """Return the fact with a range."""
        least, most = (None if edge is None else Decimal(edge) for edge in (low, high))
        never = (least is not None and least > 0) or (most is not None and most < 0)
        return replace(self, low=least, high=most, zero=zero and not never)


def exactly(value: Decimal, kind: Kind) -> Fact:
    """Return the fact of a constant."""
    return Fact(Order.CONSTANT, kind).within(value, value, zero=value == 0)


UNKNOWN = Fact()
NULL = Fact(Order.CONSTANT, null=True)
ROWTIME_FACT = Fact(Order.ASCENDING, Kind.TIMESTAMP).within(MIN_MICROS, MAX_MICROS)
"""The fact about every rowtime: it ascends, within the years 0001 to 9999."""
