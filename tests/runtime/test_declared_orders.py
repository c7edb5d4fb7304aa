"""Columns with a declared order: rows that break it are refused, and groups close by them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)


def made(spark: SparkSession, folder: Path, sql: str, got: list[dict[str, Any]]) -> rt.Pipeline:
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    return pipeline


def send(folder: Path, first: int, *values: Any, writer: str = "main") -> None:
    with rt.writer("orders", home=folder / "home", writer=writer) as log:
        log.insert([{"oid": v, "rowtime": f"2024-01-01 10:00:{n:02}"} for n, v in enumerate(values, first)])


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([4, 8], id="two ticks"),
        pytest.param([*range(1, 9)], id="a tick an item", marks=pytest.mark.slow),
        pytest.param([8], id="one tick", marks=pytest.mark.slow),
    ],
)
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
    send(tmp_path, 0, 9, 8, 4, writer="b")  # the same rowtimes as a, which is the first input
    query = pipeline.run_available(tmp_path / "check")
    assert [row["oid"] for row in got] == [9, 7, 5]
    assert query.ledger["orders.oid"] == {"in": 5, "accepted": 3, "BROKEN_ORDER": 2}, "b may still have a row at 2"
    refused = [row for path in query.rejected("orders.oid") for row in pq.read_table(path).to_pylist()]
    assert sorted((row["oid"], row["writer"], row["position"]) for row in refused) == [(8, "b", 1), (9, "b", 0)]


SUMS = "SELECT STREAM MONOTONIC(oid + n) AS m, COUNT(*) AS c FROM orders GROUP BY MONOTONIC(oid + n)"


@pytest.mark.parametrize(
    ("sql", "refused"),
    [
        ("oid BIGINT ASCENDING, n INT DESCENDING); SELECT STREAM n FROM orders", {"orders.oid": [1], "orders.n": [2]}),
        (f"oid BIGINT, n INT); {SUMS}", {"query": [1, 3]}),
    ],
)
@pytest.mark.parametrize("parts", [[1, 2, 3, 4], [4]], ids=str)
def test_a_row_behind_a_merge_is_refused_under_its_writer_s_name_and_position(
    spark: SparkSession, tmp_path: Path, parts: list[int], sql: str, refused: dict[str, list[int]]
) -> None:
    rows, before = [(5, 9), (4, 8), (6, 10), (7, 1)], 0
    for upto in parts:
        query = made(spark, tmp_path, f"CREATE STREAM orders ({sql}", [])
        at, part = "2024-01-01 10:00:0", list(enumerate(rows[before:upto], before))
        with rt.writer("orders", home=tmp_path / "home", writer="a") as log:
            log.set_rowtime_bound(f"{at}{upto}")
        with rt.writer("orders", home=tmp_path / "home", writer="b") as log:
            log.insert([{"oid": oid, "n": n, "rowtime": f"{at}{second}"} for second, (oid, n) in part])
        done, before = query.run_available(tmp_path / "check"), upto
    for gate, expected in refused.items():
        found = [row for path in done.rejected(gate) for row in pq.read_table(path).to_pylist()]
        assert [(row["writer"], row["position"]) for row in found] == [("b", at) for at in expected], gate


@pytest.mark.parametrize(
    ("kind", "values", "accepted"),
    [
        ("TIMESTAMP ASCENDING", ["2024-01-01 00:00:01", "2024-01-01 00:00:00.999999", "2024-01-01 00:00:02"], [0, 2]),
        ("DATE DESCENDING", ["2024-01-02", "2024-01-03", "2024-01-01"], [0, 2]),
        ("DECIMAL(9, 2) ASCENDING", ["1.50", "1.49", "1.51"], [0, 2]),
        ("DECIMAL(30, 2) DESCENDING", ["99999999999999999999.50", "99999999999999999999.51", "-1.00"], [0, 2]),
        ("STRING ASCENDING", ["Z", "a", "b'\\", "B", "é"], [0, 1, 2, 4]),
        ("STRING STRICTLY DESCENDING", ["b", "b", "a", None, ""], [0, 2, 4]),
        ("DOUBLE ASCENDING", [0.0, -0.0, float("nan"), 1e300, 1.0, float("inf")], [0, 1, 3, 5]),
        ("FLOAT DESCENDING", [0.1, 0.1, 0.2, float("-inf")], [0, 1, 3]),
        ("BOOLEAN ASCENDING", [False, True, False], [0, 1]),
        ("BIGINT ASCENDING WITHIN 2 ROWS", [5, 9, 4, 3, 9, 8, 10, 8], [0, 1, 2, 4, 6]),
        ("STRING ASCENDING WITHIN 1 ROW", ["b", "a", "c", "a", "b"], [0, 1, 2]),
        ("DATE ASCENDING WITHIN INTERVAL '1' DAY", ["2024-01-03", "2024-01-02", "2024-01-04", "2024-01-02"], [0, 1, 2]),
        ("TIMESTAMP DESCENDING WITHIN INTERVAL '1' SECOND",
         ["2024-01-01 00:00:02", "2024-01-01 00:00:03", "2024-01-01 00:00:03.1", "2024-01-01 00:00:01",
          "2024-01-01 00:00:02.5"], [0, 1, 3]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("parts", [1, pytest.param(3, marks=pytest.mark.slow)], ids=["one start", "three starts"])
def test_a_column_of_any_ordered_type_can_be_declared(
    spark: SparkSession, tmp_path: Path, kind: str, values: list[Any], accepted: list[int], parts: int
) -> None:
    sql = f"CREATE STREAM orders (oid {kind}); SELECT STREAM oid, COUNT(*) AS n FROM orders GROUP BY oid"
    got: list[dict[str, Any]] = []
    for part in range(parts):
        first, last = len(values) * part // parts, len(values) * (part + 1) // parts
        pipeline = made(spark, tmp_path, sql, got)
        send(tmp_path, first, *values[first:last])
        query = pipeline.run_available(tmp_path / "check")
    pipeline = made(spark, tmp_path, "SELECT STREAM oid FROM orders", seen := [])
    pipeline.run_available(tmp_path / "seen")
    assert [row["rowtime"].second for row in seen] == accepted
    assert query.ledger["orders.oid"]["accepted"] == len(accepted)
    assert len({row["oid"] for row in got}) == len(got), "a group came twice"
    if "WITHIN" not in kind:
        order = -1 if "DESCENDING" in kind else 1
        whole = [row["oid"] for row in seen if row["oid"] != seen[-1]["oid"]]
        assert [row["oid"] for row in got] == sorted(set(whole), reverse=order < 0), "all but the last are complete"


@pytest.mark.parametrize(
    ("definition", "what"),
    [
        ("BIGINT STRICTLY ASCENDING WITHIN 3 ROWS", "contradict"),
        ("BIGINT ASCENDING WITHIN 0 ROWS", "1 to 10000"),
        ("BIGINT ASCENDING WITHIN 10001 ROWS", "1 to 10000"),
        ("BIGINT ASCENDING WITHIN INTERVAL '1' SECOND", "dates and times"),
        ("DATE ASCENDING WITHIN INTERVAL '1' MONTH", "duration"),
        ("DATE ASCENDING WITHIN INTERVAL '0' DAY", "duration"),
    ],
)
def test_tolerances_that_make_no_sense_are_refused(definition: str, what: str) -> None:
    (problem,) = rt.check(f"CREATE STREAM orders (oid {definition})")
    assert problem.code == "R140"
    assert what in problem.message


def test_a_value_that_may_go_back_has_no_order(tmp_path: Path) -> None:
    assert rt.order_of("oid", {"oid": "BIGINT ASCENDING WITHIN 100 ROWS"}) == "none"
    text = "CREATE STREAM orders (oid BIGINT ASCENDING WITHIN 100 ROWS); SELECT STREAM oid FROM orders ORDER BY oid"
    assert [problem.code for problem in rt.check(text)] == ["R138"]
