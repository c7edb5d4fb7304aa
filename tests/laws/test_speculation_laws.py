"""The laws of EMIT CHANGES over random events: one changelog for all cuts, and its sum (semantics 9.5)."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from rowtime.core.columns import CHANGED_BY, MET, START, WEIGHT
from rowtime.core.time import BEGINNING, END
from rowtime.operators.events.anti_join import SpeculativeAntiJoin
from rowtime.operators.events.clip import SpeculativeClip
from rowtime.operators.events.count_windows import SpeculativeCountWindows
from rowtime.operators.events.lifetime_join import LifetimeJoin
from rowtime.operators.events.speculative_groups import SpeculativeGroups
from rowtime.operators.events.stitch import SpeculativeStitch
from rowtime.plan.program import compile_script
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem
from tests.laws.lifetime_pipelines import LIFETIMES, LifetimeLaw, events
from tests.laws.speculation_pipelines import SPECULATION
from tests.laws.test_laws import ticks
from tests.laws.test_lifetime_laws import CUT, EXAMPLE, bound_of, check, event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.sampled(8)

IDS = [law.name for law in SPECULATION]
ENDED = [*EXAMPLE[:13], *EXAMPLE[14:], *(ScriptItem(20 + n, name, "x", None, END) for n, name in enumerate("sr"))]
"""The example without an event that never ends."""


ONCE = ("changes of snapshots of a join",)
OFTEN = [pytest.param(law, id=law.name, marks=() if law.name in ONCE else pytest.mark.slow) for law in SPECULATION]


@pytest.mark.parametrize("law", OFTEN)
def test_the_changes_of_every_item_equal_the_oracle(spark: SparkSession, law: LifetimeLaw) -> None:
    check(law, EXAMPLE, play(derive(spark), law.transcript(EXAMPLE), CUT, restart=True))


@pytest.mark.slow
@pytest.mark.parametrize("law", SPECULATION, ids=IDS)
def test_the_changes_do_not_depend_on_the_cut(spark: SparkSession, law: LifetimeLaw) -> None:
    session = derive(spark)

    @ticks
    @given(events())
    def holds(made: list[ScriptItem]) -> None:
        count = len(made)
        cut = sorted({*random.Random(count).sample(range(1, count + 1), min(3, count)), count})
        check(law, made, play(session, law.transcript(made), [count]))
        check(law, made, play(session, law.transcript(made), cut, restart=True))

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("law", SPECULATION, ids=IDS)
def test_the_changes_of_every_arrival_order_add_up_to_the_final_output(spark: SparkSession, law: LifetimeLaw) -> None:
    session = derive(spark)
    final = LifetimeLaw(
        law.name, law.operators, law.sql.replace(" EMIT CHANGES", ""), law.oracle, reads=law.reads, tables=law.tables
    )
    rows = [item for item in ENDED if item.values and item.values["kind"] in ("point", "interval")]
    ends = [item for item in ENDED if item.at == END]
    for seed in range(3):
        made = [*random.Random(seed).sample(rows, len(rows)), *ends]
        cut = sorted({*random.Random(seed).sample(range(1, len(made)), 2), len(made)})
        (wanted, found) = (play(session, one.transcript([*_numbered(made)]), cut).rows for one in (final, law))
        assert _folded(row for _, row in found) == Counter(_key(row, row["stop"]) for _, row in wanted)


STARTS = [
    event(1, "start", 2, None, 1), event(2, "point", 4, None, 1), event(3, "start", 4, None, 1),
    event(4, "point", 7, None, 1), bound_of(5, 3), event(6, "end", 4, 4, 1), event(7, "start", 5, None, 1),
    event(8, "end", 5, 5, 1), event(9, "end", 2, 9, 1), bound_of(10, 6), event(11, "interval", 6, 9, 1),
    event(12, "start", 8, None, 0), event(13, "end", 8, 8, 0), bound_of(14, 12), event(15, "point", 12, None, 1),
    *(ScriptItem(16 + n, name, "x", None, END) for n, name in enumerate("sr")),
]  # fmt: skip
"""Starts that are retracted, alone at their time and beside others, a changed end, a start at the bound."""
COUNTED = [law for law in SPECULATION if "speculative count windows" in law.operators]
CUTS = (
    pytest.param([6, 11, 17], id="three ticks"),
    pytest.param(range(1, 18), id="a tick an item", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("law", COUNTED, ids=[law.name for law in COUNTED])
def test_retracted_starts_leave_no_window(spark: SparkSession, law: LifetimeLaw, cut: Sequence[int]) -> None:
    found = play(derive(spark), law.transcript(STARTS), cut, restart=True)
    check(law, STARTS, found)
    assert found.held == 0


BEHIND = [
    event(1, "point", 1, None, 0), bound_of(2, 7), event(3, "point", 7, None, 0), bound_of(4, 8),
    event(5, "point", 8, None, 1), *(ScriptItem(6 + n, name, "x", None, END) for n, name in enumerate("sr")),
]  # fmt: skip
"""Events in windows that begin below the bound, after the end of another window that they overlap."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["changes of snapshots of windows", "changes of windows of starts of windows"])
def test_windows_that_begin_below_the_bound_change_derived_results(spark: SparkSession, name: str) -> None:
    law = {law.name: law for law in SPECULATION}[name]
    check(law, BEHIND, play(derive(spark), law.transcript(BEHIND), range(1, 8), restart=True))


@pytest.mark.slow
@pytest.mark.parametrize("law", SPECULATION, ids=IDS)
def test_nothing_is_kept_after_the_end(spark: SparkSession, law: LifetimeLaw) -> None:
    found = play(derive(spark), law.transcript(ENDED), [9, ENDED[-1].number])
    check(law, ENDED, found)
    assert found.held == 0


