"""Translates single elements of arrays and maps from Spark SQL to DuckDB, and functions of each element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from rowtime.frames.computed_parts import is_safe
from rowtime.frames.kinds import DECIMAL, PLAIN, WHOLE, array_text, element_of, entry_of, fields_of
from rowtime.frames.values import Rule, Scope, Value, cast, constant, holds_or_fails, once, together
from rowtime.frames.words import Untranslated

_FLOATS: Final = ("float", "double")
_INDICES: Final = ("tinyint", "smallint", "int")
_KEYS: Final = (*WHOLE, "string", "date", "boolean")


def _element(node: exp.Expr, scope: Scope) -> Value:
    """Translate ``array[place]``, which fails beyond the array, ``map[key]`` and ELEMENT_AT."""
    [place] = node.expressions
    if isinstance(node.this, exp.VarMap):
        return _entry(node.this, place, scope)
    of = scope.carried(node.this)
    if of.type.upper().startswith("MAP<"):
        return _value(of, scope.value(place))
    first = node.args.get("offset") or 0
    kind = element_of(of.type)
    try:
        return Value(once(of.sql, _at(constant(place), first)), kind)
    except Untranslated:
        index = scope.value(place)
    if index.type not in _INDICES or first or not is_safe(place) or not isinstance(node.this, exp.Column):
        raise Untranslated(node.sql())  # in Spark, a place that is NULL fails if no element can be NULL

    def element(array: str) -> str:
        known = holds_or_fails(f"{index.sql} >= 0 AND {index.sql} < len({array})")
        return f"CASE WHEN {known} THEN {array}[{index.sql} + 1] END"

    return Value(once(of.sql, element), kind)


def _at(place: int, first: int) -> Callable[[str], str]:
    """Return what takes an element at a constant place; the first place has the number ``first``."""
    if place < first or place >= 2**31:
        raise Untranslated("a place from the end")
    least = place - first + 1
    return lambda array: f"CASE WHEN {holds_or_fails(f'len({array}) >= {least}')} THEN {array}[{least}] END"


def _value(of: Value, key: Value) -> Value:
    """Return the value of a key of a map; NULL without one."""
    kinds = fields_of(entry_of(of.type))
    if kinds["key"] not in _KEYS or (kinds["key"] != key.type and not (key.whole and kinds["key"] in WHOLE)):
        raise Untranslated(of.type)
    return Value(f"{of.sql}[{cast(key, kinds['key']).sql}]", kinds["value"])


def _entry(built: exp.Expr, place: exp.Expr, scope: Scope) -> Value:
    """Return the value of a literal key of ``map('key', value, ...)``; Spark computes no other value."""
    keys, parts = built.args["keys"].expressions, built.args["values"].expressions
    texts = [key.name for key in (*keys, place) if isinstance(key, exp.Literal) and key.is_string]
    if len(texts) <= len(keys) or len({*texts[:-1]}) < len(keys) or not all(map(is_safe, parts)):
        raise Untranslated("a map")
    values, kind = together([scope.value(part) for part in parts])
    return Value(dict(zip(texts, values, strict=False))[texts[-1]].sql, kind)


def _contained(node: exp.Expr, scope: Scope) -> Value:
    """Translate ARRAY_CONTAINS: without an equal element, an element that is NULL makes it unknown."""
    of, wanted = scope.value(node.this), scope.value(node.expression)
    kind = element_of(of.type)
    if kind in _FLOATS or (kind not in PLAIN and not DECIMAL.fullmatch(kind)) or not is_safe(node.expression):
        raise Untranslated(of.type)
    if kind != wanted.type and not (
        wanted.whole and kind in WHOLE and [*WHOLE].index(wanted.type) < [*WHOLE].index(kind)
    ):
        raise Untranslated(wanted.type)
    sought = cast(wanted, kind).sql

    def contained(array: str) -> str:
        none = f"WHEN len({array}) > list_count({array}) THEN NULL"
        return f"CASE WHEN list_contains({array}, {sought}) THEN TRUE {none} ELSE list_contains({array}, {sought}) END"

    return Value(once(of.sql, contained), "boolean")


def each(node: exp.Expr, scope: Scope) -> tuple[Value, str, Value]:
    """Return an array, the name of an element in DuckDB, and the value of a function of one element."""
    of, function = scope.value(node.this), node.expression
    if not isinstance(function, exp.Lambda) or len(function.expressions) != 1:
        raise Untranslated(node.sql())
    [name] = function.expressions
    variable = f"e{len(scope.columns)}"  # another one inside of it has one more column
    inner = Scope({**scope.columns, name.name.lower(): Value(variable, element_of(of.type))}, scope.rules)
    value = inner.value(with_columns(function.this, {name.name.lower()}))
    if value.type == "void":
        raise Untranslated(node.sql())
    return of, variable, value


def with_columns(body: exp.Expr, names: set[str]) -> exp.Expr:
    """Return the body of a function in which its variables are columns."""
    root = exp.paren(body.copy(), copy=False)
    for name in [*root.find_all(exp.Identifier)]:
        if name.name.lower() in names and _is_value(name):
            name.replace(exp.Column(this=name.copy()))
    inside: exp.Expr = root.this
    return inside


def _is_value(name: exp.Identifier) -> bool:
    """Return True for the name of a variable, and not that of a field or column."""
    if isinstance(name.parent, exp.Dot):
        return name.arg_key == "this"
    return not isinstance(name.parent, exp.Column) and not (
        isinstance(name.parent, exp.PropertyEQ) and name.arg_key == "this"
    )


def transformed(node: exp.Expr, scope: Scope) -> Value:
    """Translate ``transform(array, element -> value)``."""
    of, variable, value = each(node, scope)
    return Value(f"list_transform({of.sql}, lambda {variable}: {value.sql})", array_text(value.type))


def _filtered(node: exp.Expr, scope: Scope) -> Value:
    of, variable, value = each(node, scope)
    if value.type != "boolean":
        raise Untranslated(value.type)
    return Value(f"list_filter({of.sql}, lambda {variable}: {value.sql})", of.type)


ELEMENTS: Final[Mapping[type | str, Rule]] = {
    exp.Bracket: _element,
    exp.ArrayContains: _contained,
    exp.ArrayFilter: _filtered,
}
