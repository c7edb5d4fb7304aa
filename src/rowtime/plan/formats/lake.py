"""Options of lake tables: where a table is, how rows get into it, and into which partitions."""

from __future__ import annotations

from typing import Final

from rowtime.plan.formats.contract import Format, Option, anything, one_of, options_of, some
from rowtime.plan.formats.files import ORDERED, PARQUET_CODECS, ROWTIME_COLUMN

LAKES: Final = frozenset({"delta"})
PARTITIONS: Final = "partitionBy"
"""What ``PARTITIONED BY (a, b)`` is among the options of a stream."""

_COMMON: Final = (
    Option("mode", anything),  # `LakeOptions` looks at it, beside the key
    Option("key", anything),
    Option(PARTITIONS, some),
    Option("compression", one_of(*PARQUET_CODECS)),
    ROWTIME_COLUMN,
    ORDERED,
)
DELTA: Final = Format("delta", options_of(Option("path", some), *_COMMON))
