"""The table of rules, and functions that every rule uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from sqlglot import exp

from rowtime.expr.facts import Fact, Kind
from rowtime.expr.order import Order


class Conclusion(NamedTuple):
    """The result of a rule: the fact, and the rule in words."""

    fact: Fact
    rule: str


class Parts(Protocol):
    """Proves the parts of a node for its rule, and remembers which were used."""

    def of(self, node: exp.Expr) -> Fact:
        """Return the fact about a part."""
        ...


Rule = Callable[[exp.Expr, Parts], Conclusion]
RULES: dict[type[exp.Expr], Rule] = {}
"""By kind of node."""
NAMED: dict[str, Rule] = {}
"""By upper-case name, for functions that the parser knows by name only."""


def rule(*kinds: type[exp.Expr] | str) -> Callable[[Rule], Rule]:
    """Register a rule in the table for kinds of nodes or names of functions."""

    def enter(function: Rule) -> Rule:
        for kind in kinds:
            if isinstance(kind, str):
                NAMED[kind] = function
            else:
                RULES[kind] = function
        return function

    return enter


def none(why: str, kind: Kind = Kind.OTHER) -> Conclusion:
    """Return no order, with the reason."""
    return Conclusion(Fact(kind=kind), why)


def rounded(fact: Fact, kind: Kind, why: str) -> Conclusion:
    """Return the same direction without strictness, in another kind."""
    return Conclusion(fact.as_(fact.order.loosened(), kind), why)


def kept(fact: Fact, kind: Kind, why: str) -> Conclusion:
    """Return the same order, in another kind."""
    return Conclusion(fact.as_(fact.order, kind), why)


def constant(kind: Kind, why: str) -> Conclusion:
    """Return a constant, although the expression has a column."""
    return Conclusion(Fact(Order.CONSTANT, kind), why)


def arguments(node: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a call, in order."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [part for value in node.args.values() for part in (value if isinstance(value, list) else [value])
            if isinstance(part, exp.Expr)]  # fmt: skip
