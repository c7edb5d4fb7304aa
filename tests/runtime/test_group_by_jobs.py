"""The number of Spark jobs in a tick of a GROUP BY."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)

SQL = """CREATE STREAM a (v INT, ev TIMESTAMP);
CREATE STREAM out (m TIMESTAMP, v INT, c BIGINT) USING parquet OPTIONS (path '{out}');
CREATE PUMP p AS INSERT INTO out SELECT STREAM FLOOR(t.ROWTIME TO MINUTE) AS m, v, COUNT(*) AS c
FROM (SELECT STREAM ev AS ROWTIME, v FROM a ORDER BY ev WITHIN INTERVAL '10' SECOND) AS t
GROUP BY FLOOR(t.ROWTIME TO MINUTE), v"""


def test_a_tick_costs_one_job_and_compaction_keeps_segments_few(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(out=tmp_path / "out"))
    stream = pipeline.compile().defines[0]
    pipeline.home.define(stream.name, stream.as_json())
    jobs = []
    with rt.writer("a", home=tmp_path / "home") as log:
        engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=False)
        for second in range(0, 135, 5):
            log.insert([{"v": 1, "ev": f"2024-01-01 10:{second // 60:02}:{second % 60:02}"}])
            report = engine.tick()
            assert report is not None
            jobs.append([job.split(": ", 1)[1] for job in report.jobs if "clock pass" not in job])
            assert len(engine.entry["segments"].get("p.group/state", [])) <= 14
        engine.stop()
    aggregations = [[job for job in tick if job.startswith(("aggregate", "compact"))] for tick in jobs]
    assert max(len(tick) for tick in aggregations) == 2  # an aggregation, now and then a compaction
    closings = [number for number, tick in enumerate(aggregations) if "aggregate, close groups" in tick]
    assert closings == [14, 26]  # the ticks whose bound (10 s behind) reaches the end of a minute


def test_rows_that_are_held_for_long_stay_in_few_segments(spark: SparkSession, tmp_path: Path) -> None:
    got: list[int] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql("CREATE STREAM a (v INT); SELECT STREAM v FROM a")
    pipeline.sink("result", lambda batch: got.extend(batch.table()["v"].to_pylist() if batch.count else []))
    stream = pipeline.compile().defines[0]
    pipeline.home.define(stream.name, stream.as_json())
    rt.writer("a", home=tmp_path / "home", writer="slow").set_rowtime_bound("2024-01-01 10:00:00")
    with rt.writer("a", home=tmp_path / "home", writer="fast") as log:
        engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=False)
        for number in range(20):
            log.insert([{"v": number, "rowtime": f"2024-01-01 10:01:{number:02}"}])
            engine.tick()
            levels = Counter(segment[4] for segment in engine.entry["segments"]["query.result.merge/state"])
            assert max(levels.values()) < 8
            assert len(levels) <= 2
    assert got == []
    rt.writer("a", home=tmp_path / "home", writer="*").set_rowtime_bound("2024-01-01 11:00:00")
    engine.tick()
    engine.stop()
    assert got == list(range(20))
