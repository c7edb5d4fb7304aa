"""Conditions and their parts, columns among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from rowtime.expr.facts import Kind

_LOGIC = (exp.Paren, exp.And, exp.Or, exp.Not, exp.Is, exp.Column, exp.Null, exp.Boolean, exp.Literal)
_COMPARES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts of a condition that AND joins."""
    if condition is None:
        return []
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def col(name: str) -> exp.Column:
    """Return the column of this name, as it is written."""
    return exp.column(exp.to_identifier(name, quoted=True))


def columns_in(trees: Iterable[exp.Expr | None]) -> set[str]:
    """Return the columns that some expressions name."""
    return {column.name for tree in trees if tree is not None for column in tree.find_all(exp.Column)}


def only_where(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    """Return a value for the rows that a condition accepts, and NULL for others: it is not computed for these."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def never_fails(expression: exp.Expr, kinds: Mapping[str, Kind]) -> bool:
    """Return True if no value can make an expression fail.

    Such are columns, literals, comparisons within a kind, and logic over these. ``kinds``: of the columns. Spark casts
    the sides of a comparison across kinds, and such a cast may fail.
    """
    parts = [] if isinstance(expression, exp.Column) else [*expression.iter_expressions()]
    if isinstance(expression, _COMPARES):
        known_kinds = {_kind_of(part.unnest(), kinds) for part in parts} - {None}
        alike = len(known_kinds) == 1 or all(kind.number for kind in known_kinds if kind)
        return alike and Kind.OTHER not in known_kinds and all(never_fails(part, kinds) for part in parts)
    return isinstance(expression, _LOGIC) and all(never_fails(part, kinds) for part in parts)


def _kind_of(expression: exp.Expr, kinds: Mapping[str, Kind]) -> Kind | None:
    """Return the kind of a column or literal; ``None`` for NULL, which can be compared with anything."""
    if isinstance(expression, exp.Column):
        return kinds.get(expression.name, Kind.OTHER)
    if isinstance(expression, exp.Literal):
        return Kind.TEXT if expression.is_string else Kind.DECIMAL
    if isinstance(expression, exp.Boolean):
        return Kind.BOOLEAN
    return None if isinstance(expression, exp.Null) else Kind.OTHER
