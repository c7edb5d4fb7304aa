"""Columns with a declared order: rows that break it are refused, and groups close by them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def made(spark: SparkSession, folder: Path, sql: str, got: list[dict[str, Any]]) -> rt.Pipeline:
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    return pipeline


def send(folder: Path, first: int, *values: Any, writer: str = "main") -> None:
    with rt.writer("orders", home=folder / "home", writer=writer) as log:
        log.insert([{"oid": v, "rowtime": f"2024-01-01 10:00:{n:02}"} for n, v in enumerate(values, first)])


@pytest.mark.parametrize("parts", [[4, 8], [1, 2, 3, 4, 5, 6, 7, 8], [8]], ids=str)
def test_groups_close_by_a_function_of_a_declared_column(spark: SparkSession, tmp_path: Path, parts: list[int]) -> None:
    sql = """CREATE STREAM orders (oid BIGINT ASCENDING);
        CREATE VIEW tens AS SELECT STREAM oid DIV 10 AS ten, oid FROM orders WHERE oid <> 13;
        SELECT STREAM ten, COUNT(*) AS n, MAX(oid) AS most FROM tens GROUP BY ten HAVING COUNT(*) > 0"""
    got: list[dict[str, Any]] = []
    values, before = [1, 5, 12, 7, 13, 19, None, 31], 0
    for upto in parts:  # each part is another start
        pipeline = made(spark, tmp_path, sql, got)
        send(tmp_path, before, *values[before:upto])
        query = pipeline.run_available(tmp_path / "check")
        before = upto
    assert [(row["rowtime"].second, row["ten"], row["n"], row["most"]) for row in got] == [(1, 0, 2, 5), (5, 1, 2, 19)]
    assert query.ledger["orders.oid"] == {"in": 8, "accepted": 6, "BROKEN_ORDER": 2}
    refused: list[dict[str, Any]] = []
    made(spark, tmp_path, "SELECT STREAM oid, reason FROM orders.rejected", refused).run_available(tmp_path / "other")
    assert [(row["rowtime"].second, row["oid"], row["reason"]) for row in refused] == [
        (3, 7, "BROKEN_ORDER"), (6, None, "BROKEN_ORDER"),
    ]  # fmt: skip


def test_the_order_is_that_of_the_stream_whatever_the_writers(spark: SparkSession, tmp_path: Path) -> None:
    got: list[dict[str, Any]] = []
    pipeline = made(
        spark, tmp_path, "CREATE STREAM orders (oid INT STRICTLY DESCENDING); SELECT STREAM oid FROM orders", got
    )
    send(tmp_path, 0, 9, 7, 5, writer="a")
    send(tmp_path, 0, 9, 8, 4, writer="b")  # rowtimes as those of a, which comes first
    query = pipeline.run_available(tmp_path / "check")
    assert [row["oid"] for row in got] == [9, 7, 5]
    assert query.ledger["orders.oid"] == {"in": 5, "accepted": 3, "BROKEN_ORDER": 2}, "b may still have a row at 2"


def test_times_and_decimals_can_be_declared_and_text_cannot(spark: SparkSession, tmp_path: Path) -> None:
    sql = """CREATE STREAM orders (oid {}); SELECT STREAM oid, COUNT(*) AS n FROM orders GROUP BY oid"""
    for number, (kind, values) in enumerate([
        ("TIMESTAMP ASCENDING", ["2024-01-01 00:00:01", "2024-01-01 00:00:00.999999", "2024-01-01 00:00:02"]),
        ("DATE ASCENDING", ["2024-01-02", "2024-01-01", "2024-01-03"]),
        ("DECIMAL(9, 2) ASCENDING", ["1.50", "1.49", "1.51"]),
    ]):  # fmt: skip
        got: list[dict[str, Any]] = []
        folder = tmp_path / str(number)
        pipeline = made(spark, folder, sql.format(kind), got)
        send(folder, 0, *values)
        query = pipeline.run_available(folder / "check")
        assert [row["n"] for row in got] == [1]
        assert query.ledger["orders.oid"]["BROKEN_ORDER"] == 1
    pipeline = made(spark, tmp_path, sql.format("STRING ASCENDING"), [])
    send(tmp_path, 0, "a")
    with pytest.raises(rt.Refused) as refused:
        pipeline.run_available(tmp_path / "check")
    assert refused.value.problems[0].code == "R107"
