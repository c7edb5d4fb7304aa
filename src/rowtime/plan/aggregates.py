"""What is an aggregate in a query, and which of them look at the order of rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rowtime.expr.aggregates import ORDERED
from rowtime.operators.select import Item

AGGREGATE_NAMES = frozenset(
    {
        "PERCENTILE",
        "PERCENTILE_DISC",
        "PERCENTILE_CONT",
        "HISTOGRAM_NUMERIC",
        "HLL_SKETCH_AGG",
        "BITMAP_CONSTRUCT_AGG",
        "TRY_SUM",
        "TRY_AVG",
        "REGR_COUNT",
        "SOME",
        "EVERY",
        "MEAN",
        "STD",
        "COLLECT_SET",
        "COLLECT_LIST",
        "LISTAGG",
        "STRING_AGG",
        "BIT_AND",
        "BIT_OR",
        "BIT_XOR",
        "COUNT_MIN_SKETCH",
        "MAX_BY",
        "MIN_BY",
        "PRODUCT",
    }
)
"""Aggregates of Spark that the parser knows by name only."""


def is_aggregate(node: exp.Expr) -> bool:
    """True for an aggregate call, with its FILTER or IGNORE NULLS."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls | exp.WithinGroup):
        return is_aggregate(node.this)
    if isinstance(node, exp.AggFunc):
        return True
    return isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATE_NAMES


def has_aggregates(node: exp.Expr) -> bool:
    """True if an aggregate stands anywhere in the expression, not under OVER."""
    return any(is_aggregate(part) and part.find_ancestor(exp.Window) is None for part in node.walk())


def is_sorted_collection(node: exp.Expr) -> bool:
    """True for ARRAY_SORT(COLLECT_LIST(x)) and its like, which no order of rows changes."""
    return isinstance(node, exp.ArraySort) and isinstance(node.this, exp.ArrayAgg | exp.ArrayUniqueAgg)


def needs_places(aggregates: Sequence[Item]) -> bool:
    """True if an aggregate depends on the order of rows."""
    expressions = [item.expression for item in aggregates if not is_sorted_collection(item.expression)]
    return any(isinstance(part, ORDERED) for expression in expressions for part in expression.walk())
