"""Both zeros are equal, and each keeps its sign as in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from conformance.engines import Compared, compared, compared_groups, compared_windows
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZEROS = [0.0, -0.0, -0.0, 0.0, None, -0.0, 0.0, 3.0]
KINDS = {"d": "double", "f": "float", "l": "array<double>", "s": "struct<x: double, y: array<float>>"}
ROWS = {
    "d": ZEROS,
    "f": ZEROS,
    "l": [None if of is None else [of, None, -of] for of in ZEROS],
    "s": [None if of is None else {"x": of, "y": [-of]} for of in ZEROS],
}
FRAME = "(PARTITION BY g ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
GROUPS = ["min(d)", "max(d)", "min(least(d, NULL))", "count(DISTINCT d)", "min(d) FILTER (WHERE n > 1)"]
GROUPS += [f"{name}({of}, n)" for name in ("max_by", "min_by") for of in ("d", "l", "s", "struct(d AS x, n AS y)")]
WINDOWS = [f"{name}({of}) OVER {FRAME}" for name in ("min", "max") for of in "df"]
WINDOWS += [f"lag({of}) OVER (ORDER BY n)" for of in KINDS]


def _table() -> tuple[pa.Table, list[tuple[str, str]]]:
    values = {name: pa.array(ROWS[name], arrow_of(kind)) for name, kind in KINDS.items()}
    table = pa.table({"n": range(8), "g": pa.array([0, 0, 1, 1, 2, 2, 3, 3], pa.int32()), **values})
    return table, [("n", "bigint"), ("g", "int"), *KINDS.items()]


def _same(found: Compared, texts: list[str]) -> None:
    assert [*found.here] == texts
    assert (found.differ, found.given_up) == ([], [])


def test_of_equal_zeros_the_first_is_the_least_and_the_greatest(spark: SparkSession) -> None:
    _same(compared_groups(spark, *_table(), GROUPS), GROUPS)


def test_zeros_keep_their_signs_in_windows(spark: SparkSession) -> None:
    _same(compared_windows(spark, *_table(), WINDOWS), WINDOWS)


def test_zeros_keep_their_signs_in_rows(spark: SparkSession) -> None:
    texts = ["d", "- d", "abs(d)", "greatest(d, - d)", "least(- d, d)", "coalesce(f, f)", "d + d", "d * -1", "s.x"]
    _same(compared(spark, *_table(), texts), texts)


@pytest.mark.parametrize("text", ["greatest(f, f)", "least(f, f)"])
def test_spark_compares_lists_of_floats(spark: SparkSession, text: str) -> None:
    """DuckDB's function returns a positive zero."""
    assert not Frame.empty(spark, [*KINDS.items()]).translates(text)
