"""The laws of semantics 3, 4 and 9 over random events: with every cut into ticks, and with restarts."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rowtime.core.time import END, to_micros
from rowtime.frames.frame import Frame
from rowtime.kernels import events as kernel
from rowtime.operators.contract import Operator
from rowtime.operators.events import imported_bounds
from rowtime.operators.events.alter_lifetime import AlterLifetime
from rowtime.operators.events.clip import Clip
from rowtime.operators.events.event_table_join import EventTableJoin
from rowtime.operators.events.imported_bounds import ImportedBounds
from rowtime.operators.events.lifetime_sessions import LifetimeSessions
from rowtime.operators.events.lifetime_windows import LifetimeWindows
from rowtime.operators.events.period_filter import PeriodFilter
from rowtime.operators.rows.lifetimes import WeightedLog
from rowtime.runtime.session import derive
from rowtime.sql.generate import to_spark
from rowtime.state import segments
from rowtime.testing.runner import Outcome, play
from rowtime.testing.transcripts import ScriptItem
from tests.laws.lifetime_pipelines import LIFETIMES, OPEN_SESSIONS, Gates, LifetimeLaw, events
from tests.laws.speculation_pipelines import SPECULATION
from tests.laws.test_laws import ticks
from tests.oracle import feed as f
from tests.oracle import lifetimes as o

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)


def event(number: int, kind: str, start: int | None, stop: int | None, k: int = 0, stream: str = "s") -> ScriptItem:
    return ScriptItem(number, stream, "x", {"kind": kind, "start": start, "stop": stop, "k": k}, None)


def bound_of(number: int, at: int, stream: str = "s") -> ScriptItem:
    return ScriptItem(number, stream, "x", None, at)


EXAMPLE = [
    event(1, "interval", 1, 5),
    event(2, "start", 2, None, 1),
    event(3, "start", 2, None, 1),
    event(4, "interval", 2, 9, 1, "r"),
    event(5, "point", 4, None, 1),
    bound_of(6, 3),
    event(7, "interval", 1, 8, 1),
    event(8, "end", 2, 6, 1),
    event(9, "end", 3, 6, 1),
    event(10, "point", 4, None, 0, "r"),
    bound_of(11, 5, "r"),
    bound_of(12, 6),
    event(13, "interval", 6, 9),
    event(14, "start", 7, None),
    event(15, "interval", 8, 8, 0),
    bound_of(16, 9),
    event(17, "end", 2, 11, 1),
    bound_of(18, 12, "r"),
    bound_of(19, 10),
]
CUT = [9, 19]
ENDED = [
    *EXAMPLE,
    event(20, "end", 7, 12),
    ScriptItem(21, "s", "x", None, f.END),
    ScriptItem(22, "r", "x", None, f.END),
]


def check(law: LifetimeLaw, made: list[ScriptItem], found: Outcome) -> None:
    """Check rows, their order, rowtimes, refusals and the last bound against the oracle, and that promises are kept."""
    gates = law.gates(made)
    (items,) = law.oracle(gates).values()
    rows = [(row.at, dict(row.values)) for row in f.rows_of(items)]
    got = [
        (to_micros(row["rowtime"]), {n: _plain(v) for n, v in row.items() if n != "rowtime"}) for _, row in found.rows
    ]
    assert got == rows, f"rows {got}, expected {rows}"
    refused = set().union(*(gates[name].refused for name in law.reads))
    assert found.rejected == refused, f"refused {sorted(found.rejected)}, expected {sorted(refused)}"
    clock = f.clock_of(items)
    assert found.clocks[-1] == clock or clock == f.BEGINNING, f"bounds {found.clocks}, expected {clock} at the end"
    for tick, upto in enumerate(found.ends[:-1]):  # the time of output: after each tick, the rows of the items so far
        (items,) = law.oracle(law.gates([item for item in made if item.number <= upto], made)).values()
        rows = [(row.at, dict(row.values)) for row in f.rows_of(items)]
        out = [row for row, (at, _) in zip(got, found.rows, strict=True) if at <= tick]
        assert out == rows, f"after item {upto} of {found.ends} rows {out}, expected {rows}"
    for tick, row in found.rows:
        promised = found.clocks[tick - 1] if tick else f.BEGINNING
        assert to_micros(row["rowtime"]) >= promised, "a row came below the bound that was promised before it"
    assert found.clocks == sorted(found.clocks), "a bound went back"


def _plain(value: datetime | Any) -> Any:
    return to_micros(value) if hasattr(value, "tzinfo") else value


ONCE = ("intervals in full order, adjusted", "edges under generated bounds", "changes under bounds of time",
        "events made longer", "snapshots", "pairs of which one contains the other", "hopping windows over events",
        "an outer join of events", "the starts of both sides of a join",
        "changes under delayed bounds of others, adjusted",
        "a join of events with those whose bounds they take")  # fmt: skip
OFTEN = [pytest.param(law, id=law.name, marks=() if law.name in ONCE else pytest.mark.slow) for law in LIFETIMES]


@pytest.mark.parametrize("law", OFTEN)
def test_a_worked_example_equals_the_oracle(spark: SparkSession, law: LifetimeLaw) -> None:
    check(law, EXAMPLE, play(derive(spark), law.transcript(EXAMPLE), CUT, restart=True))


@pytest.mark.slow
@pytest.mark.parametrize("law", LIFETIMES, ids=[law.name for law in LIFETIMES])
def test_the_rows_equal_the_oracle_however_they_are_cut_and_restarted(spark: SparkSession, law: LifetimeLaw) -> None:
    session = derive(spark)

    @ticks
    @given(events())
    def holds(made: list[ScriptItem]) -> None:
        count = len(made)
        chance = random.Random(count)
        cut = sorted({*chance.sample(range(1, count + 1), min(3, count)), count})
        check(law, made, play(session, law.transcript(made), [count]))
        check(law, made, play(session, law.transcript(made), cut, restart=True))

    holds()


@pytest.mark.slow
def test_sessions_of_open_events_are_cut_however_they_are_given(spark: SparkSession) -> None:
    session = derive(spark)

    @ticks
    @given(events("sss"))
    def holds(made: list[ScriptItem]) -> None:
        made = [item for item in made if item.at != f.END]
        cut = sorted({*random.Random(len(made)).sample(range(1, len(made) + 1), min(3, len(made))), len(made)})
        check(OPEN_SESSIONS, made, play(session, OPEN_SESSIONS.transcript(made), [len(made)]))
        check(OPEN_SESSIONS, made, play(session, OPEN_SESSIONS.transcript(made), cut, restart=True))

    holds()


def test_a_worked_example_of_sessions_of_open_events(spark: SparkSession) -> None:
    for cut in (CUT, range(1, len(EXAMPLE) + 1)):
        check(OPEN_SESSIONS, EXAMPLE, play(derive(spark), OPEN_SESSIONS.transcript(EXAMPLE), cut, restart=True))


@pytest.mark.slow
def test_a_session_that_never_ends_keeps_the_events_of_its_present_part(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "FANOUT", 2)  # otherwise the state is compacted only after many ticks
    made = [item for n in range(1, 25) for item in (event(2 * n - 1, "interval", n, n + 2), bound_of(2 * n, n))]
    held = []
    for upto in (24, 48):
        found = play(derive(spark), OPEN_SESSIONS.transcript(made[:upto]), range(4, upto + 1, 4))
        check(OPEN_SESSIONS, made[:upto], found)
        held.append(found.held)
    assert held[1] <= held[0] + 6, held  # without a limit of state, 12 more events


@pytest.mark.slow
@pytest.mark.parametrize("law", LIFETIMES, ids=[law.name for law in LIFETIMES])
def test_no_event_is_kept_after_the_end(spark: SparkSession, law: LifetimeLaw) -> None:
    found = play(derive(spark), law.transcript(ENDED), [9, len(ENDED)])
    check(law, ENDED, found)
    assert found.held == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "law", [*OFTEN, *(pytest.param(one, id=one.name, marks=pytest.mark.slow) for one in SPECULATION)]
)
def test_columns_may_have_any_name(spark: SparkSession, law: LifetimeLaw) -> None:
    """Names that the operators' own SQL uses, as columns beside k and instead of it."""
    beside = [
        *"ycdefghilmnoptvw",
        "lo",
        "hi",
        "at",
        "due",
        "alive",
        "net",
        "found",
        "sp",
        "ep",
        "sc",
        "ec",
        "fresh",
        "what",
    ]
    made = [replace(item, values=_renamed(item.values)) for item in EXAMPLE]
    sql = re.sub(r"\bk\b", "x", law.transcript(EXAMPLE).sql)
    sql = sql.replace("x INT)", f"x INT, {', '.join(f'{name} STRING' for name in beside)})")
    found = play(derive(spark), replace(law.transcript(made), sql=sql), CUT, restart=True)
    rows = [(tick, {"k" if name == "x" else name: value for name, value in row.items()}) for tick, row in found.rows]
    check(law, EXAMPLE, replace(found, rows=rows))


