"""The laws with writers that leave, are set aside and return (semantics 2.6): leaving is an item like a row."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rowtime.operators.gates.tsort import TSort
from rowtime.runtime.session import derive
from rowtime.testing.runner import Outcome, play
from rowtime.testing.transcripts import ScriptItem
from tests.laws.checking import promises_kept, row_of
from tests.laws.leave_pipelines import LEAVING, Script, fed, scripts
from tests.laws.lifetime_pipelines import LIFETIMES, LeavingLaw, LifetimeLaw, events
from tests.laws.pipelines import HALF, LONG, ORIGIN, Law, transcript
from tests.laws.test_lifetime_laws import check as agrees
from tests.oracle import feed as f

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pyspark.sql import SparkSession

    from rowtime.core.clock import Clocks
    from rowtime.operators.contract import Delta, Tick

pytestmark = pytest.mark.sampled(8)

LAW = {law.name.split(", whose")[0]: law for law in LEAVING}


def outcome(session: SparkSession, law: Law, script: Script, cut: Sequence[int], *, restart: bool = False) -> Outcome:
    return play(session, transcript(law, script.items), cut, restart=restart, idle=script.silent())


def agree(session: SparkSession, law: Law, script: Script, seed: int) -> None:
    """Few ticks, many ticks and restarts give the oracle's result."""
    count, chance = len(script.items), random.Random(seed)
    forced = {number for number in script.cuts() if number} | {count}
    some = {*chance.sample(range(1, count + 1), min(3, count)), *forced}
    for cut in ([*sorted(forced)], [*sorted(some)], *([range(1, count + 1)] if LONG else [])):
        meets(law, script, outcome(session, law, script, cut, restart=chance.random() < 0.5))


def expected(law: Law, script: Script, upto: int, idle: bool) -> tuple[list[tuple[int | None, f.Values]], int]:
    """The rows that are out after an item, in order, and the bound.

    A writer that returns starts at the present clock of the stream, so these rows stay out, in the same order.
    """
    rows: list[tuple[int | None, f.Values]] = []
    bound = f.BEGINNING
    for number in sorted({*(n - 1 for n in script.returns() if n <= upto), upto}):
        away = {n: who for n, who in script.idle.items() if n < number + (idle or number < upto)}
        made = replace(script, items=[item for item in script.items if item.number <= number], idle=away)
        (items,) = law.oracle(fed(law, made, script.items))[0].values()
        there = [(row.at, dict(row.values)) for row in f.rows_of(items)]
        for row in rows:
            if row in there:  # the writer that returned may now hold rows that were released before
                there.remove(row)
        rows, bound = [*rows, *there], max(bound, f.clock_of(items))
    return rows, bound


def meets(law: Law, script: Script, found: Outcome) -> None:
    """After each tick, exactly the oracle's rows for the items so far; its refusals; promises are kept."""
    for tick, (upto, before) in enumerate(zip(found.ends, [0, *found.ends], strict=False)):
        # The tick without items is the one that sets a writer aside.
        rows, bound = expected(law, script, upto, idle=upto == before)
        got = [row_of(row) for at, row in found.rows if at <= tick]
        assert got == rows, f"after item {upto} of {found.ends} rows {got}, expected {rows}"
        if max(bound, found.clocks[tick]) > f.BEGINNING:
            assert found.clocks[tick] == bound, f"after item {upto} the bound {found.clocks[tick]}, expected {bound}"
    _, refused = law.oracle(fed(law, script))
    turned_away = {(row["n"], row["reason"]) for row in found.refused}
    assert turned_away == {(r.values["n"], r.reason) for r in refused}, f"refused {turned_away}, expected {refused}"
    promises_kept(found)


@pytest.mark.parametrize("law", LEAVING, ids=[law.name for law in LEAVING])
def test_a_writer_that_leaves_and_returns_changes_no_certain_result(
    spark: SparkSession, law: Law, request: pytest.FixtureRequest
) -> None:
    session = derive(spark)

    @settings(
        max_examples=60 if LONG else 8 if request.node.get_closest_marker("slow") else 3,
        deadline=None,
        derandomize=not LONG,
        database=None,
        phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
    )
    @given(scripts())
    def holds(script: Script) -> None:
        agree(session, law, script, len(script.items))

    holds()


EVENTS = (
    "points",
    "edges under generated bounds",
    "intervals in full order, adjusted",
    "changes under bounds of time",
    "snapshots",
    "hopping windows over events",
    "a join of events",
    "an anti-join of events",
)


