"""Overlapping pairs of one key equal those of a loop over all pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.core.time import BEGINNING, END
from rowtime.kernels import overlaps
from rowtime.kernels.overlaps import Lives, numbered, overlapping

TIMES = st.one_of(st.integers(0, 12), st.sampled_from([BEGINNING + 1, -5, 10**15, END - 1]))
LIVES = st.lists(st.tuples(st.integers(-1, 3), TIMES, st.one_of(st.integers(1, 8), st.just(0))), max_size=12)


def lives(rows: list[tuple[int, int, int]]) -> Lives:
    """Key, start and length; 0: without an end."""
    ends = [END if length == 0 else min(start + length, END) for _, start, length in rows]
    return Lives(*(np.array(of, np.int64) for of in ([r[0] for r in rows], [r[1] for r in rows], ends)))


def looped(left: Lives, right: Lives) -> list[tuple[int, int]]:
    sides = [list(zip(*side, strict=True)) for side in (left, right)]
    return [
        (i, j)
        for i, (k, s, e) in enumerate(sides[0])
        for j, (other, start, end) in enumerate(sides[1])
        if k == other >= 0 and s < end and start < e
    ]


@pytest.mark.parametrize("room", [overlaps.ROOM, 1])
@pytest.mark.parametrize("most", [1, 3, 1000])
@settings(deadline=None)
@given(left=LIVES, right=LIVES)
def test_the_pairs_equal_those_of_a_loop(
    left: list[tuple[int, int, int]], right: list[tuple[int, int, int]], most: int, room: int
) -> None:
    one, other = lives(left), lives(right)
    before, overlaps.ROOM = overlaps.ROOM, room
    try:
        found = [
            pair for rows in overlapping(one, other, most) for pair in zip(*map(np.ndarray.tolist, rows), strict=True)
        ]
    finally:
        overlaps.ROOM = before
    assert sorted(found) == looped(one, other)


WHOLE = st.sampled_from([1, 2, -(2**31), 2**31 - 1])
KEYS = st.one_of(
    st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from([None, 1, 2])), max_size=8),
    st.lists(st.tuples(st.sampled_from("ab"), WHOLE), max_size=8),
)


@settings(deadline=None)
@given(left=KEYS, right=KEYS)
def test_equal_keys_have_equal_numbers(
    left: list[tuple[str | None, int | None]], right: list[tuple[str | None, int | None]]
) -> None:
    columns = [
        [
            pa.chunked_array([pa.array([row[n] for row in side], kind)])
            for n, kind in enumerate((pa.string(), pa.int32()))
        ]
        for side in (left, right)
    ]
    numbers = np.concatenate(numbered(*columns)).tolist()
    keys = [*left, *right]
    for one, number in zip(keys, numbers, strict=True):
        assert (number == -1) == (None in one)
        for other, another in zip(keys, numbers, strict=True):
            if number >= 0 and another >= 0:
                assert (one == other) == (number == another)
