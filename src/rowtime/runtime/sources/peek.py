"""Reads one timestamp column of Parquet files with Arrow, for the clock pass.

A clock pass needs nothing but times and positions. Where the files are at hand, reading
that one column here takes a tenth of the time of a Spark job (`docs/design/tick-cost.md`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.runtime.sources.contract import POSITION, WRITER

MICROS = pa.timestamp("us", "UTC")
ROWS = 1_000_000  # of one piece, or what a row group has; few pieces are in memory at a time


def timestamps(files: Iterable[tuple[int, str, str]], name: str, *, nulls: bool = True) -> Iterator[pa.Table] | None:
    """``__w``, ``__p``, ``t`` (BIGINT µs, null where the time is) of ``(first position, writer, path)``.

    In pieces, in the order of the files and of their rows. ``None`` where a file has no such
    column or it is no timestamp that Spark reads the same; without ``nulls`` also where its
    footer does not say that every value is there.
    """
    pieces: list[tuple[int, str, str, str, list[int]]] = []
    for first, writer, path in files:
        metadata = pq.read_metadata(path)
        column = _column(metadata.schema.to_arrow_schema(), name)
        if column is None or not (nulls or _complete(metadata, column)):
            return None
        position = first
        for groups, rows in _together([metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]):
            pieces.append((position, writer, path, column, groups))
            position += rows
    return _pieces(pieces)


def _complete(metadata: pq.FileMetaData, column: str) -> bool:
    """True if the statistics of every row group count no null in a column."""
    at = metadata.schema.names.index(column)
    found = (metadata.row_group(number).column(at) for number in range(metadata.num_row_groups))
    return all(
        part.path_in_schema == column and part.statistics is not None and part.statistics.null_count == 0
        for part in found
    )


def _together(sizes: list[int]) -> Iterator[tuple[list[int], int]]:
    """Neighbouring row groups that make a piece, and the rows that they have."""
    groups: list[int] = []
    rows = 0
    for number, size in enumerate(sizes):
        if groups and rows + size > ROWS:
            yield groups, rows
            groups, rows = [], 0
        groups.append(number)
        rows += size
    if rows:
        yield groups, rows


def _pieces(pieces: list[tuple[int, str, str, str, list[int]]]) -> Iterator[pa.Table]:
    """Reads some pieces ahead."""
    ahead = os.cpu_count() or 1
    with ThreadPoolExecutor(ahead) as pool:
        under_way: deque[Future[pa.Table]] = deque()
        for piece in pieces:
            under_way.append(pool.submit(_read, *piece))
            if len(under_way) > ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def _read(first: int, writer: str, path: str, column: str, groups: list[int]) -> pa.Table:
    found = pq.ParquetFile(path).read_row_groups(groups, columns=[column], use_threads=False)[column]
    times = found.cast(MICROS).cast(pa.int64())
    positions = pa.array(np.arange(first, first + len(times)))
    writers = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(times), np.int32)), pa.array([writer]))
    return pa.table({WRITER: writers, POSITION: positions, "t": times})


def _column(schema: pa.Schema, name: str) -> str | None:
    fields = {field.name.lower(): field for field in schema}
    field = fields.get(name.lower())
    if field is None or not pa.types.is_timestamp(field.type) or field.type.tz is None:
        return None
    # Coarser units convert exactly; nanoseconds would be cut, and Spark reads them otherwise.
    return None if field.type.unit == "ns" else str(field.name)
