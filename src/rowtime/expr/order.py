"""The order of an expression over a stream (semantics 6): six values and how they combine.

Law: an expression that is called ascending is ascending on every input. Unknown is ``NONE``.
"""

from __future__ import annotations

from enum import Enum


class Order(Enum):
    """What is known about the sequence of values of an expression."""

    CONSTANT = "constant"
    ASCENDING = "ascending"
    STRICTLY_ASCENDING = "strictly ascending"
    DESCENDING = "descending"
    STRICTLY_DESCENDING = "strictly descending"
    NONE = "none"

    @property
    def monotonic(self) -> bool:
        """Return True for every order but none; a constant counts (semantics 6)."""
        return self is not Order.NONE

    @property
    def moves(self) -> bool:
        """Return True if the order can close groups: monotonic and not constant."""
        return self not in (Order.NONE, Order.CONSTANT)

    @property
    def direction(self) -> int:
        """Return 1 for ascending, -1 for descending, 0 for constant and none."""
        return (self in _ASCEND) - (self in _DESCEND)

    @property
    def strict(self) -> bool:
        """Return True if neighbours differ."""
        return self in (Order.STRICTLY_ASCENDING, Order.STRICTLY_DESCENDING)

    def reversed(self) -> Order:
        """Return the order of the negated expression."""
        return _of(-self.direction, strict=self.strict) if self.direction else self

    def loosened(self) -> Order:
        """Return the same direction without strictness, as after rounding."""
        return _of(self.direction, strict=False) if self.direction else self

    def plus(self, other: Order) -> Order:
        """Return the order of a sum: same direction, strict if one operand is; else none."""
        if Order.NONE in (self, other):
            return Order.NONE
        if not self.direction or not other.direction:
            return self if self.direction else other
        if self.direction != other.direction:
            return Order.NONE
        return _of(self.direction, strict=self.strict or other.strict)


_ASCEND = (Order.ASCENDING, Order.STRICTLY_ASCENDING)
_DESCEND = (Order.DESCENDING, Order.STRICTLY_DESCENDING)


def _of(direction: int, *, strict: bool) -> Order:
    if direction > 0:
        return Order.STRICTLY_ASCENDING if strict else Order.ASCENDING
    return Order.STRICTLY_DESCENDING if strict else Order.DESCENDING
