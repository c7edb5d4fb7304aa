"""Random expressions and aggregates that mean the same in Spark's SQL and in DuckDB's, or in Flink's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

Columns = Mapping[str, str]
"""The kind of values of each column: int, dec, dbl, text, bool, date or ts."""

ROWTIME: Final = "ROWTIME"
_MORE: Final[Mapping[str, tuple[str, ...]]] = {
    "int": (
        "{int} + 1", "{int} * 3", "-{int}", "ABS({int})", "{int} % 3", "COALESCE({int}, 0)", "NULLIF({int}, 0)",
        "CASE WHEN {bool} THEN {int} ELSE 0 END", "GREATEST({int}, 1)", "LEAST({int}, {int})", "LENGTH({text})",
        "EXTRACT(MINUTE FROM ROWTIME)", "EXTRACT(DAY FROM {date})", "{int} + {int}", "{int} - {int}",
        "CAST(SIGN({int}) AS INT)", "EXTRACT(YEAR FROM {ts})", "POSITION('x' IN {text})",
    ),
    "dec": (
        "{dec} + 1", "{dec} * 2", "ABS({dec})", "-{dec}", "ROUND({dec}, 1)", "COALESCE({dec}, 0)", "{dec} + {int}",
        "CASE WHEN {bool} THEN {dec} END", "GREATEST({dec}, 0)", "{dec} - {dec}",
    ),
    "dbl": (
        "{dbl} * 2", "{dbl} + {int}", "{int} / 2", "ROUND({dbl})", "SQRT(ABS({dbl}))", "COALESCE({dbl}, 1)",
        "-{dbl}", "FLOOR({dbl})", "CEIL({dbl})", "{dbl} * {dbl}", "CAST({int} AS DOUBLE)", "CAST({dec} AS DOUBLE)",
    ),
    "text": (
        "UPPER({text})", "{text} || '-'", "COALESCE({text}, '?')", "SUBSTRING({text}, 1, 1)", "TRIM({text})",
        "REPLACE({text}, 'x', 'xx')", "LPAD({text}, 3, '*')", "CASE WHEN {bool} THEN {text} ELSE 'no' END",
        "{text} || {text}", "REVERSE({text})", "CAST({int} AS VARCHAR(20))", "LEFT({text}, 2)", "NULLIF({text}, 'y')",
    ),
    "bool": (
        "{int} > 0", "{text} = 'x'", "NOT {bool}", "{text} IS NULL", "{int} BETWEEN -2 AND 3", "{text} IN ('x', 'yy')",
        "{dbl} < 1", "{date} > DATE '2024-01-03'", "{ts} < ROWTIME", "{bool} AND {bool}", "{bool} OR {bool}",
        "{text} LIKE 'x%'", "{bool} IS DISTINCT FROM TRUE", "{int} IS NOT NULL", "{dec} <= {int}", "{int} <> {int}",
        "{int} NOT IN (1, 2)", "COALESCE({bool}, FALSE)", "{date} = CAST({ts} AS DATE)",
    ),
    "date": ("CAST({ts} AS DATE)", "COALESCE({date}, DATE '2024-02-29')", "GREATEST({date}, DATE '2024-01-05')"),
    "ts": ("{ts} + INTERVAL '5' MINUTE", "date_trunc('HOUR', {ts})", "COALESCE({ts}, ROWTIME)", "ROWTIME",
           "CAST({date} AS TIMESTAMP)", "{ts} - INTERVAL '1' DAY"),
}  # fmt: skip
_PLAIN: Final = {
    "int": "7", "dec": "CAST(1.25 AS DECIMAL(10, 2))", "dbl": "CAST(0.5 AS DOUBLE)", "text": "'x'", "bool": "TRUE",
    "date": "DATE '2024-01-02'", "ts": "TIMESTAMP '2024-01-02 03:04:05'",
}  # fmt: skip
KINDS: Final = tuple(_PLAIN)
_AGGREGATES: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("COUNT(*)", "COUNT({text})", "COUNT(DISTINCT {int})", "SUM({int})", "MIN({int})", "MAX({int})",
            "COUNT(*) FILTER (WHERE {bool})", "SUM({int}) FILTER (WHERE {bool})", "COUNT_IF({bool})",
            "MAX({int}) - MIN({int})", "COUNT(DISTINCT {text})"),
    "dec": ("SUM({dec})", "MIN({dec})", "MAX({dec})", "SUM({dec} * {int})"),
    "dbl": ("AVG({int})", "SUM({dbl})", "STDDEV({int})", "VAR_POP({int})", "MIN({dbl})", "MEDIAN({int})",
            "AVG({dbl}) FILTER (WHERE {bool})", "STDDEV_POP({dbl})", "MAX({dbl})"),
    "text": ("MIN({text})", "MAX({text})", "MAX_BY({text}, ROWTIME)", "MIN_BY({text}, ROWTIME)"),
    "bool": ("BOOL_OR({bool})", "BOOL_AND({bool})", "MAX({int}) > 2", "COUNT(*) > 2"),
    "date": ("MIN({date})", "MAX({date})"),
    "ts": ("MAX({ts})", "MIN({ts})"),
}  # fmt: skip
_OVER_ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("COUNT(*)", "COUNT({col:text})", "SUM({col:int})", "MIN({col:int})", "MAX({col:int})",
            "FIRST_VALUE({col:int})", "LAST_VALUE({col:int})"),
    "dec": ("SUM({col:dec})", "MIN({col:dec})"),
    "dbl": ("AVG({col:int})", "STDDEV({col:int})", "SUM({col:dbl})", "MAX({col:dbl})"),
    "text": ("FIRST_VALUE({col:text})", "MAX({col:text})", "LAST_VALUE({col:text})"),
    "bool": ("BOOL_AND({col:bool})", "BOOL_OR({col:bool})"),
    "date": ("MAX({col:date})",),
    "ts": ("MIN({col:ts})",),
}  # fmt: skip


@dataclass(frozen=True)
class Words:
    """The parts of expressions, by the kind of their values: functions of a row, of a group, and of a frame."""

    more: Mapping[str, tuple[str, ...]]
    aggregates: Mapping[str, tuple[str, ...]]
    over: Mapping[str, tuple[str, ...]]


OF_DUCKDB: Final = Words(_MORE, _AGGREGATES, _OVER_ROWS)


def expression(chance: Random, columns: Columns, kind: str, depth: int = 2, words: Words = OF_DUCKDB) -> str:
    """Return a random expression over columns (and ROWTIME) whose values are of a kind."""
    own = [name for name, of in columns.items() if of == kind]
    if depth and chance.random() < 0.6:
        return "(" + _filled(chance, columns, chance.choice(words.more[kind]), depth - 1, words) + ")"
    return chance.choice(own) if own and chance.random() < 0.95 else _PLAIN[kind]


def aggregate(chance: Random, columns: Columns, kind: str, words: Words = OF_DUCKDB) -> str:
    """Return a random aggregate whose values are of a kind."""
    return _filled(chance, columns, chance.choice(words.aggregates[kind]), 1, words)


def over_call(chance: Random, columns: Columns, kind: str, words: Words = OF_DUCKDB) -> str:
    """Return a random function of a frame, over a column."""
    text = chance.choice(words.over[kind])
    for of in KINDS:
        own = [name for name, its in columns.items() if its == of]
        text = text.replace(f"{{col:{of}}}", chance.choice(own) if own else _PLAIN[of])
    return text


def _filled(chance: Random, columns: Columns, text: str, depth: int, words: Words) -> str:
    while "{" in text:
        start = text.index("{")
        end = text.index("}", start)
        text = text[:start] + expression(chance, columns, text[start + 1 : end], depth, words) + text[end + 1 :]
    return text


IN_DUCKDB: Final = {
    "SELECT STREAM": "SELECT",
    "MAX_BY(": "arg_max_null(",
    "MIN_BY(": "arg_min_null(",
    "COUNT_IF(": "count_true(",  # DuckDB's own is NULL where all are NULL, and Spark's is 0
}


def in_duckdb(text: str) -> str:
    """Return the same text for DuckDB."""
    for ours, theirs in IN_DUCKDB.items():
        text = text.replace(ours, theirs)
    return text
