"""Text, in Spark's default order: byte by byte."""

from __future__ import annotations

import re

from sqlglot import exp

from rowtime.core.time import MAX_MICROS, MIN_MICROS
from rowtime.expr.facts import Kind
from rowtime.expr.order import Order
from rowtime.expr.rules.table import Conclusion, Parts, arguments, kept, none, rounded, rule


@rule(exp.Substring)
def _substring(node: exp.Expr, parts: Parts) -> Conclusion:
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
def _left(node: exp.Expr, parts: Parts) -> Conclusion:
    m = parts.of(node.this)
    if m.kind is not Kind.TEXT or parts.of(node.expression).constant is None:
        return none("only a prefix of constant length keeps the order of text", Kind.TEXT)
    return rounded(m, Kind.TEXT, "a prefix keeps the direction")


@rule(exp.Concat, exp.DPipe, "CONCAT")
def _concat(node: exp.Expr, parts: Parts) -> Conclusion:
    facts = [parts.of(argument) for argument in arguments(node)]
    moving = [n for n, fact in enumerate(facts) if fact.order is not Order.CONSTANT]
    if len(moving) != 1 or any(fact.kind is not Kind.TEXT for fact in facts):
        return none("concatenation has a rule for one part that is not constant, after constant text", Kind.TEXT)
    if moving[0] != len(facts) - 1:
        return none("text after m changes the order: a before ab, but abx before ax", Kind.TEXT)
    return kept(facts[-1], Kind.TEXT, "constant text before m keeps the order")


# The fields of a DATE_FORMAT pattern, from the year on: each has a fixed length.
_FIELDS = ("yyyy", "MM", "dd", "HH", "mm", "ss")
_PATTERN = re.compile(r"(([A-Za-z])\2*)|'[^']*'|[^A-Za-z'\[\]{}#]")


@rule("DATE_FORMAT")
def _date_format(node: exp.Expr, parts: Parts) -> Conclusion:
    m, pattern = parts.of(node.expressions[0]), node.expressions[-1]
    if not m.kind.time or not isinstance(pattern, exp.Literal) or not _falls(pattern.name):
        return none(
            "DATE_FORMAT has a rule for patterns that begin with yyyy and go down, such as yyyy-MM-dd HH", Kind.TEXT
        )
    if m.low is None or m.low < MIN_MICROS or m.high is None or m.high > MAX_MICROS:
        return none("the text of a time has an order only in the years 0001 to 9999, as for ROWTIME", Kind.TEXT)
    return rounded(m, Kind.TEXT, "fields of fixed length, from the year down, have the order of the time")


def _falls(pattern: str) -> bool:
    """Return True if the fields begin with the year, and none is missing in between."""
    tokens = list(_PATTERN.finditer(pattern))
    fields = [field for token in tokens if (field := token[1])]
    whole = [field for field in fields if field in _FIELDS]
    fraction = fields[len(whole) :]  # fraction of a second, once, at the end
    return (
        "".join(token[0] for token in tokens) == pattern
        and bool(whole)
        and tuple(whole) == _FIELDS[: len(whole)]
        and fields == [*whole, *fraction]
        and all(set(field) == {"S"} for field in fraction)
        and len(fraction) <= (len(whole) == len(_FIELDS))
    )
