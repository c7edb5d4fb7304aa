"""Translates aggregates and windows of Spark SQL to DuckDB, and keys of ORDER BY."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp, parse_one

from rowtime.expr.aggregates import TEXT_ORDER
from rowtime.expr.conditions import only_where
from rowtime.frames.decimals import average
from rowtime.frames.kinds import DECIMAL, MOST_DIGITS, PLAIN, WHOLE, decimal, element_of, fields_of, sql_type
from rowtime.frames.values import (
    IN_ORDER,
    READS,
    USUAL,
    Rule,
    Scope,
    Value,
    cast,
    constant,
    holds_or_fails,
    only,
    plain,
)
from rowtime.frames.words import Untranslated, in_text

# Translates statistics from Spark SQL to DuckDB: averages, deviations, percentiles, the most frequent value.
#
# They skip NULL. In Spark, a deviation over a NaN or an infinity is NaN; DuckDB fails. The last digits may differ from
# Spark's, which depend on its partitions.

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


FLOATING: Final = ("float", "double")
_MOST: Final = "1e150"  # a number whose square is a DOUBLE


def _double(node: exp.Expr, scope: Scope) -> str:
    """Return a number as a DOUBLE."""
    of = scope.value(node)
    return f"CAST({of.sql} AS DOUBLE)" if of.type == "float" else cast(of, "double").sql


def _average(node: exp.Expr, scope: Scope) -> Value:
    """Translate AVG of numbers that Spark adds as DOUBLE; the sum of whole numbers is exact."""
    distinct = isinstance(node.this, exp.Distinct)
    of = scope.value(node.this.expressions[0] if distinct else node.this)
    if DECIMAL.fullmatch(of.type) and not distinct:
        return average(of)
    if of.type not in WHOLE and (distinct or of.type not in FLOATING):
        raise Untranslated(node.sql())
    each = f"DISTINCT {of.sql}" if distinct else of.sql if of.type in WHOLE else _double(node.this, scope)
    return Value(f"CASE WHEN count({each}) > 0 THEN CAST(sum({each}) AS DOUBLE) / count({each}) END", "double")


def _moment(name: str, least: int) -> Rule:
    """Return the rule of a moment, which is NULL for fewer than ``least`` numbers; beyond DOUBLE, Spark decides."""

    def rule(node: exp.Expr, scope: Scope) -> Value:
        of = _double(node.this, scope)
        if scope.value(node.this).type not in FLOATING:
            return Value(f"CASE WHEN count({of}) >= {least} THEN {_from_least(name, of)} END", "double")
        moment = f"{name}({of}) FILTER (WHERE isfinite({of}))"
        odd = f"count(*) FILTER (WHERE NOT isfinite({of})) > 0 THEN CAST('nan' AS DOUBLE)"
        known = f"isfinite({moment}) AND NOT coalesce(max(abs({of})) FILTER (WHERE isfinite({of})) > {_MOST}, false)"
        sql = f"CASE WHEN {odd} WHEN {holds_or_fails(known)} THEN {moment} END"
        return Value(f"CASE WHEN count({of}) >= {least} THEN {sql} END", "double")

    return rule


def _from_least(name: str, of: str) -> str:
    """Return a moment of exact numbers: of their distances from the least one, in the order of the values.

    So it is a function of the values, and the digits of numbers that are far from zero do not cancel.
    """
    distance = "d"
    while distance in of:  # the name of no column
        distance += "d"
    values = f"list({of} ORDER BY {of}) FILTER (WHERE {of} IS NOT NULL)"
    return f"list_aggregate(list_transform({values}, lambda {distance}: {distance} - min({of})), '{name}')"


def _correlation(node: exp.Expr, scope: Scope) -> Value:
    """Translate CORR of floating-point numbers; it fails if one of them is always the same."""
    if not {scope.value(part).type for part in (node.this, node.expression)} <= {*FLOATING}:
        raise Untranslated(node.sql())
    one, other = (_double(part, scope) for part in (node.this, node.expression))
    both = f"{one} IS NOT NULL AND {other} IS NOT NULL"
    finite = f"FILTER (WHERE isfinite({one}) AND isfinite({other}))"
    odd = f"count(*) FILTER (WHERE {both} AND NOT (isfinite({one}) AND isfinite({other})))"
    spread = f"var_pop({one}) {finite} * var_pop({other}) {finite}"
    known = holds_or_fails(f"{spread} BETWEEN 1e-200 AND 1e200")
    sql = f"CASE WHEN {odd} > 0 THEN CAST('nan' AS DOUBLE) WHEN {known} THEN corr({one}, {other}) {finite} END"
    return Value(f"CASE WHEN count(*) FILTER (WHERE {both}) > 1 THEN {sql} END", "double")


def _pairs(node: exp.Expr, scope: Scope) -> Value:
    values = [scope.value(part) for part in (node.this, node.expression)]
    if not all(of.type in (*WHOLE, *FLOATING) or DECIMAL.fullmatch(of.type) for of in values):
        raise Untranslated(node.sql())  # Spark makes numbers of texts
    given = (f"{of.sql} IS NOT NULL" for of in values)
    return Value(f"count(*) FILTER (WHERE {' AND '.join(given)})", "bigint")


def _percentile(node: exp.Expr, scope: Scope) -> Value:
    """Translate PERCENTILE with one constant."""
    number, at = node.expressions
    return _at(_double(number, scope), at)


def _median(node: exp.Expr, scope: Scope) -> Value:
    return _at(_double(node.this, scope), exp.Literal.number("0.5"))


def _within_group(node: exp.Expr, scope: Scope) -> Value:
    """Translate PERCENTILE_CONT(constant) WITHIN GROUP (ORDER BY number)."""
    call, order = node.this, node.expression
    if not isinstance(call, exp.PercentileCont) or not isinstance(order, exp.Order):
        raise Untranslated(node.sql())
    [key] = order.expressions
    only(call, {"this"})
    only(key, READS[exp.Ordered])
    return _at(_double(key.this, scope), call.this, down=bool(key.args.get("desc")))


def _at(of: str, share: exp.Expr, *, down: bool = False) -> Value:
    """Return the value at a share of the sorted rows, or between two of them, by Spark's formula."""
    if not isinstance(share, exp.Literal) or share.is_string or not 0 <= float(share.name) <= 1:
        raise Untranslated(share.sql())
    values = f"list({of} ORDER BY {of} {'DESC' if down else 'ASC'}) FILTER (WHERE {of} IS NOT NULL)"
    place = f"(count({of}) - 1) * CAST({float(share.name)!r} AS DOUBLE)"
    low, high = (f"CAST({side}({place}) AS BIGINT)" for side in ("floor", "ceil"))
    below, above = f"{values}[{low} + 1]", f"{values}[{high} + 1]"
    between = f"({high} - {place}) * {below} + ({place} - {low}) * {above}"
    return Value(
        f"CASE WHEN count({of}) > 0 THEN CASE WHEN {below} = {above} THEN {below} ELSE {between} END END", "double"
    )


