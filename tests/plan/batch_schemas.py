"""The law of schemas: each batch that a query sends out has the columns that were fixed when it was compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rowtime.frames.kinds import named
from rowtime.operators.sinks.sink import Sink
from rowtime.plan.bind.sink_options import partitions_of
from tests.plan.declared_state import spark_types

_COLLATION = re.compile(r" collate \w+", re.IGNORECASE)
_SIZED = re.compile(r"\b(?:var)?char\(\d+\)")
_DAYS = re.compile(r"interval (?:day|hour|minute|second)(?: to \w+)?")
_SPACES = re.compile(r"[\s`]|not null")


def misfits(node: Sink, types: Sequence[str], schema: Any) -> Iterator[str]:
    """The differences between the columns of a batch and those of the compiled query, with types of Spark's.

    ``schema``: of Spark's or of Arrow's. Files hold text without its collation, and intervals without their fields;
    the columns that make folders may be missing.
    """
    folders = {name.lower() for name in partitions_of(node.format, node.options)}
    told = dict(zip(node.emits().names, types, strict=True))
    told = ({node.rowtime: "timestamp"} if node.rowtime else {}) | told
    told, sent = (
        {name: _plain(kind) for name, kind in some.items() if name.lower() not in folders}
        for some in (told, spark_types(schema))
    )
    if [*sent] != [*told]:
        yield f"{node.name} sends {[*sent]}, compiled as {[*told]}"
    for name in told.keys() & sent.keys():
        if told[name] and told[name] != sent[name]:
            yield f"{node.name} sends {name} as {sent[name]}, compiled as {told[name]}"


def _plain(kind: str) -> str:
    text = _SIZED.sub("string", _COLLATION.sub("", named(kind)))
    return _SPACES.sub("", _DAYS.sub("interval day to second", text))
