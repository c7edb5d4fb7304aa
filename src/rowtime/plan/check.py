"""`check`: what is wrong with a script, and what order an expression has; without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from sqlglot import exp

from rowtime.core.errors import Problem
from rowtime.expr.facts import ROWTIME, Fact, kind_of
from rowtime.expr.monotonicity import number_of, prove
from rowtime.expr.order import Order
from rowtime.expr.proof import Proof
from rowtime.plan.catalog import Definitions
from rowtime.plan.program import compile_script
from rowtime.sql.script import parse_column, parse_expression
from rowtime.sql.statements import ColumnDef


def check(text: str, home: Definitions | None = None, variables: Mapping[str, str] | None = None) -> list[Problem]:
    """All problems of a script; an empty list means that it would run."""
    return list(compile_script(text, home, variables).problems)


def order_of(expression: str, columns: Mapping[str, str]) -> str:
    """The order of an expression: constant, ascending, strictly ascending, descending, …, none.

    A column's value is definition text, ``"BIGINT STRICTLY ASCENDING CHECK (v > 0)"``; a
    condition says which values it has. Raises ``Refused`` (R101) for text that does not parse.
    """
    return proof_of(expression, columns).order.value


def proof_of(expression: str, columns: Mapping[str, str]) -> Proof:
    """The order of an expression with the rules that prove it; see `order_of`."""
    return prove_text(expression, facts_of(columns))


def facts_of(columns: Mapping[str, str]) -> dict[str, Fact]:
    """What definitions say of the values of columns, by lower-case name; and of ROWTIME."""
    found = {"__t": ROWTIME}
    for name, definition in columns.items():
        found[name.lower()] = declared(parse_column(f"{name} {definition}"))
    return found


def prove_text(expression: str, facts: Mapping[str, Fact]) -> Proof:
    """The order of an expression over columns of which ``facts`` are known."""
    tree = parse_expression(expression)
    for column in list(tree.find_all(exp.Column)):
        name = "__t" if column.name.lower() == "rowtime" and "rowtime" not in facts else column.name.lower()
        column.set("this", exp.to_identifier(name, quoted=True))
    return prove(tree, facts)


def declared(column: ColumnDef) -> Fact:
    """What a column definition declares: kind, order, range."""
    fact = Fact(_declared_order(column), kind_of(column.type))
    for check in column.checks:
        fact = _within(fact, check)
    return fact


def _declared_order(column: ColumnDef) -> Order:
    order = column.order
    if order is None or order.within is not None or order.within_rows is not None:
        return Order.NONE
    base = Order.STRICTLY_ASCENDING if order.strict else Order.ASCENDING
    return base if order.ascending else base.reversed()


def _within(fact: Fact, check: exp.Expr) -> Fact:
    """The range that a condition on the column leaves, where it is a comparison with numbers."""
    check = check.unnest()
    if isinstance(check, exp.And):
        return _within(_within(fact, check.this), check.expression)
    if isinstance(check, exp.Between):
        low, high = number_of(check.args["low"]), number_of(check.args["high"])
        return _cut(fact, low, high, zero=True)
    if not isinstance(check, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.NEQ):
        return fact
    swapped = not isinstance(check.this, exp.Column)
    edge = number_of(check.this if swapped else check.expression)
    if edge is None:
        return fact
    if isinstance(check, exp.NEQ):
        return _cut(fact, None, None, zero=edge != 0)
    above = isinstance(check, exp.GT | exp.GTE) != swapped
    open_at_zero = isinstance(check, exp.GT | exp.LT) and edge == 0
    return _cut(fact, edge if above else None, None if above else edge, zero=not open_at_zero)


def _cut(fact: Fact, low: Decimal | None, high: Decimal | None, *, zero: bool) -> Fact:
    lows = [edge for edge in (fact.low, low) if edge is not None]
    highs = [edge for edge in (fact.high, high) if edge is not None]
    return fact.within(max(lows, default=None), min(highs, default=None), zero=fact.zero and zero)
