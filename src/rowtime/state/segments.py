"""The segment log: state as immutable files, appended, compacted, dropped; never rewritten.

Writing costs O(new rows), closing reads only segments that overlap what closes, and compaction merges segments of one
level (of a size), so that their number stays O(log of the ticks). Rows of a segment below the bound are dead, and
readers skip them; a segment without live rows is dropped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract.state import Segment

FANOUT = 8  # segments of one level that are merged
SMALLEST = 10  # bits: fewer than 1,024 rows are level 0, and each level has eight times more


class SegmentLog:
    """The live segments of one kind of rows; plain values in and out. ``sums``: checksums by path."""

    def __init__(self, entries: Iterable[Sequence[Any]] = (), sums: Mapping[str, int] = {}) -> None:
        self._live = [Segment(*(*entry[:5], sums.get(entry[0]), *entry[5:])) for entry in entries]
        self.dropped: list[Segment] = []
        self.passed = BEGINNING  # the greatest time up to which segments were dropped

    @property
    def live(self) -> tuple[Segment, ...]:
        """Return the live segments, oldest first."""
        return tuple(self._live)

    @property
    def rows(self) -> int:
        """Return how many rows the live segments have."""
        return sum(segment.rows for segment in self._live)

    @property
    def held(self) -> int:
        """Return how many of these rows may still be needed."""
        return sum(segment.rows - segment.dead for segment in self._live)

    @property
    def lowest(self) -> int:
        """Return the least time in a live segment; END if there is none."""
        return min((segment.lowest for segment in self._live), default=END)

    def overlapping(self, low: int, high: int) -> tuple[Segment, ...]:
        """Return the segments that may have a time in (low, high]."""
        return tuple(s for s in self._live if s.highest > low and s.lowest <= high)

    def add(self, written: Sequence[Segment]) -> None:
        """Append segments."""
        self._live.extend(_levelled(segment) for segment in written if segment.rows)

    def forget(self, up_to: int) -> None:
        """Drop the segments in which every time is at or below ``up_to``."""
        self.passed = max(self.passed, up_to) if up_to < END else self.passed
        self._drop({s.path for s in self._live if s.highest <= up_to})

    def mark_dead(self, up_to: int, count: Callable[[Segment], int]) -> None:
        """Note how many rows of each segment are dead, if the greatest time of these is ``up_to``; ``count`` knows."""
        self._live = [s if s.lowest > up_to else replace(s, dead=count(s)) for s in self._live]

    def replace(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Replace segments by their compacted form, one level up or more."""
        level = max(segment.level for segment in old) + 1
        fresh = {segment.path for segment in new}
        self._drop({segment.path for segment in old})
        self._live = [s for s in self._live if s.path not in fresh]
        self._live.extend(_levelled(segment, level) for segment in new if segment.rows)

    def crowded(self) -> tuple[Segment, ...]:
        """Return the segments of the lowest level that has ``FANOUT`` of them; else none."""
        return self._crowded(self._live)

    @staticmethod
    def _crowded(segments: Iterable[Segment]) -> tuple[Segment, ...]:
        levels: dict[int, list[Segment]] = defaultdict(list)
        for segment in segments:
            levels[segment.level].append(segment)
        full = [level for level, segments in sorted(levels.items()) if len(segments) >= FANOUT]
        return tuple(levels[full[0]]) if full else ()

    def entries(self) -> list[list[Any]]:
        """Return the live segments as plain values, for the journal."""
        return [_entry(segment) for segment in self._live]

    def restore(self, live: Iterable[Segment], dropped: Iterable[Segment]) -> None:
        """Set the live segments, oldest first, and those that were dropped."""
        self._live, self.dropped = [*live], [*dropped]

    def sums(self) -> dict[str, int]:
        """Return the known checksums of the live segments, by path."""
        return {s.path: s.sum for s in self._live if s.sum is not None}

    def _drop(self, paths: set[str]) -> None:
        self.dropped.extend(s for s in self._live if s.path in paths)
        self._live = [s for s in self._live if s.path not in paths]


@dataclass(frozen=True)
class Kept:
    """The content of one log after a tick: rows, their files and bytes; how many rows the tick has written and dropped.

    Merged rows count as written and as dropped.
    """

    rows: int
    files: int
    size: int
    written: int
    dropped: int

    @classmethod
    def of(cls, log: SegmentLog, new: Collection[str]) -> Kept:
        """Return the content of a log, given the paths that are new."""
        fresh = {*new}
        written = sum(s.rows for s in log.live if s.path in fresh)
        gone = sum(s.rows for s in log.dropped if s.path not in fresh)
        return cls(log.rows, len(log.live), sum(s.size for s in log.live), written, gone)


def _entry(s: Segment) -> list[Any]:
    last = [s.dead, s.shards] if s.shards else [s.dead] if s.dead else []
    return [s.path, s.rows, s.lowest, s.highest, s.level, s.size, *last]


def _levelled(segment: Segment, least: int = 0) -> Segment:
    """Return a segment with its level: that of its merges, or of its size if that is higher.

    So a row is rewritten once per level, and a large segment is not merged with tiny ones.
    """
    return replace(segment, level=max(least, max(0, segment.rows.bit_length() - SMALLEST + 2) // 3))
