"""Translates aggregates and windows of Spark SQL to DuckDB, and keys of ORDER BY."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp, parse_one

from rowtime.expr.aggregates import TEXT_ORDER
from rowtime.expr.conditions import only_where
from rowtime.frames.kinds import DECIMAL, MOST_DIGITS, PLAIN, decimal, element_of, fields_of, sql_type
from rowtime.frames.values import IN_ORDER, READS, USUAL, Rule, Scope, Value, cast, constant, only, plain
from rowtime.frames.words import Untranslated, in_text

_FLOATS: Final = re.compile(r"\b(?:float|double)\b", re.IGNORECASE)

_SKIP_NULL: Final = (
    exp.Min, exp.Max, exp.Sum, exp.Avg, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop,
    exp.RegrCount, exp.Median, exp.LogicalAnd, exp.LogicalOr, exp.BitwiseAndAgg,
    exp.BitwiseOrAgg, exp.BitwiseXorAgg,
)  # fmt: skip
_CAST: Final = ("CAST(sum(", "CAST(arg_")
"""How an aggregate begins whose call stands in a cast."""


def _windowed(node: exp.Expr, scope: Scope) -> Value:
    call, ordered, spec = node.this, node.args.get("order"), node.args.get("spec")
    parts = [scope.value(part).sql for part in node.args.get("partition_by") or ()]
    inside = [f"PARTITION BY {', '.join(parts)}"] if parts else []
    if ordered:
        inside.append(f"ORDER BY {', '.join(sort_key(term, scope) for term in ordered.expressions)}")
    if isinstance(call, exp.Lead | exp.Lag) and spec is None:
        only(call, READS[type(call)])
        steps = constant(call.args["offset"]) if call.args.get("offset") else 1
        of = scope.value(call.this)
        name = "lead" if isinstance(call, exp.Lead) else "lag"
        last = scope.value(call.args["default"]) if call.args.get("default") else Value("NULL", "void")
        return Value(f"{name}({of.sql}, {steps}, {cast(last, of.type).sql}) OVER ({' '.join(inside)})", of.type)
    if isinstance(call, exp.RowNumber | exp.DenseRank) and spec is None:
        only(call, READS[type(call)])
        name = "row_number" if isinstance(call, exp.RowNumber) else "dense_rank"
        return Value(f"CAST({name}() OVER ({' '.join(inside)}) AS INTEGER)", "int")
    if not isinstance(call, exp.Max | exp.Min | exp.ArgMax | exp.ArgMin | exp.Sum | exp.Count):
        raise Untranslated(node.sql())
    if ordered:
        inside.append(_frame(spec))
    over = f"OVER ({' '.join(inside)})"
    if isinstance(call, exp.ArgMax | exp.ArgMin):
        only(call, READS.get(type(call), USUAL))
        return _of_extreme("arg_max" if isinstance(call, exp.ArgMax) else "arg_min", call, scope, f" {over}")
    computed = scope.value(call)
    inner, _, kind = computed.sql.rpartition(" AS ") if computed.sql.startswith(_CAST) else (computed.sql, "", "")
    return Value(f"{inner} {over} AS {kind}" if kind else f"{inner} {over}", computed.type)


def _frame(spec: exp.Expr | None) -> str:
    if spec is None or spec.args.get("kind") != "ROWS":
        raise Untranslated("a frame")
    only(spec, READS[exp.WindowSpec])
    ends = []
    for end in ("start", "end"):
        at, side = spec.args.get(end), spec.args.get(f"{end}_side") or ""
        number = "CURRENT ROW" if at is None else at if isinstance(at, str) else str(constant(at))
        ends.append(f"{number} {side}".strip())
    return f"ROWS BETWEEN {ends[0]} AND {ends[1]}"


def sort_key(node: exp.Expr, scope: Scope) -> str:
    """Return a key of ORDER BY that sorts like Spark."""
    of, down, first = node, False, True
    if isinstance(node, exp.Ordered):
        only(node, READS[exp.Ordered])
        of, down = node.this, bool(node.args.get("desc"))
        first = node.args.get("nulls_first", not down)
    value = scope.value(of)
    return f"{_in_order(value.sql, value.type)} {'DESC' if down else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"


def _in_order(sql: str, kind: str, depth: int = 0) -> str:
    """Return a value that DuckDB orders like Spark, in which a NULL in an array or struct is the least value."""

    def part(value: str, of: str) -> str:
        return f"struct_pack(n := {value} IS NOT NULL, v := {_in_order(value, of, depth + 1)})"

    if fields := fields_of(kind):
        parts = ((f"struct_extract({sql}, {in_text(name)})", of) for name, of in fields.items())
        inside = ", ".join(f"f{n} := {part(*of)}" for n, of in enumerate(parts))
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({inside}) END"
    if kind.upper().startswith("ARRAY<"):
        return f"list_transform({sql}, lambda y{depth}: {part(f'y{depth}', element_of(kind))})"
    return sql if kind.startswith(IN_ORDER) else plain(Value(sql, kind)).sql


def _counted(node: exp.Expr, scope: Scope) -> Value:
    if isinstance(node.this, exp.Star):
        return Value("count(*)", "bigint")
    if isinstance(node.this, exp.Distinct):
        return _counted_distinct([plain(scope.value(part)) for part in node.this.expressions])
    if node.expressions:
        raise Untranslated(node.sql())
    return Value(f"count({scope.carried(node.this).sql})", "bigint")


def _counted_distinct(values: Sequence[Value]) -> Value:
    """Return the number of different values, or of lists of values without NULL."""
    if len(values) == 1:
        return Value(f"count(DISTINCT {values[0].sql})", "bigint")
    if any(of.type in ("float", "double") for of in values):  # in a list, a zero has a sign
        raise Untranslated("a list with a floating-point number")
    fields = ", ".join(f"f{n} := {of.sql}" for n, of in enumerate(values))
    given = " AND ".join(f"{of.sql} IS NOT NULL" for of in values)
    return Value(f"count(DISTINCT struct_pack({fields})) FILTER (WHERE {given})", "bigint")


def _counted_if(node: exp.Expr, scope: Scope) -> Value:
    return Value(f"count(*) FILTER (WHERE {scope.boolean(node.this)})", "bigint")


def _extreme(name: str) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        if node.expressions or isinstance(node.this, exp.Distinct):
            raise Untranslated(node.sql())
        of = plain(scope.value(node.this))
        if of.type == "double":  # of equal values, which both zeros are, the first one
            return Value(f"arg_{name}({of.sql}, {of.sql})", of.type)
        if of.type == "float":
            wide = f"CAST({of.sql} AS DOUBLE)"
            return Value(f"CAST(arg_{name}({wide}, {wide}) AS FLOAT)", of.type)
        return Value(f"{name}({of.sql})", of.type)

    return rule


def _of_signs(name: str, of: Value) -> str:
    """Return the least or greatest number of floating point; the negative zero is less than the positive one."""
    wanted, other = ("", "-") if name == "arg_max" else ("-", "")
    some = f"count(*) FILTER (WHERE {of.sql} = 0 AND {'NOT ' if name == 'arg_max' else ''}signbit({of.sql})) > 0"
    zeros = f"CASE WHEN {some} THEN CAST('{wanted}0' AS DOUBLE) ELSE CAST('{other}0' AS DOUBLE) END"
    least = f"{name.removeprefix('arg_')}({of.sql})"
    return f"CAST(CASE WHEN {least} = 0 THEN {zeros} ELSE {least} END AS {sql_type(of.type)})"


def _ordered(of: Value) -> str:
    """Return a value that DuckDB orders like Spark; no nested value is NULL."""
    kinds = fields_of(of.type).values() if of.type not in PLAIN else [of.type]
    if not kinds or not all(kind in PLAIN for kind in kinds):
        raise Untranslated(of.type)
    return of.sql


def _extreme_by(name: str) -> Rule:
    return lambda node, scope: _of_extreme(name, node, scope)


def _of_extreme(name: str, node: exp.Expr, scope: Scope, over: str = "") -> Value:
    """Return the value of the row with the least or greatest key; ``over``: among the rows of a window."""
    of = scope.carried(node.this)
    text_order = parse_one(TEXT_ORDER.format(node.this.sql("spark")), read="spark")
    if of.type in ("float", "double") and node.expression == text_order:
        if over:
            raise Untranslated(node.sql())
        return Value(_of_signs(name, of), of.type)
    by = scope.value(node.expression)
    floats = _FLOATS.search(of.type) is not None  # of which DuckDB would compare and return one zero only
    kept = f"CAST({of.sql} AS {sql_type(of.type, bits=True)})" if floats else of.sql
    # DuckDB skips rows whose value is NULL; a struct keeps them.
    sql = f"struct_extract({name}(struct_pack(v := {kept}), {_ordered(by)}){over}, 'v')"
    return Value(f"CAST({sql} AS {sql_type(of.type)})" if floats else sql, of.type)


def _sum(node: exp.Expr, scope: Scope) -> Value:
    distinct = isinstance(node.this, exp.Distinct)
    of = scope.value(node.this.expressions[0] if distinct else node.this)
    added = f"sum({'DISTINCT ' if distinct else ''}{of.sql})"
    if of.whole:
        return Value(f"CAST({added} AS BIGINT)", "bigint")
    if of.type == "double" and not distinct:
        return Value(added, "double")
    if match := DECIMAL.fullmatch(of.type):
        kind = decimal(min(MOST_DIGITS, int(match[1]) + 10), int(match[2]))
        return Value(f"CAST({added} AS {kind})", kind)
    raise Untranslated(of.type)


def _filtered(node: exp.Expr, scope: Scope) -> Value:
    """Translate FILTER: most aggregates skip NULL, which the arguments of other rows become."""
    call, condition = node.this, node.expression.this
    if isinstance(call, exp.Count):
        inner = scope.value(call)
        if " FILTER (" in inner.sql:
            raise Untranslated(node.sql())
        return Value(f"{inner.sql} FILTER (WHERE {scope.boolean(condition)})", inner.type)
    scope.boolean(condition)
    if not isinstance(call, _SKIP_NULL) or isinstance(call.this, exp.Distinct):
        raise Untranslated(node.sql())
    only(call, READS.get(type(call), USUAL))
    chosen = call.copy()
    for name in ("this", "expression"):
        if (part := call.args.get(name)) is not None:
            chosen.set(name, only_where(condition, part))
    return scope.value(chosen)


AGGREGATES: Final[Mapping[type | str, Rule]] = {
    exp.Window: _windowed,
    exp.ArgMax: _extreme_by("arg_max"),
    exp.ArgMin: _extreme_by("arg_min"),
    exp.Count: _counted,
    exp.CountIf: _counted_if,
    exp.Min: _extreme("min"),
    exp.Max: _extreme("max"),
    exp.Sum: _sum,
    exp.Filter: _filtered,
}
