"""Edges of events as queues: among the edges of one event, the n-th end with a start ends the n-th start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rowtime.kernels.frames import Ints
from rowtime.kernels.identity import together

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST = 1 << 62


class Pairs(NamedTuple):
    """Places of rows: ``starts`` with the ``ends`` of each, -1 if there is none yet; ``lost``: ends without a start."""

    starts: Ints
    ends: Ints
    lost: Ints


def paired(numbers: Sequence[Ints], positions: Ints, begins: NDArray[np.bool_]) -> Pairs:
    """Pair the edges that have equal ``numbers``, in the order of their ``positions``; ``begins``: those that start.

    The running least of starts minus ends counts the ends without a start.
    """
    key = _key(numbers)
    ordered = len(positions) < 2 or bool((positions[1:] >= positions[:-1]).all())  # noqa: PLR2004 - nothing to order
    order = np.argsort(key, kind="stable") if ordered else np.lexsort((positions, key))
    begins, key = begins[order], key[order]
    count = len(order)
    first = np.concatenate(([True], key[1:] != key[:-1]))[:count]
    if (simple := _alternating(order, begins, first)) is not None:
        return simple
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


def _alternating(order: Ints, begins: NDArray[np.bool_], first: NDArray[np.bool_]) -> Pairs | None:
    """Return the pairs if the edges of each event are a start, its end, a start and so on, as they usually are."""
    follows = ~first[1:]
    if len(order) and bool((~begins & first).any() or (follows & (begins[1:] == begins[:-1])).any()):
        return None
    starts = np.flatnonzero(begins)
    has_end = np.concatenate((follows, [False]))[starts]
    ends = np.full(len(starts), -1, np.int64)
    ends[has_end] = order[starts[has_end] + 1]
    return Pairs(order[starts], ends, np.zeros(0, np.int64))


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
        key, most = key * size + codes, most * size
    return key
