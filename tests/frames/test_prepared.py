"""A query that repeats is prepared, and gives the rows that it gives if it is not."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowtime.frames import prepared, queries
from rowtime.frames.frame import Frame
from rowtime.frames.queries import Query, Uncomputed
from rowtime.operators.contract.texts import passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

FIELDS = [("n", "bigint"), ("k", "string"), ("t", "timestamp")]


@pytest.fixture(autouse=True)
def connection() -> Iterator[None]:
    queries.close()
    yield
    queries.close()


def rows(seed: int, count: int = 50) -> pa.Table:
    of = random.Random(seed)
    return pa.table({
        "n": pa.array([of.choice([None, of.randrange(20), -(2**63), 2**63 - 1]) for _ in range(count)], pa.int64()),
        "k": [of.choice(["a", "b", "t1", "it's t2", None]) for _ in range(count)],
        "t": pa.array([of.choice([None, of.randrange(10**9)]) for _ in range(count)], pa.timestamp("us", "UTC")),
    })  # fmt: skip


def made(spark: SparkSession, seed: int) -> Any:
    """A chain of what operators do, over other rows and with other numbers for each seed."""
    of = random.Random(seed)
    low, high = sorted(of.choice([-(2**63), of.randrange(20), 2**63 - 1]) for _ in "ab")
    frame = Frame.of(spark, rows(seed), FIELDS)
    other = Frame.of(spark, rows(seed + 1000), FIELDS)
    assert frame is not None
    assert other is not None
    wanted = f"n >= {passed(low, 'n')} AND n <= {passed(high, 'n')}"
    found: Any = frame.where(f"{wanted} OR k = 't1 xor(CAST(5 AS BIGINT), 0)'")
    found = found.unionByName(other.where(f"unix_micros(t) > {passed(of.randrange(10**9), 'unix_micros(t)')}"))
    found = found.grouped(["k"], ["count(*) AS c", "max(n) AS m", "min(t) AS t"])
    return found.selectExpr("*", f"{passed(seed, 'c')} AS seed", "concat(k, ' t7') AS label").sortWithinPartitions("k")


def statements() -> list[str]:
    return [one.name for one in queries._statements()._known.values() if one.rows]


def views() -> list[str]:
    sql = "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY view_name"
    return [name for (name,) in queries._connection(few=True).execute(sql).fetchall()]


def unprepared(query: Query) -> pa.Table:
    return query._unprepared(queries._connection(few=True), few=True)


def test_a_prepared_query_gives_the_rows_of_the_query(spark: SparkSession) -> None:
    for seed in range(30):
        frame = made(spark, seed)
        assert frame.query.rows().equals(unprepared(frame.query)), seed
    assert len(statements()) == 1


def test_rows_of_the_tick_before_are_found(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the views keep what they had."""
    began = prepared._Run.__enter__

    def stale(run: prepared._Run) -> str:
        had = [one.table for one in run.statement.rows]
        text = began(run)
        for one, before in zip(run.statement.rows, had, strict=True):
            one.table = before or one.table
        return text

    monkeypatch.setattr(prepared._Run, "__enter__", stale)
    monkeypatch.setattr(prepared._Run, "__exit__", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_prepared_query_gives_the_rows_of_the_query(spark)


def test_the_rows_are_released(spark: SparkSession) -> None:
    for seed in range(3):
        made(spark, seed).query.rows()
    [statement] = [one for one in queries._statements()._known.values() if one.rows]
    assert [one.table for one in statement.rows] == [None, None]


def test_a_query_that_comes_once_is_not_prepared() -> None:
    Query("SELECT c0 + 1 AS c0 FROM t1", {"t1": pa.table({"c0": [1]})}).rows()
    assert statements() == []


def test_other_types_of_the_same_names_are_another_statement() -> None:
    for values in ([1, 2], [1.5], [3], [2.5], [4], [0.5]):
        table = pa.table({"c0": values})
        assert Query("SELECT c0 + c0 AS c0 FROM t9", {"t9": table}).rows()["c0"].to_pylist() == [2 * v for v in values]
    assert len(statements()) == 2


def test_the_names_and_numbers_of_the_query_are_all_that_differs() -> None:
    def read(number: int, name: str) -> list[Any]:
        sql = f"""SELECT c0, 'it''s t3, xor(CAST(1 AS BIGINT), 0)' AS "t4" FROM {name}
            WHERE c0 > CASE WHEN c0 IS NOT NULL THEN xor(CAST({number} AS BIGINT), 0) END"""
        return Query(sql, {name: pa.table({"c0": [1, 2, 3]})}).rows().to_pylist()

    text = "it's t3, xor(CAST(1 AS BIGINT), 0)"
    for number in (0, 1, 2, -5, 3):
        assert read(number, f"t{number + 50}") == [{"c0": n, "t4": text} for n in (1, 2, 3) if n > number]
    assert len(statements()) == 1


def test_a_table_that_the_pattern_does_not_know_is_read_all_the_same() -> None:
    for _ in range(3):
        assert Query("SELECT * FROM others", {"others": pa.table({"c0": [1]})}).rows()["c0"].to_pylist() == [1]
    assert statements() == []


def test_an_error_of_the_values_is_reported_and_the_next_rows_are_computed() -> None:
    def plus(value: int) -> Any:
        table = pa.table({"c0": pa.array([value], pa.int64())})
        return Query("SELECT c0 + CAST(1 AS BIGINT) AS c0 FROM t5", {"t5": table}).rows()["c0"].to_pylist()

    assert [plus(1), plus(2)] == [[2], [3]]
    with pytest.raises(Uncomputed, match="Overflow"):
        plus(2**63 - 1)
    assert plus(3) == [4]


def test_a_query_that_cannot_be_prepared_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "PASSED", "nothing_of_this_name({})")
    for number in range(4):
        sql = f"SELECT c0 + xor(CAST({number} AS BIGINT), 0) AS c0 FROM t6"
        assert Query(sql, {"t6": pa.table({"c0": [1]})}).rows()["c0"].to_pylist() == [1 + number]
    assert statements() == []
    assert views() == []


def test_only_the_statements_that_are_used_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MOST", 3)
    for _ in range(2):
        for number in range(3):
            Query(f"SELECT c0 AS c0, {number} AS c1 FROM t1", {"t1": pa.table({"c0": [1]})}).rows()
    assert len(statements()) == 3
    for number in range(3, 5):
        for _ in range(3):
            query = Query(f"SELECT c0 AS c0, {number} AS c1 FROM t1", {"t1": pa.table({"c0": [number]})})
            assert query.rows().to_pylist() == [{"c0": number, "c1": number}]
    assert sorted(f"{name}_0" for name in statements()) == views()
    assert len(views()) == 3
