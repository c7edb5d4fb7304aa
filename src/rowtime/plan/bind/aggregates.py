"""What is an aggregate in a query."""

from __future__ import annotations

from sqlglot import exp

from rowtime.expr.many_rows import aggregates


def is_aggregate(node: exp.Expr) -> bool:
    """True for an aggregate call, with its FILTER or IGNORE NULLS."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls | exp.WithinGroup):
        return is_aggregate(node.this)
    return aggregates(node)


def has_aggregates(node: exp.Expr) -> bool:
    """True if an aggregate stands anywhere in the expression, not under OVER."""
    return any(is_aggregate(part) and part.find_ancestor(exp.Window) is None for part in node.walk())
