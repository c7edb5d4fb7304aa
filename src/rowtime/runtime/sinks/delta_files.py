"""The files of a Delta table: those in its log, their rows, and the log's data about a new one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowtime.core.stores import ObjectPlace, Place, content_of

_SHOWN: Final = 32  # columns with statistics, as in Delta's own default, and characters of a text


@dataclass(frozen=True)
class TableFile:
    """A file of the table: its path in the log, its bytes, rows if known, and the partition values of its folder."""

    path: str
    size: int
    rows: int | None
    values: Mapping[str, str | None]


def files_of(table: Any) -> Iterator[TableFile]:
    """Yield the files of a table of deltalake, oldest first, except those of a table that it is a clone of."""
    actions = pa.table(table.get_add_actions(flatten=False)).sort_by(
        [("modification_time", "ascending"), ("path", "ascending")]
    )
    split = table.metadata().partition_columns
    texts = {name: _texts(actions["partition"], name) for name in split}
    columns = (actions[name].to_pylist() for name in ("path", "size_bytes", "num_records"))
    for at, (path, size, rows) in enumerate(zip(*columns, strict=True)):
        elsewhere = "://" in path or path.startswith("/")  # of a table of which this one is a clone
        if not elsewhere:
            yield TableFile(path, size, rows, {name: texts[name][at] for name in split})


def _texts(partitions: pa.ChunkedArray, name: str) -> list[str | None]:
    """Return the values of a partition column as in the log."""
    values: list[str | None] = pc.struct_field(partitions, name).cast(pa.string()).to_pylist()
    return values


def has_deleted_rows(table: Any) -> bool:
    """Return True if files may have deleted rows, which would come back if such a file were replaced."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 - an extra

    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return False
    try:
        return bool(pa.table(table.deletion_vectors()).num_rows)
    except DeltaError:  # it does not list them with some other features
        return True


def rows_of(file: Place, schema: pa.Schema, values: Mapping[str, str | None] | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a file in the columns of a table; ``values``: of columns that only its folder has.

    A column that the file lacks is NULL. It does not use deltalake's `to_pyarrow_table`: a Python process that exits
    soon after that may be killed by a signal, because threads of Arrow still read through a file system written in
    Python.
    """
    folder = values or {}
    for rows in pq.ParquetFile(content_of(file), coerce_int96_timestamp_unit="us").iter_batches():
        count, names = rows.num_rows, rows.schema.names
        columns = [
            rows[field.name].cast(field.type)
            if field.name in names
            else pa.repeat(pa.scalar(folder.get(field.name)).cast(field.type), count)
            for field in schema
        ]
        yield pa.table(columns, schema=schema)


def whole(table: Any, place: Place) -> pa.Table | None:
    """Return all rows of a table of deltalake; ``None`` if some of its files cannot be read."""
    files, schema = [*files_of(table)], pa.schema(table.schema().to_arrow())
    if has_deleted_rows(table) or len(files) < pa.table(table.get_add_actions()).num_rows:
        return None
    parts = [
        rows for table_file in files for rows in rows_of(place / unquote(table_file.path), schema, table_file.values)
    ]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def size_of(file: Place) -> tuple[int, int]:
    """Return the bytes of a file, and when it was written (ms)."""
    if isinstance(file, ObjectPlace):
        size, written = file.size()
        return size, int(written.timestamp() * 1000)
    about = file.stat()
    return about.st_size, int(about.st_mtime * 1000)


def partition_of(file: pq.ParquetFile, partitions: Sequence[str]) -> dict[str, str | None]:
    """Return the partition values of a file; they are equal in all of its rows."""
    if not partitions:
        return {}
    first = next(file.iter_batches(batch_size=1, columns=list(partitions)))
    return {name: first[name].cast(pa.string())[0].as_py() for name in partitions}


def statistics(about: pq.FileMetaData, partitions: Sequence[str]) -> dict[str, Any]:
    """Return least and greatest values by which readers skip files, for plain columns for which Parquet knows them."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for at in range(min(about.num_columns, _SHOWN)):
        name = about.schema.column(at).path
        parts = [about.row_group(group).column(at).statistics for group in range(about.num_row_groups)]
        if name in partitions or about.schema.column(at).max_repetition_level or any(part is None for part in parts):
            continue
        if "." in name or not all(part.has_null_count for part in parts):
            continue
        nulls[name] = sum(part.null_count for part in parts)
        edges = [part for part in parts if part.has_min_max]
        if len(edges) == sum(part.num_values > 0 for part in parts) > 0:
            with contextlib.suppress(ValueError, OverflowError):  # a time that Python cannot represent
                least = _shown(min(part.min for part in edges))
                greatest = _shown(max(part.max for part in edges), up=True)
                if least is not None and greatest is not None:
                    low[name], high[name] = least, greatest
    return {"numRecords": about.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def _shown(value: Any, *, up: bool = False) -> Any:
    """Return a value for JSON; times have milliseconds there, so the greatest is rounded up. ``None``: omitted."""
    if isinstance(value, datetime):
        rest = timedelta(microseconds=value.microsecond % 1000)
        value = value - rest + timedelta(milliseconds=1) * bool(up and rest)
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole or (isinstance(value, str) and len(value) <= _SHOWN) else None
