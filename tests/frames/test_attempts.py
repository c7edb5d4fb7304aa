"""Expressions that are tried row by row: the rows that fail, and the values of the others, are those of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's name

from conformance.edge_values import VALUES
from rowtime.frames import attempts, catalyst
from rowtime.frames.attempted import attempted
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of
from rowtime.frames.words import Untranslated
from rowtime.runtime.session import derive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = {
    "int": ("a + 1", "10 DIV a", "a * b > 0", "a", "make_date(2024, a, 1)", "element_at(array(1, 2), a)", "NULL",
            "CASE WHEN a > 0 THEN 10 DIV b ELSE a END", "a IS NULL OR 10 DIV a = 1", "10 DIV a"),
    "string": ("CAST(a AS INT)", "CAST(a AS DATE)", "upper(a)", "named_struct('x', CAST(a AS INT), 'y', b)",
               "CAST(a AS INT) + CAST(b AS INT)", "CAST(reverse(a) AS INT)", "CAST(a AS FLOAT)", "map(a, 1, b, 2)"),
    "bigint": ("a + b", "a * 2", "timestamp_millis(a)", "CAST(a AS INT)", "array(10 DIV a, b)[1]", "abs(a)"),
    "decimal(10,2)": ("CAST(a AS DECIMAL(3, 0))", "a / b", "CAST(a AS INT)"),
    "double": ("CAST(a AS INT)", "a / b", "CAST(a * 1000000 AS BIGINT)"),
    "timestamp": ("make_date(2023, month(a), 31)", "date_format(a, 'yyyy-MM-dd')", "CAST(a AS DATE)"),
}  # fmt: skip


def tables(kind: str) -> pa.Table:
    """Each edge value beside others; in the last column their numbers."""
    values = [(a, b) for n, a in enumerate(VALUES[kind]) for b in (a, VALUES[kind][n - 1], VALUES[kind][n // 2])]
    columns = {name: pa.array([one[at] for one in values], arrow_of(kind)) for at, name in enumerate("ab")}
    return pa.table({**columns, "n": pa.array(range(len(values)), pa.int64())})


def of_spark(session: SparkSession, rows: pa.Table, kind: str, text: str) -> list[Any]:
    """The values in Spark; ``None`` for a row that fails, else a list of one."""
    frame = session.createDataFrame(rows, schema=f"a {kind}, b {kind}, n bigint")
    tried = frame.select("n", attempted(session, [text]).alias("x")).select(
        "n", F.col("x").isNull().alias("failed"), F.col("x.c0").alias("x")
    )
    found = tried.toArrow().sort_by("n")
    return [
        None if failed else [x] for failed, x in zip(found["failed"].to_pylist(), found["x"].to_pylist(), strict=True)
    ]


@pytest.mark.parametrize("kind", TEXTS)
def test_failures_and_values_are_those_of_spark(spark: SparkSession, kind: str) -> None:
    session, rows, failed = derive(spark), tables(kind), 0
    local = Frame.of(session, rows, [("a", kind), ("b", kind), ("n", "bigint")])
    assert local is not None
    texts = {f"x{n}": text for n, text in enumerate(TEXTS[kind]) if text not in ("a", "NULL")}
    found = attempts.tried(local, texts).toArrow()
    for name, text in texts.items():
        values = [None if one is None else [one["c0"]] for one in found[name].to_pylist()]
        assert repr(values) == repr(of_spark(session, rows, kind, text)), text
        failed += values.count(None)
    assert failed


def test_spark_is_asked_only_for_rows_that_fail(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    ask = catalyst.values_of

    def counted(session: SparkSession, parts: Any, given: Any) -> Any:
        asked.extend((part.sql, table.num_rows) for part, table in zip(parts, given, strict=True))
        return ask(session, parts, given)

    monkeypatch.setattr(catalyst, "values_of", counted)
    rows = pa.table({"a": pa.array([1, 0, 2, None, 0], pa.int32()), "b": pa.array([1, 2, 0, None, 3], pa.int32())})
    local = Frame.of(derive(spark), rows, [("a", "int"), ("b", "int")])
    assert local is not None
    found = attempts.tried(
        local, {"x": "10 DIV a", "y": "b * 2147483647", "z": "a + 1", "u": "conv(b, 10, 2)"}
    ).toArrow()
    assert found["x"].to_pylist() == [{"c0": 10}, None, {"c0": 5}, {"c0": None}, None]
    assert found["y"].to_pylist() == [{"c0": 2**31 - 1}, None, {"c0": 0}, {"c0": None}, None]
    assert found["z"].to_pylist() == [{"c0": 2}, {"c0": 1}, {"c0": 3}, {"c0": None}, {"c0": 1}]
    assert asked == [("10 DIV a", 2), ("b * 2147483647", 2), ("conv(b, 10, 2)", 5)]


@pytest.mark.parametrize("text", ["sum(a)", "rand() + a", "no_such_function(a)", "explode(array(a))"])
def test_what_is_no_function_of_the_row_is_left_to_spark(spark: SparkSession, text: str) -> None:
    local = Frame.of(derive(spark), pa.table({"a": pa.array([1], pa.int32())}), [("a", "int")])
    assert local is not None
    with pytest.raises(Untranslated):
        attempts.tried(local, {"x": text})


def test_an_expression_without_columns_has_one_value_for_all_rows(spark: SparkSession) -> None:
    rows = pa.table({"a": pa.array([1, 2], pa.int32())})
    local = Frame.of(derive(spark), rows, [("a", "int")])
    assert local is not None
    found = attempts.tried(local, {"x": "1 DIV 0", "y": "initcap('ab c')", "z": "2 DIV 1"}).toArrow()
    assert [found[name].to_pylist() for name in "xyz"] == [[None] * 2, [{"c0": "Ab C"}] * 2, [{"c0": 2}] * 2]
