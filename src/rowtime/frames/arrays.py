"""Translates arrays from Spark SQL to DuckDB: values collected in stream order, sorted, cut and joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from rowtime.frames.aggregates import sort_key
from rowtime.frames.computed_parts import is_safe
from rowtime.frames.kinds import DECIMAL, PLAIN, WHOLE, array_text, element_of, entry_of, fields_of
from rowtime.frames.values import READS, Rule, Scope, Value, cast, constant, holds_or_fails, once, only, together
from rowtime.frames.words import Untranslated, in_text, quoted

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


_VARIABLES: Final = ("e", "i")  # of a function over the elements of an array: an element, and its place from 1 on
_MOST: Final = 1000
"""Elements up to which the first ones are found without sorting all of them."""


def _collected(node: exp.Expr, scope: Scope) -> Value:
    """Translate ``transform(array_sort(collect_list(CASE WHEN … THEN struct(…, value AS v) END)), x -> x.v)``.

    This collects values in the order of the other fields of the struct (`expr.aggregates.ordered_text`). These differ
    from row to row.
    """
    ordered, field = node.this, node.expression
    if not isinstance(ordered, exp.ArraySort) or not isinstance(field, exp.Lambda):
        raise Untranslated(node.sql())
    if [field.this.sql()] != [f"{name.sql()}.v" for name in field.expressions]:
        raise Untranslated(node.sql())
    collected, case = ordered.this, ordered.this.this
    only(ordered, {"this", "nulls_first"})  # the structs are not NULL
    only(collected, READS[exp.ArrayAgg])
    if not isinstance(collected, exp.ArrayAgg) or not isinstance(case, exp.Case) or case.this is not None:
        raise Untranslated(node.sql())
    only(case, {"ifs"})
    [branch] = case.args["ifs"]
    struct = branch.args["true"]
    if not isinstance(struct, exp.Struct) or struct.expressions[-1].this.name != "v":
        raise Untranslated(node.sql())
    *places, value = (part.expression if isinstance(part, exp.PropertyEQ) else part for part in struct.expressions)
    of = scope.value(value)
    if of.type == "void":  # there are no columns of it
        raise Untranslated(node.sql())
    order = ", ".join(sort_key(place, scope) for place in places)
    sql = f"list({of.sql} ORDER BY {order}) FILTER (WHERE {scope.boolean(branch.this)})"
    return Value(f"coalesce({sql}, [])", array_text(of.type))


def _transformed(node: exp.Expr, scope: Scope) -> Value:
    """Translate ``transform(array, (element, place) -> struct(…))`` over these two, and other forms."""
    function = node.expression
    if isinstance(node.this, exp.ArraySort):
        return _collected(node, scope)
    if not isinstance(function, exp.Lambda) or len(function.expressions) != len(_VARIABLES):
        return transformed(node, scope)
    of = scope.value(node.this)
    values = (Value(_VARIABLES[0], element_of(of.type)), Value(f"CAST({_VARIABLES[1]} - 1 AS INTEGER)", "int"))
    if not isinstance(function.this, exp.Struct) or function.this.find(exp.Lambda):
        raise Untranslated(node.sql())
    names = {name.name.lower(): of for name, of in zip(function.expressions, values, strict=True)}
    struct = with_columns(function.this, {*names})
    of_struct = Scope(names, scope.rules).value(struct)
    sql = f"list_transform({of.sql}, lambda {', '.join(_VARIABLES)}: {of_struct.sql})"
    return Value(sql, array_text(of_struct.type))


def _entries(node: exp.Expr, scope: Scope) -> Value:
    """Translate ``map_entries(map)``."""
    [given] = node.expressions
    of = scope.value(given)
    return Value(f"map_entries({of.sql})", array_text(entry_of(of.type)))


def _sorted(node: exp.Expr, scope: Scope) -> Value:
    of, down, nulls_first = _order(node, scope)
    words = f"'{'DESC' if down else 'ASC'}', 'NULLS {'FIRST' if nulls_first else 'LAST'}'"
    return _by_keys(of, lambda keys: f"list_sort({keys}, {words})")


def _order(node: exp.Expr, scope: Scope) -> tuple[Value, bool, bool]:
    """Return what is sorted, whether it is sorted downwards, and whether NULLs come first."""
    only(node, READS[exp.ArraySort])
    up = node.args.get("asc") or exp.true()
    first = node.args.get("nulls_first") or exp.false()
    if not isinstance(up, exp.Boolean) or not isinstance(first, exp.Boolean):
        raise Untranslated(node.sql())
    return scope.value(node.this), not up.this, bool(first.this)


def _by_keys(of: Value, way: Callable[[str], str]) -> Value:
    """Return an array that is made from the elements in their order.

    In a struct, NULL is the least value in Spark and the greatest in DuckDB. So each field is compared after whether
    it is there. Both zeros are equal, but look different; so floats are Spark's.
    """
    element = element_of(of.type)
    fields = fields_of(element)
    kinds = [*fields.values()] if fields else [element]
    if not all((kind in PLAIN and kind not in ("float", "double")) or DECIMAL.fullmatch(kind) for kind in kinds):
        raise Untranslated(of.type)
    if not fields:
        return Value(way(of.sql), of.type)
    parts = [(n, f"struct_extract(x, {in_text(name)})") for n, name in enumerate(fields)]
    key = ", ".join(f"n{n} := {part} IS NOT NULL, v{n} := {part}" for n, part in parts)
    back = ", ".join(f"{quoted(name)} := struct_extract(x, 'v{n}')" for n, name in enumerate(fields))
    keys = f"list_transform({of.sql}, lambda x: CASE WHEN x IS NOT NULL THEN struct_pack({key}) END)"
    return Value(
        f"list_transform({way(keys)}, lambda x: CASE WHEN x IS NOT NULL THEN struct_pack({back}) END)", of.type
    )


def _cut(node: exp.Expr, scope: Scope) -> Value:
    """Translate ``slice(array, start, length)``, counted from the beginning."""
    start, length = constant(node.args["start"]), constant(node.args["end"])
    if start < 1 or length < 0 or not node.args.get("is_length"):
        raise Untranslated(node.sql())
    if isinstance(node.this, exp.ArraySort) and start == 1 and 0 < length <= _MOST:
        of, down, nulls_first = _order(node.this, scope)
        if down and not nulls_first:
            return _by_keys(of, lambda keys: _greatest(keys, length))
    of = scope.value(node.this)
    element_of(of.type)
    return Value(f"list_slice({of.sql}, {start}, {start + length - 1})", of.type)


def _greatest(keys: str, count: int) -> str:
    """Return the greatest elements in descending order, then NULLs."""
    longest = f"coalesce(list_aggregate(k, 'max', {count}), [])"
    cut = f"lambda k: CASE WHEN k IS NOT NULL THEN list_resize({longest}, least(len(k), {count})) END"
    return f"list_transform([{keys}], {cut})[1]"  # so that the keys are made once


def _distinct(node: exp.Expr, scope: Scope) -> Value:
    """Translate ARRAY_DISTINCT: the first of equal elements, in the order of the array.

    The elements are sorted with their places, so that equal ones are beside each other, and then by their places.
    """
    of = scope.value(node.this)
    kind = element_of(of.type)
    if kind in ("float", "double") or (kind not in PLAIN and not DECIMAL.fullmatch(kind)):
        raise Untranslated(of.type)
    pairs = f"list_sort(list_transform({of.sql}, lambda x, i: struct_pack(v := x, n := i)))"

    def first(pairs: str) -> str:
        new = f"list_filter({pairs}, lambda x, i: i = 1 OR {pairs}[i - 1].v IS DISTINCT FROM x.v)"
        placed = f"list_sort(list_transform({new}, lambda x: struct_pack(n := x.n, v := x.v)))"
        return f"list_transform({placed}, lambda x: x.v)"

    return Value(once(pairs, first), of.type)


def _size(node: exp.Expr, scope: Scope) -> Value:
    [array] = [node.this] if isinstance(node, exp.ArraySize) else node.expressions
    of = scope.value(array)
    element_of(of.type)
    return Value(f"CAST(len({of.sql}) AS INTEGER)", "int")


def _joined(node: exp.Expr, scope: Scope) -> Value:
    of, between = scope.value(node.this), scope.value(node.expression)
    if element_of(of.type) != "string" or not isinstance(node.expression, exp.Literal) or between.type != "string":
        raise Untranslated(node.sql())
    sql = f"coalesce(array_to_string({of.sql}, {between.sql}), '')"
    return Value(f"CASE WHEN {of.sql} IS NOT NULL THEN {sql} END", "string")


def _listed(node: exp.Expr, scope: Scope) -> Value:
    """Translate ``array(…)``."""
    values, kind = together([scope.value(part) for part in node.expressions])
    return Value(f"[{', '.join(of.sql for of in values)}]", array_text(kind))


def _series(node: exp.Expr, scope: Scope) -> Value:
    """Translate ``sequence(low, high, step)`` of whole numbers; with a step that is not constant it is Spark's.

    Without a step it counts down if the first number is above the last one; with a positive one it fails then.
    """
    values = [scope.value(node.args[name]) for name in ("start", "end", "step") if node.args.get(name)]
    low, high = (cast(value, "bigint").sql for value in values[:2])
    step = constant(node.args["step"]) if node.args.get("step") else None
    if (step is not None and step <= 0) or any(value.type not in WHOLE for value in values):
        raise Untranslated(node.sql())
    alone = f"WHEN {low} = {high} THEN [{low}]"  # mostly there is one number, and a series takes ten times as long
    up = f"{low} <= {high}" if step is None else holds_or_fails(f"{low} <= {high}")
    others = f"WHEN {up} THEN {_numbers(low, high, step or 1)}"
    if step is None:
        others += f" WHEN {low} > {high} THEN {_numbers(low, high, -1)}"
    numbers = f"CASE {alone} {others} END"
    kind = max((value.type for value in values), key=[*WHOLE].index)
    return Value(numbers if kind == "bigint" else f"CAST({numbers} AS {WHOLE[kind]}[])", array_text(kind))


def _numbers(low: str, high: str, step: int) -> str:
    return f"generate_series({low}, {high}, CAST({step} AS BIGINT))"


ARRAYS: Final[Mapping[type | str, Rule]] = {
    **ELEMENTS,
    exp.Array: _listed,
    exp.GenerateSeries: _series,
    exp.Transform: _transformed,
    "map_entries": _entries,
    exp.ArraySort: _sorted,
    exp.ArraySlice: _cut,
    exp.ArrayDistinct: _distinct,
    exp.ArraySize: _size,
    "cardinality": _size,
    exp.ArrayToString: _joined,
}