def _renamed(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if values is None else {"x" if name == "k" else name: value for name, value in values.items()}


@pytest.mark.slow
@pytest.mark.parametrize("cut", [CUT, range(1, len(EXAMPLE) + 1)], ids=["two ticks", "a tick an item"])
def test_events_without_an_end_are_chopped_up_to_the_bound(spark: SparkSession, cut: Sequence[int]) -> None:
    sql = "SELECT STREAM k FROM CHOP(s, INTERVAL '3' MICROSECOND, INTERVAL '1' MICROSECOND)"

    def pieces(gates: Gates) -> f.Feed:
        bound = gates["s"].clock
        return o.made(o.chopped(gates["s"].events, 3, bound, 1), bound)

    law = LifetimeLaw("events in pieces", ("chop",), sql, pieces)
    check(law, EXAMPLE, play(derive(spark), law.transcript(EXAMPLE), cut, restart=True))


def test_events_that_wait_for_many_ticks_are_combined(spark: SparkSession) -> None:
    law = {law.name: law for law in LIFETIMES}["intervals in chain order"]
    made = [*(event(n, "interval", n, 30 + n) for n in range(1, 10)), bound_of(10, 35)]
    check(law, made, play(derive(spark), law.transcript(made), range(1, len(made) + 1)))


CLIPPED = [
    event(1, "start", 1, None, 1), event(2, "interval", 2, 9, 0, "r"), event(3, "point", 4, None, 1, "r"),
    event(4, "point", 4, None, 1), bound_of(5, 5), bound_of(6, 5, "r"), event(7, "end", 1, 7, 1),
    event(8, "start", 6, None, 1), event(9, "interval", 8, 9, 1, "r"), bound_of(10, 9), bound_of(11, 9, "r"),
]  # fmt: skip
"""An event that is cut before its end is known, one that starts at its cut, and one that is cut later."""

WAITING = [event(1, "start", 2, None), bound_of(2, 3), event(3, "point", 4, None), bound_of(4, 5)]
"""An event of which it is not known whether it lasts until 7."""


LENT = [
    event(1, "interval", 1, 9), bound_of(2, 5, "r"), event(3, "interval", 2, 9, 1), event(4, "point", 9, None, 0, "r"),
    event(5, "interval", 6, 9), bound_of(6, 8, "r"), event(7, "interval", 3, 7),
]  # fmt: skip
"""Events before and after the bounds that they import; after the last event a bound may still come before it."""


def _bounds_stand_before_all_rows(patch: pytest.MonkeyPatch) -> None:
    real = imported_bounds._Moving.risen
    patch.setattr(imported_bounds._Moving, "risen", lambda self, clock: [(0, at) for _, at in real(self, clock)])


def _rows_do_not_wait_for_bounds(patch: pytest.MonkeyPatch) -> None:
    real = ImportedBounds.step
    patch.setattr(ImportedBounds, "step", lambda self, *given: replace(real(self, *given), clocks={"": END}))


def _ends_of_cut_events_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Clip, "_open_of", lambda _self, rows, _was: rows)


