"""Panes in pipelines that start, stop and go on: silent writers, restarts, refused rows, files."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """\
CREATE STREAM a (n INT, t TIMESTAMP) EVENT TIME (t, MINIMUM GAP INTERVAL '0' SECOND) IDLE AFTER INTERVAL '1' SECOND;
CREATE VIEW hourly AS SELECT STREAM PANE_START AS hour, PANE_TIMING AS timing, COUNT(*) AS c FROM a
  GROUP BY PANES(t, DURATION INTERVAL '1' HOUR, DISCARD AGE INTERVAL '1' HOUR);
"""
FIRES = [(10, "COMPLETE", 2), (11, "COMPLETE", 1), (10, "LATE", 3)]


def _send(home: Path, writer: str, *rows: tuple[int, str, int]) -> None:
    with rt.writer("a", home=home, writer=writer) as one:
        values = [{"n": n, "t": f"2024-01-01 {t}:00", "rowtime": f"2024-01-01 10:00:{at:02d}"} for n, t, at in rows]
        one.insert(values, rowtime="rowtime")


def _wait_for(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not done():
        assert time.monotonic() < until, "it does not come"
        time.sleep(0.05)


def test_a_silent_writer_a_restart_and_a_refused_row(spark: SparkSession, tmp_path: Path) -> None:
    fires: list[dict[str, Any]] = []
    lost: list[dict[str, Any]] = []

    def made() -> rt.Pipeline:
        found = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL)
        found.sql(
            "INSERT INTO fires SELECT STREAM * FROM hourly; INSERT INTO lost SELECT STREAM * FROM hourly.rejected"
        )
        for name, rows in (("fires", fires), ("lost", lost)):
            found.sink(name, lambda batch, rows=rows: rows.extend(batch.table().to_pylist() if batch.count else []))
        return found

    check = tmp_path / "check"
    made().run_available(check)
    _send(tmp_path / "home", "x", (1, "10:10", 1))
    _send(tmp_path / "home", "y", (2, "10:20", 5), (3, "11:30", 6))
    query = made().start(check)
    _wait_for(lambda: bool(fires))  # y alone could not release it, because x may still send earlier rows
    query.stop()
    _send(tmp_path / "home", "y", (4, "10:40", 7), (5, "12:40", 8), (6, "10:00", 9))
    made().run_available(check)
    assert [(row["hour"].hour, row["timing"], row["c"]) for row in fires] == FIRES
    assert [(row["n"], row["reason"], row["refused_by"].hour) for row in lost] == [(6, "LATE", 12)]


def test_a_directory_takes_the_files_of_panes_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.replace("IDLE AFTER INTERVAL '1' SECOND", ""))
    made.sql(
        "CREATE STREAM o (hour TIMESTAMP, timing STRING, c BIGINT) "
        f"USING parquet OPTIONS (path '{tmp_path / 'out'}'); INSERT INTO o SELECT STREAM * FROM hourly"
    )
    made.run_available(tmp_path / "check")
    _send(tmp_path / "home", "y", (1, "10:10", 1), (2, "10:20", 5), (3, "11:30", 6))
    made.run_available(tmp_path / "check")
    _send(tmp_path / "home", "y", (4, "10:40", 7), (5, "12:40", 8), (6, "10:00", 9))
    query = made.run_available(tmp_path / "check")
    assert "hourly" in query.engine.steps.adopted
    rows = pq.read_table(tmp_path / "out").sort_by("rowtime").to_pylist()
    assert [(row["hour"].hour, row["timing"], row["c"]) for row in rows] == FIRES


@pytest.mark.parametrize("count", [200, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("behind", "emit", "timing"),
    [(timedelta(days=3), "", "LATE"), (timedelta(0), "EMIT EVERY INTERVAL '1' SECOND", "EARLY")],
)
def test_many_fires_of_one_pane_in_one_tick_are_running_totals(
    spark: SparkSession, tmp_path: Path, behind: timedelta, emit: str, timing: str, count: int
) -> None:
    begun = datetime(2024, 1, 1, tzinfo=UTC)
    moving = [begun + timedelta(seconds=n) for n in range(count)]  # each of them moves the bound
    table = {"n": [*range(count), *([count] * count)], "t": [*moving, *(time - behind for time in moving)]}
    table["rt"] = [
        time + timedelta(milliseconds=500 * (n == count)) for n, time in zip(table["n"], 2 * moving, strict=True)
    ]
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(table).sort_by("rt"), tmp_path / "in" / "a.parquet")
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(f"""
        CREATE STREAM a (rt TIMESTAMP, n BIGINT, t TIMESTAMP) EVENT TIME (t, MINIMUM GAP INTERVAL '0' SECOND)
          USING parquet OPTIONS (path '{tmp_path / "in"}', rowtime.column 'rt');
        CREATE STREAM o (timing STRING, i BIGINT, c BIGINT, s BIGINT) USING parquet OPTIONS (path '{tmp_path / "out"}');
        INSERT INTO o SELECT STREAM PANE_TIMING AS timing, PANE_INDEX AS i, COUNT(*) AS c, SUM(n) AS s FROM a
          WHERE n = {count} GROUP BY PANES(t, DURATION INTERVAL '1' DAY, DISCARD AGE INTERVAL '7' DAY) {emit}""")
    made.run_available(tmp_path / "check", end=True)
    fires = [row for row in pq.read_table(tmp_path / "out").to_pylist() if row["timing"] == timing]
    assert len(fires) > count - 3
    assert all((row["c"], row["s"]) == (row["i"] + 1, (row["i"] + 1) * count) for row in fires)
