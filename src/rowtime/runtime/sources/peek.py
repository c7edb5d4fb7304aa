"""Reads one timestamp column of Parquet files with Arrow, for the clock pass.

A clock pass needs nothing but times and positions. Where the files are at hand, reading
that one column here takes a tenth of the time of a Spark job (`docs/design/tick-cost.md`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.runtime.sources.contract import POSITION, WRITER

MICROS = pa.timestamp("us", "UTC")


def timestamps(files: Iterable[tuple[int, str, str]], name: str) -> pa.Table | None:
    """``__w``, ``__p``, ``t`` (BIGINT µs, null where the time is) of ``(first position, writer, path)``.

    ``None`` where a file has no such column or it is no timestamp that Spark reads the same.
    """
    listed, parts = list(files), []
    with ThreadPoolExecutor(max(1, min(len(listed), os.cpu_count() or 1))) as pool:
        columns = list(pool.map(lambda file: _one(file[2], name), listed))
    for (first, writer, _), found in zip(listed, columns, strict=True):
        if found is None:
            return None
        positions = pa.array(np.arange(first, first + len(found)))
        writers = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(found), np.int32)), pa.array([writer]))
        parts.append(pa.table({WRITER: writers, POSITION: positions, "t": found}))
    return pa.concat_tables(parts, promote_options="permissive").unify_dictionaries() if parts else None


def _one(path: str, name: str) -> pa.ChunkedArray | None:
    file = pq.ParquetFile(path)
    fields = {field.name.lower(): field for field in file.schema_arrow}
    field = fields.get(name.lower())
    if field is None or not pa.types.is_timestamp(field.type) or field.type.tz is None:
        return None
    # Coarser units convert exactly; nanoseconds would be cut, and Spark reads them otherwise.
    if field.type.unit == "ns":
        return None
    return file.read(columns=[field.name])[field.name].cast(MICROS).cast(pa.int64())
