"""Edges as queues: the kernel equals a loop over the edges, for all keys and orders."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.kernels import edges
from rowtime.kernels.edges import paired

EDGES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=40)


def by_hand(edges: list[tuple[int, int, bool]], order: list[int]) -> tuple[dict[int, int], set[int]]:
    """The end of each start by position, -1 for none; and the ends without a start."""
    waiting: dict[tuple[int, int], list[int]] = defaultdict(list)
    ends, lost = {}, set()
    for place in order:
        *key, begins = edges[place]
        queue = waiting[key[0], key[1]]
        if begins:
            queue.append(place)
            ends[place] = -1
        elif queue:
            ends[queue.pop(0)] = place
        else:
            lost.add(place)
    return ends, lost


@settings(deadline=None)  # the first call on a busy machine takes longer
@given(EDGES, st.integers(0, 2**32), st.booleans(), st.sampled_from([1, 1 << 33]))
def test_pairs_equal_those_of_queues(edges: list[tuple[int, int, bool]], seed: int, mixed: bool, wide: int) -> None:
    order = list(range(len(edges)))
    if mixed:
        random.Random(seed).shuffle(order)
    positions = np.empty(len(edges), np.int64)
    positions[order] = np.arange(len(edges)) * 3
    numbers = [np.array([edge[n] for edge in edges], np.int64) * wide for n in (0, 1)]
    found = paired(numbers, positions, np.array([edge[2] for edge in edges], bool))
    ends, lost = by_hand(edges, order)
    assert dict(zip(found.starts.tolist(), found.ends.tolist(), strict=True)) == ends
    assert sorted(found.lost.tolist()) == sorted(lost)


@pytest.mark.parametrize("mix", [0, 1 << 62, 1])
def test_keys_whose_bits_are_equal_are_told_apart(mix: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "_WIDTH", 0)  # no key is narrow enough to be sorted as it is
    monkeypatch.setattr(edges, "_MIX", np.uint64(mix))
    test_pairs_equal_those_of_queues()


def test_a_planted_fault_in_the_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "_MIX", np.uint64(0))
    monkeypatch.setattr(edges, "_ordered", lambda *_: True)
    monkeypatch.setattr(edges, "_follows", lambda key: np.ones(max(0, len(key) - 1), bool))
    with pytest.raises(AssertionError):
        test_pairs_equal_those_of_queues()
