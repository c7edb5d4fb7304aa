"""How many of several ascending positions a row has reached: in Spark SQL, a binary search in a literal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from rowtime.core.columns import POSITION
from rowtime.frames.local import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def reached(positions: str, most: int, way: Literal["<", "<="] = "<=") -> str:
    """Return how many of the ascending ``positions`` (ARRAY<BIGINT>, ``most`` at most) a row has reached."""
    halves = ", ".join(str(1 << n) for n in reversed(range(most.bit_length()))) or "0"
    fresh = f"coalesce(get({positions}, i + half - 1) {way} {POSITION}, false)"
    return f"aggregate(array({halves}), 0, (i, half) -> IF({fresh}, i + half, i))"


def array(numbers: Iterable[int]) -> str:
    """Return numbers as one text literal, which Spark parses faster than many numbers."""
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<BIGINT>)"


def with_value_at(rows: DataFrame, name: str, values: np.ndarray, positions: np.ndarray) -> DataFrame:
    """Return the rows with the value for the number of ascending positions before the row; NULL beyond the last one."""
    if not is_local(rows):
        return rows.selectExpr("*", f"{value_at(values.tolist(), positions.tolist(), '<')} AS {name}")
    rows.share()  # computed once, so that its rows keep their order
    number = np.searchsorted(positions, rows.column(POSITION).to_numpy())
    beyond = number >= len(values)
    column = pa.array(values[np.where(beyond, 0, number)], pa.int64(), mask=beyond)
    return rows.with_column(name, "bigint", column)


def value_at(values: Sequence[int], positions: Sequence[int], way: Literal["<", "<="] = "<=") -> str:
    """Return the value for the number of ascending positions that the row has reached."""
    return f"get({array(values)}, {reached(array(positions), len(positions), way)})"
