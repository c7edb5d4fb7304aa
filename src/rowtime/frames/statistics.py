"""Translates statistics from Spark SQL to DuckDB: averages, deviations, percentiles, the most frequent value.

They skip NULL. In Spark, a deviation over a NaN or an infinity is NaN; DuckDB fails. The last digits may differ from
Spark's, which depend on its partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from rowtime.frames.decimals import average
from rowtime.frames.kinds import DECIMAL, PLAIN, WHOLE
from rowtime.frames.values import READS, Rule, Scope, Value, cast, holds_or_fails, only
from rowtime.frames.words import Untranslated

_FLOATS: Final = ("float", "double")
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
    if of.type not in WHOLE and (distinct or of.type not in _FLOATS):
        raise Untranslated(node.sql())
    each = f"DISTINCT {of.sql}" if distinct else of.sql if of.type in WHOLE else _double(node.this, scope)
    return Value(f"CASE WHEN count({each}) > 0 THEN CAST(sum({each}) AS DOUBLE) / count({each}) END", "double")


def _moment(name: str, least: int) -> Rule:
    """Return the rule of a moment, which is NULL for fewer than ``least`` numbers; beyond DOUBLE, Spark decides."""

    def rule(node: exp.Expr, scope: Scope) -> Value:
        of = _double(node.this, scope)
        if scope.value(node.this).type not in _FLOATS:
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
    if not {scope.value(part).type for part in (node.this, node.expression)} <= {*_FLOATS}:
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
    if not all(of.type in (*WHOLE, *_FLOATS) or DECIMAL.fullmatch(of.type) for of in values):
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
    if not isinstance(least, exp.Boolean) or not least.this or of.type in _FLOATS:
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
