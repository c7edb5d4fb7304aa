"""Rows, bounds, and files of them, as clients give them to a stream."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reliability.fuzz import mutate
from reliability.fuzz.harness import Target
from rowtime.cli.row_files import FORMATS, chunks_of
from rowtime.client.arrow_types import arrow_schema
from rowtime.client.bound_items import from_text, item
from rowtime.client.rows import batch
from rowtime.core.errors import Problem
from rowtime.core.ordered_columns import ordered_column
from rowtime.core.time import to_micros, to_text

TYPES = (
    *("BOOLEAN", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP"),
    *("TIMESTAMP_NTZ", "DECIMAL(10, 2)", "DECIMAL(38, 38)", "VARCHAR(3)", "ARRAY<INT>", "MAP<STRING, DATE>"),
    *("STRUCT<a: INT, `b c`: ARRAY<TIMESTAMP>>", "MAP<INT, STRUCT<x: DECIMAL(5, 1)>>"),
)
ORDERED = tuple(kind for kind in TYPES if kind != "BINARY" and "<" not in kind)  # which can be declared ordered
TIMES = ("2024-01-31 23:59:59.123456", "2024-02-30", "0001-01-01", "9999-12-31T23:59:59Z", "end", "-infinity", "1e9")
CSV = b'rowtime,k,v\n2024-01-01 10:00:00,a,1\n2024-01-01 10:00:01,"b,\n",\n2024-01-01 10:00:02,,3\n'
JSON = b'{"rowtime": "2024-01-01 10:00:00", "k": "a", "v": 1}\n{"k": null, "v": 2}\n\n{"v": 3.0, "K": "c"}\n'
COLUMNS = {"columns": [{"name": "k", "type": "STRING"}, {"name": "v", "type": "BIGINT", "nullable": False}]}


def _rows(random_: random.Random) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    count = random_.randrange(1, 4)
    names = random_.sample(("k", "v", "W", "rowtime", "a b", "", "é"), count)
    columns = [{"name": n, "type": _type(random_), "nullable": random_.random() < 0.7} for n in names]
    given = [*names, *random_.choice(((), ("rowtime",), ("ROWTIME", "x"), ("__p",)))]
    rows = [{name: _value(random_) for name in given} for _ in range(random_.randrange(4))]
    return {"columns": columns}, rows


def _type(random_: random.Random) -> str:
    return mutate.text(random_, TYPES, TYPES) if random_.random() < 0.1 else random_.choice(TYPES)


def _value(random_: random.Random) -> Any:
    some = (*mutate.VALUES, *TIMES, random_.randrange(-(2**70), 2**70), random_.random(), b"\xff", random_)
    return random_.choice(some) if random_.random() < 0.9 else mutate.value(random_, {"a": [1, {"b": "c"}], "b c": 2})


def _batch(made: tuple[dict[str, Any], list[dict[str, Any]]]) -> Iterator[Problem]:
    definition, rows = made
    batch(rows, arrow_schema(definition))
    batch(rows)
    yield from ()


def _bound(random_: random.Random) -> tuple[str, str, str, bool]:
    given = random_.choice((*TIMES, *mutate.NUMBERS, "true", "", "é"))
    time = mutate.text(random_, (given,), (*TIMES, *mutate.NUMBERS)) if random_.random() < 0.5 else given
    return (
        random_.choice(ORDERED),
        random_.choice(("ASCENDING", "DESCENDING", "STRICTLY ASCENDING")),
        time,
        bool(random_.getrandbits(1)),
    )


def _set_bounds(made: tuple[str, str, str, bool]) -> Iterator[Problem]:
    kind, order, text, strict = made
    definition = {"columns": [{"name": "k", "type": kind}], "orders": [["k", kind, order]]}
    schema = arrow_schema(definition)
    item(ordered_column(definition, "s", "K"), schema.field("k").type, from_text(text, "k", schema), strict=strict)
    to_text(to_micros(text))
    yield from ()


@cache
def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"k": ["a", None], "v": [1, 2]}), sink)
    return bytes(sink.getvalue())


def _file(random_: random.Random) -> tuple[str, bytes]:
    kind = random_.choice(sorted(set(FORMATS.values())))
    return kind, mutate.data(random_, {"csv": CSV, "json": JSON, "parquet": _parquet()}[kind])


def _read_file(made: tuple[str, bytes]) -> Iterator[Problem]:
    kind, content = made
    schema = arrow_schema(COLUMNS)
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        for chunk in chunks_of(Path(file.name), kind, schema):
            batch(chunk, schema)
    yield from ()


def targets() -> tuple[Target, ...]:
    """Rows, bounds, and files of rows."""
    named: tuple[tuple[str, int, Any, Any], ...] = (
        ("rows", 25, _rows, _batch),
        ("bounds", 20, _bound, _set_bounds),
        ("files", 8, _file, _read_file),
    )
    return tuple(Target(*one) for one in named)
