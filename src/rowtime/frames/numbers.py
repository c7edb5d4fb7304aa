"""Translates functions of numbers from Spark SQL to DuckDB, if both give the same values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from rowtime.frames.decimals import EXACT, LONGEST, count_of, power
from rowtime.frames.kinds import DECIMAL, decimal
from rowtime.frames.values import Rule, Scope, Value, cast, constant, holds_or_leaves, once, signed, size_of
from rowtime.frames.words import Untranslated

_WHOLE_FROM: Final = "9007199254740992e0"  # 2**53: a DOUBLE has no digits behind the point


def _absolute(node: exp.Expr, scope: Scope) -> Value:
    of = signed(scope.value(node.this))
    return Value(f"abs({of.sql})", of.type)


def _to_whole(name: str) -> Rule:
    """Return the next whole number of a DOUBLE; it fails beyond BIGINT. What is no number is left to Spark."""

    def whole(number: str) -> str:
        return f"CASE WHEN {holds_or_leaves(f'NOT isnan({number})')} THEN CAST({name}({number}) AS BIGINT) END"

    def rule(node: exp.Expr, scope: Scope) -> Value:
        of = scope.value(node.this)
        if of.type not in ("bigint", "double"):
            raise Untranslated(of.type)
        return Value(of.sql if of.whole else once(of.sql, whole), "bigint")

    return rule


def _rounded(node: exp.Expr, scope: Scope) -> Value:
    of = scope.value(node.this)
    places = constant(node.args["decimals"]) if node.args.get("decimals") else 0
    if places < 0:
        raise Untranslated(node.sql())
    if of.whole:
        return of
    if of.type == "double":
        if places > LONGEST:
            raise Untranslated(node.sql())
        return Value(once(of.sql, lambda number: _nearest(number, places)), of.type)
    digits, scale = size_of(of.type)
    kept = min(places, scale)
    kind = decimal(digits - scale + 1 + kept, kept)
    return Value(f"CAST(round(CAST({of.sql} AS {decimal(digits + 1, scale)}), {kept}) AS {kind})", kind)


def _nearest(number: str, places: int) -> str:
    """Return a DOUBLE rounded to places behind the point, as Java rounds the digits that it writes for it.

    A half of the last place is a DOUBLE that Java writes with these digits. So it is rounded up, and so is each greater
    DOUBLE; the quotient is the DOUBLE that is nearest to the result.
    """
    positive = f"({count_of(number, places)} / {power(places)})"
    sign = f"CASE WHEN {number} < 0 THEN 0 - {positive} ELSE {positive} END"
    within = holds_or_leaves(f"abs({number}) * {power(places)} < {EXACT}")
    as_it_is = f"NOT isfinite({number}) OR abs({number}) >= {_WHOLE_FROM}"
    return f"CASE WHEN {as_it_is} THEN {number} WHEN {within} THEN {sign} END"


def _double(node: exp.Expr, scope: Scope) -> str:
    of = scope.value(node)
    if not of.whole and of.type != "double" and not DECIMAL.fullmatch(of.type):
        raise Untranslated(of.type)
    return cast(of, "double").sql


def _root(node: exp.Expr, scope: Scope) -> Value:
    """Translate SQRT, which both systems round in the same way."""
    return Value(f"sqrt({_double(node.this, scope)})", "double")


def _sign(node: exp.Expr, scope: Scope) -> Value:
    """Translate SIGN: a zero keeps its sign, and what is no number stays so."""

    def sign(number: str) -> str:
        sides = f"WHEN {number} < 0 THEN CAST(-1 AS DOUBLE) WHEN {number} > 0 THEN CAST(1 AS DOUBLE)"
        return f"CASE WHEN {number} = 0 OR isnan({number}) THEN {number} {sides} END"

    return Value(once(_double(node.this, scope), sign), "double")


def _raised(node: exp.Expr, scope: Scope) -> Value:
    """Translate POWER with an exponent for which Java does not approximate; DuckDB's has other last digits."""
    forms = {2: "({0} * {0})", 1: "{0}", 0: "CASE WHEN {0} IS NOT NULL THEN CAST(1 AS DOUBLE) END"}
    form = forms[constant(node.expression)]
    return Value(once(_double(node.this, scope), form.format), "double")


NUMBERS: Final[Mapping[type | str, Rule]] = {
    exp.Abs: _absolute,
    exp.Floor: _to_whole("floor"),
    exp.Ceil: _to_whole("ceil"),
    exp.Round: _rounded,
    exp.Sqrt: _root,
    exp.Sign: _sign,
    exp.Pow: _raised,
}
