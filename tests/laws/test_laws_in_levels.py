"""The laws hold where several tasks read, judge and combine the rows of a tick, and one task has the rest of it.

The parts are computed in one process, the last one first, with all that passes between them as bytes.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import pytest

from rowtime.core.errors import Failure
from rowtime.operators.groups.group_by import GroupBy
from rowtime.plan.levels import Levels
from rowtime.plan.program import compile_script
from rowtime.runtime.clock_pass import pieces
from rowtime.runtime.executors import executor
from rowtime.runtime.executors.executor import InProcess
from rowtime.runtime.session import derive
from tests.laws.checking import check, outcome
from tests.laws.deeper_pipelines import DEEPER
from tests.laws.failing_pipelines import DECLARE
from tests.laws.fault_rows import EXAMPLE
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import LAWS, Law
from tests.laws.session_pipelines import SESSIONS
from tests.laws.sorted_pipelines import SORTED
from tests.laws.window_pipelines import WINDOWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.contract import Delta, Tick
    from rowtime.runtime.executors.tasks import Tasks

ALL: Final = (*LAWS, *DEEPER, *SORTED, *WINDOWS, *SESSIONS, *PANES)
CUTS: Final = (3, 6, len(EXAMPLE))
WHOLE: Final = frozenset(
    (
        "a stream with a guard",
        "groups of a column within some rows",
        "groups of numbers that are judged by rank",
        "groups of times within an interval",
        "panes under bounds that are set",
        "rows sorted by a column of declared order",
    )
)
"""The laws whose ticks one task computes: of a guard, or because nothing is below the first operator that needs all."""


@dataclass(frozen=True)
class Changing(InProcess):
    """The number of tasks changes with each level and tick."""

    numbers: Iterator[int] = field(default_factory=lambda: cycle((5, 3, 2, 64, 3, 1, 4, 7)))

    def tasks(self, spark: SparkSession) -> int:  # noqa: ARG002 - the contract's
        """Return the next number."""
        return next(self.numbers)


WAYS: Final = {
    "2": 2,
    "5": 5,
    "2 without keys": InProcess(2, few_bytes=1 << 30, few_written=1 << 30),
    "changing": Changing,
}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The reports on ticks that were divided."""
    seen, whole = Counter[str](), executor.computed_whole

    def counted(*given: Any, **more: Any) -> bytes:
        packed = whole(*given, **more)
        report = pickle.loads(packed)  # noqa: S301 - our own
        seen["undivided" if report.undivided else "sent again" if report.starts else "done"] += 1
        return packed

    monkeypatch.setattr(executor, "computed_whole", counted)
    return seen


def test_a_stream_that_needs_all_of_its_rows_leaves_no_level_below() -> None:
    """The tasks of level 0 read all streams: the rows of the guarded one were lost."""
    both = "CREATE STREAM a (n INT){}; CREATE STREAM b (n INT); SELECT STREAM n FROM a UNION ALL SELECT STREAM n FROM b"
    guard = " EARLY BEYOND INTERVAL '1' SECOND RESYNC AFTER 2 ROWS"
    edges = f"{DECLARE} SELECT STREAM n FROM o"
    for sql, divided in ((both.format(""), True), (both.format(guard), False), (edges, False)):
        program = compile_script(sql)
        assert not program.problems, program.problems
        assert bool(Levels.of(program.operators).first) == divided, sql


@pytest.mark.sampled(8)
@pytest.mark.parametrize("sent", WAYS.values(), indirect=True, ids=WAYS)
@pytest.mark.parametrize("law", ALL, ids=lambda law: law.name)
def test_the_output_equals_the_oracle(spark: SparkSession, sent: list[Tasks], seen: Counter[str], law: Law) -> None:
    check(law, EXAMPLE, outcome(derive(spark), law, EXAMPLE, CUTS, restart=True))
    assert len(sent) == len(CUTS)
    assert not seen["undivided"]
    assert (law.name in WHOLE) == (not seen["done"])


GATES: Final = (
    "t-sort",
    "promotion",
    "a t-sort over a t-sort",
    "groups of sessions without keys",
    *(law.name for law in LAWS),
)
Plant = Callable[[pytest.MonkeyPatch], None]


def _given_as(monkeypatch: pytest.MonkeyPatch, changed: Callable[[list[bytes]], list[bytes]]) -> None:
    together = executor.put_together
    monkeypatch.setattr(
        executor, "put_together", lambda rows: {to: changed(bodies) for to, bodies in together(rows).items()}
    )


def _a_lost_part(monkeypatch: pytest.MonkeyPatch) -> None:
    _given_as(monkeypatch, lambda bodies: bodies[:-1])


def _a_part_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    _given_as(monkeypatch, lambda bodies: [*bodies, bodies[0]])


def _tasks_that_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tasks have refused is not compared with what the gate refuses."""
    monkeypatch.setattr(pieces, "_calm", lambda *_given: None)
    monkeypatch.setattr(pieces, "_refusals", lambda _tables: [])


def _results_that_are_combined_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    combined = GroupBy.combined

    def twice(self: GroupBy, tick: Tick, delta: Delta) -> Delta:
        partial = combined(self, tick, delta)
        if partial.rows is not None:
            partial = replace(partial, rows=partial.rows.unionByName(partial.rows))
        return partial

    monkeypatch.setattr(GroupBy, "combined", twice)


FAULTS: Final[Sequence[Plant]] = (
    _a_lost_part,
    _a_part_twice,
    _tasks_that_are_believed,
    _results_that_are_combined_twice,
)


@pytest.mark.usefixtures("sent")
@pytest.mark.parametrize("sent", [len(EXAMPLE)], indirect=True)
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__.strip("_"))
def test_a_planted_fault_is_caught(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, plant: Plant) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, Failure)):  # rows that two tasks have refused do not add up
        check_in_one_tick(spark)


@pytest.mark.usefixtures("sent")
@pytest.mark.parametrize("sent", [3, len(EXAMPLE)], indirect=True)
def test_the_order_in_which_parts_arrive_is_irrelevant(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    _given_as(monkeypatch, lambda bodies: bodies[::-1])
    check_in_one_tick(spark)


def check_in_one_tick(spark: SparkSession) -> None:
    """Check the laws of gates, in one tick, so that rows of one part are late because of those of another one."""
    for law in (*LAWS, *DEEPER):
        if law.name in GATES:
            check(law, EXAMPLE, outcome(derive(spark), law, EXAMPLE, [len(EXAMPLE)], restart=False))
