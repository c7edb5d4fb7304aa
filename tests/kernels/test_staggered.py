"""Which rows open staggered windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rowtime.operators.windows.stagger import opening

LENGTH = 10


def one_by_one(kept: list[tuple[int, int]], rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Open windows row by row, in the order of time."""
    last = dict[int, int]()
    for key, at in kept:
        last[key] = max(at, last.get(key, at))
    opened = []
    for key, at in sorted(rows, key=lambda row: row[1]):
        if key not in last or at >= last[key] + LENGTH:
            last[key] = at
            opened.append((key, at))
    return opened


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60))), st.dictionaries(st.integers(0, 3), st.integers(0, 9))
)
def test_a_row_opens_a_window_that_no_open_one_contains(rows: list[tuple[int, int]], since: dict[int, int]) -> None:
    kept = [(key, at - 9) for key, at in since.items()]  # before all rows
    elements: Any = np.array([*kept, *rows], np.int64).reshape(-1, 2)
    places = opening(elements[:, 0], elements[:, 1], len(kept), LENGTH)
    assert all(place >= len(kept) for place in places.tolist())
    assert sorted(map(tuple, elements[places].tolist())) == sorted(one_by_one(kept, rows))


def test_a_row_at_the_end_of_a_window_opens_the_next_one() -> None:
    at = np.array([0, 9, 10, 19, 20], np.int64)
    assert sorted(opening(np.zeros(5, np.int64), at, 0, LENGTH).tolist()) == [0, 2, 4]
    assert opening(np.zeros(0, np.int64), np.zeros(0, np.int64), 0, LENGTH).tolist() == []
