"""What is open, counted: groups and sessions, each once in however many parts it came, and rows with weights.

A group is told apart by a hash of its keys and by its end, so the count is a function of the groups alone: two groups
count as one only if both are equal, and then they do so in every run. Adding n groups to N costs O(n log N).
"""

from __future__ import annotations

import numpy as np

from rowtime.kernels.frames import Flags, Ints, ranges

_Block = tuple[Ints, Ints, Ints]
"""Hashes in order, the end of each (µs), and the same ends in order."""


class OpenGroups:
    """A set of groups in sorted blocks, each less than half as large as the one before it."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    def add(self, hashes: Ints, ends: Ints) -> None:
        """Add groups, known ones too."""
        hashes, ends = _distinct(hashes, ends)
        known = np.zeros(len(hashes), np.bool_)
        for block in self._blocks:
            known |= _among(hashes, ends, block)
        self._put(hashes[~known], ends[~known])

    def after(self, bound: int) -> int:
        """Return how many groups end after a bound, which only rises; forget the others."""
        self._blocks = [block for block in self._blocks if block[2][-1] > bound]
        return sum(len(ends) - int(np.searchsorted(ends, bound, "right")) for _, _, ends in self._blocks)

    def _put(self, hashes: Ints, ends: Ints) -> None:
        if not len(hashes):
            return
        while self._blocks and len(self._blocks[-1][0]) < 2 * len(hashes):
            others = self._blocks.pop()
            hashes, ends = np.concatenate([others[0], hashes]), np.concatenate([others[1], ends])
            order = np.argsort(hashes, kind="stable")
            hashes, ends = hashes[order], ends[order]
        self._blocks.append((hashes, ends, np.sort(ends)))


def _distinct(hashes: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the groups without repetitions, ordered by their hashes."""
    order = np.argsort(hashes, kind="stable")
    hashes, ends = hashes[order], ends[order]
    if not (hashes[1:] == hashes[:-1]).any():
        return hashes, ends
    order = np.lexsort((ends, hashes))
    hashes, ends = hashes[order], ends[order]
    new = np.ones(len(hashes), np.bool_)
    new[1:] = (hashes[1:] != hashes[:-1]) | (ends[1:] != ends[:-1])
    return hashes[new], ends[new]


def _among(hashes: Ints, ends: Ints, block: _Block) -> Flags:
    """Return which groups are in a block: of those with the same hash, nearly always one, each is looked at."""
    known, these = np.zeros(len(hashes), np.bool_), np.arange(len(hashes))
    places = np.searchsorted(block[0], hashes)
    while True:
        near = places < len(block[0])
        near[near] = block[0][places[near]] == hashes[these[near]]
        these, places = these[near], places[near]
        if not len(these):
            return known
        same = block[1][places] == ends[these]
        known[these[same]] = True
        these, places = these[~same], places[~same] + 1


class Weighted:
    """Rows with weights: the sum of those that end after a bound."""

    def __init__(self, weights: Ints, ends: Ints) -> None:
        order = np.argsort(ends, kind="stable")
        self._ends, total = ends[order], np.cumsum(weights[order])
        self._left = np.concatenate((total[-1:] - total[: len(total) - 1], [0])) if len(total) else total
        self._all = int(total[-1]) if len(total) else 0

    def after(self, bound: int) -> int:
        """Return the sum of the weights of the rows that end after a bound."""
        gone = int(np.searchsorted(self._ends, bound, "right"))
        return int(self._left[gone - 1]) if gone else self._all


class OpenSessions:
    """Sessions that are open, joined from parts: two of one key are one if one begins before the other ends.

    They are in one array, in which each addition moves bytes and sorts only the sessions of its own keys.
    """

    def __init__(self) -> None:
        self._hashes, self._starts, self._ends = (np.zeros(0, np.int64) for _ in range(3))

    def add(self, hashes: Ints, starts: Ints, ends: Ints) -> None:
        """Add parts, known ones too."""
        if not len(hashes):
            return
        touched = np.unique(hashes)
        begins = np.searchsorted(self._hashes, touched)
        old = ranges(begins, np.searchsorted(self._hashes, touched, "right") - begins)
        before = self._hashes, self._starts, self._ends
        parts = [np.concatenate([had[old], new]) for had, new in zip(before, (hashes, starts, ends), strict=True)]
        kept = [np.delete(had, old) for had in before]
        sessions = _joined(*parts)
        places = np.searchsorted(kept[0], sessions[0])
        self._hashes, self._starts, self._ends = (
            np.insert(had, places, new) for had, new in zip(kept, sessions, strict=True)
        )

    def after(self, bound: int) -> int:
        """Return how many sessions end after a bound, which only rises; forget the others."""
        is_open = self._ends > bound
        count = int(is_open.sum())
        if 2 * count <= len(is_open):
            self._hashes, self._starts, self._ends = (had[is_open] for had in (self._hashes, self._starts, self._ends))
        return count


def _joined(hashes: Ints, starts: Ints, ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the sessions of some parts, ordered by hash and start."""
    order = np.lexsort((starts, hashes))
    hashes, starts, ends = hashes[order], starts[order], ends[order]
    # The greatest end so far of each hash: places of ends, which are small, after those of all earlier hashes.
    sorted_ends, rank = np.unique(ends, return_inverse=True)
    other = np.ones(len(hashes), np.bool_)
    other[1:] = hashes[1:] != hashes[:-1]
    first = (np.cumsum(other) - 1) * len(sorted_ends)
    reached = sorted_ends[np.maximum.accumulate(first + rank) - first]
    begins = other.copy()
    begins[1:] |= starts[1:] >= reached[:-1]
    at = np.flatnonzero(begins)
    return hashes[at], starts[at], reached[np.append(at[1:], len(hashes)) - 1]
