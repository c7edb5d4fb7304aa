"""Open groups and sessions, counted against sets: parts come in any order, twice, and with hashes that collide."""

from __future__ import annotations

import numpy as np
import pytest

from rowtime.kernels.open_groups import OpenGroups, OpenSessions
from rowtime.operators.contract.state import Segment
from rowtime.state.kept_groups import KeptGroups, Parts

Part = tuple[int, int, int]


@pytest.mark.parametrize("seed", range(20))
def test_groups_count_once_each_by_hash_and_end(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups, known, bound = OpenGroups(), set[tuple[int, int]](), 0
    for _ in range(30):
        many = int(random.integers(0, 40))
        hashes, ends = random.integers(-9, 9, many), bound + random.integers(1, 20, many)  # few hashes: they collide
        groups.add(hashes, ends)
        known |= {*zip(hashes.tolist(), ends.tolist(), strict=True)}
        bound += int(random.integers(0, 6))
        assert groups.after(bound) == sum(end > bound for _, end in known)


@pytest.mark.parametrize("seed", range(20))
def test_sessions_are_joined_from_their_parts(seed: int) -> None:
    random = np.random.default_rng(seed)
    sessions, parts, bound = OpenSessions(), list[Part](), 0
    for _ in range(30):
        many = int(random.integers(0, 12))
        hashes, starts = random.integers(0, 4, many), bound + random.integers(0, 40, many)
        ends = starts + random.integers(1, 7, many)
        sessions.add(hashes, starts, ends)
        parts += zip(hashes.tolist(), starts.tolist(), ends.tolist(), strict=True)
        assert sessions.after(bound) == _open(parts, bound)
        bound += int(random.integers(0, 6))
        assert sessions.after(bound) == _open(parts, bound)


def _open(parts: list[Part], bound: int) -> int:
    """How many sessions end after a bound; one that begins where another ends is another one."""
    made: list[Part] = []
    for key, start, end in sorted(parts):
        if made and made[-1][0] == key and start < made[-1][2]:
            made[-1] = (key, made[-1][1], max(end, made[-1][2]))
        else:
            made.append((key, start, end))
    return sum(end > bound for _, _, end in made)


def _parts(*hashes: int) -> Parts:
    return np.array(hashes), np.full(len(hashes), 9), None


def _segment(path: str, checksum: int) -> Segment:
    return Segment(path, 1, 0, 9, sum=checksum)


def test_the_groups_of_a_tick_that_was_given_up_do_not_count() -> None:
    files = {1: _parts(1, 2), 2: _parts(2, 3), 3: _parts(4)}
    kept, read = KeptGroups(), list[int]()

    def count(*live: Segment, gone: tuple[str, ...] = ()) -> int:
        def parts_of(segment: Segment) -> Parts:
            assert segment.sum is not None
            read.append(segment.sum)
            return files[segment.sum]

        return kept.count(live, gone, 0, parts_of)

    first = _segment("a", 1)
    assert (count(first), count(first, _segment("b", 2)), read) == (2, 3, [1, 2])
    assert (count(first, _segment("b", 3)), read) == (3, [1, 2, 1, 3])  # the same path with another content
    assert (count(first), read) == (2, [1, 2, 1, 3, 1])  # the tick that wrote b was given up
    assert (count(_segment("c", 1), gone=("a",)), read) == (2, [1, 2, 1, 3, 1, 1])  # a was merged into c
