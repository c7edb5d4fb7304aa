"""The calendar of rowtimes, the years 0001 to 9999: a time outside it is none, at every gate (SPEC 11)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import MAX_MICROS, MIN_MICROS


def in_calendar(micros: str) -> str:
    """Spark SQL: a BIGINT of µs, NULL outside the calendar."""
    return f"CASE WHEN ({micros}) BETWEEN {MIN_MICROS}L AND {MAX_MICROS}L THEN ({micros}) END"


def those_in_calendar(micros: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of µs (INT64), null outside the calendar; the same column where none lies there."""
    edges = pc.min_max(micros).as_py()
    if edges["min"] is None or (edges["min"] >= MIN_MICROS and edges["max"] <= MAX_MICROS):
        return micros
    inside = pc.and_(pc.greater_equal(micros, MIN_MICROS), pc.less_equal(micros, MAX_MICROS))
    return pc.if_else(inside, micros, pa.scalar(None, pa.int64()))
