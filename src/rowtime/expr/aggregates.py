"""Aggregates: which ones split into partial results, and how these are merged.

A decomposable aggregate has three parts: its *seed* (the partial result of one row), its *merge* (an aggregate over
partial results) and its *final* value. Since a row's seed is itself a partial result, new rows and kept partials go
through one aggregation. Aggregates without such a form make the group keep the columns that they need.

Aggregates that depend on order use stream order (semantics 3): the first and last rows are the least and greatest
(rowtime, writer, position). Ties of MAX_BY go to the last row in stream order, ties of MIN_BY to the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from rowtime.core.columns import POSITION, ROWTIME, WRITER
from rowtime.expr.conditions import only_where
from rowtime.sql.generate import to_spark

PLACE = f"{ROWTIME}, {WRITER}, {POSITION}"
TEXT_ORDER = "CASE WHEN ({0}) IS NOT NULL THEN struct({0}, CAST(({0}) AS STRING)) END"
"""An order in which both zeros are different, and texts that a collation does not tell apart."""


@dataclass(frozen=True)
class Part:
    """One partial column: ``seed`` over a row, ``merge`` with ``{0}`` for the column itself.

    ``typed``: an aggregate over the row, whose type the column has; empty if the types of seed and merge agree.
    ``by_bytes``: the merge for text with a collation, and for floating point: equal texts may differ in their bytes,
    equal zeros in their signs, and Spark would take the first one it meets.
    """

    seed: str
    merge: str
    typed: str = ""
    by_bytes: str = ""


@dataclass(frozen=True)
class Decomposed:
    """An aggregate in partial form; ``final`` is text with ``{0}``, ``{1}``… for the parts."""

    parts: tuple[Part, ...]
    final: str
    result: str = ""
    """The aggregate whose type the final value has; empty for the type of ``final``."""


Form = Callable[[str, str], Decomposed]


def decompose(node: exp.Expr) -> Decomposed | None:
    """Return the partial form of an aggregate call; ``None`` if it has none."""
    condition, call = split(node)
    if isinstance(call.this, exp.Distinct) or call.args.get("distinct"):
        return None
    if isinstance(call, exp.Count):
        return _count(call, condition)
    if isinstance(call, exp.IgnoreNulls):
        form = _IGNORING_NULLS.get(type(call.this))
        return form(*_arguments(call.this, condition)) if form else None
    name = call.name.upper() if isinstance(call, exp.Anonymous) else type(call)
    form = _FORMS.get(name)
    return form(*_arguments(call, condition)) if form else None


def ordered_text(node: exp.Expr) -> str:
    """Return Spark SQL for an aggregate over kept rows; an aggregate that depends on order uses stream order."""
    condition, call = split(node)
    form = decompose(node) if isinstance(call, exp.Min | exp.Max) or any(map(orders_rows, node.walk())) else None
    if form is not None:
        return form.final.format(*((part.by_bytes or part.merge).format(part.seed) for part in form.parts))
    if isinstance(call, exp.Mode) and isinstance(call.this, exp.Expr):
        value, _ = _arguments(call, condition)
        return f"mode({value}, true)"  # the least of equally frequent values
    if isinstance(call, exp.Anonymous) and call.name.upper() in _SEVERAL_BY:
        return _several_by(call, condition)
    gathered = _gathered(call)
    if gathered is None:
        return to_spark(_of_chosen(node))
    value = to_spark(gathered)
    wanted = f"({value}) IS NOT NULL" + (f" AND ({condition})" if condition else "")
    rows = f"collect_list(CASE WHEN {wanted} THEN struct({PLACE}, {value} AS v) END)"
    values = f"transform(array_sort({rows}), x -> x.v)"
    if gathered is not call.this or isinstance(call, exp.ArrayUniqueAgg):
        values = f"array_distinct({values})"  # each value at its first place
    if isinstance(call, exp.GroupConcat):
        separator = to_spark(call.args["separator"]) if call.args.get("separator") else "''"
        return f"CASE WHEN count(CASE WHEN {wanted} THEN 1 END) > 0 THEN array_join({values}, {separator}) END"
    return values


def _of_chosen(node: exp.Expr) -> exp.Expr:
    """Return an aggregate; with FILTER and DISTINCT one without FILTER, for which Spark computes values of all rows."""
    if not isinstance(node, exp.Filter) or not isinstance(node.this.this, exp.Distinct):
        return node
    chosen: exp.Expr = node.this.copy()
    for value in chosen.this.expressions:
        value.replace(only_where(node.expression.this, value))
    return chosen


def _several_by(call: exp.Anonymous, condition: str) -> str:
    """Return ``max_by(value, by, n)``: the values of n rows; ties in ``by`` as with one row."""
    value, by, count = map(to_spark, call.expressions)
    wanted = f"({by}) IS NOT NULL" + (f" AND ({condition})" if condition else "")
    rows = f"array_sort(collect_list(CASE WHEN {wanted} THEN struct({by} AS k, {PLACE}, {value} AS v) END))"
    rows = f"reverse({rows})" if call.name.upper() == "MAX_BY" else rows
    values = f"transform(slice({rows}, 1, {count}), x -> x.v)"
    return f"CASE WHEN count(CASE WHEN {wanted} THEN 1 END) > 0 THEN {values} END"


_SEVERAL_BY = ("MAX_BY", "MIN_BY")  # with three arguments; calls with two are nodes


def _gathered(call: exp.Expr) -> exp.Expr | None:
    """Return what an aggregate collects in stream order; ``None`` for others, such as one with an order of its own."""
    if not isinstance(call, exp.ArrayAgg | exp.ArrayUniqueAgg | exp.GroupConcat):
        return None
    value: exp.Expr = call.this
    return value.expressions[0] if isinstance(value, exp.Distinct) else value


def ambiguous_order(call: exp.Expr) -> exp.Expr | None:
    """Return the order inside an aggregate if rows that are equal in it may have different values."""
    if not isinstance(call, exp.WithinGroup) or not isinstance(call.this, exp.GroupConcat):
        return None
    order: exp.Expr = call.expression
    keys = [key.this for key in order.expressions]
    value = call.this.this.expressions[0] if isinstance(call.this.this, exp.Distinct) else call.this.this
    return None if value in keys else order


def split(node: exp.Expr) -> tuple[str, exp.Expr]:
    """Return the condition of FILTER, as Spark SQL, and the call that it filters."""
    if isinstance(node, exp.Filter):
        return to_spark(node.expression.this), node.this
    return "", node


def _arguments(call: exp.Expr, condition: str) -> tuple[str, str]:
    value = to_spark(call.this) if isinstance(call.this, exp.Expr) else ""
    second = call.args.get("expression")
    by = to_spark(second) if isinstance(second, exp.Expr) else ""
    if isinstance(call, exp.Anonymous) and call.expressions:
        value = to_spark(call.expressions[0])
    if condition:
        value = f"CASE WHEN {condition} THEN {value} END"
        by = f"CASE WHEN {condition} THEN {by} END" if by else by
    return value, by


def _count(call: exp.Count, condition: str) -> Decomposed:
    counted = [] if isinstance(call.this, exp.Star) else [a for a in (call.this, *call.expressions) if a is not None]
    tests = [f"({to_spark(argument)}) IS NOT NULL" for argument in counted]
    seed = f"CASE WHEN {' AND '.join(tests)} THEN 1L ELSE 0L END" if tests else "1L"
    if condition:  # it stops where it is NULL, unlike AND
        seed = f"CASE WHEN {condition} THEN {seed} ELSE 0L END"
    return Decomposed((Part(seed, "sum({0})"),), "{0}")


def _count_if(value: str, _by: str) -> Decomposed:
    return Decomposed((Part(f"CASE WHEN {value} THEN 1L ELSE 0L END", "sum({0})"),), "{0}")


def _sum(value: str, _by: str) -> Decomposed:
    return Decomposed((Part(value, "sum({0})", f"sum({value})"),), "{0}")


def _avg(value: str, _by: str) -> Decomposed:
    # Spark adds whole numbers as DOUBLE, so its digits depend on the order; here the sum is exact (semantics 3).
    # The sum's type is known where the average is computed: `final` is for numbers.
    counted = Part(f"CASE WHEN ({value}) IS NOT NULL THEN 1L ELSE 0L END", "sum({0})")
    final = "CASE WHEN {1} > 0 THEN CAST({0} AS DOUBLE) / {1} END"
    return Decomposed((Part(value, "sum({0})", f"avg+sum({value})"), counted), final, f"avg({value})")


def _same(function: str) -> Form:
    return lambda value, _by: Decomposed((Part(value, function + "({0})"),), "{0}")


def _extreme(function: str) -> Form:
    """Return the form of a least or greatest value; equal ones are compared by `TEXT_ORDER`."""
    part = Part("", f"{function}({{0}})", by_bytes=f"{function}_by({{0}}, {TEXT_ORDER})")
    return lambda value, _by: Decomposed((replace(part, seed=value),), "{0}")


def _edge(function: str, *, nulls: bool) -> Form:
    def form(value: str, _by: str) -> Decomposed:
        place = f"struct({PLACE}, {value} AS v)"
        seed = place if nulls else f"CASE WHEN ({value}) IS NOT NULL THEN {place} END"
        return Decomposed((Part(seed, _of_the(function, PLACE)),), "{0}.v")

    return form


def _by(function: str) -> Form:
    def form(value: str, by: str) -> Decomposed:
        seed = f"CASE WHEN ({by}) IS NOT NULL THEN struct({by} AS k, {PLACE}, {value} AS v) END"
        return Decomposed((Part(seed, _of_the(function, f"k, {PLACE}")),), "{0}.v")

    return form


def _of_the(function: str, fields: str) -> str:
    """Return the least or greatest struct by some of its fields; maps have no order, so not by all fields."""
    order = ", ".join(f"({{0}}).{field}" for field in fields.split(", "))
    return f"{function}_by({{0}}, CASE WHEN ({{0}}) IS NOT NULL THEN struct({order}) END)"


def _placed(function: str) -> re.Pattern[str]:
    text = re.escape(_of_the(function, PLACE).format("@") + " AS @")
    return re.compile(text.replace("@", r"(?P<name>\w+)", 1).replace("@", "(?P=name)"))


_PLACED = {function: _placed(function) for function in ("max", "min")}


def placed_merges(aggregates: Iterable[str]) -> dict[str, str]:
    """Return the structs whose greatest or least place is needed: ``max`` or ``min`` by their names."""
    matches = ((way, _PLACED[way].fullmatch(text)) for text in aggregates for way in _PLACED)
    return {match["name"]: way for way, match in matches if match}


_FIRST, _LAST = (exp.First, exp.FirstValue, exp.AnyValue), (exp.Last, exp.LastValue)
_FORMS: dict[type[exp.Expr] | str, Form] = {
    exp.CountIf: _count_if,
    exp.Sum: _sum,
    exp.Avg: _avg,
    exp.Min: _extreme("min"),
    exp.Max: _extreme("max"),
    exp.LogicalAnd: _same("bool_and"),
    exp.LogicalOr: _same("bool_or"),
    exp.BitwiseAndAgg: _same("bit_and"),
    exp.BitwiseOrAgg: _same("bit_or"),
    exp.BitwiseXorAgg: _same("bit_xor"),
    "EVERY": _same("bool_and"),
    "SOME": _same("bool_or"),
    "ANY": _same("bool_or"),
    **dict.fromkeys(_FIRST, _edge("min", nulls=True)),
    **dict.fromkeys(_LAST, _edge("max", nulls=True)),
    exp.ArgMax: _by("max"),
    exp.ArgMin: _by("min"),
}

ORDERED = (*_FIRST, *_LAST, exp.ArgMax, exp.ArgMin, exp.ArrayAgg, exp.ArrayUniqueAgg, exp.GroupConcat)
"""Aggregates whose value depends on the order of rows."""


SKETCHES = (
    "PERCENTILE_APPROX", "APPROX_PERCENTILE", "HISTOGRAM_NUMERIC", "APPROX_TOP_K", "APPROX_TOP_K_ACCUMULATE",
    "APPROX_TOP_K_COMBINE", "HLL_SKETCH_AGG", "HLL_UNION_AGG", "THETA_SKETCH_AGG", "THETA_UNION_AGG",
    "THETA_INTERSECTION_AGG", "TUPLE_SKETCH_AGG_DOUBLE", "TUPLE_SKETCH_AGG_INTEGER", "TUPLE_UNION_AGG_DOUBLE",
    "TUPLE_UNION_AGG_INTEGER", "TUPLE_INTERSECTION_AGG_DOUBLE", "TUPLE_INTERSECTION_AGG_INTEGER",
)  # fmt: skip
"""Approximate aggregates: what they drop depends on the order in which Spark meets the rows."""


def orders_rows(node: exp.Expr) -> bool:
    """Return True for an aggregate call whose value depends on the order of rows."""
    called = node.name.upper() if isinstance(node, exp.Anonymous) else ""
    return isinstance(node, (*ORDERED, exp.ApproxQuantile)) or called in (*_SEVERAL_BY, *SKETCHES)


_IGNORING_NULLS: dict[type[exp.Expr], Form] = {
    **dict.fromkeys(_FIRST, _edge("min", nulls=False)),
    **dict.fromkeys(_LAST, _edge("max", nulls=False)),
}
