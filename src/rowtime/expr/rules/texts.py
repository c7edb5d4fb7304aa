"""Text, in Spark's default order: byte by byte."""

from __future__ import annotations

from sqlglot import exp

from rowtime.expr.facts import Kind
from rowtime.expr.order import Order
from rowtime.expr.rules.table import Found, Parts, arguments, kept, none, rounded, rule


@rule(exp.Substring)
def _substring(node: exp.Expr, parts: Parts) -> Found:
    m, start = parts.of(node.this), node.args.get("start")
    length = node.args.get("length")
    begins = start is None or parts.of(start).constant in (0, 1)
    if m.kind is not Kind.TEXT or not begins:
        return none("only a prefix of text keeps its order", Kind.TEXT)
    if length is None:
        return kept(m, Kind.TEXT, "the whole text")
    if parts.of(length).constant is None:
        return none("a prefix of a length that varies has no order", Kind.TEXT)
    return rounded(m, Kind.TEXT, "a prefix keeps the direction")


@rule(exp.Left)
def _left(node: exp.Expr, parts: Parts) -> Found:
    m = parts.of(node.this)
    if m.kind is not Kind.TEXT or parts.of(node.expression).constant is None:
        return none("only a prefix of constant length keeps the order of text", Kind.TEXT)
    return rounded(m, Kind.TEXT, "a prefix keeps the direction")


@rule(exp.Concat, exp.DPipe)
def _concat(node: exp.Expr, parts: Parts) -> Found:
    facts = [parts.of(argument) for argument in arguments(node)]
    moving = [n for n, fact in enumerate(facts) if fact.order is not Order.CONSTANT]
    if len(moving) != 1 or any(fact.kind is not Kind.TEXT for fact in facts):
        return none("joined text has a rule for one part that moves behind constant text", Kind.TEXT)
    if moving[0] != len(facts) - 1:
        return none("text behind m changes the order: a before ab, but abx before ax", Kind.TEXT)
    return kept(facts[-1], Kind.TEXT, "constant text before m keeps the order")
