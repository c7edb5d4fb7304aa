"""The laws over panes: which panes fire, how often and with which rows is the oracle's with any cut (semantics 8)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given

from rowtime.core.time import END
from rowtime.kernels.timeline import Timeline
from rowtime.operators.contract import Tick
from rowtime.operators.contract.state import Segment
from rowtime.operators.panes import event_time, fired_bounds
from rowtime.operators.panes.panes import Fires, Panes
from rowtime.runtime.session import derive
from rowtime.state.segments import SegmentLog
from rowtime.testing.transcripts import ScriptItem
from tests.laws.checking import check, outcome
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import HALF, LONG, ORIGIN, Law, items, shuffled
from tests.laws.test_deeper_laws import ticks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)


SHORT = (
    "panes with early fires",
    "panes under bounds that are set",
    "panes where regions meet",
)  # the others run with make slow
CASES = [pytest.param(law, marks=() if law.name in SHORT else pytest.mark.slow, id=law.name) for law in PANES]


@pytest.mark.parametrize("law", CASES)
def test_fires_are_a_function_of_the_items(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(items())
    def holds(made: list[ScriptItem]) -> None:
        count = len(made)
        chance = random.Random(count)
        cut = sorted({*chance.sample(range(1, count + 1), min(3, count)), count})
        if LONG:
            check(law, made, outcome(session, law, made, cut, restart=True))
        check(law, made, outcome(session, law, made, [count]))
        # Bounds of an event time are in the order of their writers' clocks, in whatever order the writers are read.
        other = shuffled(made, count)
        check(law, other, outcome(session, law, other, cut, restart=chance.random() < 0.5))

    holds()


def _row(number: int, ev: float, v: int = 0) -> ScriptItem:
    at = ORIGIN + number * 2 * HALF
    return ScriptItem(number, "a", "x", {"n": number, "v": v, "ev": ORIGIN + int(ev * 2) * HALF, "rowtime": at}, None)


LATE = [_row(number, ev) for number, ev in enumerate((0, 1.5, 0.5, 1, 2.5, 0, 4, 3, 6), 1)]
"""Two late rows before one advance, one after it, one refused row; rows of complete and of open panes."""
TICKS = [4, 8, 9]
MANY = [_row(n, max(0, n // 4 - (n * 5 % 7 if n % 3 else 0)) / 2, n % 2) for n in range(1, 41)]
MANY.append(ScriptItem(41, "a", "x", None, END))


def _every_row_in_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Timeline, "at", lambda self, rows: np.full(len(rows), self.before))


def _one_fire_for_a_tick(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Timeline, "next", lambda self, rows, unknown: np.full(len(rows), self.after))


def _late_rows_forgotten_between_ticks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Panes, "_resolve", lambda *_: [])


def _late_rows_alone(patch: pytest.MonkeyPatch) -> None:
    real = Fires._merges
    patch.setattr(
        Fires, "_merges", lambda self, over="": real(self, over.replace("UNBOUNDED PRECEDING", "CURRENT ROW"))
    )


def _panes_dropped_when_complete(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SegmentLog, "forget", lambda self, up_to, real=SegmentLog.forget: real(self, up_to + 4 * HALF))


def _partial_results_of_ticks_never_merged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fires, "first", lambda self, rows, *, merged=False, real=Fires.first: real(self, rows, merged=True))


FAULTS = (
    _every_row_in_time, _one_fire_for_a_tick, _late_rows_forgotten_between_ticks, _late_rows_alone,
    _panes_dropped_when_complete, _partial_results_of_ticks_never_merged,
)  # fmt: skip


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(plant, marks=() if number in (1, 2) else pytest.mark.slow, id=plant.__name__.strip("_"))
        for number, plant in enumerate(FAULTS)
    ],
)
def test_a_planted_fault_in_panes_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    # State is dropped, and merged, by whole ticks, so these faults need ticks that are shorter than a pane.
    cut = range(1, 10) if plant in (_panes_dropped_when_complete, _partial_results_of_ticks_never_merged) else TICKS
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        _check_late(spark, cut=cut)


IN_TIME = [_row(number, ev) for number, ev in enumerate((0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4), 1)]


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
def test_fires_that_come_a_tick_too_late_are_caught(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    law = {law.name: law for law in PANES}["panes over a filter"]
    real, since = Panes._fire, dict[str, int]()

    def later(
        self: Panes, tick: Tick, before: int, line: Timeline, late: Sequence[int], _older: int
    ) -> Sequence[Segment]:
        if tick.number == 1:
            since["before"] = before
            return ()
        return real(self, tick, since.pop("before", before), line, late, END)

    promise = Panes.promises
    monkeypatch.setattr(
        Panes, "promises", lambda self, c, known: {"": since["before"]} if since else promise(self, c, known)
    )
    monkeypatch.setattr(Panes, "_fire", later)
    with pytest.raises(AssertionError, match="after item 5 of"):
        check(law, IN_TIME, outcome(derive(spark), law, IN_TIME, [2, 5, 9]))


def _apart(number: int, stream: str, ev: float) -> ScriptItem:
    row = _row(number, ev)
    return ScriptItem(number, stream, "x", row.values, None)


MEETING = [_apart(n, "ab"[n % 2], ev) for n, ev in enumerate((0, 3, 1, 6, 0.5, 2, 4, 1), 1)]
"""Stream b runs ahead, so that b alone would make the rows of a late."""


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
def test_a_region_missing_from_the_least_bound_is_caught(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    law = {law.name: law for law in PANES}["panes where regions meet"]
    check(law, MEETING, outcome(derive(spark), law, MEETING, [3, 8]))
    monkeypatch.setattr(event_time, "_running", lambda wanted, *_: np.maximum.accumulate(wanted))
    with pytest.raises(AssertionError):
        check(law, MEETING, outcome(derive(spark), law, MEETING, [3, 8]))


def test_a_bound_that_overtakes_the_fires_that_it_causes_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    _check_late(spark, "the bound before each fire")
    monkeypatch.setattr(fired_bounds, "LAST", -END)
    with pytest.raises(AssertionError):
        _check_late(spark, "the bound before each fire")


@pytest.mark.parametrize("name", ["panes over a filter", "panes with early fires"])
@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(TICKS, id="a few ticks"),
        pytest.param(range(1, 10), id="a tick an item", marks=pytest.mark.slow),
    ],
)
def test_without_a_fault_late_rows_fire_as_the_oracle_says(spark: SparkSession, name: str, cut: Sequence[int]) -> None:
    _check_late(spark, name, cut)


def test_the_final_changes_equal_the_batch_answer(spark: SparkSession) -> None:
    law = {law.name: law for law in PANES}["panes with changes"]
    found = outcome(derive(spark), law, MANY, [*range(5, len(MANY), 5), len(MANY)])
    refused = {row["n"] for row in found.refused}
    left: Counter[tuple[int, int, int]] = Counter()
    latest: dict[tuple[int, int], tuple[int, int]] = {}
    for _, row in found.rows:
        left[row["start"], row["v"], row["s"]] += 1 if row["change"] == "INSERT" else -1
        if row["change"] == "INSERT":
            latest[row["start"], row["v"]] = max(latest.get((row["start"], row["v"]), (-1, 0)), (row["i"], row["s"]))
    batch: Counter[tuple[int, int]] = Counter()
    for item in MANY[:-1]:
        if item.values is not None and item.number not in refused:
            start = item.values["ev"] // (2 * HALF) * 2 * HALF
            batch[start, item.values["v"]] += item.number
    assert refused
    assert {(*group, total) for group, total in batch.items()} == set(+left)
    assert {group: total for group, (_, total) in latest.items()} == batch


def _check_late(spark: SparkSession, name: str = "panes over a filter", cut: Sequence[int] = TICKS) -> None:
    law = {law.name: law for law in PANES}[name]
    check(law, LATE, outcome(derive(spark), law, LATE, cut))
