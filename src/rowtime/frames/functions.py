"""The functions of a row that DuckDB computes as Spark does, by the values that they are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from rowtime.frames.json_texts import JSON
from rowtime.frames.numbers import NUMBERS
from rowtime.frames.texts import TEXTS
from rowtime.frames.times import FUNCTIONS_OF_TIMES
from rowtime.frames.values import Rule, Scope, Value, comparable


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
