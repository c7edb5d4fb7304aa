"""The costs of ticks in the journal: right durations, rows, and the number of files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.api.pipeline import DEFAULT_LIMITS
from rowtime.runtime.meter import JobTimes, Meter
from rowtime.runtime.sources.contract import Limits
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.costs import CLOCK, DRIVER, JOBS, JOURNAL, KEY, PLANNING, SINKS, TickCost, costs_of
from tests.ways import in_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM s (ev TIMESTAMP, n INT);
CREATE VIEW v AS SELECT STREAM ev AS ROWTIME, n FROM s ORDER BY ev WITHIN INTERVAL '10' SECOND;
SELECT STREAM FLOOR(v.ROWTIME TO MINUTE) AS m, COUNT(*) AS n FROM v GROUP BY FLOOR(v.ROWTIME TO MINUTE)"""
ROWS = [10, 70, 65, 10, 200]  # seconds; the second 10 is late
SLEPT = 0.2  # seconds


class Ran:
    """A checkpoint after two runs, the first of several ticks, with a slow sink."""

    by = DRIVER

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.began = time.time_ns() // 1000
        self.run(ROWS, Limits(rows=2))
        self.run([300])
        self.ended = time.time_ns() // 1000

    def run(self, seconds: list[int], limits: Limits = DEFAULT_LIMITS) -> None:
        self.pipeline = rt.Pipeline(self.spark, home=self.folder / "home").sql(SQL)
        self.pipeline.sink("result", lambda _: time.sleep(SLEPT))
        self.pipeline.home.define("s", self.pipeline.compile().defines[0].as_json(), replace=True)
        for at in seconds:  # one file each, so that each tick reads one
            with rt.writer("s", home=self.folder / "home", writer="w") as log:
                log.insert([{"ev": f"2024-01-01 10:{at // 60:02}:{at % 60:02}", "n": at}])
        self.query = self.pipeline.run_available(self.folder / "check", limits=limits)

    @property
    def entries(self) -> list[Any]:
        return [*Checkpoint(self.folder / "check").journal.entries()]

    @property
    def costs(self) -> list[TickCost]:
        return [*costs_of(self.entries)]


@pytest.fixture(scope="module", params=[DRIVER, pytest.param(JOBS, marks=pytest.mark.slow)])
def ran(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Two runs on the driver, and two in tasks of Spark."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == JOBS:
            in_jobs(patch)
        found = Ran(spark, tmp_path_factory.mktemp("costs"))
    found.by = request.param
    return found


def test_every_tick_has_its_cost_and_all_but_the_last_of_a_run_their_end(ran: Ran) -> None:
    assert len(ran.costs) == len(ran.entries) > 3
    assert [cost.complete for cost in ran.costs[-2:]] == [False, False], "each run of one process knows its own"
    assert all(cost.complete for cost in ran.costs[:-2])


def test_wall_clock_times_follow_each_other(ran: Ran) -> None:
    times = [at for cost in ran.costs for at in (cost.began, cost.ended)]
    assert times == sorted(times)
    assert ran.began <= times[0]
    assert times[-1] <= ran.ended


def test_the_parts_are_there_and_add_up(ran: Ran) -> None:
    for cost in ran.costs[:-2]:
        assert abs(cost.total - (cost.ended - cost.began) / 1000) < 1
    assert all(cost.milliseconds[PLANNING] > 0 and cost.milliseconds.get(CLOCK, 0) > 0 for cost in ran.costs[:2])
    assert any(cost.milliseconds[ran.by] > 1 for cost in ran.costs)
    assert all(cost.milliseconds[JOURNAL] > 0 for cost in ran.costs[:-2])
    assert all((cost.jobs >= 1) == (ran.by == JOBS) for cost in ran.costs if cost.rows_in["s"])


def test_the_time_that_a_sink_takes_is_that_of_sinks(ran: Ran) -> None:
    out = [cost for cost in ran.costs[:-2] if sum(cost.rows_out.values())]
    assert out
    assert all(200 <= cost.milliseconds[SINKS] < cost.total for cost in out)
    progress = ran.query.lastProgress
    assert progress is not None
    assert progress["durationMs"]["addBatch"] >= 200


def test_rows_are_those_of_the_ledger_and_of_the_sink(ran: Ran) -> None:
    assert sum(cost.rows_in["s"] for cost in ran.costs) == len(ROWS) + 1
    assert sum(cost.refused for cost in ran.costs) == 1
    assert sum(sum(cost.rows_out.values()) for cost in ran.costs) == 3


def test_live_state_has_its_size_in_the_journal(ran: Ran) -> None:
    live = [row for rows in ran.entries[-1]["segments"].values() for row in rows]
    assert live
    assert all((ran.folder / "check" / path).stat().st_size == size for path, _, _, _, _, size in live)
    assert sum(cost.size for cost in ran.costs) >= sum(row[5] for row in live)
    assert all(cost.files for cost in ran.costs if cost.rows_in["s"])


def test_a_cost_is_short(ran: Ran) -> None:
    assert all(len(json.dumps(entry[KEY])) < 450 for entry in ran.entries)  # with the backlog of each stream


def test_nothing_depends_on_costs(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rt.verify(ran.folder / "check", ran.pipeline).equal
    stored = [entry[KEY] for entry in ran.entries]
    monkeypatch.setattr(TickCost, "stored", lambda *_: {"ms": "nonsense"})
    ran.run([400])
    assert rt.verify(ran.folder / "check", ran.pipeline).equal
    assert [entry[KEY] for entry in ran.entries][: len(stored)] == stored


def test_jobs_are_counted_whether_or_not_spark_knows_their_times(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's own records of a job come later than its result."""
    monkeypatch.setattr(JobTimes, "_time", lambda *_: None)
    meter = Meter(JobTimes(spark))
    spark.range(3).count()
    spark.range(3).toArrow()
    meter.stepped()
    cost = meter.cost(0, {}, {}, 0, complete=True)
    assert cost.jobs == 2
    assert cost.milliseconds[JOBS] == 0