def _mode(node: exp.Expr, scope: Scope) -> Value:
    """Translate MODE(value, true): of equally frequent values the least one, which DuckDB meets first."""
    of = scope.value(node.this)
    least = node.args.get("deterministic")
    if not isinstance(least, exp.Boolean) or not least.this or of.type in FLOATING:
        raise Untranslated(node.sql())
    if of.type not in PLAIN and not DECIMAL.fullmatch(of.type):
        raise Untranslated(of.type)
    return Value(f"mode({of.sql} ORDER BY {of.sql})", of.type)


def _logical(name: str) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        return Value(f"{name}({scope.boolean(node.expressions[0] if node.expressions else node.this)})", "boolean")

    return rule


def _bits(name: str) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        of = scope.value(node.this)
        if not of.whole:
            raise Untranslated(of.type)
        return Value(f"{name}({of.sql})", of.type)

    return rule


STATISTICS: Final[Mapping[type | str, Rule]] = {
    exp.Avg: _average,
    "mean": lambda node, scope: _average(exp.Avg(this=node.expressions[0]), scope),
    exp.Stddev: _moment("stddev_samp", 2),
    exp.StddevSamp: _moment("stddev_samp", 2),
    "std": lambda node, scope: _moment("stddev_samp", 2)(exp.Stddev(this=node.expressions[0]), scope),
    exp.StddevPop: _moment("stddev_pop", 1),
    exp.Variance: _moment("var_samp", 2),
    exp.VariancePop: _moment("var_pop", 1),
    exp.RegrCount: _pairs,
    exp.Corr: _correlation,
    exp.Median: _median,
    "percentile": _percentile,
    exp.WithinGroup: _within_group,
    exp.Mode: _mode,
    exp.LogicalAnd: _logical("bool_and"),
    exp.LogicalOr: _logical("bool_or"),
    "every": _logical("bool_and"),
    "some": _logical("bool_or"),
    exp.BitwiseAndAgg: _bits("bit_and"),
    exp.BitwiseOrAgg: _bits("bit_or"),
    exp.BitwiseXorAgg: _bits("bit_xor"),
}
