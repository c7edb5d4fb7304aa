"""Targets with a changed declaration: which changes fit the existing rows, so that a pump can continue.

The gate of a pump and the casts after it judge each row by itself, so a new declaration applies from the next row on.
Existing rows were written under the old one. NOT NULL and CHECK may come and go, and a text may become longer. A number
may become wider if a target stores no types: in lines of text, records, tables of a database that has the wider type,
and functions. Parquet files store their types, and a reader of two types would fail; the types of a stream log are in
the scripts of its readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from rowtime.expr.store_assignment import always_fits, same_type
from rowtime.plan.bind.stream_defs import StreamDef, stream_of
from rowtime.plan.difference import parsed
from rowtime.plan.stored import StoredOperator
from rowtime.sql.statements import CreateStream

_WHOLE: Final = re.compile("TINYINT|SMALLINT|INT|INTEGER|BIGINT", re.IGNORECASE)
_FLOATING: Final = re.compile("FLOAT|REAL|DOUBLE", re.IGNORECASE)
_TEXT: Final = re.compile(r"VARCHAR\s*\(.*\)|STRING", re.IGNORECASE)
_DECIMAL: Final = re.compile(r"(?:DECIMAL|NUMERIC)\s*\(\s*\d+\s*(?:,\s*(\d+)\s*)?\)", re.IGNORECASE)


def declared(sql: str) -> dict[str, StreamDef]:
    """Return the streams that an earlier script defines."""
    streams: dict[str, StreamDef] = {}
    for statement in parsed(sql):
        if isinstance(statement, CreateStream) and statement.columns:
            stream = stream_of(statement)
            streams[stream.name] = stream
    return streams


def unfit(before: StreamDef, after: StreamDef) -> str:
    """Return why the rows of a target do not fit its new declaration; empty if they do."""
    names = [[name for name, _ in stream.columns] for stream in (before, after)]
    if names[0] != names[1]:
        return f"{after.name} had the columns {', '.join(names[0])}, and has {', '.join(names[1])}"
    if before.orders or after.orders:
        return f"{after.name} has a declared order, which is checked over all rows"
    for (name, was), (_, now) in zip(before.columns, after.columns, strict=True):
        if not same_type(was, now) and not _bears(was, now, after.format):
            return f"{after.name}.{name} was {was}, is {now}, and the rows that are there keep what they are"
    return ""


def changes(before: StreamDef, after: StreamDef) -> Iterator[str]:
    """Yield the differences, as text."""
    for (name, was), (_, now) in zip(before.columns, after.columns, strict=True):
        if not same_type(was, now):
            yield f"{name} {was} is {now}"
    for name, _ in after.columns:
        if (name in before.required) != (name in after.required):
            yield f"{name} is {'NOT NULL' if name in after.required else 'no longer NOT NULL'}"
    yield from (f"CHECK ({check}) is new" for check in after.checks if check not in before.checks)
    yield from (f"CHECK ({check}) is gone" for check in before.checks if check not in after.checks)


def _bears(was: str, now: str, format_: str) -> bool:
    if format_ == "log":
        return False  # other scripts read it, and have its types
    if _TEXT.fullmatch(was) and _TEXT.fullmatch(now):
        return always_fits(was, now)
    if format_ == "parquet":
        return False
    whole, floating = ((kind.fullmatch(was) and kind.fullmatch(now)) for kind in (_WHOLE, _FLOATING))
    if floating:
        return now.upper() == "DOUBLE"
    scales = [match[1] or "0" for text in (was, now) if (match := _DECIMAL.fullmatch(text))]
    return bool(whole or (len(scales) == 2 and scales[0] == scales[1])) and always_fits(was, now)  # noqa: PLR2004


def below(operators: Mapping[str, StoredOperator], sink: str, bottom: str) -> list[str] | None:
    """Return the operators of a plan between a sink and the query, from above; ``None`` if its query differs."""
    names: list[str] = []
    name = _input_of(operators, sink)
    while name is not None and name != bottom:
        names.append(name)
        name = _input_of(operators, name)
    return None if name is None else names


def _input_of(operators: Mapping[str, StoredOperator], name: str) -> str | None:
    inputs = operators[name].inputs if name in operators else ()
    return inputs[0] if len(inputs) == 1 else None
