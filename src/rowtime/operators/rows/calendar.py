"""Times as whole numbers: µs since 1970 in the calendar of rowtimes, the years 0001 to 9999 (semantics 8.1, 11).

A time outside the calendar counts as no time, at every gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import POSITION, WRITER
from rowtime.core.time import MAX_MICROS, MIN_MICROS

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

_MICROS = {"SECOND": 1_000_000, "MILLISECOND": 1000, "MICROSECOND": 1}


def in_calendar(micros: str) -> str:
    """Return Spark SQL: a BIGINT of µs, NULL outside the calendar."""
    return f"CASE WHEN ({micros}) BETWEEN {MIN_MICROS}L AND {MAX_MICROS}L THEN ({micros}) END"


def those_in_calendar(micros: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of µs (INT64), null outside the calendar; the same column if all are inside."""
    edges = pc.min_max(micros).as_py()
    if edges["min"] is None or (edges["min"] >= MIN_MICROS and edges["max"] <= MAX_MICROS):
        return micros
    inside = pc.and_(pc.greater_equal(micros, MIN_MICROS), pc.less_equal(micros, MAX_MICROS))
    return pc.if_else(inside, micros, pa.scalar(None, pa.int64()))


def times_of(rows: Frame, name: str) -> pa.Table | None:
    """Return writer, position and a time (``t``, BIGINT µs) of each row; ``None`` if that needs a query."""
    if rows.known is None or not {WRITER, POSITION, name} <= {*rows.columns}:
        return None
    times = rows.column(name)
    if not pa.types.is_timestamp(times.type) or times.type.unit != "us":
        return None
    return pa.table({WRITER: rows.column(WRITER), POSITION: rows.column(POSITION), "t": times.cast(pa.int64())})


def in_micros(column: str, unit: str) -> str:
    """Return Spark SQL: a whole-number column as BIGINT µs; NULL if that overflows, so that it is no time."""
    number = f"CAST({column} AS BIGINT)"
    if unit == "NANOSECOND":
        return f"(({number} - pmod({number}, 1000L)) DIV 1000L)"
    return f"try_multiply({number}, {_MICROS[unit]}L)"