def _cutting_starts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Clip, "_cut", lambda self, tick, events, _cuts, bound, real=Clip._cut: real(self, tick, events, None, bound)
    )


def _nothing_is_remembered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        WeightedLog, "forget", lambda self, _bound, columns, real=WeightedLog.forget: real(self, END, columns)
    )


def _ends_are_taken_as_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PeriodFilter, "_between", lambda _self, side, _bound: (to_spark(side), to_spark(side)))


def _nothing_holds_the_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PeriodFilter, "_oldest", lambda _self, _kept, _bound: END)


def _windows_wait_for_the_next(patch: pytest.MonkeyPatch) -> None:
    real = LifetimeWindows.emits
    patch.setattr(LifetimeWindows, "emits", lambda self: replace(real(self), lasts=0))


def _limits_extend(patch: pytest.MonkeyPatch) -> None:
    real = AlterLifetime.times
    patch.setattr(AlterLifetime, "times", lambda self: (real(self)[0], real(self)[1].replace("least", "greatest")))


def _every_start_cuts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Clip, "_cut", lambda self, *given, real=Clip._cut: real(replace(self, where=None), *given))


def _bounds_are_not_strict(patch: pytest.MonkeyPatch) -> None:
    real = kernel._generated
    patch.setattr(
        kernel,
        "_generated",
        lambda shape, *given, **more: real(replace(shape, delay=max(0, shape.delay)), *given, **more),
    )


