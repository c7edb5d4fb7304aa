"""The kept rows of one operator, in one tick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.operators.contract.state import Segment, rows_in
from rowtime.state.segments import SegmentLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rowtime.runtime.tick import RunningTick


class TickSegments:
    """Implements `operators.contract.state.Segments`."""

    def __init__(self, tick: RunningTick, key: str, log: SegmentLog) -> None:
        self._tick, self._key, self.log = tick, key, log
        self.overlapping, self.add, self.forget = log.overlapping, log.add, log.forget
        self.replace, self.crowded = log.replace, log.crowded

    @property
    def rows(self) -> int:
        """Return how many rows are kept."""
        return self.log.rows

    @property
    def lowest(self) -> int:
        """Return the least time that is kept; END if there are no rows."""
        return self.log.lowest

    def read(self, segments: Sequence[Segment]) -> DataFrame:
        """Return the rows of some segments, from the driver's memory if it wrote them in this tick."""
        return self._tick.given.whole(self._tick.read(self._key, segments), rows_in(segments))

    def tables(self, segments: Sequence[Segment]) -> Sequence[pa.Table]:
        """Return the rows of some segments on the driver, one table per segment."""
        return [self._tick.memory.get(segment) for segment in segments]
