"""Reads columns of Parquet files with Arrow, in less than a tenth of Spark's time (`docs/design/over.md`)."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowtime.core.columns import ARRIVAL, POSITION, WRITER
from rowtime.core.errors import Failure, Problem
from rowtime.runtime.sources.file_places import DAMAGED, footer, parquet

MICROS = pa.timestamp("us", "UTC")
ROWS = 1_000_000  # of one piece, or the rows of a row group; few pieces are in memory at a time
OURS = (WRITER, POSITION, ARRIVAL)

_NARROWER: Mapping[pa.DataType | None, Collection[pa.DataType]] = {
    pa.int16(): [pa.int8()],
    pa.int32(): [pa.int8(), pa.int16()],
    pa.int64(): [pa.int8(), pa.int16(), pa.int32()],
    pa.float64(): [pa.float32()],
    pa.date32(): [pa.date64()],  # Parquet has days, whatever Arrow had
}

Groups = tuple[int, int]  # the first of some row groups, and the first behind them
Piece = Callable[[], pa.Table]


@dataclass(frozen=True)
class FileRows:
    """A file: the position of its first row, its writer, path and arrival time (µs UTC), and columns beside its own.

    ``part``: the row groups that are read; ``None`` for all.
    """

    first: int
    writer: str
    path: str
    arrived: int
    constants: Mapping[str, pa.Scalar]
    part: Groups | None = None


def columns(
    files: Iterable[FileRows],
    wanted: Mapping[str, str],
    kinds: Mapping[str, pa.DataType | None],
) -> Iterator[pa.Table] | None:
    """Columns ``{name: column}`` of the rows of some files, in pieces.

    The columns are those of the files, of type ``kinds``, and ``OURS``. ``None`` if a file has another type, or was
    written by a Spark version that used another calendar before 1582.
    """
    pieces: list[Piece] = []
    for file in files:
        metadata = _footer(file.path)
        with _reading(file.path):
            fields = _same(metadata, {name: kind for name, kind in kinds.items() if name not in file.constants})
            if fields is None:
                return None
        pieces += [
            partial(_rows, file, at, wanted, fields, groups) for at, groups in _placed(metadata, file.first, file.part)
        ]
    return _ahead(pieces)


def _same(metadata: pq.FileMetaData, kinds: Mapping[str, pa.DataType | None]) -> dict[str, pa.Field] | None:
    """Return the columns by their names in a file, with the wanted types, if Spark would read the same values."""
    properties = metadata.metadata or {}
    if b"org.apache.spark.legacyDateTime" in properties or properties.get(b"org.apache.spark.version", b"3") < b"3":
        return None
    schema = metadata.schema.to_arrow_schema()
    fields = {field.name.lower(): field for field in schema}
    fields_of_columns = {name: fields[name.lower()] for name in kinds if name.lower() in fields}
    if len(fields_of_columns) < len(kinds) or len(fields) < len(schema):
        return None
    same = all(_alike(metadata, field, kinds[name]) for name, field in fields_of_columns.items())
    return {name: field.with_type(kinds[name]) for name, field in fields_of_columns.items()} if same else None


def _alike(metadata: pq.FileMetaData, field: pa.Field, wanted: pa.DataType | None) -> bool:
    """Return True if a column has values of a type for Spark; in nested types Spark has other field names."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if wanted == pa.string() and (pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return True
    if kind in _NARROWER.get(wanted, ()):
        return True
    if wanted == MICROS or (wanted == pa.timestamp("us") and in_nanoseconds(metadata, field)):
        return _is_instant(metadata, field)
    return kind == wanted and not pa.types.is_nested(kind)


def _placed(metadata: pq.FileMetaData, first: int, part: Groups | None = None) -> Iterator[tuple[int, list[int]]]:
    """Yield the row groups of each piece of a part of a file, and the position of its first row."""
    sizes = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    begin, end = part or (0, len(sizes))
    at = first + sum(sizes[:begin])
    for groups, rows in _together(sizes[begin:end]):
        yield at, [begin + group for group in groups]
        at += rows


def _footer(path: str) -> pq.FileMetaData:
    with _reading(path):
        return footer(path)


def _read(path: str, groups: list[int], columns: list[str]) -> pa.Table:
    with _reading(path):
        return parquet(path).read_row_groups(groups, columns=columns, use_threads=False)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn Arrow's error about a damaged file into a ``Failure`` (R501) that names it."""
    try:
        yield
    except DAMAGED as error:
        raise Failure(Problem("R501", f"{path} cannot be read: {str(error).splitlines()[0]}")) from error


def _together(sizes: list[int]) -> Iterator[tuple[list[int], int]]:
    """Yield neighbouring row groups that make a piece, and their number of rows."""
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


def _ahead(pieces: list[Piece]) -> Iterator[pa.Table]:
    """Read some pieces ahead."""
    ahead = os.cpu_count() or 1
    with ThreadPoolExecutor(ahead) as pool:
        under_way: deque[Future[pa.Table]] = deque()
        for piece in pieces:
            under_way.append(pool.submit(piece))
            if len(under_way) > ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def _rows(
    file: FileRows, first: int, wanted: Mapping[str, str], fields: Mapping[str, pa.Field], groups: list[int]
) -> pa.Table:
    names = {field.name for field in fields.values()}
    table = _read(file.path, groups, [*names])
    columns = {name: _converted(table[field.name], field.type) for name, field in fields.items()}
    columns[WRITER] = pa.repeat(file.writer, table.num_rows)
    columns[POSITION] = pa.array(np.arange(first, first + table.num_rows))
    columns[ARRIVAL] = pa.repeat(pa.scalar(file.arrived, MICROS), table.num_rows)
    columns |= {name: pa.repeat(value, table.num_rows) for name, value in file.constants.items()}
    return pa.table({name: columns[column] for name, column in wanted.items()})


def _is_instant(metadata: pq.FileMetaData, field: pa.Field) -> bool:
    """Return True for times: a time without a zone is in UTC, as where Spark reads it, and none becomes later."""
    return pa.types.is_timestamp(field.type) and (field.type.unit != "ns" or in_nanoseconds(metadata, field))


def _converted(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    is_cut = pa.types.is_timestamp(values.type) and values.type.unit == "ns"
    return cut(values, kind) if is_cut else values.cast(kind)


def in_nanoseconds(metadata: pq.FileMetaData, field: pa.Field) -> bool:
    """Return True for a column of times in nanoseconds; Spark reads its own old form of these, INT96."""
    if not pa.types.is_timestamp(field.type) or field.type.unit != "ns":
        return False
    columns = (metadata.schema.column(n) for n in range(len(metadata.schema)))
    return next((c.physical_type for c in columns if c.path == field.name), "") != "INT96"


def cut(times: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Return times in nanoseconds as microseconds: further digits are cut off, so that none becomes later."""
    plain = times.cast(pa.int64()).cast(pa.timestamp("ns"))  # the zone says only how others show the instant
    return pc.floor_temporal(plain, 1, "microsecond").cast(pa.timestamp("us")).cast(pa.int64()).cast(wanted)
