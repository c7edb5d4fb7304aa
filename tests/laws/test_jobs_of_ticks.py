"""A tick is at most two jobs of Spark, whatever the plan, and one if no row is late because of another task's rows.

Every job of the application counts. A tick that finds out what the plan asks Spark is sent again, once for each level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rowtime.runtime.engine import Engine
from rowtime.runtime.executors.executor import SparkJob
from rowtime.runtime.executors.tasks import Tasks
from rowtime.runtime.session import derive
from rowtime.testing import runner
from tests.laws.checking import check, outcome
from tests.laws.fault_rows import EXAMPLE
from tests.laws.pipelines import Law
from tests.laws.test_laws_in_levels import ALL, CUTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.report import TickReport

pytestmark = [pytest.mark.slow, pytest.mark.sampled(8), pytest.mark.usefixtures("both_ways")]
MOST: Final = 2
ASKING: Final = 6  # of the first ticks of a plan with expressions over groups


@pytest.fixture
def both_ways() -> None:
    """No tick is handed over to the old way."""


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The number of each tick, of all engines, and its jobs; each is divided if it can be."""
    jobs: list[tuple[int, int]] = []

    class Counting(Engine):
        def tick(self) -> TickReport | None:
            before = self._job_times.next()
            report = super().tick()
            if report is not None:
                jobs.append((report.tick, self._job_times.next() - before))
            return report

    def engine(*given: Any, **named: Any) -> Engine:
        return Counting(*given, **(named | {"tasks": Tasks(SparkJob(few=0))}))

    monkeypatch.setattr(runner, "Engine", engine)
    return jobs


@pytest.mark.parametrize("law", ALL, ids=lambda law: law.name)
def test_a_tick_is_at_most_two_jobs(spark: SparkSession, jobs: list[tuple[int, int]], law: Law) -> None:
    check(law, EXAMPLE, outcome(derive(spark), law, EXAMPLE, CUTS))
    assert len(jobs) >= len(CUTS)
    first, *others = (count for _, count in jobs)
    assert first <= ASKING, jobs
    asks = first > MOST
    assert all(count <= (ASKING if asks else MOST) for count in others), jobs
