"""Sessions of events in a run: after a join, before a typed sink, over restarts, with verify and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.time import to_micros

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM jobs (began TIMESTAMP, ended TIMESTAMP, machine INT, parts INT) EVENT SHAPE EDGE (began, ended);
CREATE TABLE machines (machine INT) USING parquet OPTIONS (path '{folder}/machines');
CREATE STREAM shifts (since TIMESTAMP, until TIMESTAMP, machine INT, jobs SMALLINT, parts DECIMAL(10, 1))
  USING parquet OPTIONS (path '{folder}/out');
CREATE VIEW ours AS SELECT STREAM machine, parts FROM jobs WHERE machine IN (SELECT machine FROM machines);
CREATE VIEW shift AS SELECT STREAM machine, COUNT(*) AS jobs, SUM(parts) AS parts FROM ours
  GROUP BY SESSION(INTERVAL '2' MICROSECOND, INTERVAL '10' MICROSECOND), machine;
CREATE PUMP p AS INSERT INTO shifts SELECT STREAM machine, jobs, parts FROM shift WHERE parts > 1
  EMIT INTERVALS (since, until);
"""
JOBS = [
    ([(0, None, 1, 2), (1, None, 2, 1), (2, None, 9, 9)], 2),
    ([(0, 3, 1, 2), (4, None, 1, 3)], 8),
    ([(8, None, 2, 5), (1, 9, 2, 1)], 12),
    ([(4, 13, 1, 3), (2, 30, 9, 9), (8, 15, 2, 5)], 40),
]
"""Machine 1 works from 0 to 13 and is cut at 10; 2 works from 1 to 15 and is cut at 11; 9 is not in the table."""
EXPECTED = [(0, 10, 1, 2, 5), (1, 11, 2, 2, 6), (10, 15, 1, 1, 3), (11, 17, 2, 1, 5)]


def shifts(folder: Path) -> list[tuple[int, ...]]:
    rows = pq.read_table(folder / "out").to_pylist()
    times = ((to_micros(r["since"]), to_micros(r["until"]), r) for r in rows)
    return sorted((since, until, r["machine"], r["jobs"], int(r["parts"])) for since, until, r in times)


@pytest.mark.slow
def test_sessions_continue_across_starts(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([(1,), (2,), (2,)], "machine INT").write.parquet(str(tmp_path / "machines"))
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(folder=tmp_path))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    for jobs, bound in JOBS:
        with rt.writer("jobs", home=tmp_path / "home") as log:
            log.insert([dict(zip(("began", "ended", "machine", "parts"), job, strict=True)) for job in jobs])
            log.set_rowtime_bound(bound)
        made.run_available(tmp_path / "check")
    assert shifts(tmp_path) == EXPECTED
    query = made.run_available(tmp_path / "check")
    assert shifts(tmp_path) == EXPECTED
    found = rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert found.equal, str(found)
    traced = query.trace({"machine": 1, "jobs": 2})
    read = {item.columns["parts"] for item in traced.items if item.operator == "jobs" and item.kind == "insert"}
    assert read == {2, 3}
