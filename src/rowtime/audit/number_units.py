"""Advice about numbers in JSON that are malformed for want of a unit: which RESOLUTION to declare.

It looks at the newest refused records of a stream, so it needs neither Spark nor the source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from rowtime.core.errors import RowtimeError
from rowtime.core.time import DAY, MAX_MICROS, MIN_MICROS, SECOND
from rowtime.plan.formats.json_values import RESOLUTION, TIMES, instants_of, units_of
from rowtime.plan.stored import StoredPlan
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.memory import read_table

RECORDS: Final = 1000  # of a stream
_LIKELY: Final = range(-100 * 365 * DAY, 130 * 365 * DAY)  # µs since 1970: the years 1870 to 2100
_READ: Final = ("json", "kafka")


def unit_advice(checkpoint: Checkpoint, plan: StoredPlan, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each column whose numbers, taken for seconds, are outside the years 0001 to 9999.

    Records that cannot be read any more give no advice.
    """
    for stream, form in plan.formats.items():
        if form in _READ and entry["totals"].get(stream, {}).get("MALFORMED"):
            fields = plan.operators[stream].fields
            options = {str(name).lower(): str(value) for name, value in fields["source"][1]}
            declared = units_of(options.get(RESOLUTION, ""))
            columns = [(str(column["name"]), str(column["type"])) for column in fields["columns"]]
            wanted = {path for path in instants_of(columns) if path not in declared}
            yield from _of(stream, wanted, _records(checkpoint, stream, entry["tick"]) if wanted else [])


def _of(stream: str, wanted: set[str], records: list[Any]) -> Iterator[str]:
    odd: dict[str, int] = {}
    for record in records:
        for path, number in _numbers(record, ""):
            if path in wanted and not MIN_MICROS <= number * SECOND <= MAX_MICROS:
                odd.setdefault(path, number)
    for path, number in odd.items():
        micros = {unit: number * SECOND // 1000**power for power, unit in enumerate(TIMES)}
        unit = next((unit for unit, at in micros.items() if at in _LIKELY), "")
        what = f"{stream}: {path} has numbers such as {number}, which as seconds are outside the years 0001 to 9999"
        yield f"{what}; declare {path} TIMESTAMP RESOLUTION {unit}" if unit else f"{what}, also in smaller units"


def _records(checkpoint: Checkpoint, stream: str, tick: int) -> list[Any]:
    records: list[Any] = []
    with suppress(RowtimeError, OSError, pa.ArrowInvalid, KeyError):
        for file in reversed(checkpoint.rejected(stream, tick)):
            for text in read_table(file, columns=["raw_record"])["raw_record"].drop_null().to_pylist():
                with suppress(ValueError, RecursionError):
                    records.append(json.loads(text))
            if len(records) >= RECORDS:
                break
    return records[:RECORDS]


def _numbers(value: Any, path: str) -> Iterator[tuple[str, int]]:
    """Yield the whole numbers in a record with their paths; those of an envelope's payload as if it were the record."""
    if isinstance(value, dict):
        for name, part in value.items():
            below = f"{path}.{name.lower()}" if path else name.lower()
            yield from _numbers(part, "" if below == "payload" else below)
    elif isinstance(value, list):
        for part in value:
            yield from _numbers(part, path)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, value
