"""Period predicates as comparisons of times (SQL:2011, 8.20): a period is [start, end)."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from rowtime.sql.nodes import Lifetime, Period


def periodic(period: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return the ends of a PERIOD; a time is a period of its own."""
    return (period.this, period.expression) if isinstance(period, Period) else (period, period)


def compared(predicate: exp.Expr, ends: Callable[[exp.Expr], tuple[exp.Expr, exp.Expr]] = periodic) -> exp.Expr:
    """Return a predicate as comparisons (SQL:2011, 8.20); ``ends`` returns the start and end of a side."""
    (start, end), (other_start, other_end) = ends(predicate.this), ends(predicate.expression)

    def less(one: exp.Expr, other: exp.Expr, *, strictly: bool = False) -> exp.Expr:
        return (exp.LT if strictly else exp.LTE)(this=one.copy(), expression=other.copy())

    def same(one: exp.Expr, other: exp.Expr) -> exp.Expr:
        return exp.EQ(this=one.copy(), expression=other.copy())

    point = not isinstance(predicate.expression, Period | Lifetime)
    both = {
        "CONTAINS": (less(start, other_start), less(other_end, end, strictly=point)),
        "OVERLAPS": (less(start, other_end, strictly=True), less(other_start, end, strictly=True)),
        "EQUALS": (same(start, other_start), same(end, other_end)),
    }
    if predicate.args["how"] in both:
        lower, upper = both[predicate.args["how"]]
        return exp.And(this=lower, expression=upper)
    single = {
        "PRECEDES": less(end, other_start),
        "SUCCEEDS": less(other_end, start),
        "IMMEDIATELY PRECEDES": same(end, other_start),
        "IMMEDIATELY SUCCEEDS": same(start, other_end),
    }
    return single[predicate.args["how"]]
