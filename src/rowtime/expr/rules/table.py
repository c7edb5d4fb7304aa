"""The table that rules enter, and what every rule uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from sqlglot import exp

from rowtime.expr.facts import Fact, Kind
from rowtime.expr.order import Order


class Found(NamedTuple):
    """What a rule gives: the fact, and the rule in words."""

    fact: Fact
    rule: str


class Parts(Protocol):
    """Proves the parts of a node for its rule, and remembers which were used."""

    def of(self, node: exp.Expr) -> Fact:
        """What is known of a part."""
        ...


Rule = Callable[[exp.Expr, Parts], Found]
RULES: dict[type[exp.Expr], Rule] = {}
"""By kind of node."""
NAMED: dict[str, Rule] = {}
"""By upper-case name, for functions that the parser knows by name only."""


def rule(*kinds: type[exp.Expr] | str) -> Callable[[Rule], Rule]:
    """Enter a rule into the table for kinds of nodes or names of functions."""

    def enter(made: Rule) -> Rule:
        for kind in kinds:
            if isinstance(kind, str):
                NAMED[kind] = made
            else:
                RULES[kind] = made
        return made

    return enter


def none(why: str, kind: Kind = Kind.OTHER) -> Found:
    """No order, and why."""
    return Found(Fact(kind=kind), why)


def rounded(fact: Fact, kind: Kind, why: str) -> Found:
    """The same direction without strictness, in another kind."""
    return Found(fact.as_(fact.order.loosened(), kind), why)


def kept(fact: Fact, kind: Kind, why: str) -> Found:
    """The same order, in another kind."""
    return Found(fact.as_(fact.order, kind), why)


def constant(kind: Kind, why: str) -> Found:
    """Always the same value, though a column is in it."""
    return Found(Fact(Order.CONSTANT, kind), why)


def arguments(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call, in order."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [part for value in node.args.values() for part in (value if isinstance(value, list) else [value])
            if isinstance(part, exp.Expr)]  # fmt: skip
