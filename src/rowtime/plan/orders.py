"""Binds ORDER BY: a T-sort (WITHIN), or further keys inside each value of a function of the rowtime."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from rowtime.expr.monotonicity import prove
from rowtime.operators.contract import Column, T
from rowtime.operators.select import Item
from rowtime.plan.scope import Scope, columns_of
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import Duration, span_of


@dataclass(frozen=True)
class Sort:
    """A bound ORDER BY: the tolerance in µs, and the further keys with their directions."""

    within: int
    keys: tuple[tuple[Item, str], ...]
    value: Item | None = None
    """What an ORDER BY without WITHIN leads with."""
    early: int | None = None
    """How far above the mark a row may lie, in µs."""


def _keys(scope: Scope, keys: list[exp.Expr]) -> tuple[tuple[Item, str], ...]:
    return tuple(
        (Item(Column(f"__k{number}"), scope.bind(key.this)), "DESC" if key.args.get("desc") else "ASC")
        for number, key in enumerate(keys)
    )


def bind_sort(query: exp.Expr, scope: Scope, promoted: exp.Expr | None) -> Sort | None:
    """The ORDER BY of a query; ``None`` for none, and for the order that a stream has anyway."""
    order = query.args.get("order")
    if order is None:
        return None
    first, *others = order.expressions
    if first.args.get("within") is None:
        if is_rowtime(scope.bind(first.this)) and not first.args.get("desc") and not others:
            return None  # the order that a stream has anyway
        return _by_value(scope, first, others, promoted)
    if first.args.get("desc"):
        scope.refuse("R120", "a T-sort cannot be descending", first, "Leave out DESC.")
    time = scope.bind(first.this)
    if promoted is None or time != promoted:
        scope.refuse(
            "R121",
            "a T-sort must give its sort expression the name ROWTIME in the select list",
            first,
            f"Select {to_rowtime(first.this)} AS ROWTIME.",
        )
    early = first.args.get("early")
    limit = micros(scope, early, "EARLY BEYOND") if early is not None else None
    return Sort(micros(scope, first.args["within"]), _keys(scope, others), early=limit)


def _by_value(scope: Scope, first: exp.Expr, others: list[exp.Expr], promoted: exp.Expr | None) -> Sort | None:
    """ORDER BY of a stream: it leads with what ascends from row to row."""
    value = scope.inlined(scope.bind(first.this))
    proof = prove(value, scope.facts)
    if proof.order.direction <= 0 or first.args.get("desc"):
        why = proof.failure()
        scope.refuse(
            "R138",
            "ORDER BY of a stream must lead with an increasing expression",
            first,
            f"Lead with one, for example ORDER BY FLOOR({scope.rowtime} TO HOUR), {to_rowtime(first.this)}; "
            f"or sort an event time t with ORDER BY t WITHIN INTERVAL '1' MINUTE, and select t AS ROWTIME.",
            f"{why.text}: {why.rule}" if proof.order.direction <= 0 else "DESC makes it decrease",
        )
        return None
    if columns_of([value]) != {T} or promoted is not None:
        what = "ORDER BY of an ordered column" if promoted is None else "AS ROWTIME beside ORDER BY without WITHIN"
        scope.refuse("R190", f"{what} is not supported yet", first)
        return None
    return Sort(0, _keys(scope, others), Item(Column("__m"), value))


def micros(scope: Scope, node: exp.Expr, word: str = "WITHIN") -> int:
    """A duration in µs; a problem where it is none."""
    try:
        span = span_of(node)
    except ValueError as wrong:
        scope.refuse("R122", str(wrong), node)
        return 0
    if not isinstance(span, Duration) or span.micros < 0:
        scope.refuse("R122", f"{word} takes a duration that is not negative", node, "For example INTERVAL '1' MINUTE.")
        return 0
    return span.micros


def is_rowtime(node: exp.Expr) -> bool:
    """True for the rowtime itself, bound."""
    return isinstance(node.unnest(), exp.Column) and node.unnest().name == T
