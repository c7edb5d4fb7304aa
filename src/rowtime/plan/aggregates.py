"""What is an aggregate in a query, and which of them look at the order of rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rowtime.expr.aggregate_names import aggregates
from rowtime.expr.aggregates import orders_rows
from rowtime.operators.select import Item


def is_aggregate(node: exp.Expr) -> bool:
    """True for an aggregate call, with its FILTER or IGNORE NULLS."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls | exp.WithinGroup):
        return is_aggregate(node.this)
    return aggregates(node)


def has_aggregates(node: exp.Expr) -> bool:
    """True if an aggregate stands anywhere in the expression, not under OVER."""
    return any(is_aggregate(part) and part.find_ancestor(exp.Window) is None for part in node.walk())


def is_sorted_collection(node: exp.Expr) -> bool:
    """True for ARRAY_SORT(COLLECT_LIST(x)) and its like, which no order of rows changes."""
    return isinstance(node, exp.ArraySort) and isinstance(node.this, exp.ArrayAgg | exp.ArrayUniqueAgg)


def needs_places(aggregates: Sequence[Item]) -> bool:
    """True if an aggregate depends on the order of rows."""
    expressions = [item.expression for item in aggregates if not is_sorted_collection(item.expression)]
    return any(orders_rows(part) for expression in expressions for part in expression.walk())
