"""Pairs of intervals that have the same key and overlap (semantics 9.6).

If two overlap, one begins while the other lasts. So with the starts of a side sorted by key and time, the partners of
an interval are two runs, found by search: the cost is that of sorting and of the pairs themselves, however many share a
key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.kernels.frames import Ints

ROOM = 1 << 62  # the number of combinations of a key and a time


class Lives(NamedTuple):
    """Intervals [start, end), none of them empty: the number of the key, µs, µs; all BIGINT."""

    keys: Ints
    starts: Ints
    ends: Ints


def numbered(left: Sequence[pa.ChunkedArray], right: Sequence[pa.ChunkedArray]) -> tuple[Ints, Ints]:
    """Return the same number for rows of both sides with equal key columns; -1 if one of them is NULL.

    Numbers ascend as keys are first seen, so that neighbouring rows have close numbers.
    """
    rows = len(left[0]) + len(right[0])
    numbers, complete = np.zeros(rows, np.int64), np.ones(rows, bool)
    for left_column, right_column in zip(left, right, strict=True):
        encoded = (
            pa.chunked_array([*left_column.chunks, *right_column.chunks], left_column.type)
            .dictionary_encode()
            .combine_chunks()
        )
        codes = np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)
        complete &= codes >= 0
        numbers = numbers * (len(encoded.dictionary) + 1) + codes
        if len(left) > 1:  # close together again, so that more of them fit
            numbers = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    numbers = numbers if complete.all() else np.where(complete, numbers, -1)
    return numbers[: len(left[0])], numbers[len(left[0]) :]


def overlapping(left: Lives, right: Lives, most: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield the row numbers of each pair, about ``most`` pairs at a time."""
    rows, others = (np.flatnonzero(side.keys >= 0) for side in (left, right))
    if not len(rows) or not len(others):
        return
    if len(rows) < len(left.keys) or len(others) < len(right.keys):
        left, right = _chosen(left, rows), _chosen(right, others)
    left, right = _on_an_axis(left, right)
    orders = [np.argsort(side.starts) for side in (left, right)]
    left, right = (_chosen(side, order) for side, order in zip((left, right), orders, strict=True))
    rows, others = rows[orders[0]], others[orders[1]]
    # The right one begins while the left one lasts, or at the same time; or the other way round, and later.
    for at, places in _runs(right.starts, left, "left", most):
        yield rows[at], others[places]
    for at, places in _runs(left.starts, right, "right", most):
        yield rows[places], others[at]


def _chosen(side: Lives, rows: Ints) -> Lives:
    return Lives(*(of[rows] for of in side))


def _on_an_axis(left: Lives, right: Lives) -> tuple[Lives, Lives]:
    """Return times on one axis over keys and times: from the first one, or their ranks if that overflows."""
    starts = np.concatenate([left.starts, right.starts])
    low, high = int(starts.min()), int(starts.max())
    keys = int(max(left.keys.max(), right.keys.max())) + 1
    if keys * (high - low + 2) < ROOM:
        span, axis = high - low + 2, None
    else:
        axis = np.unique(starts)
        span = len(axis) + 1

    def placed(side: Lives) -> Lives:
        if axis is None:
            times = side.starts - low, np.minimum(side.ends, high + 1) - low
        else:
            times = np.searchsorted(axis, side.starts), np.searchsorted(axis, side.ends)
        return Lives(side.keys, *(side.keys * span + of for of in times))

    return placed(left), placed(right)


def _runs(starts: Ints, side: Lives, begin: Literal["left", "right"], most: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield each interval with the places of the ``starts`` in it, a limited number of pairs at a time."""
    low = np.searchsorted(starts, side.starts, begin)
    high = np.searchsorted(starts, side.ends, "left")
    lengths = np.maximum(high - low, 0)
    reached, at = np.cumsum(lengths), 0
    while at < len(lengths):
        before = int(reached[at - 1]) if at else 0
        to = max(at + 1, int(np.searchsorted(reached, before + most, "right")))
        each = lengths[at:to]
        steps = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        if len(steps):
            yield np.repeat(np.arange(at, to), each), np.repeat(low[at:to], each) + steps
        at = to
