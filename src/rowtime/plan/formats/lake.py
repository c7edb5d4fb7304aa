"""Options of lake tables: where a table is, how rows get into it, and into which partitions."""

from __future__ import annotations

from typing import Final

from rowtime.core.errors import Refused
from rowtime.plan.formats.contract import Format, Option, anything, one_of, options_of, some, whole
from rowtime.plan.formats.files import ORDERED, PARQUET_CODECS, ROWTIME_COLUMN
from rowtime.sql.intervals import duration_of
from rowtime.sql.script import parse_expression

LAKES: Final = frozenset({"delta", "iceberg"})
PARTITIONS: Final = "partitionBy"
"""What ``PARTITIONED BY (a, b)`` is among the options of a stream."""
INTERVAL: Final = "commit.interval"
FILES: Final = "optimize.files"


CATALOG: Final = "catalog."
"""Begins the names of options that describe the catalog itself; pyiceberg knows them."""


def _qualified(value: str) -> str:
    """A name with its namespace."""
    return "" if all(value.split(".")[1:]) and "." in value.strip(".") else "a table in a namespace, as db.visits"


def duration(value: str) -> str:
    """A fixed time, as 1 minute."""
    return "" if micros_of(value) else "a duration, as 30 seconds or 1 minute"


def micros_of(value: str) -> int:
    """µs; 0 for what is none."""
    try:
        found = duration_of(parse_expression(f"INTERVAL {value}"))
    except Refused:
        return 0
    return max(0, found or 0)


_COMMON: Final = (
    Option("mode", anything),  # `LakeOptions` looks at it, beside the key
    Option("key", anything),
    Option(PARTITIONS, some),
    Option(INTERVAL, duration),
    Option("compression", one_of(*PARQUET_CODECS)),
    ROWTIME_COLUMN,
    ORDERED,
)
DELTA: Final = Format("delta", options_of(Option("path", some), Option(FILES, whole(2)), *_COMMON))
ICEBERG: Final = Format(
    "iceberg",
    options_of(Option("catalog", some), Option("table", _qualified), *_COMMON),
    lambda name, _: None if name.lower().startswith(CATALOG) else f"iceberg has no option {name}",
)
