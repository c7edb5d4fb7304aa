"""Writers that leave (semantics 2.6): what they made certain stays certain, in a stream log and in `verify`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sinks.contract import Batch

DEPARTURES = """
CREATE STREAM s (ev TIMESTAMP, n INT);
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, n FROM s ORDER BY ev WITHIN INTERVAL '1' MINUTE;
{more}
SELECT STREAM n FROM sorted;
"""
VALUES = """INSERT INTO s (ev, n) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1), (TIMESTAMP '2024-01-01 10:03:00', 2),
  (TIMESTAMP '2024-01-01 10:04:30', 3);"""


def test_a_script_that_inserts_values_below_a_tsort_shows_them(spark: SparkSession, tmp_path: Path) -> None:
    got: list[Any] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(DEPARTURES.format(more=VALUES))
    query = pipeline.sink("result", lambda batch: _take(batch, got)).run_available(tmp_path / "check")
    assert got == [1, 2]
    assert query.bounds["sorted"] == "2024-01-01 10:03:30"
    assert query.ledger["sorted"] == {"in": 3, "accepted": 3}


def test_rows_inserted_by_a_script_without_a_rowtime_are_verified(spark: SparkSession, tmp_path: Path) -> None:
    sql = f"""CREATE STREAM s (w STRING);
    CREATE STREAM o (w STRING) USING parquet OPTIONS (path '{tmp_path}/out');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM w FROM s;
    INSERT INTO s VALUES ('a'), ('b');"""
    rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(tmp_path / "check")
    found = rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert found.equal, found
    assert found.outputs[0].rows == 2


def test_a_writer_that_returns_after_a_restart_continues_at_its_own_clock(spark: SparkSession, tmp_path: Path) -> None:
    got: list[Any] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql("CREATE STREAM s (n INT); SELECT STREAM n FROM s;")
    pipeline.sink("result", lambda batch: _take(batch, got))

    def send(writer: str, *minutes: int) -> None:
        with rt.writer("s", home=tmp_path / "home", writer=writer) as opened:
            opened.insert([{"n": minute, "rowtime": f"2024-01-01 10:{minute:02}:00"} for minute in minutes])
            opened.close(leave=True)

    pipeline.run_available(tmp_path / "check")
    for writer, minutes in (("a", [5]), ("b", [9]), ("a", [3, 7, 10]), ("a", [8, 12])):
        send(writer, *minutes)
        query = pipeline.run_available(tmp_path / "check")
    # 3 and 8 are below the writer's own clock; 7 is only below the stream's clock when a returned.
    assert query.ledger["s"] == {"in": 7, "accepted": 4, "OUT_OF_ORDER": 2, "LATE": 1}
    assert got == [5, 9, 10, 12]
    found = rt.verify(tmp_path / "check", pipeline, received={"query": _table(got)})
    assert all(output.differences == 0 for output in found.outputs if output.kind == "ledger"), found


@pytest.mark.parametrize("timed", ["by their writers", "by a T-sort over arrival times"])
@pytest.mark.parametrize("stopped", ["pump_03", "a_pump"])
def test_if_all_writers_are_silent_the_one_with_the_greatest_clock_stays(
    spark: SparkSession, tmp_path: Path, stopped: str, timed: str
) -> None:
    got: list[Any] = []
    by_sort = timed.startswith("by a T-sort")
    view = "at AS ROWTIME, n FROM s ORDER BY at WITHIN INTERVAL '0' SECOND" if by_sort else "n FROM s"
    sql = f"""CREATE STREAM s (at TIMESTAMP, n INT) IDLE AFTER INTERVAL '1' SECOND;
    CREATE VIEW v AS SELECT STREAM {view};
    SELECT STREAM n FROM v;"""
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    pipeline.sink("result", lambda batch: _take(batch, got))
    pipeline.run_available(tmp_path / "check")
    for name, minutes in ((stopped, (1, 2)), ("boiler-01", (3, 8)), ("boiler-02", (4, 9))):
        with rt.writer("s", home=tmp_path / "home", writer=name) as opened:
            times = [f"2024-01-01 10:{minute:02}:00" for minute in minutes]
            opened.insert(
                [{"at": f"{at}Z", "n": int(at[14:16])} | ({} if by_sort else {"rowtime": at}) for at in times]
            )
    query = pipeline.start(tmp_path / "check")
    last = time.monotonic() + 60
    while len(got) < 6 and time.monotonic() < last:  # up to 10:09, the clock of boiler-02
        time.sleep(0.05)
    query.stop()
    assert query.engine.entry["sources"]["s"]["away"] == {stopped: "idle", "boiler-01": "idle"}
    assert got == [1, 2, 3, 4, 8, 9]


def _take(batch: Batch, got: list[Any]) -> None:
    if batch.count:
        got.extend(row["n"] for row in batch.table().to_pylist())


def _table(got: list[int]) -> Any:
    import pyarrow as pa

    times = pa.array([f"2024-01-01T10:{n:02}:00" for n in got]).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return pa.table({"rowtime": times, "n": pa.array(got, pa.int32())})