@pytest.mark.parametrize("law", LIFETIMES, ids=[law.name for law in LIFETIMES])
def test_every_derived_stream_of_events_has_changes(law: LifetimeLaw) -> None:
    """All except sessions, which say so."""
    sql = law.transcript([]).sql.replace(law.sql, law.sql.partition(" EMIT ")[0] + " EMIT CHANGES")
    only_final = any(node.final_only for node in compile_script(law.transcript([]).sql).operators)
    assert [problem.code for problem in compile_script(sql).problems] == (["R190"] if only_final else [])


def _numbered(made: Iterable[ScriptItem]) -> Iterable[ScriptItem]:
    return (ScriptItem(n, i.stream, i.writer, i.values, i.at) for n, i in enumerate(made, 1))


def _folded(rows: Iterable[Mapping[str, Any]]) -> Counter[Any]:
    """The rows that remain after all changes are applied in order."""
    left: Counter[Any] = Counter()
    for row in rows:
        if row["change"] == "insert":
            left[_key(row, row["stop"])] += 1
            continue
        assert left[_key(row, row["stop"])] > 0, "a retraction of what was not there"
        left[_key(row, row["stop"])] -= 1
        left[_key(row, row["new_stop"])] += row["new_stop"] > row["start"]
    return +left


def _key(row: Mapping[str, Any], stop: Any) -> Any:
    times = ("rowtime", "change", "stop", "new_stop")
    return (stop, *((name, value) for name, value in row.items() if name not in times))


def _versions_are_lost(patch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    def without(rows: DataFrame) -> DataFrame:
        return rows.withColumns({CHANGED_BY: F.lit(0).cast("long"), MET: F.lit(0).cast("long")})

    real = SpeculativeGroups._events
    patch.setattr(SpeculativeGroups, "_events", lambda self, rows: real(self, without(rows)))


def _old_events_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpeculativeGroups, "_revised", lambda self, tick, new, _old, before, real=SpeculativeGroups._revised:
        real(self, tick, new, None, before))  # fmt: skip


def _pairs_come_with_the_right_side(patch: pytest.MonkeyPatch) -> None:
    def early(rows: DataFrame | None) -> DataFrame | None:
        return (
            None
            if rows is None
            else rows.drop(CHANGED_BY, MET).selectExpr("*", f"-1L AS {CHANGED_BY}", f"{BEGINNING}L AS {MET}")
        )

    real = LifetimeJoin._joined
    patch.setattr(LifetimeJoin, "_joined", lambda self, tick, left, *more: real(self, tick, early(left), *more))


def _old_parts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = SpeculativeStitch._revised
    patch.setattr(SpeculativeStitch, "_revised", lambda self, new, _old: real(self, new, None))


def _starts_cut_what_begins_with_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpeculativeClip, "covering", SpeculativeAntiJoin.covering)


def _last_starts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = SpeculativeCountWindows._revised
    patch.setattr(
        SpeculativeCountWindows, "_revised", lambda self, tick, new, old: real(self, tick, new, [old[0], None])
    )


def _starts_ahead_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = SpeculativeCountWindows._revised
    patch.setattr(
        SpeculativeCountWindows, "_revised", lambda self, tick, new, old: real(self, tick, new, [None, old[1]])
    )


def _versions_of_starts_are_lost(patch: pytest.MonkeyPatch) -> None:
    real = SpeculativeCountWindows._changes
    patch.setattr(SpeculativeCountWindows, "_changes", lambda self, rows, before: real(
        self, rows.drop(CHANGED_BY, MET).selectExpr("*", f"0L AS {CHANGED_BY}", f"0L AS {MET}"), before))  # fmt: skip


def _starts_stay_once_they_came(patch: pytest.MonkeyPatch) -> None:
    real = SpeculativeCountWindows._changes
    patch.setattr(
        SpeculativeCountWindows, "_changes", lambda self, rows, before: real(self, rows, before).where(f"{WEIGHT} > 0")
    )


def _windows_are_one_start_longer(patch: pytest.MonkeyPatch) -> None:
    real = SpeculativeCountWindows._windowed
    patch.setattr(SpeculativeCountWindows, "_windowed", lambda self, ranked, groups: real(
        replace(self, size=self.size + 1), ranked, groups))  # fmt: skip


def _what_began_at_the_bound_is_past(patch: pytest.MonkeyPatch) -> None:
    real = SpeculativeCountWindows._starts
    patch.setattr(SpeculativeCountWindows, "_starts", lambda self, rows, before, more=(): real(
        self, rows, before, more).where(f"{START} <> {before}L"))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "plant"),
    [
        ("changes of snapshots", _versions_are_lost),
        ("changes of snapshots", _old_events_are_forgotten),
        ("changes of windows", _versions_are_lost),
        ("changes of windows", _old_events_are_forgotten),
        ("changes of a join", _pairs_come_with_the_right_side),
        ("changes of events put together", _old_parts_are_forgotten),
        ("changes of events cut by others", _starts_cut_what_begins_with_them),
        ("changes of windows of two starts", _last_starts_are_forgotten),
        ("changes of windows of two starts", _starts_ahead_are_forgotten),
        ("changes of windows of two starts", _versions_of_starts_are_lost),
        ("changes of windows of two starts", _starts_stay_once_they_came),
        ("changes of windows of two starts", _windows_are_one_start_longer),
        ("changes of windows of two starts", _what_began_at_the_bound_is_past),
    ],
)
def test_a_planted_fault_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    law = {law.name: law for law in SPECULATION}[name]
    made, cut = (STARTS, range(1, 18)) if law in COUNTED else (EXAMPLE, CUT)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(law, made, play(derive(spark), law.transcript(made), cut))
