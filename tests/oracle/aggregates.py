"""Oracle of the aggregates: SQL's functions over the rows of one group, in stream order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Column = Sequence[Any]


def known(column: Column) -> list[Any]:
    """The values that are not null."""
    return [value for value in column if value is not None]


def total(column: Column) -> Any:
    """SUM: null if there are no values."""
    return sum(known(column)) if known(column) else None


def mean(column: Column) -> float | None:
    """AVG: fractional, as in Spark."""
    return sum(known(column)) / len(known(column)) if known(column) else None


def least(column: Column) -> Any:
    """MIN."""
    return min(known(column), default=None)


def greatest(column: Column) -> Any:
    """MAX."""
    return max(known(column), default=None)


def distinct(column: Column) -> int:
    """COUNT(DISTINCT)."""
    return len(set(known(column)))
