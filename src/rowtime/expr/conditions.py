"""Conditions and their parts, columns among them."""

from __future__ import annotations

from sqlglot import exp


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """What a condition joins by AND."""
    if condition is None:
        return []
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def col(name: str) -> exp.Column:
    """The column of this name, as it is written."""
    return exp.column(exp.to_identifier(name, quoted=True))
