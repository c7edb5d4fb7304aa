"""Shards of keys: a fixed number of parts, so that the number of tasks may change from tick to tick.

A task has neighbouring shards. What it keeps names these in the journal, with the columns by which rows were divided;
a later task that has all of them reads the file as it is, and one that has some of them takes its rows from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rowtime.frames.kinds import is_plain
from rowtime.kernels.hashes import hashes
from rowtime.kernels.windowed import whole
from rowtime.operators.contract.state import Segment
from rowtime.state.segments import SegmentLog

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARDS: Final = 64
_TEXT: Final = re.compile(r"(\d+)-(\d+) of (\d+) by (.*)")


@dataclass(frozen=True)
class Shards:
    """The shards ``first`` to ``last``."""

    first: int
    last: int

    @classmethod
    def of(cls, number: int, many: int) -> Shards:
        """Return those of one of so many tasks, at most `SHARDS`."""
        return cls(number * SHARDS // many, (number + 1) * SHARDS // many - 1)

    def text(self, keys: Iterable[str]) -> str:
        """Return them for the journal, with the columns by which rows are divided."""
        return f"{self.first}-{self.last} of {SHARDS} by {', '.join(keys)}"

    def cover(self, text: str, keys: Iterable[str]) -> bool | None:
        """Return True if all rows of a segment are in these shards, False if none is, ``None`` if some may be."""
        known = _TEXT.fullmatch(text)
        if known is None or (int(known[3]), known[4]) != (SHARDS, ", ".join(keys)):
            return None
        first, last = int(known[1]), int(known[2])
        if last < self.first or self.last < first:
            return False
        return True if self.first <= first and last <= self.last else None

    def rows(self, table: pa.Table, kinds: Sequence[str], keys: Sequence[str]) -> pa.Table:
        """Return those of some rows that are in these shards; ``kinds``: the Spark types of the keys."""
        numbers = shards_of(table, kinds, keys)
        inside = (numbers >= self.first) & (numbers <= self.last)
        return table if inside.all() else table.filter(pa.array(inside))


def shards_of(table: pa.Table, kinds: Sequence[str], keys: Sequence[str]) -> NDArray[np.int64]:
    """Return the shard of each row, by those of its keys that are plain; NULL equals NULL."""
    plain = [whole(table[key]) for key, kind in zip(keys, kinds, strict=True) if is_plain(kind)]
    if not plain or not table.num_rows:
        return np.zeros(table.num_rows, np.int64)
    return np.asarray(hashes(plain).view(np.uint64) % np.uint64(SHARDS)).astype(np.int64)


def task_of(shards: NDArray[np.int64], many: int) -> NDArray[np.int64]:
    """Return which of so many tasks has each of some shards (`Shards.of`)."""
    edges = np.array([Shards.of(number, many).last for number in range(many)])
    return np.searchsorted(edges, shards)


class ShardLog(SegmentLog):
    """The segments of a log that have rows of some shards, and those that the task of these shards adds."""

    def __init__(self, log: SegmentLog, shards: Shards, keys: Sequence[str]) -> None:
        super().__init__()
        self.shards, self.keys = shards, keys
        self._live = [segment for segment in log.live if self.has_all(segment) is not False]
        self.passed = log.passed

    def has_all(self, segment: Segment) -> bool | None:
        """Return `Shards.cover` of a segment."""
        return self.shards.cover(segment.shards, self.keys)

    def add(self, written: Sequence[Segment]) -> None:
        """Append segments of these shards."""
        super().add([self._named(segment) for segment in written])

    def replace(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Replace segments of these shards."""
        super().replace(old, [self._named(segment) for segment in new])

    def crowded(self) -> tuple[Segment, ...]:
        """Return the segments to merge: none that has rows of other shards, too."""
        return self._crowded(segment for segment in self.live if self.has_all(segment))

    def _named(self, segment: Segment) -> Segment:
        return replace(segment, shards=self.shards.text(self.keys))


def together(log: SegmentLog, parts: Sequence[SegmentLog]) -> SegmentLog:
    """Return a log after a tick that the tasks of all shards have continued.

    A segment that several of them have seen is dropped by all of them or by none: that depends on its times alone.
    """
    live = {segment.path: segment for part in parts for segment in part.live}
    dropped = {segment.path: segment for part in parts for segment in part.dropped if segment.path not in live}
    oldest_first = dict.fromkeys([*(segment.path for segment in log.live if segment.path in live), *live])
    whole = SegmentLog()
    whole.restore([live[path] for path in oldest_first], dropped.values())
    whole.passed = max(part.passed for part in parts)
    return whole