@st.composite
def departures(draw: Callable[..., Any]) -> list[ScriptItem]:
    """Events, and writers that leave after their last event; x may have no event."""
    made: list[ScriptItem] = [item for item in draw(events()) if item.at != f.END]
    for name, writer in sorted({("s", "x"), ("r", "x"), *((item.stream, item.writer) for item in made)}):
        if draw(st.booleans()):
            mine = (n for n, item in enumerate(made) if (item.stream, item.writer) == (name, writer))
            last = max(mine, default=-1)
            made.insert(draw(st.integers(last + 1, len(made))), ScriptItem(0, name, writer, None, None, leaves=True))
    return [replace(item, number=number) for number, item in enumerate(made, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("law", [law for law in LIFETIMES if law.name in EVENTS], ids=lambda law: law.name)
def test_events_of_writers_that_leave_equal_the_oracle(spark: SparkSession, law: LifetimeLaw) -> None:
    session, leaving = derive(spark), LeavingLaw(**vars(law))

    @settings(max_examples=40 if LONG else 6, deadline=None, derandomize=not LONG, database=None)
    @given(departures())
    def holds(made: list[ScriptItem]) -> None:
        count = len(made)
        cut = sorted({*random.Random(count).sample(range(1, count + 1), min(4, count)), count})
        agrees(leaving, made, play(session, law.transcript(made), [count]))
        agrees(leaving, made, play(session, law.transcript(made), cut, restart=True))

    holds()


def test_a_writer_of_events_that_leaves_holds_no_row_back(spark: SparkSession) -> None:
    law = next(law for law in LIFETIMES if law.name == "points")
    sent = [("x", 1, 5, False), ("y", 2, 4, False), ("x", None, 3, False), ("y", None, 9, False),
            ("x", None, None, True), ("y", 9, 12, False), ("y", None, None, True)]  # fmt: skip
    made = [
        ScriptItem(n, "s", writer, None, stop, leaves=leaves)
        if start is None
        else ScriptItem(n, "s", writer, {"kind": "interval", "start": start, "stop": stop, "k": 0}, None)
        for n, (writer, start, stop, leaves) in enumerate(sent, 1)
    ]
    found = play(derive(spark), law.transcript(made), [4, 5, 7])
    agrees(LeavingLaw(**vars(law)), made, found)
    assert len(found.rows) == 2
    with pytest.raises(AssertionError):
        agrees(law, [item for item in made if not item.leaves], found)


def row(number: int, writer: str, at: int, ev: int | None = None) -> ScriptItem:
    values = {"n": number, "v": 1, "ev": ORIGIN + (at if ev is None else ev) * HALF, "rowtime": ORIGIN + at * HALF}
    return ScriptItem(number, "a", writer, values, None)


def leave(number: int, writer: str) -> ScriptItem:
    return ScriptItem(number, "a", writer, None, None, leaves=True)


WORKED = {
    "rows and the leave of their writer": ("t-sort", [row(1, "x", 1), row(2, "x", 9), leave(3, "x")], {}),
    "the greater clock leaves first": (
        "t-sort",
        [row(1, "x", 9), row(2, "y", 5), leave(3, "x"), leave(4, "y")],
        {},
    ),
    "the greater clock leaves last": (
        "t-sort",
        [row(1, "x", 9), row(2, "y", 5), leave(3, "y"), leave(4, "x")],
        {},
    ),
    "a row below its own clock, behind which the writer leaves": (
        "filter and projection",
        [row(1, "x", 5), row(2, "y", 1), row(3, "x", 3), leave(4, "x"), row(5, "y", 9)],
        {},
    ),
    "who comes back is late above its own clock, and out of order below": (
        "filter and projection",
        [row(1, "x", 2), row(2, "y", 2), leave(3, "x"), row(4, "y", 6), row(5, "x", 1), row(6, "x", 4), row(7, "x", 7)],
        {},
    ),
    "who comes back stands above the stream": (
        "filter and projection",
        [row(1, "x", 8), row(2, "y", 2), leave(3, "x"), row(4, "x", 5), row(5, "x", 9), row(6, "y", 9)],
        {},
    ),
    "who is set aside comes back": (
        "t-sort",
        [row(1, "x", 2), row(2, "y", 6), row(3, "y", 9), row(4, "x", 3), row(5, "x", 10), row(6, "y", 12)],
        {3: "x"},
    ),
    "all are silent, and the name that sorts last has the smaller clock": (
        "t-sort",
        [row(1, "y", 2), row(2, "x", 6), row(3, "x", 9), row(4, "y", 3), row(5, "y", 10), row(6, "x", 12)],
        {3: "y"},
    ),
    "all are silent, and the name that sorts first has the smaller clock": (
        "t-sort",
        [row(1, "x", 2), row(2, "y", 6), row(3, "y", 9), row(4, "x", 3), row(5, "x", 10), row(6, "y", 12)],
        {3: "x"},
    ),
}


@pytest.mark.parametrize("name", WORKED)
def test_the_worked_cases_of_leaves_do_not_depend_on_the_cut(spark: SparkSession, name: str) -> None:
    of, made, idle = WORKED[name]
    script, session = Script(made, idle, all_silent=name.startswith("all are silent")), derive(spark)
    count = len(made)
    for cut in ([*sorted({*script.cuts(), count})], range(1, count + 1)):
        meets(LAW[of], script, outcome(session, LAW[of], script, cut))


def test_the_law_catches_a_mark_that_leaves_with_its_writer(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, made, idle = WORKED["rows and the leave of their writer"]
    settled = TSort._settled

    def forgetful(self: TSort, tick: Tick, delta: Delta, _here: Clocks) -> Clocks:
        return settled(self, tick, delta, {})

    monkeypatch.setattr(TSort, "_settled", forgetful)
    script = Script(made, idle)
    with pytest.raises(AssertionError):
        meets(LAW[of], script, outcome(derive(spark), LAW[of], script, [len(made)]))
