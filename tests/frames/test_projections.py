"""A query that only computes columns of many rows copies none of the others, and gives what one query gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from rowtime.frames import queries
from rowtime.frames.frame import Frame
from rowtime.frames.queries import FEW_ROWS, Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 400_000  # several vectors and threads of DuckDB
FIELDS = [("k", "string"), ("n", "bigint"), ("t", "timestamp"), ("v", "double")]
QUERIES: dict[str, Callable[[Any], Any]] = {
    "a column more": lambda rows: rows.selectExpr("*", "n * 2 AS m"),
    "columns in another order": lambda rows: rows.selectExpr("v", "n + 1 AS m", "k"),
    "a column twice": lambda rows: rows.selectExpr("n", "n AS m", "n % 7 AS r"),
    "one over another": lambda rows: rows.selectExpr("k", "n % 5 AS m", "t").selectExpr("m + 1 AS a", "t", "m", "k"),
    "times as numbers": lambda rows: rows.selectExpr("unix_micros(t) AS u", "n + 1 AS m", "7 AS c", "'x' AS d"),
    "times of numbers": lambda rows: rows.selectExpr("timestamp_micros(n) AS u", "n + 1 AS m"),
    "times of computed numbers": lambda rows: rows.selectExpr("n * 3 AS m").selectExpr("timestamp_micros(m) AS u", "m"),
    "a filter below": lambda rows: rows.where("n % 3 = 0").selectExpr("k", "n + 1 AS m"),
    "a filter above": lambda rows: rows.selectExpr("k", "n + 1 AS m").where("m % 3 = 0"),
    "more rows": lambda rows: rows.selectExpr("n", "explode(sequence(1L, 1 + n % 3)) AS i"),
    "a window": lambda rows: rows.selectExpr("n", "row_number() OVER (PARTITION BY k ORDER BY n) AS i"),
    "one group": lambda rows: rows.grouped([], ["sum(n) AS s", "count(*) AS c"]),
    "groups": lambda rows: rows.grouped(["k"], ["sum(n) AS s"]),
    "rows in order": lambda rows: rows.selectExpr("n", "t", "n % 5 AS m").in_order(["m", "n"]),
    "a column less": lambda rows: rows.drop("k").selectExpr("v", "n - 1 AS m"),
}
UNORDERED = {"groups", "a window", "more rows"}


def frame(spark: SparkSession, count: int = COUNT) -> Frame:
    numbers = np.random.default_rng(1).permutation(count)
    tables = []
    for part in np.array_split(numbers, 5):
        texts, times = pa.array(part % 11).cast(pa.string()), pa.array(part * 1_000, pa.timestamp("us"))
        tables.append(pa.table({"k": texts, "n": part, "t": times, "v": part / 3}))
    rows = Frame.of(spark, pa.concat_tables(tables), FIELDS)
    assert rows is not None
    return rows


@pytest.mark.parametrize("name", QUERIES)
def test_the_rows_are_those_of_one_query(spark: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = QUERIES[name](frame(spark)).toArrow()
    monkeypatch.setattr(Query, "_projected", lambda *_: None)
    wanted = QUERIES[name](frame(spark)).toArrow()
    assert wanted.num_rows > 0
    if name in UNORDERED:
        order = [(column, "ascending") for column in wanted.column_names]
        rows, wanted = rows.sort_by(order), wanted.sort_by(order)
    assert rows.equals(wanted)


def test_columns_that_stay_are_not_copied(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    unprepared = Query._unprepared
    monkeypatch.setattr(
        Query, "_unprepared", lambda query, *a, **k: asked.append(query.sql) or unprepared(query, *a, **k)
    )
    rows = frame(spark)
    result = rows.selectExpr("*", "n * 2 AS m")
    for name in rows.columns:
        ours, theirs = (of.column(name).chunk(0).buffers()[-1] for of in (result, rows))  # type: ignore[attr-defined]
        assert ours.address == theirs.address
    assert [sql.split(" FROM ")[0] for sql in asked] == ["SELECT c4"]


def test_few_rows_are_one_query(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(queries.Query, "_projected")
    assert frame(spark, FEW_ROWS).selectExpr("*", "n * 2 AS m").toArrow().num_rows == FEW_ROWS


def test_a_planted_fault_is_found(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    projected = Query._projected

    def wrong(query: Query, projection: Any) -> pa.Table | None:
        table = projected(query, projection)
        return (
            table
            if table is None
            else table.set_column(0, "c0", table.column(0).take(pa.array(range(table.num_rows))[::-1]))
        )

    monkeypatch.setattr(Query, "_projected", wrong)
    with pytest.raises(AssertionError):
        test_the_rows_are_those_of_one_query(spark, "a column more", monkeypatch)
