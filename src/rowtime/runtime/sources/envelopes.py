"""Debezium's envelopes: the change of a database row, with the row before and after.

A record is the envelope, or has it as its ``payload`` beside its schema. The record without a value that Debezium sends
after a delete, so that a compacted topic drops the key, has no further information, and is not a row.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from rowtime.core.columns import UNDECODED
from rowtime.core.errors import refuse
from rowtime.operators.contract import quoted
from rowtime.runtime.sources.json_numbers import JsonNumbers
from rowtime.runtime.sources.kafka_rows import BOUND_HEADER, Columns, Field, items_of, numbers_in, parsed, prepared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

MEMBERS: Final = ("before", "after", "op", "source", "ts_ms", "ts_us", "ts_ns", "transaction")
OPERATION: Final = "op"
OPERATIONS: Final = ("c", "r", "u", "d", "t", "m")
"""Create, read (of a snapshot), update, delete, truncate, message."""
NAMED: Final = f"IN {OPERATIONS}"


def check_envelope(columns: Columns) -> None:
    """Refuse (R504) a declared column that an envelope does not have."""
    for name, _ in columns:
        if name not in MEMBERS:
            raise refuse(
                "R504", f"an envelope of Debezium has no field {name!r}", f"Its fields are {', '.join(MEMBERS)}."
            )


def without_tombstones(records: DataFrame) -> DataFrame:
    """Return records without those that have no value and are not bounds."""
    bound = f"coalesce(exists(headers, h -> h.key = '{BOUND_HEADER}'), FALSE)"
    return records.where(f"value IS NOT NULL OR {bound}")


def envelope_items(records: DataFrame, columns: Columns, options: Mapping[str, str]) -> DataFrame:
    """Return items of records whose value is an envelope in JSON; ``options``: the stream's (`json_numbers`)."""
    numbers = JsonNumbers.of(columns, numbers_in(options))
    members = [(name, numbers.kind(name, kind)) for name, kind in columns]
    members += [] if any(name == OPERATION for name, _ in columns) else [(OPERATION, "STRING")]
    inner = ", ".join(f"{quoted(name)}: {kind}" for name, kind in members)
    read = parsed(prepared(without_tombstones(records)), [*members, ("payload", f"STRUCT<{inner}>")])
    outer = ", ".join(f"'{name}', __e.{quoted(name)}" for name, _ in members)
    whole = read.selectExpr("* EXCEPT (__e)", f"IF(__e.payload IS NOT NULL, __e.payload, named_struct({outer})) AS __e")
    paths = [(name, f"__e.{quoted(name)}") for name, _ in columns]
    fields = [Field(name, at, numbers.value(name, at), partial(numbers.fault, name)) for name, at in paths]
    faults = [UNDECODED, f"coalesce(NOT __e.{OPERATION} {NAMED}, TRUE)"]
    return items_of(whole, fields, faults, "CAST(NULL AS TIMESTAMP)")
