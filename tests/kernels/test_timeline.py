"""Bounds of an event time over the items of a tick, against a loop over the items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowtime.core.time import BEGINNING, END
from rowtime.kernels import timeline
from rowtime.kernels.timeline import Timeline, advances

TIMES = st.one_of(st.integers(-50, 400), st.sampled_from([BEGINNING, END]))
ITEMS = st.lists(st.tuples(st.integers(1, 5), TIMES), max_size=80)


def one_by_one(
    positions: list[int], wanted: list[int], reached: int, sent: int, gap: int
) -> tuple[list[tuple[int, int]], int]:
    found = []
    for position, value in zip(positions, wanted, strict=True):
        if value <= reached:
            continue
        reached = value
        if sent <= BEGINNING or value >= sent + max(gap, 1) or (value >= END and sent < END):
            found.append((position, value))
            sent = value
    return found, reached


def laid(items: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    steps, wanted = zip(*items, strict=True) if items else ((), ())
    return np.cumsum(np.array(steps, np.int64)), np.array(wanted, np.int64)


def strict(before: int, where: np.ndarray, values: np.ndarray) -> list[tuple[int, int]]:
    line = Timeline(before, where, values, where, where)
    assert line.after == (values[-1] if len(values) else before)
    assert line.first == (values[0] if len(values) else None)
    assert (
        line.at(line.items).tolist() == Timeline(before, line.positions, line.values, where, where).at(where).tolist()
    )
    return [*zip(line.positions.tolist(), line.values.tolist(), strict=True)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ITEMS, st.integers(-60, 300), st.integers(0, 40), st.integers(0, 200))
def test_bounds_that_are_sent_equal_those_of_a_loop(
    items: list[tuple[int, int]], start: int, behind: int, gap: int
) -> None:
    positions, wanted = laid(items)
    for reached, sent in ((BEGINNING, BEGINNING), (start, start - behind)):
        where, values, after = advances(positions, wanted, reached, sent, gap)
        found = strict(reached, where, values)
        assert (found, after) == one_by_one(positions.tolist(), wanted.tolist(), reached, sent, gap)


STEPS = {"back and forth": (-3, 1, 7), "in order": (0, 1, 7), "in clusters": (0, 0, 0, 1, 3_000)}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("gap", [1, 7, 100, 5_000, 10**6])
def test_many_bounds_equal_those_of_a_loop(gap: int, steps: str) -> None:
    random = np.random.default_rng(gap)
    wanted = np.cumsum(random.choice(STEPS[steps], 20_000))
    positions = np.arange(len(wanted)) * 2
    where, values, after = advances(positions, wanted, 5, 3, gap)
    found = strict(5, where, values)
    assert (found, after) == one_by_one(positions.tolist(), wanted.tolist(), 5, 3, gap)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.integers(0, 60), unique=True, max_size=6).map(sorted),
    st.lists(st.integers(-2, 62), max_size=90),
    st.booleans(),
)
def test_the_bound_beside_a_row_is_that_of_the_items_before_it(
    positions: list[int], rows: list[int], in_order: bool
) -> None:
    rows = sorted(rows) if in_order else rows
    values = [100 + n for n in range(len(positions))]
    line = Timeline(7, np.array(positions, np.int64), np.array(values, np.int64), *[np.array([], np.int64)] * 2)
    before = [sum(at < row for at in positions) for row in rows]
    at, after = line.at(np.array(rows, np.int64)), line.next(np.array(rows, np.int64), -1)
    assert at.tolist() == [[7, *values][n] for n in before]
    assert after.tolist() == [[*values, -1][n] for n in before]


@pytest.mark.parametrize("fault", ["a bound of the row itself", "one bound too few"])
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    right = timeline.values_at

    def wrong(rows: np.ndarray, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
        return right(rows, positions - 1 if fault == "a bound of the row itself" else positions + 1, values)

    monkeypatch.setattr(timeline, "values_at", wrong)
    with pytest.raises(AssertionError):
        test_the_bound_beside_a_row_is_that_of_the_items_before_it()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ITEMS, st.integers(-60, 300), st.integers(0, 3), st.booleans())
def test_rows_behind_the_bound_are_those_below_what_is_in_force_before_them(
    items: list[tuple[int, int]], before: int, gap: int, all_rise: bool
) -> None:
    positions, times = laid(items)
    if all_rise:
        times = np.sort(times)
    where, values, _ = advances(positions, times, before, before, gap)
    line = Timeline(before, where, values, positions, times)
    assert line.behind(positions, times).tolist() == np.flatnonzero(times < line.at(positions)).tolist()
    some = positions[::2]
    assert line.behind(some, times[::2]).tolist() == np.flatnonzero(times[::2] < line.at(some)).tolist()


def test_the_first_row_is_compared_with_the_bound_of_earlier_ticks() -> None:
    positions, times = np.array([1, 2, 3]), np.array([5, 7, 6])
    line = Timeline(6, positions, np.array([6, 7, 7]), positions, times)
    assert line.behind(positions, times).tolist() == [0, 2]
