"""The driver's cache of segments: a file never changes, so it need not be read twice."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowtime.core.columns import WRITER
from rowtime.core.stores import ObjectPlace, Place
from rowtime.core.threads import at_once
from rowtime.frames.queries import FEW_ROWS
from rowtime.operators.contract.state import Segment
from rowtime.state.files import check_sum
from rowtime.state.kept_groups import KeptGroups, KeptWeights

MOST = 256 << 20  # bytes


def _of_times(path: str) -> str:
    """Return the name under which the times of a file are cached."""
    return f"{path} times"


def opened(path: Place) -> Any:
    """Open a file for Arrow."""
    return pa.BufferReader(path.read_bytes()) if isinstance(path, ObjectPlace) else path


def read_table(path: Place, **how: Any) -> pa.Table:
    """Read a Parquet file alone: the folders above it have no data about its rows."""
    return pq.read_table(opened(path), partitioning=None, **how)


class Memory:
    """A cache of the tables of the segments used last, up to `MOST` bytes, and of which files have been checked."""

    def __init__(self, folder: Place) -> None:
        self._folder = folder
        self._tables: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0
        self._whole: set[str] = set()
        self.groups: defaultdict[str, KeptGroups] = defaultdict(KeptGroups)  # by operator
        self.weights: defaultdict[str, KeptWeights] = defaultdict(KeptWeights)  # by operator and kind

    def put(self, path: str, table: pa.Table) -> None:
        """Store the rows of the file at ``path``."""
        self._forget(path)
        self._tables[path] = table
        self._bytes += table.nbytes
        while self._bytes > MOST and len(self._tables) > 1:
            self._forget(next(iter(self._tables)))

    def remember(self, segments: Iterable[Segment], tables: Mapping[str, pa.Table]) -> None:
        """Store the rows of segments with few rows each, if the driver wrote them: ``tables`` by their paths.

        With many rows, reading them is a small part of a tick.
        """
        for segment in segments:
            if segment.rows <= FEW_ROWS and segment.path in tables:
                self.put(segment.path, tables[segment.path])

    def get(self, segment: Segment, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a segment; read them if they are not cached. Raises what `check` does.

        ``names``: at least these columns; such a part is not cached.
        """
        path = segment.path
        if path in self._tables:
            self._tables.move_to_end(path)
            return self._tables[path]
        self.check([segment])
        table = read_table(self._folder / path, columns=None if names is None else [*names])
        if names is None:
            self.put(path, table)
        return table

    def up_to(self, segment: Segment, last: int, timing: str, writer: str | None = None) -> int:
        """Return how many rows have a time up to ``last`` (µs), or one µs later and a writer up to ``writer``."""
        if segment.highest <= last:
            return segment.rows
        table = self._tables.get(_of_times(segment.path))
        if table is None:
            table = self.get(segment, [timing] if writer is None else [timing, WRITER])
            if segment.path not in self._tables:
                self.put(_of_times(segment.path), table)
        if timing not in table.column_names:  # a file of release 0.2.0
            return 0
        times = table[timing].cast(pa.int64())
        gone = pc.less_equal(times, last)
        if writer is not None:
            gone = pc.or_(gone, pc.and_(pc.equal(times, last + 1), pc.less_equal(table[WRITER], writer)))
        return int(pc.sum(gone).as_py() or 0)

    def check(self, segments: Iterable[Segment]) -> None:
        """Compare files with their checksums, each once. Raises ``Failure`` (R406) if one is missing or damaged."""
        new = {segment.path: segment.sum for segment in segments if segment.path not in self._whole}
        if not new:
            return
        at_once(lambda path: check_sum(self._folder / path, new[path]), [*new])
        self._whole.update(new)

    def drop(self, path: str) -> None:
        """Drop a file that is removed."""
        self._forget(path)
        self._forget(_of_times(path))
        self._whole.discard(path)

    def _forget(self, path: str) -> None:
        table = self._tables.pop(path, None)
        self._bytes -= table.nbytes if table is not None else 0
