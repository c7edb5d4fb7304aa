"""The kept rows of one operator, in one tick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.operators.contract import Operator
from rowtime.operators.contract.state import Kept, Segment
from rowtime.runtime.held import counts_groups
from rowtime.state.segments import SegmentLog

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.runtime.tick import RunningTick


class TickSegments:
    """Implements `operators.contract.state.Segments`."""

    def __init__(self, tick: RunningTick, node: Operator, key: str, log: SegmentLog) -> None:
        self._tick, self._node, self._key, self.log = tick, node, key, log
        self.overlapping, self.add = log.overlapping, log.add
        self.replace, self.crowded = log.replace, log.crowded

    @property
    def rows(self) -> int:
        """Return how many rows are kept."""
        return self.log.rows

    @property
    def lowest(self) -> int:
        """Return the least time that is kept; END if there are no rows."""
        return self.log.lowest

    def forget(self, up_to: int, *, writer: str | None = None, dead: int | None = None) -> None:
        """Drop the segments in which every time is at or below ``up_to``; count the dead rows of the others."""
        self.log.forget(up_to)
        last = up_to if dead is None else dead
        reached = last if writer is None else last + 1
        kept = self._kept
        if kept is not None and (kept.counts or counts_groups(kept, self._tick.schemas.get(self._key))):
            return
        if self.log.lowest <= reached and (timing := "" if kept is None else kept.timing):
            self.log.mark_dead(reached, lambda s: self._tick.memory.up_to(s, last, timing, writer))

    @property
    def _kept(self) -> Kept | None:
        kept = (one for note in self._node.keeps() for one in note.rows if self._key == f"{self._node.name}/{one.name}")
        return next(kept, None)

    def read(self, segments: Sequence[Segment]) -> Frame:
        """Return the rows of some segments, from memory if they were written in this tick."""
        return self._tick.read(self._key, segments)

    def tables(self, segments: Sequence[Segment]) -> Sequence[pa.Table]:
        """Return the rows of some segments, one table per segment."""
        return [self._tick.memory.get(segment) for segment in segments]
