"""The laws over joins: the pairs are the oracle's with any cut, and no state remains."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from rowtime.core.clock import least
from rowtime.core.columns import ROW_NUMBER
from rowtime.operators.joins.join import Edge, Join
from rowtime.operators.joins.table_join import TableJoin
from rowtime.operators.streams.table_select import TableSelect
from rowtime.runtime.session import derive
from rowtime.sql.generate import to_spark
from tests.laws.checking import check, check_cuts, outcome
from tests.laws.deeper_pipelines import close_items
from tests.laws.fault_rows import EXAMPLE, bound, item
from tests.laws.join_pipelines import JOINS
from tests.laws.pipelines import HALF, SECOND, Law, _streams, feeds
from tests.laws.test_deeper_laws import ticks
from tests.oracle import feed as f

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from rowtime.testing.runner import Outcome
    from rowtime.testing.transcripts import ScriptItem

pytestmark = pytest.mark.sampled(8)


IN_TURN = [  # every other one runs with the slow tests
    pytest.param(law, id=law.name, marks=[pytest.mark.slow] if n % 2 else []) for n, law in enumerate(JOINS)
]


@pytest.mark.parametrize("law", IN_TURN)
def test_a_join_equals_its_oracle_in_any_cut(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(close_items(fair=True))
    def holds(made: list[ScriptItem]) -> None:
        check_cuts(session, law, made)

    holds()


# By law: how long past its rowtime a row of each side can match a row that comes later, or waits to go out itself (µs).
HELD_FOR = {
    "windows on both sides": (SECOND, HALF),
    "a window on the left alone": (SECOND, 0),
    "a left join of windows": (SECOND, HALF),
    "a full join with a further condition": (SECOND, SECOND),
    "an interval into the past": (0, 2 * SECOND),
    "a left join of an interval": (2 * SECOND - 1, 0),
    "a semi join of an interval": (SECOND, HALF),
    "an anti join of windows": (SECOND, HALF),
    "a right join of equal rowtimes": (0, 0),
}
HELD = [pytest.param(name, marks=[pytest.mark.slow] if n % 3 else []) for n, name in enumerate(HELD_FOR)]


def _held(law: Law, made: Sequence[ScriptItem], found: Outcome) -> None:
    """After each tick, a side holds exactly the rows that a row still to come can match, or that wait to go out."""
    for upto, holding in zip(found.ends, found.holding, strict=True):
        sides, _ = _streams(feeds([i for i in made if i.number <= upto], made), "a", "b")
        bound = min(f.bound_of(side) for side in sides)
        for name, side, held_for in zip(("left", "right"), sides, HELD_FOR[law.name], strict=True):
            waits = [row for items in side.values() for row in f.rows_of(items) if row.at + held_for >= bound]
            held = next((n for key, n in holding.items() if key.endswith(f"join/{name}")), 0)
            assert held == len(waits), f"after item {upto} the {name} side holds {held} rows, expected {waits}"


@pytest.mark.parametrize("name", HELD)
def test_a_join_holds_the_rows_that_can_still_match(spark: SparkSession, name: str) -> None:
    session = derive(spark)

    @ticks
    @given(close_items(fair=True))
    def holds(made: list[ScriptItem]) -> None:
        for cut in (range(1, len(made) + 1), range(1, len(made) + 1, 3)):
            found = outcome(session, LAW[name], made, [*cut, len(made)][: len(cut) + (cut[-1] < len(made))])
            _held(LAW[name], made, found)
            check(LAW[name], made, found)

    holds()


def test_the_law_catches_rows_that_are_held_too_long(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    law = LAW["a left join of windows"]
    monkeypatch.setattr(Join, "_kept_for", property(lambda _: (SECOND, HALF + SECOND)))
    found = outcome(derive(spark), law, MEETING, TICKS)
    check(law, MEETING, found)
    with pytest.raises(AssertionError, match="side holds"):
        _held(law, MEETING, found)


def _earlier_rows_not_asked(patch: pytest.MonkeyPatch) -> None:
    real = Join._pairs
    patch.setattr(Join, "_pairs", lambda self, *args: list(real(self, *args))[:1])


def _rows_forgotten_too_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Join, "_kept_for", property(lambda _: (0, 0)))


def _edge_forgotten_between_ticks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Edge, "covers", "false")


def _unmatched_rows_that_match(patch: pytest.MonkeyPatch) -> None:
    def joined(self: Join, tick: Any, n: int, rows: Any, others: Any, how: str, *rest: int) -> Any:
        return rows if how == "left_anti" else real(self, tick, n, rows, others, how, *rest)

    real = Join._joined
    patch.setattr(Join, "_joined", joined)


def _semi_rows_without_a_match(patch: pytest.MonkeyPatch) -> None:
    def joined(self: Join, tick: Any, n: int, rows: Any, others: Any, how: str, *rest: int) -> Any:
        return rows if how == "left_semi" else real(self, tick, n, rows, others, how, *rest)

    real = Join._joined
    patch.setattr(Join, "_joined", joined)


def _promise_of_the_faster_side(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Join, "promises", lambda _self, clocks, _control: {"": max(least(c.values()) for c in clocks)})


def _matches_in_another_order(patch: pytest.MonkeyPatch) -> None:
    real = TableJoin.emits
    patch.setattr(
        TableJoin, "emits", lambda self: replace(real(self), order=(*real(self).order[:-1], f"{ROW_NUMBER}0 DESC"))
    )


def _null_differs_from_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TableJoin, "_met", property(lambda self: to_spark(self.on).split(" OR ")[0].strip("(")))


def _computed_of_other_rows(patch: pytest.MonkeyPatch) -> None:
    real = TableSelect.computed
    patch.setattr(TableSelect, "computed", lambda self, tables: real(replace(self, where=None), tables))


FAULTS = (
    ("windows on both sides", _earlier_rows_not_asked),
    ("windows on both sides", _rows_forgotten_too_early),
    ("windows on both sides", _edge_forgotten_between_ticks),
    ("windows on both sides", _promise_of_the_faster_side),
    ("a left join of windows", _unmatched_rows_that_match),
    ("a semi join of an interval", _semi_rows_without_a_match),
    ("an anti join of windows", _unmatched_rows_that_match),
    ("a stream with a table", _matches_in_another_order),
    ("a value that is in no row of a table with a NULL", _null_differs_from_all),
    ("values in one query over a table and not in another", _computed_of_other_rows),
)
LAW = {law.name: law for law in JOINS}
MEETING = [
    item(1, "a", "x", 0), item(2, "b", "x", 1), item(3, "a", "x", 3), item(4, "b", "x", 3),
    item(5, "a", "x", 3, v=2), bound(6, "a", "x", 5), item(7, "b", "x", 3), item(8, "b", "x", 4),
    item(9, "b", "x", 5), item(10, "a", "x", 9), bound(11, "b", "x", 12), bound(12, "a", "x", 12),
]  # fmt: skip
TICKS = [1, 2, 4, 6, 7, 9, 12]


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(("name", "plant"), FAULTS, ids=[plant.__name__.strip("_") for _, plant in FAULTS])
def test_a_planted_fault_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(LAW[name], MEETING, outcome(derive(spark), LAW[name], MEETING, TICKS))


MATCHED_EARLY = [  # the row of b is dropped a tick before that of a is known to have had a match
    item(1, "a", "x", 0), item(2, "b", "x", 0), bound(3, "a", "x", 2), bound(4, "b", "x", 2), item(5, "a", "x", 2),
    bound(6, "a", "x", 9), bound(7, "b", "x", 9),
]  # fmt: skip


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("name", ["a left join of windows", "a semi join of an interval", "an anti join of windows"])
def test_a_row_that_was_dropped_has_matched(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    cut = [2, 4, 7]
    found = outcome(derive(spark), LAW[name], MATCHED_EARLY, cut, restart=True)
    _held(LAW[name], MATCHED_EARLY, found)
    check(LAW[name], MATCHED_EARLY, found)
    monkeypatch.setattr(Join, "_record", lambda *_: None)
    with pytest.raises(AssertionError):
        check(LAW[name], MATCHED_EARLY, outcome(derive(spark), LAW[name], MATCHED_EARLY, cut))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _ in FAULTS}))
def test_without_a_fault_nothing_is_caught(spark: SparkSession, name: str) -> None:
    check(LAW[name], MEETING, outcome(derive(spark), LAW[name], MEETING, TICKS, restart=True))


@pytest.mark.slow
@pytest.mark.parametrize("law", JOINS, ids=[law.name for law in JOINS])
def test_no_row_is_kept_after_the_end(spark: SparkSession, law: Law) -> None:
    found = outcome(derive(spark), law, EXAMPLE, [6, len(EXAMPLE)], restart=True)
    check(law, EXAMPLE, found)
    assert found.held == 0
