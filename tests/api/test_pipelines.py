"""Pipelines with several streams, views and pumps; writers that join and leave; rejected rows as a stream."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.time import to_micros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(2)


def at(text: str) -> str:
    return f"2024-01-01 {text}"


class Collector:
    """A sink that collects its rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.firsts: list[int] = []
        self.bound = 0

    def __call__(self, batch: rt.Batch) -> None:
        self.bound = batch.bound
        if batch.count:
            self.firsts.append(batch.first)
            self.rows.extend(batch.table().to_pylist())


def pipeline(spark: SparkSession, tmp_path: Path, sql: str) -> tuple[rt.Pipeline, Collector]:
    result = Collector()
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", result)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)
    return made, result


def send(tmp_path: Path, stream: str, *items: tuple[str, Any], writer: str = "main") -> None:
    """Rows ``(time, value)`` of a stream with the column v."""
    with rt.writer(stream, home=tmp_path / "home", writer=writer) as log:
        for when, value in items:
            log.insert([{"rowtime": at(when), "v": value}])


def test_a_pump_feeds_a_stream_that_is_read_in_the_same_pipeline_and_by_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    made, result = pipeline(
        spark,
        tmp_path,
        """CREATE STREAM a (v INT); CREATE STREAM b (v INT);
           CREATE PUMP p AS INSERT INTO b SELECT STREAM v * 10 AS v FROM a WHERE v > 1;
           SELECT STREAM v + 1 AS w FROM b""",
    )
    send(tmp_path, "a", ("10:00:00", 1), ("10:00:01", 2), ("10:00:02", 3))
    made.run_available(tmp_path / "check")
    assert [row["w"] for row in result.rows] == [21, 31]
    second, chained = pipeline(spark, tmp_path, "SELECT STREAM v FROM b")
    second.run_available(tmp_path / "check2")
    assert [(row["rowtime"].second, row["v"]) for row in chained.rows] == [(1, 20), (2, 30)]
    assert chained.bound == to_micros(at("10:00:02"))


def test_a_stream_read_by_two_queries_is_taken_once(spark: SparkSession, tmp_path: Path) -> None:
    made, result = pipeline(
        spark,
        tmp_path,
        """CREATE STREAM a (v INT); CREATE STREAM big (v INT); CREATE VIEW small AS SELECT STREAM v FROM a WHERE v < 3;
           CREATE PUMP p AS INSERT INTO big SELECT STREAM v FROM a WHERE v >= 3;
           SELECT STREAM v FROM small UNION ALL SELECT STREAM -v AS v FROM small""",
    )
    assert [node.name for node in made.compile().operators if node.kind == "stream"] == ["a"]
    send(tmp_path, "a", ("10:00:00", 1), ("10:00:01", 5))
    made.run_available(tmp_path / "check")
    assert [row["v"] for row in result.rows] == [1, -1]
    send(tmp_path, "a", ("10:00:02", 2))
    made.run_available(tmp_path / "check")
    # Input 1 may still send a row at 10:00:02, which would come before that of input 2.
    assert [row["v"] for row in result.rows] == [1, -1, 2]


def test_rejected_rows_are_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    made, result = pipeline(
        spark, tmp_path, "CREATE STREAM a (v INT); SELECT STREAM v, reason, writer, position FROM a.rejected"
    )
    send(tmp_path, "a", ("10:00:05", 1), ("10:00:01", 2), ("10:00:06", 3), ("10:00:02", 4))
    made.run_available(tmp_path / "check")
    shown = [(row["v"], row["reason"], row["writer"], row["position"], row["rowtime"].second) for row in result.rows]
    assert shown == [(2, "OUT_OF_ORDER", "main", 1, 5), (4, "OUT_OF_ORDER", "main", 3, 6)]


def test_a_silent_writer_holds_the_stream_until_it_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    made, result = pipeline(
        spark, tmp_path, "CREATE STREAM a (v INT) IDLE AFTER INTERVAL '1' SECOND; SELECT STREAM v FROM a"
    )
    send(tmp_path, "a", ("10:00:00", 1), writer="x")
    send(tmp_path, "a", ("10:00:05", 2), ("10:00:06", 3), writer="y")
    query = made.start(tmp_path / "check")
    wait_for(lambda: len(result.rows) >= 1)
    assert [row["v"] for row in result.rows] == [1]
    wait_for(lambda: len(result.rows) == 3)
    # x returns with a row below the stream's clock, which is late, and then with one above it, which counts as usual.
    send(tmp_path, "a", ("10:00:03", 4), ("10:00:09", 5), writer="x")
    wait_for(lambda: query.ledger.get("a", {}).get("LATE") == 1)
    query.stop()
    assert "idle" in str(query.engine.entry["sources"]["a"]["away"]) or len(result.rows) >= 3


