"""Costs of ticks: their form in the journal, and the division of a tick into parts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from rowtime.runtime.meter import Meter, covered
from rowtime.state.costs import CLOCK, INPUT, JOURNAL, PARTS, PLANNING, SINKS, TickCost, cost_of, costs_of

COMMITTED = TickCost(7, 1_000, 301_000, {INPUT: 10.0, PLANNING: 90.0, SINKS: 200.0}, {"s": 5}, {"q": 4}, 1, 2, 999, 3)
ENDED = TickCost(7, 1_000, 341_000, {INPUT: 10.0, PLANNING: 90.0, SINKS: 230.0, JOURNAL: 10.04}, complete=True)
EDGES = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda span: (min(span), max(span)))


def test_an_entry_has_the_cost_and_the_next_one_how_the_tick_ended() -> None:
    entry = json.loads(json.dumps({"tick": 7, "cost": COMMITTED.stored()}))
    assert cost_of(entry) == COMMITTED
    following = {"tick": 8, "cost": COMMITTED.stored(ENDED.tail(COMMITTED))}
    found = cost_of(entry, following)
    assert found is not None
    assert (found.complete, found.ended, found.rows_in) == (True, 341_000, {"s": 5})
    assert found.milliseconds == {INPUT: 10.0, PLANNING: 90.0, SINKS: 230.0, JOURNAL: 10.0}
    assert found.total == 340.0


def test_the_end_of_another_tick_is_not_mistaken_for_this_one() -> None:
    entry, other = {"tick": 7, "cost": COMMITTED.stored()}, {"tick": 9, "cost": COMMITTED.stored(ENDED.tail(COMMITTED))}
    assert cost_of(entry, other) == COMMITTED


def test_entries_of_older_versions_and_of_upgrades_have_no_cost() -> None:
    entries = [{"tick": 0}, {"tick": 1, "cost": {}}, {"tick": 2, "cost": COMMITTED.stored()}]
    assert [cost.tick for cost in costs_of(entries)] == [2]
    assert cost_of({"tick": 6, "cost": COMMITTED.stored()}, {"tick": 7}) is not None


@given(st.lists(EDGES, max_size=5), st.lists(EDGES, max_size=5), EDGES)
def test_time_that_several_spans_cover_counts_once(
    spans: list[tuple[int, int]], without: list[tuple[int, int]], whole: tuple[int, int]
) -> None:
    def inside(at: int, found: list[tuple[int, int]]) -> bool:
        return any(low <= at < high for low, high in found)

    expected = sum(inside(at, spans) and not inside(at, without) for at in range(*whole))
    assert covered(spans, without, *whole) == expected


def test_a_part_inside_of_a_part_is_a_piece_of_that() -> None:
    meter = Meter()
    with meter.part(SINKS), meter.part(CLOCK):
        pass
    cost = meter.cost(0, {}, {}, 0, complete=True)
    assert cost.milliseconds[SINKS] > 0
    assert CLOCK not in cost.milliseconds


def test_the_parts_add_up_to_the_time_from_the_beginning_to_the_end() -> None:
    meter = Meter()
    with meter.part(INPUT):
        json.dumps(list(range(1000)))
    cost = meter.cost(0, {}, {}, 0, complete=True)
    assert set(cost.milliseconds) <= set(PARTS)
    assert abs(cost.total - (cost.ended - cost.began) / 1000) < 0.01
