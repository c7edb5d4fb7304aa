"""The segment log: which segments are live, read and dropped, and how many there are."""

from __future__ import annotations

import json
import math
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.core.time import END
from rowtime.operators.contract.state import Segment
from rowtime.state.segments import FANOUT, SegmentLog


def segment(path: str, lowest: int, highest: int, rows: int = 1) -> Segment:
    return Segment(path, rows, lowest, highest)


def paths(segments: tuple[Segment, ...]) -> list[str]:
    return [one.path for one in segments]


def test_an_empty_log_has_no_rows_up_to_the_end() -> None:
    log = SegmentLog()
    assert (log.rows, log.lowest, log.live, log.crowded()) == (0, END, (), ())


def test_a_segment_without_rows_is_not_kept() -> None:
    log = SegmentLog()
    log.add([segment("a", 1, 2), segment("b", 1, 2, rows=0)])
    assert paths(log.live) == ["a"]
    assert log.rows == 1


def test_overlapping_excludes_the_lower_edge_and_includes_the_upper_one() -> None:
    log = SegmentLog()
    log.add([segment("a", 0, 10), segment("b", 11, 20), segment("c", 5, 15)])
    assert paths(log.overlapping(10, 11)) == ["b", "c"]
    assert paths(log.overlapping(9, 10)) == ["a", "c"]
    assert paths(log.overlapping(20, 30)) == []


def test_a_segment_is_dropped_when_all_of_it_is_at_or_below_the_bound() -> None:
    log = SegmentLog()
    log.add([segment("a", 0, 10), segment("b", 5, 11)])
    log.forget(9)
    assert paths(log.live) == ["a", "b"]
    log.forget(10)
    assert paths(log.live) == ["b"]
    assert log.lowest == 5
    assert paths(tuple(log.dropped)) == ["a"]


def test_the_journal_restores_the_same_log() -> None:
    log = SegmentLog()
    log.add([segment("a", 0, 10), segment("b", 11, 20)])
    log.replace(log.live, [segment("c", 0, 20, rows=100_000)])
    again = SegmentLog(json.loads(json.dumps(log.entries())))
    assert again.live == log.live
    assert again.live[0].level == log.live[0].level > 0
    assert again.dropped == []


def test_compaction_that_leaves_no_row_leaves_no_segment() -> None:
    log = SegmentLog()
    log.add([segment("a", 0, 1), segment("b", 0, 1)])
    written = [segment("c", 0, 0, rows=0)]
    log.add(written)
    log.replace(log.live, written)
    assert log.live == ()
    assert paths(tuple(log.dropped)) == ["a", "b"]


def test_a_compacted_segment_that_was_added_already_is_there_once() -> None:
    log = SegmentLog()
    log.add([segment("a", 0, 1), segment("b", 2, 3)])
    old = log.live
    written = [segment("c", 0, 3, rows=2)]
    log.add(written)
    log.replace(old, written)
    assert paths(log.live) == ["c"]
    assert log.rows == 2


def test_too_few_segments_of_a_level_are_not_crowded() -> None:
    log = SegmentLog()
    log.add([segment(str(n), n, n) for n in range(FANOUT - 1)])
    assert log.crowded() == ()
    log.add([segment("last", 9, 9)])
    assert len(log.crowded()) == FANOUT


@pytest.mark.parametrize("size", [1, 100, 1_024, 5_000])
def test_segments_grow_with_the_logarithm_of_the_rows_and_so_does_their_rewriting(size: int) -> None:
    log, names, written, tiny = SegmentLog(), count(), 0, 0
    for tick in range(2_000):
        log.add([segment(str(next(names)), tick, tick, size)])
        crowded = log.crowded()
        if crowded:
            rows = sum(one.rows for one in crowded)
            level = crowded[0].level
            written, tiny = (written, tiny + rows) if level == 0 else (written + rows, tiny)
            log.replace(crowded, [segment(str(next(names)), crowded[0].lowest, crowded[-1].highest, rows)])
            assert level == 0 or log.live[-1].level > level, "what is large is not rewritten at the same level"
        assert len(log.live) <= FANOUT * (math.log((tick + 1) * size, FANOUT) + 1)
        assert log.rows == (tick + 1) * size, "compaction loses no row"
    assert written <= 2_000 * size * (math.log(2_000, FANOUT) + 1), "a row is rewritten once a level"
    assert tiny <= 2_000 * 2 * 1_024, "tiny segments cost no more than a small tick does"


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.integers(0, 40), min_size=1, max_size=3)),
        st.tuples(st.just("forget"), st.integers(0, 40)),
        st.tuples(st.just("compact"), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(steps)
def test_whatever_happens_no_live_time_is_lost(done: list[tuple[str, object]]) -> None:
    """Compared with a plain list of times: rows above the bound can be read, and no row is there twice."""
    log, names = SegmentLog(), count()
    inside: dict[str, list[int]] = {}
    alive: list[int] = []
    bound = -1

    def write(times: list[int]) -> list[Segment]:
        name = str(next(names))
        inside[name] = times
        return [Segment(name, len(times), min(times, default=0), max(times, default=0))]

    for what, argument in done:
        if what == "add":
            assert isinstance(argument, list)
            fresh = [time for time in argument if time > bound]
            log.add(write(fresh))
            alive += fresh
        elif what == "forget":
            assert isinstance(argument, int)
            bound = max(bound, argument)
            alive = [time for time in alive if time > bound]
            log.forget(bound)
        elif log.crowded():
            old = log.crowded()
            written = write([time for one in old for time in inside[one.path] if time > bound])
            log.add(written)
            log.replace(old, written)
        read = [time for one in log.overlapping(bound, END) for time in inside[one.path] if time > bound]
        assert sorted(read) == sorted(alive)
        assert log.lowest <= min(alive, default=END)
        assert not {one.path for one in log.dropped} & {one.path for one in log.live}
