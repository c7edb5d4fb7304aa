"""Frames: for each row a range of earlier rows of its key, and the folds over it.

Rows of many keys are laid out in one array, sorted by key and in stream order inside a key. A frame is then a half-open
range of indices [lo, hi), found for all rows at once; an aggregate over it takes a time that does not depend on its
length. A key may begin with one *head*: an element that represents all rows that were folded into it before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Parts = tuple[NDArray[Any], ...]
Combine = Callable[[Parts, Parts], Parts]
NARROW = 8  # elements; blocks up to this length are combined column by column


@dataclass(frozen=True)
class Layout:
    """Heads, kept rows and new rows sorted by key; frames are asked for the new rows.

    ``order``: where each element was before the sort; ``place``: its number in stream order (-1 of a head). Of each
    new row: ``at``, its index; ``start``, the first element of its key; ``first``, the first of them that is a row.
    ``ends`` are the index past the last element of each key that has a new row, ``begins`` that of its first.
    """

    order: Ints
    code: Ints
    place: Ints
    at: Ints
    start: Ints
    first: Ints
    begins: Ints
    ends: Ints


def layout(code: Ints, heads: int, fresh: int) -> Layout:
    """Arrange elements whose key ranks are ``code``: first the heads, last the ``fresh`` new rows."""
    count = len(code)
    order = by_key(code)
    code = code[order]
    place = order - heads
    edges = np.flatnonzero(np.concatenate(([True], code[1:] != code[:-1]))) if count else np.empty(0, np.int64)
    number = np.cumsum(np.concatenate(([False], code[1:] != code[:-1]))) if count else np.empty(0, np.int64)
    at = np.flatnonzero(order >= count - fresh)
    start = edges[number[at]]
    mine = number[at]
    touched = mine[np.concatenate(([True], mine[1:] != mine[:-1]))] if len(mine) else mine
    ends = np.append(edges[1:], count)
    first = start + (place[start] < 0)
    return Layout(order, code, np.maximum(place, -1), at, start, first, edges[touched], ends[touched])


def ranges(begins: Ints, counts: Ints) -> Ints:
    """Return the numbers of all ranges, one after the other."""
    steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(np.repeat(begins, counts) + steps)


def by_key(code: Ints) -> Ints:
    """Return a stable order by key; short codes are sorted by their digits, which takes linear time."""
    if not len(code) or not code.max():
        return np.arange(len(code))
    narrow = code.astype(np.uint16) if code.max() < 2**16 else code
    return np.argsort(narrow, kind="stable")


def sessions(code: Ints, times: Ints, gap: int) -> Ints:
    """Return key ranks that change after each ``gap`` without an element; ``times`` never fall within a key."""
    order = by_key(code)
    mine, at = code[order], times[order]
    new = np.concatenate(([False], (mine[1:] != mine[:-1]) | (at[1:] - at[:-1] > gap)))
    numbers = np.empty(len(code), np.int64)
    numbers[order] = np.cumsum(new[: len(code)])
    return numbers


@dataclass(frozen=True)
class Frames:
    """Return the range [``lo``, ``hi``) of elements of each wanted row; empty if they are equal."""

    lo: Ints
    hi: Ints

    @property
    def longest(self) -> int:
        """The length of the longest."""
        return int((self.hi - self.lo).max()) if len(self.lo) else 0


def by_rows(rows: Layout, lower: int | None, upper: int) -> Frames:
    """Return frames from ``lower`` rows before the row (``None``: from the beginning) to ``upper`` rows before it."""
    lo = rows.start if lower is None else np.maximum(rows.at - lower, rows.first)
    return _ordered(lo, rows.at + 1 - upper)


def by_range(rows: Layout, values: Ints, lower: int | None, upper: int) -> Frames:
    """Return frames from ``lower`` before the row's value to ``upper`` before it, both inclusive.

    ``values`` never fall from row to row in stream order (heads have none). Rows of the same value that come after the
    row are not in its frame (semantics 12). Both searches are for ascending numbers, whose results are close to each
    other: a third of the time.
    """
    span = len(values) + 1
    axis = rows.code * span + rows.place + 1
    before = len(values) - len(rows.at)
    mine, base, new = rows.place[rows.at] - before, rows.code[rows.at] * span + 1, values[before:]
    lo, hi = rows.start, rows.at + 1
    if lower is not None:
        lo = np.searchsorted(axis, base + np.searchsorted(values, new - lower, "left")[mine], "left")
    if upper:
        hi = np.searchsorted(axis, base + np.searchsorted(values, new - upper, "right")[mine], "left")
    return _ordered(lo, hi)


def _ordered(lo: Ints, hi: Ints) -> Frames:
    return Frames(np.minimum(lo, np.maximum(hi, 0)), np.maximum(hi, 0)) if len(lo) else Frames(lo, hi)


def summed(values: Ints, frames: Frames) -> Ints:
    """Return sums over frames by prefixes: for whole numbers, without any loss."""
    prefix = np.concatenate((np.zeros(1, values.dtype), np.cumsum(values)))
    return np.asarray(prefix[frames.hi] - prefix[frames.lo])


def folded(parts: Parts, frames: Frames, combine: Combine, empty: Sequence[float]) -> Parts:
    """``combine`` over each frame, in order; ``empty`` is its neutral element.

    A frame that begins in one block of 2^k elements and ends in the next is the end of the one and the beginning of the
    other. Ends and beginnings of blocks are folded for each k in turn, and used for the frames that fit. Nothing is
    subtracted, so values outside of a frame (NaN, infinities, large numbers) do not affect it.
    """
    results = tuple(np.full(len(frames.lo), neutral, part.dtype) for part, neutral in zip(parts, empty, strict=True))
    some = np.flatnonzero(frames.hi > frames.lo)
    left, right = frames.lo[some], frames.hi[some] - 1
    level = _levels(left, right, frames.longest)
    turn = np.argsort(level, kind="stable")
    counts = np.bincount(level, minlength=1)
    ending, beginning = _padded(parts, empty, len(counts)), _padded(parts, empty, len(counts))
    done = 0
    for k, count in enumerate(counts):
        if k > 1:
            _widen(ending, beginning, 2 ** (k - 2), combine)
        chosen = turn[done : done + count]
        done += count
        ending_rows, beginning_rows = left[chosen], right[chosen]
        first = tuple(part[ending_rows] for part in ending)
        combined = combine(first, tuple(part[beginning_rows] for part in beginning)) if k else first
        for into, part in zip(results, combined, strict=True):
            into[some[chosen]] = part
    return results


def _levels(left: Ints, right: Ints, longest: int) -> NDArray[np.uint8]:
    """Return 0 for a frame of one element; else k + 1 if blocks of 2^k separate its ends."""
    most = max(longest - 1, 0).bit_length()
    apart = left ^ right
    bits: NDArray[np.uint8] = np.frexp(apart.astype(np.float64))[1].astype(np.uint8)
    return np.minimum(bits, most + 1).astype(np.uint8)


def _padded(parts: Parts, empty: Sequence[float], levels: int) -> Parts:
    size = 2**levels
    more = -len(parts[0]) % size
    return tuple(np.append(p, np.full(more, neutral, p.dtype)) for p, neutral in zip(parts, empty, strict=True))


def _widen(ending: Parts, beginning: Parts, half: int, combine: Combine) -> None:
    """Turn blocks of ``half`` elements into blocks of twice as many, in place."""
    pairs = [tuple(part.reshape(-1, 2, half) for part in parts) for parts in (ending, beginning)]
    if half <= NARROW:
        for column in range(half):
            _join(pairs, slice(column, column + 1), combine)
    else:
        _join(pairs, slice(None), combine)


def _join(pairs: Sequence[Parts], columns: slice, combine: Combine) -> None:
    ending, beginning = pairs
    # The whole of a block: at the start of its ending, and at the end of its beginning.
    after, before = tuple(p[:, 1, :1] for p in ending), tuple(p[:, 0, -1:] for p in beginning)
    ends = combine(tuple(p[:, 0, columns] for p in ending), after)
    begins = combine(before, tuple(p[:, 1, columns] for p in beginning))
    for part, column in zip(ending, ends, strict=True):
        part[:, 0, columns] = column
    for part, column in zip(beginning, begins, strict=True):
        part[:, 1, columns] = column
