"""CAST: which conversions keep order. In ANSI mode a value that does not fit is an error, not a wrong value."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor

from sqlglot import exp

from rowtime.expr.facts import NUMBERS, Fact, Kind, is_short, kind_of
from rowtime.expr.rules.table import Conclusion, Parts, kept, none, rounded, rule

_STRICT = {
    (Kind.INTEGER, Kind.INTEGER),
    (Kind.INTEGER, Kind.TIMESTAMP),
    (Kind.DATE, Kind.DATE),
    (Kind.DATE, Kind.TIMESTAMP),
    (Kind.TIMESTAMP, Kind.TIMESTAMP),
    (Kind.TEXT, Kind.TEXT),
    (Kind.BOOLEAN, Kind.INTEGER),
    (Kind.BOOLEAN, Kind.BOOLEAN),
}
_ROUNDED = {
    *((left, right) for left in NUMBERS for right in NUMBERS if (left, right) not in _STRICT),
    (Kind.TIMESTAMP, Kind.DATE),
    (Kind.TIMESTAMP, Kind.INTEGER),
    (Kind.DAYS, Kind.DAYS),
    (Kind.MONTHS, Kind.MONTHS),
}


@rule(exp.Cast, exp.TryCast)
def _cast(node: exp.Expr, parts: Parts) -> Conclusion:
    return cast(parts.of(node.this), node.args["to"].sql("spark"), fails=not isinstance(node, exp.TryCast))


@rule("BIGINT", "TINYINT", "SMALLINT", "DECIMAL", "FLOAT")
def _named(node: exp.Expr, parts: Parts) -> Conclusion:
    return cast(parts.of(node.expressions[0]), node.name, fails=True)


def cast(m: Fact, to: str, *, fails: bool) -> Conclusion:
    """Return the fact of a conversion to the type ``to``; ``fails``: a value that does not fit is an error."""
    kind = kind_of(to)
    m = m.by_day() if kind is Kind.DATE else m
    if m.null:
        return Conclusion(Fact(m.order, kind, null=True), "NULL stays NULL")
    pair = (m.kind, kind)
    if not fails and pair not in ((Kind.TIMESTAMP, Kind.DATE), (Kind.DATE, Kind.TIMESTAMP)):
        return none("TRY_CAST may give NULL in between", kind)
    if kind is Kind.TEXT and m.kind is not Kind.TEXT:
        return none("text has another order: 10 sorts before 9", kind)
    if m.short and to.upper() == "DOUBLE":
        result = kept(m, kind, "every INT is exact as a DOUBLE")
    elif pair in _STRICT:
        result = kept(m, kind, f"a cast of {m.kind.value} to {kind.value} keeps the order")
    elif pair in _ROUNDED:
        result = rounded(
            m,
            kind,
            f"a cast of {m.kind.value} to {kind.value} keeps the direction, but different values may become equal",
        )
    else:
        return none(f"a cast of {m.kind.value} to {kind.value} has no rule", kind)
    if m.kind.number and kind.number:
        result = Conclusion(replace(result.fact, short=is_short(to)), result.rule)
        low, high = (None if m.low is None else floor(m.low)), (None if m.high is None else ceil(m.high))
        return Conclusion(result.fact.within(low, high), result.rule)
    return (
        Conclusion(result.fact.within(m.low, m.high), result.rule) if m.kind.time and kind is Kind.TIMESTAMP else result
    )
