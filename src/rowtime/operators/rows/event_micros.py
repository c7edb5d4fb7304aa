"""Times that are whole numbers: what they count, and the µs since 1970 that they are (SPEC 8.1)."""

from __future__ import annotations

_MICROS = {"SECOND": 1_000_000, "MILLISECOND": 1000, "MICROSECOND": 1}


def in_micros(column: str, unit: str) -> str:
    """Spark SQL: a column of whole numbers as BIGINT µs; NULL where that is no BIGINT any more, and so no time."""
    number = f"CAST({column} AS BIGINT)"
    if unit == "NANOSECOND":
        return f"(({number} - pmod({number}, 1000L)) DIV 1000L)"
    return f"try_multiply({number}, {_MICROS[unit]}L)"
