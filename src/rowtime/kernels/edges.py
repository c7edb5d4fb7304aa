"""Edges of events as queues: among the edges of one event, the n-th end with a start ends the n-th start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rowtime.kernels.frames import Ints
from rowtime.kernels.identity import together
from rowtime.kernels.large import in_order, taken

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST = 1 << 62
_WIDTH = 64  # bits of a number that is sorted
_MIX = np.uint64(0x9E3779B97F4A7C15)  # an odd number near 2^64 divided by the golden ratio: it mixes the upper bits


class Pairs(NamedTuple):
    """Places of rows: ``starts`` with the ``ends`` of each, -1 if there is none yet; ``lost``: ends without a start."""

    starts: Ints
    ends: Ints
    lost: Ints


def paired(numbers: Sequence[Ints], positions: Ints, begins: NDArray[np.bool_]) -> Pairs:
    """Pair the edges that have equal ``numbers``, in the order of their ``positions``; ``begins``: those that start.

    The running least of starts minus ends counts the ends without a start.
    """
    begun = np.flatnonzero(begins)
    order, first = _grouped(_key(numbers), positions)
    begins, count = taken(begins, order), len(order)
    if (end_of := _alternating(order, begins, first)) is not None:
        return Pairs(begun, end_of[begun], np.zeros(0, np.int64))
    group, opens = np.cumsum(first) - 1, np.flatnonzero(first)
    level = _within(np.cumsum(np.where(begins, 1, -1)), opens, group)
    # The totals of earlier groups are above everything inside this one.
    apart = group * (2 * count + 2)
    losses = np.maximum(0, -(np.minimum.accumulate(level - apart) + apart))
    before = np.concatenate((np.zeros(1, np.int64), losses))[:count]
    lost = losses > np.where(first, 0, before)
    ended = ~begins & ~lost
    place = group * (count + 1)
    starts = (place + _within(np.cumsum(begins), opens, group))[begins]
    ends = (place + _within(np.cumsum(~begins), opens, group) - losses)[ended]
    partners = np.full(len(starts), -1, np.int64)
    partners[np.searchsorted(starts, ends)] = order[ended]
    return Pairs(order[begins], partners, order[lost])


def _grouped(key: Ints, positions: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return an order in which rows with equal keys follow each other, by their positions; and where a key begins.

    Each key and the place of its row are one number: sorting numbers takes a sixth of the time of sorting places by
    keys. If both need too many bits, the number has bits of a hash of the key. Different keys with equal bits, and
    positions out of order, are rare: then keys are sorted.
    """
    bits = np.uint64(max(1, len(key).bit_length()))
    low = (np.uint64(1) << bits) - np.uint64(1)
    width = max(1, int(key.max(initial=0)).bit_length())
    exact = width + int(bits) <= _WIDTH
    numbers = key.astype(np.uint64)  # a copy
    if exact:
        numbers <<= np.uint64(64 - width)
    else:
        numbers *= _MIX
        numbers &= ~low
    numbers |= np.arange(len(key), dtype=np.uint64)
    numbers = in_order(numbers)
    order = (numbers & low).view(np.int64)
    numbers >>= bits
    same = _follows(numbers)
    if not (exact or np.array_equal(same, _follows(taken(key, order)))) or not _ordered(positions, order, same):
        order = np.lexsort((positions, key))
        same = _follows(key[order])
    return order, np.concatenate(([True], ~same))[: len(key)]


def _follows(key: Ints | NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which keys but the first equal the one before."""
    same: NDArray[np.bool_] = key[1:] == key[:-1]
    return same


def _ordered(positions: Ints, order: Ints, same: NDArray[np.bool_]) -> bool:
    """Return True if rows with the same key are in the order of their positions."""
    back = np.flatnonzero(positions[1:] < positions[:-1])
    if not len(back):
        return True
    # From some place on, positions ascend, and none is below an earlier one: rows that were kept come before new ones.
    after = int(back[-1]) + 1
    place = after + int(np.searchsorted(positions[after:], positions[:after].max()))
    doubtful = np.flatnonzero(same & (order[1:] < place))
    return not bool((positions[order[doubtful + 1]] < positions[order[doubtful]]).any())


def _alternating(order: Ints, begins: NDArray[np.bool_], first: NDArray[np.bool_]) -> Ints | None:
    """Return the end of each start, by its place, if the edges of each event alternate, as they usually do."""
    follows = ~first[1:]
    if len(order) and bool((~begins & first).any() or (follows & (begins[1:] == begins[:-1])).any()):
        return None
    starts = np.flatnonzero(begins[:-1] & follows)
    ends = np.full(len(order), -1, np.int64)
    ends[order[starts]] = order[starts + 1]
    return ends


def _within(running: Ints, opens: Ints, group: Ints) -> Ints:
    """Return running sums that restart in each group."""
    before = np.concatenate((np.zeros(1, np.int64), running))[opens]
    return running - before[group]


def _key(numbers: Sequence[Ints]) -> Ints:
    """Return one number for the numbers of a row."""
    key, most = numbers[0], int(numbers[0].max(initial=0)) + 1
    for codes in numbers[1:]:
        size = int(codes.max(initial=0)) + 1
        if size == 1:
            continue
        if most == 1:
            key, most = codes, size
            continue
        if most * size > _MOST:
            key = together([key, np.zeros_like(key)])
            most = int(key.max(initial=0)) + 1
        key = key * size
        key += codes
        most *= size
    return key
