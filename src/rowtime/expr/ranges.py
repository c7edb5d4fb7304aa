"""Ranges: what a condition on a column, of CHECK or WHERE, says about its values."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from rowtime.expr.facts import Fact
from rowtime.expr.monotonicity import number_of


def within(fact: Fact, name: str, condition: exp.Expr) -> Fact:
    """Return the fact about a column in rows that satisfy a condition: comparisons with constants that AND joins."""
    whole = condition.unnest()
    if isinstance(whole, exp.And):
        return within(within(fact, name, whole.this), name, whole.expression)
    if isinstance(whole, exp.Between) and _is(whole.this, name):
        return _cut(fact, number_of(whole.args["low"]), number_of(whole.args["high"]), zero=True)
    compares = isinstance(whole, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.NEQ)
    return _compared(fact, name, whole) if compares else fact


def _compared(fact: Fact, name: str, check: exp.Expr) -> Fact:
    swapped = _is(check.expression, name)
    edge = number_of(check.this if swapped else check.expression) if swapped or _is(check.this, name) else None
    if edge is None or isinstance(check, exp.NEQ):
        return fact if edge is None else _cut(fact, None, None, zero=edge != 0)
    above = isinstance(check, exp.GT | exp.GTE) != swapped
    open_at_zero = isinstance(check, exp.GT | exp.LT) and edge == 0
    return _cut(fact, edge if above else None, None if above else edge, zero=not open_at_zero)


def _is(node: exp.Expr, name: str) -> bool:
    node = node.unnest()
    return isinstance(node, exp.Column) and node.name.lower() == name.lower()


def _cut(fact: Fact, low: Decimal | None, high: Decimal | None, *, zero: bool) -> Fact:
    lows = [edge for edge in (fact.low, low) if edge is not None]
    highs = [edge for edge in (fact.high, high) if edge is not None]
    return fact.within(max(lows, default=None), min(highs, default=None), zero=fact.zero and zero)
