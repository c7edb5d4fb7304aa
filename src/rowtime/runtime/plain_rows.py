"""Rows of Arrow tables as Python values, also for times that Python cannot represent."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import DAY, to_text

_UNFIT = (ValueError, OverflowError)  # Arrow's errors for a year outside 1 to 9999


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows as mappings; instants and days outside the years 0001 to 9999 as text."""
    try:
        return list(table.to_pylist())
    except _UNFIT:
        columns = [_plain(column) for column in table.columns]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except _UNFIT:
        if pa.types.is_timestamp(column.type):
            micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        elif pa.types.is_date32(column.type):
            micros = pc.multiply(column.cast(pa.int32()).cast(pa.int64()), DAY)
        else:
            raise
        return [None if at is None else to_text(at) for at in micros.to_pylist()]
