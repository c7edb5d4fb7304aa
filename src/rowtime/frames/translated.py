"""Translates Spark SQL into DuckDB's, if both are known to give the same values.

Anything that is not listed in `frames.scalars`, `FUNCTIONS` and `frames.aggregates`, or that has other types,
raises ``Untranslated``: Spark then computes it. What fails in Spark fails here, perhaps with another message: Spark's
is reported; rows that fail only here are Spark's. `tests/frames/test_same_as_spark.py` compares both over the values
of every type, and `conformance/engines.py` random expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from rowtime.frames.aggregates import AGGREGATES, STATISTICS, sort_key
from rowtime.frames.arrays import ARRAYS
from rowtime.frames.json_texts import JSON
from rowtime.frames.kinds import element_of, fields_of
from rowtime.frames.numbers import NUMBERS
from rowtime.frames.scalars import SCALARS
from rowtime.frames.tables import Column
from rowtime.frames.texts import TEXTS
from rowtime.frames.times import FUNCTIONS_OF_TIMES
from rowtime.frames.values import Rule, Scope, Value, comparable
from rowtime.frames.words import LEFT, Untranslated, in_text, quoted


def _null_if(node: exp.Expr, scope: Scope) -> Value:
    of = scope.value(node.this)
    left, right = comparable([of, scope.value(node.expression)])
    return Value(f"CASE WHEN {left.sql} = {right.sql} THEN NULL ELSE {of.sql} END", of.type)


FUNCTIONS: Final[Mapping[type | str, Rule]] = {
    **FUNCTIONS_OF_TIMES,
    **TEXTS,
    **NUMBERS,
    **JSON,
    exp.Nullif: _null_if,
}


_PASSED: Final = re.compile(r"\barray\((-?\d+)L\)")
_FLOATING: Final = re.compile(r"\b(?:float|double)\b", re.IGNORECASE)
_TRIES: Final = re.compile(r"try_\w*\W?")
_FIRST: Final = 8_765_432_109_876_543_210  # no instant in µs, and an unlikely number
_RULES: Final = {**SCALARS, **FUNCTIONS, **AGGREGATES, **STATISTICS, **ARRAYS}


def scope_of(columns: Mapping[str, Value]) -> Scope:
    """Return the scope for expressions over some columns; the same one for the same columns."""
    return _scope(tuple((name, of.sql, of.type) for name, of in columns.items()), LEFT.get())


def scope_of_fields(fields: tuple[Column, ...]) -> Scope:
    """Return the scope for expressions over the columns of a frame; a duplicate name is not in it."""
    return _scope(_named(fields), LEFT.get())


@lru_cache(maxsize=2048)
def _named(fields: tuple[Column, ...]) -> tuple[tuple[str, str, str], ...]:
    names = [name.lower() for name, _ in fields]
    return tuple((name, f"c{n}", fields[n][1]) for n, name in enumerate(names) if names.count(name) == 1)


@lru_cache(maxsize=4096)
def _scope(columns: tuple[tuple[str, str, str], ...], left: frozenset[str]) -> Scope:
    return Scope({name: Value(sql, kind) for name, sql, kind in columns}, _RULES, left)


@dataclass(frozen=True)
class Item:
    """One item of a select list: its value by name."""

    name: str
    value: Value


_PLAIN: Final = re.compile(r"(`[^`]+`|__\w+)(?: AS (`[^`]+`|__\w+))?", re.ASCII)
"""A column of which it is clear that it is one; most items are, and a parser takes fifty times as long."""


def _date_trunc(arguments: list[exp.Expr]) -> exp.Expr:
    """Return the call; sqlglot takes the name of a column for the unit."""
    if arguments and isinstance(arguments[0], exp.Literal):
        call: exp.Expr = SparkParser.FUNCTIONS["DATE_TRUNC"](arguments)
        return call
    return exp.Anonymous(this="DATE_TRUNC", expressions=arguments)


_AS_WRITTEN: Final = ("DATE_FORMAT", "TO_DATE", "TO_TIMESTAMP", "FROM_UNIXTIME", "UNIX_TIMESTAMP", "GET_JSON_OBJECT")
"""Functions whose patterns and paths sqlglot would write in another way."""


class _Parser(SparkParser):
    """Leaves patterns as they are written, which sqlglot has one word for, and a third argument of PERCENTILE."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: make for name, make in SparkParser.FUNCTIONS.items() if name not in _AS_WRITTEN
    } | {"DATE_TRUNC": _date_trunc}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: read for name, read in SparkParser.FUNCTION_PARSERS.items() if name != "PERCENTILE"
    }


