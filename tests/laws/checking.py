"""Runs a law's query on some items and compares it with the oracle."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, settings

from rowtime.core.time import to_micros
from rowtime.runtime.session import derive
from rowtime.testing.runner import Outcome, play
from tests.laws.pipelines import LONG, SET, Law, feeds, shuffled, transcript
from tests.oracle import feed as f

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from pyspark.sql import SparkSession

    from rowtime.testing.transcripts import ScriptItem


def generated(examples: int, most: int, **more: Any) -> settings:
    """Return the settings of a law over generated items: few examples that are always the same, or many new ones."""
    return settings(
        max_examples=most if LONG else examples,
        deadline=None,
        derandomize=not LONG,
        database=None,
        phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
        suppress_health_check=list(HealthCheck),
        **more,
    )


def check_law(
    spark: SparkSession, pipelines: SearchStrategy[Law], items: SearchStrategy[list[ScriptItem]], examples: int
) -> None:
    """Check generated pipelines with generated items in several cuts."""
    session = derive(spark)

    @generated(examples, 400, report_multiple_bugs=False)
    @given(pipelines, items)
    def holds(law: Law, made: list[ScriptItem]) -> None:
        check_cuts(session, law, made)

    holds()


def check_items(
    spark: SparkSession,
    law: Law,
    items: SearchStrategy[list[ScriptItem]],
    checked: Callable[[SparkSession, Law, list[ScriptItem]], None],
) -> None:
    """Check generated items of one law."""
    session = derive(spark)

    @generated(2, 40)
    @given(items)
    def holds(made: list[ScriptItem]) -> None:
        checked(session, law, made)

    holds()


def outcome(
    spark: SparkSession, law: Law, made: Sequence[ScriptItem], cut: Sequence[int], *, restart: bool = False
) -> Outcome:
    """The engine's results for the items, divided into ticks."""
    given = {item.number: (SET, item.at) for item in made if item.stream == SET and item.at is not None}
    return play(spark, transcript(law, made), cut, restart=restart, given=given)


def check_cuts(session: SparkSession, law: Law, made: Sequence[ScriptItem], *, shuffle: bool = True) -> None:
    """Compare one tick, and random ticks with another order of writers and optional restarts, with the oracle."""
    count = len(made)
    chance = random.Random(count)
    cut = sorted({*chance.sample(range(1, count + 1), min(2, count)), count})
    served = shuffled(made, count) if shuffle else made
    check(law, served, outcome(session, law, served, cut, restart=chance.random() < 0.5))
    whole = outcome(session, law, made, [count])
    check(law, made, whole)
    if LONG:
        each = outcome(session, law, made, range(1, count + 1))
        check(law, made, each)
        same_holding(each, whole)


def check(law: Law, made: Sequence[ScriptItem], found: Outcome) -> None:
    """Check rows, their order, rowtimes, refusals and the last bound against the oracle, and that promises are kept."""
    expected, refused = law.oracle(feeds(made))
    (items,) = expected.values()
    rows = [(row.at, dict(row.values)) for row in f.rows_of(items)]
    got = [row_of(row) for _, row in found.rows]
    assert got == rows, f"rows {got}, expected {rows}"
    turned_away = {(row["n"], row["reason"]) for row in found.refused}
    assert turned_away == {(r.values["n"], r.reason) for r in refused}, f"refused {turned_away}, expected {refused}"
    if f.clock_of(items) > f.BEGINNING or found.clocks[-1] > f.BEGINNING:
        assert found.clocks[-1] == f.clock_of(items), f"bounds {found.clocks}, expected {f.clock_of(items)} at the end"
    promises_kept(found)
    _came_when_they_had_to(law, made, found)


def _came_when_they_had_to(law: Law, made: Sequence[ScriptItem], found: Outcome) -> None:
    """After each tick, exactly the rows are out that the oracle has for the items so far."""
    for tick, upto in enumerate(found.ends[:-1]):
        # A bound that is set by hand after a tick counts from the next tick on.
        seen = [i for i in made if i.number <= upto and not (i.stream == SET and i.number == upto)]
        (items,) = law.oracle(feeds(seen, made))[0].values()
        rows = [(row.at, dict(row.values)) for row in f.rows_of(items)]
        got = [row_of(row) for at, row in found.rows if at <= tick]
        assert got == rows, f"after item {upto} of {found.ends} rows {got}, expected {rows}"


def same_holding(one: Outcome, other: Outcome) -> None:
    """Check that after the same items two runs with other cuts hold the same: open groups, and rows that wait."""
    held, rows = (
        {
            upto: {key: many for key, many in holding.items() if many}
            for upto, holding in zip(found.ends, found.holding, strict=True)
        }
        for found in (one, other)
    )
    common = held.keys() & rows.keys()
    assert common, "the runs have no moment in common"
    for upto in sorted(common):
        assert held[upto] == rows[upto], f"held after item {upto}: {held[upto]} and {rows[upto]}"


def row_of(row: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """The rowtime and the columns of a result row."""
    return to_micros(row["rowtime"]), {name: value for name, value in row.items() if name != "rowtime"}


def promises_kept(found: Outcome) -> None:
    """Check that no row lies below an earlier bound, and that no bound goes back."""
    for tick, row in found.rows:
        promised = found.clocks[tick - 1] if tick else f.BEGINNING
        assert to_micros(row["rowtime"]) >= promised, "a row came below the bound that was promised before it"
    assert found.clocks == sorted(found.clocks), "a bound went back"
