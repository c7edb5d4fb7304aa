"""Conditions and their parts, columns among them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """What a condition joins by AND."""
    if condition is None:
        return []
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def col(name: str) -> exp.Column:
    """The column of this name, as it is written."""
    return exp.column(exp.to_identifier(name, quoted=True))


def columns_in(trees: Iterable[exp.Expr | None]) -> set[str]:
    """The columns that some expressions name."""
    return {column.name for tree in trees if tree is not None for column in tree.find_all(exp.Column)}
