"""What DuckDB cannot compute, but Spark can: it is translated in another way, or left to Spark, and fails no tick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowtime.frames.frame import Frame
from rowtime.frames.queries import Left

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST = {"tinyint": -(2**7), "smallint": -(2**15), "int": -(2**31), "bigint": -(2**63)}
ARROW = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}


def valued(spark: SparkSession, kind: str, values: list[Any], text: str) -> list[Any]:
    arrow = ARROW.get(kind, {"string": pa.string(), "double": pa.float64()}.get(kind))
    rows = Frame.of(spark, pa.table({"a": pa.array(values, arrow)}), [("a", kind)])
    answer: list[Any] = rows.valued([f"{text} AS v"]).column("v").to_pylist()
    return answer


@pytest.mark.parametrize("kind", LEAST)
@pytest.mark.parametrize("by", ["-1", "(a - a - 1)", "CASE WHEN a > 0 THEN 7 ELSE -1 END"])
def test_the_least_number_leaves_no_remainder_by_minus_one(spark: SparkSession, kind: str, by: str) -> None:
    assert valued(spark, kind, [LEAST[kind], 7, None], f"a % {by}") == [0, 0, None]


def test_a_text_that_is_no_number_is_null_if_it_is_tried(spark: SparkSession) -> None:
    texts = ["1.5", "x", None, " .5f", "", "1e3", "0y"]
    assert valued(spark, "string", texts, "TRY_CAST(a AS DOUBLE)") == [1.5, None, None, 0.5, None, 1000.0, None]
    assert valued(spark, "string", texts, "TRY_CAST(trim(a) AS DOUBLE) * 2") == [
        3.0,
        None,
        None,
        1.0,
        None,
        2000.0,
        None,
    ]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("string", "NaN", "TRY_CAST(a AS DOUBLE)"),
        ("string", "{", "FROM_JSON(a, 'x DOUBLE').x"),
        ("string", ".5", "FROM_JSON(a, 'x INT, y STRING').y"),
        ("double", float("nan"), "CEIL(a)"),
        ("double", float("nan"), "FLOOR(a + 1)"),
    ],
)
def test_a_value_that_only_spark_knows_is_left_to_it(spark: SparkSession, kind: str, value: Any, text: str) -> None:
    with pytest.raises(Left):
        valued(spark, kind, [value], text)