class _SparkAsWritten(Spark):
    """Spark's dialect."""

    Parser = _Parser


@lru_cache(maxsize=4096)
def parsed(text: str) -> exp.Expr:
    """Parse a text of Spark SQL."""
    if plain := _PLAIN.fullmatch(text):
        column = exp.Column(this=_identifier(plain[1]))
        return column if plain[2] is None else exp.Alias(this=column, alias=_identifier(plain[2]))
    if {*_TRIES.findall(text.lower())} - {"try_cast("}:  # the parser does not distinguish others from what fails
        raise Untranslated(text)
    try:
        return sqlglot.parse_one(text, read=_SparkAsWritten)
    except SqlglotError as wrong:
        raise Untranslated(text) from wrong


def _identifier(text: str) -> exp.Identifier:
    return exp.Identifier(this=text.strip("`"), quoted=text.startswith("`"))


def item(text: str, scope: Scope) -> Item:
    """Translate an item of a select list."""
    pattern, numbers = _pattern(text)
    known = scope.remembered(("item", pattern), lambda: _item(pattern, scope))
    if not numbers:
        return known
    return Item(_with(known.name, numbers), Value(_with(known.value.sql, numbers), known.value.type))


def _item(text: str, scope: Scope) -> Item:
    node = parsed(text)
    if not isinstance(node, exp.Alias | exp.Column):
        raise Untranslated(text)
    return Item(node.alias_or_name, scope.carried(node.this if isinstance(node, exp.Alias) else node))


def group_key(key: Item) -> Item:
    """Return a group key in which both zeros are the positive one, as in Spark, also in its parts."""
    return Item(key.name, Value(_with_one_zero(key.value.sql, key.value.type), key.value.type))


def _with_one_zero(sql: str, kind: str, depth: int = 0) -> str:
    """Return a value as it is if no part of its type is floating point."""
    if kind.lower() in ("float", "double"):
        return f"CASE WHEN {sql} = 0 THEN 0 ELSE {sql} END"
    if not _FLOATING.search(kind):
        return sql
    if fields := fields_of(kind):
        parts = [(name, f"struct_extract({sql}, {in_text(name)})", of) for name, of in fields.items()]
        inside = ", ".join(f"{quoted(name)} := {_with_one_zero(part, of, depth)}" for name, part, of in parts)
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({inside}) END"
    part = f"x{depth}"
    return f"list_transform({sql}, lambda {part}: {_with_one_zero(part, element_of(kind), depth + 1)})"


def tested(text: str, scope: Scope) -> str:
    """Translate a condition."""
    pattern, numbers = _pattern(text)
    return _with(scope.remembered(("test", pattern), lambda: _tested(parsed(pattern), scope)), numbers)


def _tested(node: exp.Expr, scope: Scope) -> str:
    """Translate a condition whose parts may be tested in any order (`operators.rows.conditions.whole` has none)."""
    if isinstance(node.unnest(), exp.And):
        return f"({' AND '.join(_tested(part, scope) for part in node.unnest().flatten())})"
    return scope.boolean(node)


def _pattern(text: str) -> tuple[str, list[str]]:
    """Replace numbers that differ from tick to tick (`operators.contract.texts.passed`) in a text."""
    numbers: list[str] = []
    if "array(" not in text or str(_FIRST)[:-2] in text:  # somebody wrote it
        return text, numbers

    def stands(match: re.Match[str]) -> str:
        numbers.append(match[1])
        return f"array({_FIRST + len(numbers)}L)"

    return _PASSED.sub(stands, text), numbers


def _with(sql: str, numbers: Sequence[str]) -> str:
    for n, number in enumerate(numbers, 1):
        sql = sql.replace(str(_FIRST + n), number)
    return sql


def order(terms: Sequence[str], scope: Scope) -> str:
    """Translate the keys of ORDER BY."""
    trees = (parsed(f"SELECT 1 ORDER BY {term}").args["order"].expressions[0] for term in terms)
    return ", ".join(sort_key(tree, scope) for tree in trees)
