"""The row that is to blame for late rows: its removal changes most verdicts, however the items are cut."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from rowtime.core.time import BEGINNING
from rowtime.kernels.blame import FEW, Past, Raise, watched

WITHIN = 2


def _judged(times: Sequence[int], marks: Sequence[int]) -> tuple[list[int], list[bool]]:
    """By the definition: the mark before each row, and whether the row is late."""
    return [*marks], [time + WITHIN < mark for time, mark in zip(times, marks, strict=True)]


def _past(times: Sequence[int], mark: int = BEGINNING, first: int = 0) -> tuple[Past, int]:
    running = []
    for time in times:
        running.append(mark)
        mark = max(mark, time)
    array, before = np.array(times, np.int64), np.array(running, np.int64)
    rows, positions = np.ones(len(times), bool), np.arange(first, first + len(times))
    return Past(positions, array, array, rows, array + WITHIN < before, before), mark


def _without(times: Sequence[int], row: int, before: int) -> int:
    """How many later rows are late only because of a row, by the definition: the run without it."""
    mark, saved, top = before, 0, times[row]
    running = max(times[: row + 1], default=BEGINNING)
    for time in times[row + 1 :]:
        if time + WITHIN < running and time + WITHIN >= mark:
            saved += 1
        running = max(running, time)
        mark = max(mark, top if time >= top - WITHIN else BEGINNING, time)
    return saved


def _by_definition(times: Sequence[int]) -> Raise | None:
    """The watched row, one row after the other."""
    found: Raise | None = None
    mark = BEGINNING
    for n, time in enumerate(times):
        if time > mark + WITHIN and (found is None or not _poisons(times[:n], found)):
            found = Raise(n, mark, time)
        mark = max(mark, time)
    if found is None:
        return None
    late = _without(times, found.position, found.before)
    return found._replace(rows=len(times) - found.position - 1, late=late)


def _poisons(times: Sequence[int], found: Raise) -> bool:
    late = _without(times, found.position, found.before)
    return late >= FEW and late * 2 > len(times) - found.position - 1


def _cut(times: Sequence[int], chance: random.Random) -> Raise | None:
    raised, mark, start = None, BEGINNING, 0
    while start < len(times):
        stop = min(len(times), start + chance.randint(1, len(times)))
        past, mark = _past(times[start:stop], mark, start)
        raised = watched(raised, past, WITHIN)
        start = stop
    return raised


@pytest.mark.parametrize("seed", range(300))
def test_the_watched_row_is_that_of_the_definition_in_any_cut(seed: int) -> None:
    chance = random.Random(seed)
    steps = chance.choice([(-4, -1, 0, 1, 2, 3), (-9, -3, 1, 1, 2, 9), (0, 1, 1, 1, 30, -28)])
    times = np.cumsum([chance.choice(steps) for _ in range(chance.randint(1, 60))]).tolist()
    wanted = _by_definition(times)
    for _ in range(3):
        got = _cut(times, chance)
        assert (got and got[:5]) == (wanted and wanted[:5]), times


def test_no_row_is_to_blame_for_rows_that_are_out_of_order_all_the_time() -> None:
    times = [n - (4 if n % 2 else 0) for n in range(400)]
    past, _ = _past(times)
    assert past.late.sum() == 200
    raised = watched(None, past, WITHIN)
    assert raised is not None
    assert not raised.poisons


@pytest.mark.parametrize("place", [0, 1, 50])
def test_a_row_far_in_the_future_is_to_blame(place: int) -> None:
    times = [*range(place), 10**9, *range(place, 100)]
    raised = watched(None, _past(times)[0], WITHIN)
    assert raised is not None
    assert raised.position == place
    assert raised.late == 100 - place
    assert raised.poisons
    assert raised.without == 99


def test_two_rows_in_the_future_confirm_each_other() -> None:
    raised = watched(None, _past([*range(9), 1000, 1001, *range(9, 99)])[0], WITHIN)
    assert raised is not None
    assert not raised.poisons
