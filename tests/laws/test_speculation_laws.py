"""The laws of EMIT CHANGES over random events: one changelog however it is cut, and what it adds up to (SPEC 9.5)."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from rowtime.core.time import BEGINNING, END
from rowtime.operators import LifetimeJoin, SpeculativeAntiJoin, SpeculativeClip, SpeculativeGroups, SpeculativeStitch
from rowtime.operators.lifetimes import C, Q
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem
from tests.laws.lifetime_pipelines import LifetimeLaw, events
from tests.laws.speculation_pipelines import SPECULATION
from tests.laws.test_laws import ticks
from tests.laws.test_lifetime_laws import CUT, EXAMPLE, check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import SparkSession

IDS = [law.name for law in SPECULATION]
ENDED = [*EXAMPLE[:13], *EXAMPLE[14:], *(ScriptItem(20 + n, name, "x", None, END) for n, name in enumerate("sr"))]
"""The example without an event that never ends."""


ONCE = ("changes of snapshots of a join",)
OFTEN = [pytest.param(law, id=law.name, marks=() if law.name in ONCE else pytest.mark.slow) for law in SPECULATION]


@pytest.mark.parametrize("law", OFTEN)
def test_what_every_item_changes_is_the_oracles(spark: SparkSession, law: LifetimeLaw) -> None:
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
    final = LifetimeLaw(law.name, law.operators, law.sql.replace(" EMIT CHANGES", ""), law.oracle, reads=law.reads)
    rows = [item for item in ENDED if item.values and item.values["kind"] in ("point", "interval")]
    ends = [item for item in ENDED if item.at == END]
    for seed in range(3):
        made = [*random.Random(seed).sample(rows, len(rows)), *ends]
        cut = sorted({*random.Random(seed).sample(range(1, len(made)), 2), len(made)})
        (wanted, found) = (play(session, one.transcript([*_numbered(made)]), cut).rows for one in (final, law))
        assert _folded(row for _, row in found) == Counter(_key(row, row["stop"]) for _, row in wanted)


def _numbered(made: Iterable[ScriptItem]) -> Iterable[ScriptItem]:
    return (ScriptItem(n, i.stream, i.writer, i.values, i.at) for n, i in enumerate(made, 1))


def _folded(rows: Iterable[Mapping[str, Any]]) -> Counter[Any]:
    """What is left when the changes are applied one after the other."""
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
    patch.setattr(SpeculativeGroups, "_events", lambda self, rows, real=SpeculativeGroups._events: real(
        self, rows.selectExpr(*(n for n in rows.columns if n not in (Q, C)), f"0L AS {Q}", f"0L AS {C}")))  # fmt: skip


def _old_events_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpeculativeGroups, "_revised", lambda self, new, _old, before, real=SpeculativeGroups._revised: real(
        self, new, None, before))  # fmt: skip


def _pairs_come_with_the_right_side(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LifetimeJoin, "_joined", lambda self, left, right, real=LifetimeJoin._joined: real(
        self, left.drop(Q, C).selectExpr("*", f"-1L AS {Q}", f"{BEGINNING}L AS {C}"), right))  # fmt: skip


def _old_parts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = SpeculativeStitch._revised
    patch.setattr(SpeculativeStitch, "_revised", lambda self, new, _old: real(self, new, None))


def _starts_cut_what_begins_with_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpeculativeClip, "_condition", SpeculativeAntiJoin._condition)


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
    ],
)
def test_a_fault_that_is_planted_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    law = {law.name: law for law in SPECULATION}[name]
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(law, EXAMPLE, play(derive(spark), law.transcript(EXAMPLE), CUT))
