"""Frames compute rows as Spark does; Spark computes the values of what they do not translate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowtime.frames.frame import Frame
from rowtime.frames.kinds import holds
from rowtime.frames.queries import Uncomputed
from rowtime.frames.tables import put_together
from rowtime.frames.words import Untranslated
from rowtime.operators.rows.collations import grouped
from tests.frames.in_spark import SparkRows, in_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.sampled(3)

FIELDS = [("k", "string"), ("n", "bigint"), ("v", "double"), ("t", "timestamp")]
ROWS = {
    "k": ["a", "b", None, "a", "B", "é", "a"],
    "n": [1, 2, 3, None, -5, 2**62, 7],
    "v": [0.5, None, float("nan"), -0.0, 0.0, 1e300, 2.0],
    "t": pa.array([0, 10, -1, None, 5, 60_000_000, 61_000_000], pa.timestamp("us", "UTC")),
}
PLACE = "struct(t, n)"
MADE: dict[str, Callable[[Any], Any]] = {
    "several rows of one": lambda rows: rows.selectExpr("n", "explode(sequence(0L, 3L)) AS c"),
    "each second number": lambda rows: rows.selectExpr("n", "explode(sequence(-1L, 6L, 2L)) AS c"),
    "a filter": lambda rows: rows.where("n > 1 OR k IS NULL").selectExpr("*", "n + 1 AS m"),
    "a column less": lambda rows: rows.drop("N", "v"),
    "other names": lambda rows: rows.toDF("a", "b", "c", "d").select("b", "a"),
    "names in quotes and fields": lambda rows: rows.selectExpr("struct(n AS a) AS `s t`", "k AS `x.y`").select(
        "`s t`", "`x.y`", "`s t`.a"
    ),
    "a column less, of odd names": lambda rows: rows.selectExpr("n", "k AS `x.y`", "v AS `b``c`").drop("n"),
    "a union by names": lambda rows: rows.unionByName(rows.select("t", "v", "k", "n").where("n > 1")),
    "a union with what one lacks": lambda rows: rows.unionByName(rows.select("n", "k"), allowMissingColumns=True),
    "a union by place": lambda rows: rows.select("n", "k").union(rows.selectExpr("n AS x", "k AS y")),
    "distinct rows": lambda rows: rows.select("k").distinct(),
    "distinct numbers": lambda rows: rows.select("v").distinct(),
    "distinct structs": lambda rows: rows.selectExpr("struct(k, n % 2 AS n) AS s").distinct(),
    "another name": lambda rows: rows.withColumnRenamed("k", "x.y"),
    "windows by structs": lambda rows: rows.selectExpr("n", "struct(k, n % 2 AS m) AS s").selectExpr(
        "n", "count(*) OVER (PARTITION BY s) AS c", "lag(n) OVER (PARTITION BY s ORDER BY n) AS l"
    ),
    "groups": lambda rows: rows.grouped(["k"], [
        "count(*) AS c", "count(n) AS d", "sum(n) AS s", "min(v) AS lo", "max(v) AS hi", "max(k) AS m",
        "count(DISTINCT k) AS dk", "count_if(n > 1) AS i", "count(1) FILTER (WHERE n > 1) AS f",
        f"max_by(n, CASE WHEN t IS NOT NULL THEN {PLACE} END) AS last", f"min_by(k, {PLACE}) AS first",
    ]),
    "one group": lambda rows: rows.grouped([], [
        "sum(n) AS s", "max(t) AS t", "max_by(v, CASE WHEN k = 'b' THEN 1 ELSE 0 END) AS null",
    ]),
    "groups of no row": lambda rows: rows.where("false").grouped(["k"], ["count(*) AS c"]),
    "windows": lambda rows: rows.selectExpr(
        "k", "n", "row_number() OVER (ORDER BY k, n) AS i", "dense_rank() OVER (ORDER BY k) AS d",
        "row_number() OVER (PARTITION BY k ORDER BY n DESC) AS j",
        "lead(n) OVER (PARTITION BY k ORDER BY n) AS l", "lag(n, 2) OVER (ORDER BY k DESC, n) AS g",
        "lead(n, 1, 0L) OVER (PARTITION BY k ORDER BY n) AS l0", "lag(n, 3, -1) OVER (ORDER BY k, n) AS g1",
        "max(n) OVER (PARTITION BY k ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS m",
        "count(n) OVER (PARTITION BY k) AS c", "sum(n) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS s",
        "max_by(v, IF(n <> 2, struct(n, k), NULL)) OVER (PARTITION BY k ORDER BY n ROWS UNBOUNDED PRECEDING) AS a",
        "min_by(CASE WHEN n > 1 THEN k END, n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS b",
    ),
    "structs": lambda rows: rows.selectExpr("struct(n AS a, k, t) AS s").selectExpr("s", "s.a AS x", "s.t AS y"),
    "an inner join": lambda rows: rows.joined(_others(rows), "k = k2 AND n2 >= n - 5 AND n2 <= n + 5", "inner"),
    "a join by structs": lambda rows: rows.selectExpr("n", "struct(k, v) AS s").joined(
        rows.selectExpr("n AS m", "struct(k, v) AS r"), "s <=> r", "inner"
    ),
    "a left join": lambda rows: rows.joined(_others(rows), "k <=> k2", "left"),
    "a left join of few": lambda rows: rows.joined(_others(rows).where("n2 > 2"), "k = k2", "left"),
    "rows with a match": lambda rows: rows.joined(_others(rows), "k <=> k2 AND n <= n2", "left_semi"),
    "rows without": lambda rows: rows.joined(_others(rows), "k = k2", "left_anti"),
}  # fmt: skip


def _others(rows: Any) -> Any:
    return rows.selectExpr("k AS k2", "n AS n2").where("n2 IS NOT NULL")


def _frame(spark: SparkSession, fields: Any = FIELDS, rows: Any = ROWS) -> Frame:
    found = Frame.of(spark, pa.table(rows), fields)
    assert found is not None
    return found


def _listed(rows: DataFrame) -> list[str]:
    found = rows.toArrow().to_pylist()
    return sorted(repr({name: 0.0 if value == 0 else value for name, value in row.items()}) for row in found)


@pytest.mark.parametrize("what", MADE)
def test_rows_equal_those_of_spark(spark: SparkSession, what: str) -> None:
    here = MADE[what](_frame(spark))
    there = MADE[what](SparkRows(in_spark(_frame(spark))))
    assert here.columns == there.columns
    kinds = [field.dataType.simpleString() for field in there.schema]
    assert [field.dataType.simpleString() for field in here.schema] == kinds
    assert _listed(here) == _listed(there)


@pytest.mark.parametrize("order", [["k", "n"], ["k DESC", "v"], ["v DESC NULLS FIRST", "n"], ["t NULLS LAST"]])
def test_rows_are_sorted_like_in_spark(spark: SparkSession, order: list[str]) -> None:
    here = _frame(spark).in_order([*order, "n"])
    assert here is not None
    there = SparkRows(in_spark(_frame(spark))).in_order([*order, "n"])
    assert repr(here.toArrow().to_pylist()) == repr(there.toArrow().to_pylist())


@pytest.mark.parametrize("text", [
    "soundex(k)", "hex(k)", "CAST(v AS STRING)", "try_cast(k AS FLOAT)", "trim(LEADING 'a' FROM k)",
    "explode(sequence(5L, 1L, -2L))",
])  # fmt: skip
def test_spark_computes_what_has_no_translation(spark: SparkSession, text: str) -> None:
    found = _frame(spark).selectExpr("n", f"{text} AS x")
    assert not _frame(spark).translates(text)
    assert _listed(found) == _listed(in_spark(_frame(spark)).selectExpr("n", f"{text} AS x"))


@pytest.mark.parametrize("text", [
    "lag(n) IGNORE NULLS OVER (ORDER BY k, n)", "count(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "rand()",
])  # fmt: skip
def test_what_is_no_function_of_a_row_and_has_no_translation_is_refused(spark: SparkSession, text: str) -> None:
    assert not _frame(spark).can(text)
    with pytest.raises(Untranslated):
        _frame(spark).selectExpr("n", f"{text} AS x")


def test_a_text_that_looks_like_generated_sql_stays_a_text(spark: SparkSession) -> None:
    found = _frame(spark).selectExpr("n", "'x FROM {} -- \\'; c0' AS s").where("s <> '{'")
    assert set(found.toArrow()["s"].to_pylist()) == {"x FROM {} -- '; c0"}


@pytest.mark.parametrize("text", ["n * 4", "n DIV (n - 1)", "n % (n - 1)", "v / (n - 1)"])
def test_rows_that_cannot_be_computed_raise_and_are_not_dropped(spark: SparkSession, text: str) -> None:
    with pytest.raises(Uncomputed):
        _frame(spark).computed([text])


def test_a_series_counts_down_without_a_step_and_fails_with_a_positive_one(spark: SparkSession) -> None:
    rows = _frame(spark).where("n < 10")
    compared = [repr(of.selectExpr("n", "explode(sequence(n, 2L)) AS x").toArrow().to_pylist()) for of in (
        rows, spark.createDataFrame(rows.toArrow())
    )]  # fmt: skip
    assert compared[0] == compared[1]
    with pytest.raises(Uncomputed, match="ivision by zero"):
        rows.selectExpr("explode(sequence(n, 2L, 1L)) AS x").toArrow()


NOT_READ = [
    "max(n) OVER w", "CAST(n AS STRING FORMAT 'x')", "n IN (SELECT 1)", "other.k.n",
    "n BETWEEN SYMMETRIC 3 AND 1",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_READ)
def test_parts_that_a_rule_does_not_read_are_not_translated(spark: SparkSession, text: str) -> None:
    """A rule that reads only a part of a node, such as a series without its step, would return another value."""
    assert not _frame(spark).translates(text)


def test_a_sum_beyond_its_type_is_not_computed(spark: SparkSession) -> None:
    found = grouped(_frame(spark).selectExpr("k", "4611686018427387904L AS n"), [], ["sum(n) AS s"])
    with pytest.raises(Uncomputed):
        found.toArrow()


def test_a_shared_frame_is_computed_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = _frame(spark).where("n > 1")
    frame.share()
    first = frame.selectExpr("n")  # the frame is computed once, for all its readers
    monkeypatch.setattr("rowtime.frames.queries.Query.rows", lambda _query: pytest.fail("it is computed again"))
    assert frame.count() == 4
    monkeypatch.undo()
    assert sorted(first.toArrow()["n"].to_pylist()) == [2, 3, 7, 2**62]


@pytest.mark.parametrize("kind", ["interval year to month", "interval", "array<interval month>", "void"])
def test_other_types_are_not_held(kind: str) -> None:
    assert not holds(kind)


def test_columns_that_a_table_lacks_are_null() -> None:
    made = put_together([("a", "bigint"), ("b", "string")], [pa.table({"a": [1]}), pa.table({"b": ["x"], "a": [2]})])
    assert made.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0], [-0.0]])
def test_a_group_of_both_zeros_has_the_positive_one(spark: SparkSession, zeros: list[float]) -> None:
    frame = _frame(spark, [("v", "double")], {"v": zeros})
    for rows in (frame, SparkRows(in_spark(frame))):
        found = rows.grouped(["v"], ["count(*) AS n"]).toArrow().to_pylist()
        assert repr(found) == repr([{"v": 0.0, "n": len(zeros)}])


def test_duplicate_names_cannot_be_used(spark: SparkSession) -> None:
    frame = Frame(spark, [("a", "bigint"), ("A", "bigint")], pa.table({"c0": [1], "c1": [2]}))
    assert not frame.can("a")
