"""What the log of a Delta table says of a file."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.core.stores import ObjectPlace, Place

_SHOWN: Final = 32  # columns with statistics, as in Delta's own default, and characters of a text


def size_of(file: Place) -> tuple[int, int]:
    """The bytes of a file, and when it was written (ms)."""
    if isinstance(file, ObjectPlace):
        size, written = file.size()
        return size, int(written.timestamp() * 1000)
    about = file.stat()
    return about.st_size, int(about.st_mtime * 1000)


def partition_of(file: pq.ParquetFile, partitions: Sequence[str]) -> dict[str, str | None]:
    """The values by which a file is found, all of whose rows have the same."""
    if not partitions:
        return {}
    first = next(file.iter_batches(batch_size=1, columns=list(partitions)))
    return {name: first[name].cast(pa.string())[0].as_py() for name in partitions}


def statistics(about: pq.FileMetaData, partitions: Sequence[str]) -> dict[str, Any]:
    """Least and greatest values by which readers skip files, of plain columns for which Parquet knows them."""
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
            with contextlib.suppress(ValueError, OverflowError):  # a time that Python does not have
                least = _shown(min(part.min for part in edges))
                greatest = _shown(max(part.max for part in edges), up=True)
                if least is not None and greatest is not None:
                    low[name], high[name] = least, greatest
    return {"numRecords": about.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def _shown(value: Any, *, up: bool = False) -> Any:
    """A value as JSON has it; times have milliseconds there, so the greatest is the next one. ``None``: not said."""
    if isinstance(value, datetime):
        rest = timedelta(microseconds=value.microsecond % 1000)
        value = value - rest + timedelta(milliseconds=1) * bool(up and rest)
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole or (isinstance(value, str) and len(value) <= _SHOWN) else None
