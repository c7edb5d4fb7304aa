"""Random expressions of Spark SQL over the edge values of twenty types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa

from rowtime.frames.kinds import arrow_of
from tests.frames.test_same_as_spark import VALUES

EDGES: Final[Mapping[str, Sequence[Any]]] = {
    **VALUES,
    "decimal(18,0)": [None, 0, 1, -1, 10**18 - 1, 1 - 10**18],
    "decimal(34,10)": [None, 0, Decimal("1E-10"), 10**24 - 1, 1 - 10**24],
    "decimal(38,2)": [None, 0, 7, 10**36 - 1, Decimal("-123456789012345678901234567890123456.78")],
    "decimal(38,38)": [None, 0, Decimal("0.5"), Decimal("-0.00000000000000000000000000000000000001")],
    "binary": [None, b"", b"a", b"\xff"],
    "array<int>": [None, [], [1], [None, 2**31 - 1, -1]],
    "array<string>": [None, [], ["a", None, ""], ["z'"]],
    "struct<x: int, y: string>": [None, {"x": 1, "y": "a"}, {"x": 2**31 - 1, "y": None}, {"x": None, "y": ""}],
}
COLUMNS: Final = {f"c{n}": kind for n, kind in enumerate(EDGES)}
_OF: Final[Mapping[str, Sequence[str]]] = {
    "int": ("tinyint", "smallint", "int", "bigint"),
    "num": ("tinyint", "smallint", "int", "bigint", "double", *(kind for kind in EDGES if kind.startswith("dec"))),
    "bool": ("boolean",), "text": ("string",), "date": ("date",), "ts": ("timestamp",),
    "time": ("timestamp", "timestamp_ntz"), "any": tuple(EDGES), "ints": ("array<int>",), "texts": ("array<string>",),
    "struct": ("struct<x: int, y: string>",),
}  # fmt: skip
_LITERALS: Final[Mapping[str, Sequence[str]]] = {
    "int": ("0", "1", "-1", "2", "127", "2147483647", "-2147483648", "9223372036854775807", "3L"),
    "num": ("0", "1", "-1", "7", "2147483647", "9223372036854775807L", "0.1", "2.50", "-3.5", "3000000000"),
    "bool": ("TRUE", "FALSE", "NULL"),
    "text": ("''", "'a'", "'10'", "'é'", "'%'", "' '"),
    "date": ("DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '1969-12-31'"),
    "ts": ("TIMESTAMP '2024-02-29 13:07:05.000001'", "TIMESTAMP '9999-12-31 23:59:59'"),
    "time": ("TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ '2024-02-29 13:07:05'"),
}
_PATTERNS: Final = ("yyyy", "y", "yy", "yyyyy", "YYYY", "MM", "M", "dd", "d", "HH", "HHHH", "hh", "mm", "ss", "ssss",
             "SSS", "-", "/", ":", " ", ".", "_", "%", "''T''", "''''", "[", "]", "{", "E", "G", "ddd")  # fmt: skip
_FORMS: Final[Mapping[str, Sequence[str]]] = {
    "int": (
        "{int} + {int}", "{int} - {int}", "{int} * {int}", "{int} DIV {int}", "{int} % {int}", "- {int}", "abs({int})",
        "pmod({int}, 7)", "{int} + 1", "1 - {int}", "{int} * 2", "CAST({num} AS INT)", "CAST({num} AS BIGINT)",
        "CAST({int} AS TINYINT)", "CAST({int} AS SMALLINT)", "coalesce({int}, {int})", "nullif({int}, {int})",
        "CASE WHEN {bool} THEN {int} WHEN {bool} THEN {int} ELSE {int} END", "if({bool}, {int}, {int})",
        "greatest({int}, {int})", "least({int}, {int})", "length({text})", "hour({time})", "minute({time})",
        "second({time})", "year({time})", "month({date})", "day({time})", "EXTRACT(QUARTER FROM {time})",
        "EXTRACT(YEAR FROM {date})", "unix_micros({ts})", "size({ints})", "cardinality({texts})", "{struct}.x",
        "struct({int} AS x, {text} AS y).x",
        "floor({num})", "ceil({num})", "CASE {int} WHEN {int} THEN {int} END",
    ),
    "num": (
        "{num} + {num}", "{num} - {num}", "{num} * {num}", "{num} / {num}", "- {num}", "abs({num})", "{num} * 0.5",
        "{num} / 3", "1.5 - {num}", "CAST({num} AS DOUBLE)", "CAST({num} AS DECIMAL(20, 2))", "floor({num})",
        "CAST({num} AS DECIMAL(38, 10))", "coalesce({num}, {num})", "nullif({num}, {num})", "least({num}, {num})",
        "CASE WHEN {bool} THEN {num} ELSE {num} END", "if({bool}, {num}, 0)", "greatest({num}, {num})", "({int})",
        "{num} % {num}",
    ),
    "bool": (
        *(f"{{num}} {sign} {{num}}" for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")),
        *(f"{{int}} {sign} {{int}}" for sign in ("=", "<>", "<", ">=", "<=>")),
        *(f"{{text}} {sign} {{text}}" for sign in ("=", "<>", "<", ">=")),
        *(f"{{time}} {sign} {{time}}" for sign in ("=", "<", ">=")), "{date} < {date}", "{date} = {date}",
        "{num} BETWEEN {num} AND {num}", "{num} IN ({num}, {num})", "{text} NOT IN ({text}, 'b')", "{any} IS NULL",
        "{any} IS NOT NULL", "{bool} AND {bool}", "{bool} OR {bool}", "NOT {bool}", "{bool} IS TRUE",
        "{bool} IS NOT FALSE", "{text} LIKE 'a%'", "{text} NOT LIKE '_'", "startswith({text}, {text})",
        "contains({text}, {text})", "endswith({text}, {text})", "coalesce({bool}, {bool})", "{bool} <=> {bool}",
        "CASE WHEN {bool} THEN {bool} ELSE {bool} END", "if({bool}, {bool}, {bool})",
    ),
    "text": (
        "concat({text}, {text})", "{text} || 'x'", "substring({text}, 2, 1)", "substring({text}, 1)", "trim({text})",
        "replace({text}, 'a', {text})", "ltrim({text})", "CAST({int} AS STRING)", "coalesce({text}, {text})",
        "nullif({text}, {text})", "CASE WHEN {bool} THEN {text} END", "date_format({time}, '{pattern}')",
        "date_format({time}, 'yyyy-MM-dd')", "date_format({time}, 'HH:mm:ss')", "array_join({texts}, ',')",
        "greatest({text}, {text})", "{struct}.y", "if({bool}, {text}, {text})",
    ),
    "date": ("CAST({time} AS DATE)", "coalesce({date}, {date})", "greatest({date}, {date})", "nullif({date}, {date})"),
    "ts": (
        "{ts} + INTERVAL '10' SECOND", "{ts} - INTERVAL '2' DAY", "DATE_TRUNC('HOUR', {ts})",
        "DATE_TRUNC('WEEK', {ts})",
        "DATE_TRUNC('MONTH', {ts})", "DATE_TRUNC('YEAR', {ts})", "CAST({date} AS TIMESTAMP)", "coalesce({ts}, {ts})",
        "timestamp_micros({int})", "least({ts}, {ts})", "if({bool}, {ts}, {ts})",
    ),
    "time": ("{ts}", "{time} + INTERVAL '3' MINUTE", "DATE_TRUNC('DAY', {time})", "DATE_TRUNC('QUARTER', {time})"),
    "ints": ("slice({ints}, 1, 2)", "sort_array({ints})", "coalesce({ints}, {ints})"),
    "texts": ("slice({texts}, 1, 1)", "sort_array({texts}, FALSE)"),
    "struct": ("if({bool}, {struct}, {struct})",),
    "any": ("coalesce({int}, 1)", "{text}", "{num}", "struct({any} AS a, {int} AS b)"),
}  # fmt: skip
_WHOLE: Final = ("int", "int", "num", "num", "num", "bool", "bool", "bool", "bool", "text", "date", "ts", "time",
                 "ints", "texts", "struct")  # fmt: skip


def drawn(seed: str, count: int) -> tuple[pa.Table, list[tuple[str, str]], list[str]]:
    """Return rows of edge values with a number first, the types of their columns, and expressions over them."""
    chance = Random(seed)
    rows = {name: [chance.choice(EDGES[kind]) for _ in range(40)] for name, kind in COLUMNS.items()}
    table = pa.table({"n": range(40), **{name: pa.array(rows[name], arrow_of(kind)) for name, kind in COLUMNS.items()}})
    texts = dict.fromkeys(
        _expression(chance, chance.choice(_WHOLE), chance.choice((1, 1, 2, 2, 3))) for _ in range(count)
    )
    return table, [("n", "bigint"), *COLUMNS.items()], [*texts]


def _expression(chance: Random, kind: str, depth: int) -> str:
    if depth and kind in _FORMS:
        form = chance.choice(_FORMS[kind])
        if "{pattern}" in form:
            form = form.replace("{pattern}", "".join(chance.choice(_PATTERNS) for _ in range(chance.randint(1, 5))))
        return f"({_filled(chance, form, depth - 1)})"
    if kind in _LITERALS and chance.random() < 0.25:
        return chance.choice(_LITERALS[kind])
    return chance.choice([name for name, of in COLUMNS.items() if of in _OF[kind]])


def _filled(chance: Random, form: str, depth: int) -> str:
    parts = form.split("{")
    text = parts[0]
    for part in parts[1:]:
        kind, closed, rest = part.partition("}")
        known = closed and kind in _OF
        text += (_expression(chance, kind, depth) if known else "{" + kind + closed) + rest
    return text
