"""Parquet files that the driver writes for a lake table, into a folder or a bucket; and the grouping of small files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.core.shared_paths import sync, temporary
from rowtime.core.stores import ObjectPlace, Place
from rowtime.runtime.sinks.lake_rows import compared

T = TypeVar("T")
_GROUP: Final = 1 << 20  # rows written at once
_BYTES: Final = 64 << 20  # bytes written at once, if rows are wide


class NewFile:
    """A file of a table at a ``place``; it exists, durably, once it is closed. Keeps one group of rows in memory."""

    def __init__(self, place: Place, schema: pa.Schema) -> None:
        self.place, self._schema = place, schema
        self._draft = place if isinstance(place, Path) else temporary()  # a store takes it as a whole
        names = compared(schema)
        self._writer = pq.ParquetWriter(self._draft, schema, compression="zstd", write_statistics=names)
        self._kept: list[pa.Table] = []

    def write(self, rows: pa.Table) -> None:
        """Add rows with the columns of the file."""
        self._kept.append(rows)
        if sum(table.num_rows for table in self._kept) >= _GROUP or sum(table.nbytes for table in self._kept) >= _BYTES:
            self._flush()

    def close(self) -> None:
        """Write the rest, and put the file in its place."""
        self._flush()
        self._writer.close()
        if isinstance(self.place, ObjectPlace):
            self.place.upload(self._draft)
            self._draft.unlink()
            return
        sync(self.place)
        sync(self.place.parent)

    def remove(self) -> None:
        """Remove it, complete or not, after a commit that did not happen."""
        with suppress(OSError):  # a full disk has no room for the end of the file either
            self._writer.close()
        self._draft.unlink(missing_ok=True)
        self.place.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._kept:
            self._writer.write_table(pa.concat_tables(self._kept))
            self._kept = []


def packed(files: Sequence[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Yield groups of successive files with at most so many bytes together; no group of one."""
    group: list[T] = []
    total = 0
    for file in files:
        if group and total + size(file) > most:
            yield from ([group] if len(group) > 1 else [])
            group, total = [], 0
        group.append(file)
        total += size(file)
    yield from ([group] if len(group) > 1 else [])
