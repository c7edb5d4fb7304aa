"""The sides of joins: their columns under the names that they have above."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from rowtime.operators.contract import Operator, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Side = tuple[Operator, Sequence[tuple[str, str]]]
"""An input, and its columns with their new names."""


def beside(rows: Callable[[Operator], DataFrame], sides: Iterable[Side]) -> DataFrame:
    """No rows of the sides, side by side."""
    parts = (rows(one).selectExpr(*(f"{quoted(old)} AS {quoted(new)}" for old, new in names)) for one, names in sides)
    return reduce(lambda left, right: left.crossJoin(right), parts)