def test_a_writer_that_leaves_holds_no_row(spark: SparkSession, tmp_path: Path) -> None:
    made, result = pipeline(spark, tmp_path, "CREATE STREAM a (v INT); SELECT STREAM v FROM a")
    send(tmp_path, "a", ("10:00:00", 1), writer="x")
    send(tmp_path, "a", ("10:00:05", 2), writer="y")
    made.run_available(tmp_path / "check")
    assert [row["v"] for row in result.rows] == [1]
    rt.writer("a", home=tmp_path / "home", writer="x").close(leave=True)
    made.run_available(tmp_path / "check")
    assert [row["v"] for row in result.rows] == [1, 2]


def test_without_a_given_rowtime_the_arrival_time_is_the_rowtime_and_closes_groups(
    spark: SparkSession, tmp_path: Path
) -> None:
    made, result = pipeline(
        spark,
        tmp_path,
        """CREATE STREAM a (v INT);
           SELECT STREAM COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO SECOND)""",
    )
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"v": 1}, {"v": 2}])
    query = made.start(tmp_path / "check")
    wait_for(lambda: sum(row["c"] for row in result.rows) == 2)
    query.stop()


def test_statements_that_insert_and_set_bounds_act_once_per_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    made, result = pipeline(
        spark,
        tmp_path,
        """CREATE STREAM a (v INT, s STRING);
           INSERT INTO a (ROWTIME, v, s) VALUES
             (TIMESTAMP '2024-01-01 10:00:00', 1, 'x'), (TIMESTAMP '2024-01-01 10:30:00', 2, NULL);
           ALTER STREAM a SET ROWTIME BOUND TIMESTAMP '2024-01-01 11:00:00';
           SELECT STREAM COUNT(*) AS c, COUNT(s) AS d FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)""",
    )
    made.run_available(tmp_path / "check")
    made.run_available(tmp_path / "check")
    assert [(row["c"], row["d"]) for row in result.rows] == [(2, 1)]


def test_a_stream_in_memory_is_a_table_for_notebooks(spark: SparkSession, tmp_path: Path) -> None:
    made, _ = pipeline(
        spark,
        tmp_path,
        "CREATE STREAM a (v INT); CREATE STREAM seen (v INT) USING memory; "
        "CREATE PUMP p AS INSERT INTO seen SELECT STREAM v FROM a",
    )
    send(tmp_path, "a", ("10:00:00", 1), ("10:00:01", 2))
    table = made.run_available(tmp_path / "check").table("seen")
    assert table is not None
    assert table["v"].to_pylist() == [1, 2]


def test_a_bound_without_a_writer_is_given_to_each_present_writer(spark: SparkSession, tmp_path: Path) -> None:
    made, result = pipeline(
        spark, tmp_path, "CREATE STREAM a (v INT); SELECT STREAM COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)"
    )
    send(tmp_path, "a", ("10:00:00", 1), writer="x")
    send(tmp_path, "a", ("10:00:00", 1), writer="y")
    made.run_available(tmp_path / "check")
    assert result.rows == []
    with rt.writer("a", home=tmp_path / "home", writer="*") as everyone:
        everyone.set_rowtime_bound(at("11:00:00"))
    made.run_available(tmp_path / "check")
    assert [row["c"] for row in result.rows] == [2]


@pytest.mark.parametrize("kept", ["COUNT(*)", "COUNT(DISTINCT v)"])
def test_sequence_numbers_go_on_after_a_restart(spark: SparkSession, tmp_path: Path, kept: str) -> None:
    made, result = pipeline(
        spark,
        tmp_path,
        f"CREATE STREAM a (v INT); SELECT STREAM {kept} AS c FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE)",
    )
    for minute in range(4):
        send(tmp_path, "a", (f"10:0{minute}:00", 1), (f"10:0{minute}:30", 1))
        made.run_available(tmp_path / "check")
    assert result.firsts == [0, 1, 2]
    expected = 1 if "DISTINCT" in kept else 2
    assert [row["c"] for row in result.rows] == [expected] * 3


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