def _null_differs_from_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EventTableJoin, "_met", property(lambda self: to_spark(self.on).replace("IS NULL", "IS NOT NULL")))


def _each_row_of_a_table_counts(patch: pytest.MonkeyPatch) -> None:
    real = Frame.joined
    inner = lambda self, other, test, how: real(self, other, test, "inner" if how == "left_semi" else how)  # noqa: E731 - a fault
    patch.setattr(Frame, "joined", inner)


CUT_APART = [event(1, "interval", 1, 5, 1), bound_of(2, 6), event(3, "interval", 6, 13, 1), bound_of(4, 20)]
"""A session whose first part has no present events when the second part begins."""


def _cut_sessions_begin_anew(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LifetimeSessions, "_note", lambda *_: None)


def _sessions_hold_no_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LifetimeSessions, "promises", Operator.promises)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "made", "plant"),
    [
        ("sessions with a longest duration", CUT_APART, _cut_sessions_begin_anew),
        ("sessions with a longest duration", CUT_APART, _nothing_is_remembered),
        ("sessions of events", EXAMPLE, _nothing_is_remembered),
        ("sessions of events", EXAMPLE, _sessions_hold_no_bound),
        ("events that are in no row of a table with a NULL", EXAMPLE, _null_differs_from_all),
        ("events that have rows in a table", EXAMPLE, _each_row_of_a_table_counts),
        ("hopping windows over events", EXAMPLE, _windows_wait_for_the_next),
        ("how long events last in a window", EXAMPLE, _windows_wait_for_the_next),
        ("events that contain a period", WAITING, _ends_are_taken_as_known),
        ("events that contain a period", WAITING, _nothing_holds_the_bound),
        ("events that contain a period", WAITING, _nothing_is_remembered),
        ("events of a limited length", EXAMPLE, _limits_extend),
        ("events within a period", EXAMPLE, _limits_extend),
        ("events cut by some others", CLIPPED, _every_start_cuts),
        ("starts that have to increase", EXAMPLE, _bounds_are_not_strict),
        ("events cut by others", CLIPPED, _ends_of_cut_events_count),
        ("events cut by others", CLIPPED, _cutting_starts_are_forgotten),
        ("events cut by others", CLIPPED, _nothing_is_remembered),
        ("a join of events", EXAMPLE, _nothing_is_remembered),
        ("an anti-join of events", EXAMPLE, _nothing_is_remembered),
        ("changes under delayed bounds of others, adjusted", LENT, _bounds_stand_before_all_rows),
        ("changes under delayed bounds of others, adjusted", LENT, _rows_do_not_wait_for_bounds),
    ],
)
def test_a_planted_fault_is_caught(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    made: list[ScriptItem],
    plant: Callable[[pytest.MonkeyPatch], None],
) -> None:
    law = {law.name: law for law in LIFETIMES}[name]
    cuts = [*range(2, len(made), 2), len(made)], [len(made)]

    def held() -> None:
        for cut in cuts:
            check(law, made, play(derive(spark), law.transcript(made), cut))

    held()
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        held()
