"""Binds DISTINCT with GROUP BY: a second grouping that keeps each different row once.

Equal rows have the same value of a listed expression that closes groups. So they are gathered at the end of that value,
as ORDER BY does, and grouped by it and the select list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from sqlglot import exp

from rowtime.core.columns import KEY, ROWTIME, SESSION_END, SESSION_START, SORT_VALUE
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.facts import ROWTIME_FACT
from rowtime.expr.monotonicity import prove
from rowtime.operators.contract import Column, Operator
from rowtime.operators.groups.group_by import GroupBy
from rowtime.operators.rows.select import Item
from rowtime.plan.bind import rewrites
from rowtime.plan.bind.group_order import Grouped, GroupSort, by_value
from rowtime.plan.bind.orders import over
from rowtime.plan.bind.scope import Scope


def bind_distinct(
    query: exp.Select, scope: Scope, identity: AbstractSet[str], items: Sequence[Item], groups: Grouped
) -> GroupSort | None:
    """Return the operator that gathers equal rows; ``None`` if no two rows are equal, or if it is refused.

    ``identity``: the columns in which no two groups are equal.
    """
    listed = {item.expression.name for item in items if isinstance(item.expression, exp.Column)}
    if identity <= (listed | {SESSION_END} if SESSION_START in listed else listed):
        return None
    if query.args.get("order"):
        hint = "Put the DISTINCT query into a sub-query d, and sort that: ORDER BY FLOOR(d.ROWTIME TO HOUR), …."
        scope.refuse("R184", "ORDER BY together with DISTINCT and GROUP BY is not supported", query.args["order"], hint)
        return None
    for item in items:
        names, order = columns_in([item.expression]), prove(item.expression, groups.facts).order
        plain = isinstance(item.expression, exp.Column) or not names & groups.loose
        if order.moves and names <= set(groups.clocks) and plain:
            if groups.stamp is None:
                return by_value((), item.expression, groups, descending=order.direction < 0)
            if over(groups.stamp, item.expression, SORT_VALUE) is not None:
                return GroupSort(())  # equal rows have one rowtime
    what = "DISTINCT of groups selects no expression that closes them, so it would never be complete"
    scope.refuse("R184", what, query, _complete(query, scope))
    return None


def _complete(query: exp.Select, scope: Scope) -> str:
    """Return what would make DISTINCT complete."""
    group = query.args.get("group")
    if group is None:
        return "Put the windows into a sub-query w: SELECT STREAM DISTINCT FLOOR(w.ROWTIME TO HOUR), … FROM (…) AS w."
    hint = "Select one of the grouping expressions that close groups as well."
    return rewrites.shown(rewrites.listing(query, group.expressions), scope.binds, hint)


def distinct_rows(node: Operator, items: Sequence[Item], fresh: Callable[[], str]) -> Operator:
    """Return each different row once, at its rowtime."""
    time = Item(Column(f"{KEY}0", fact=ROWTIME_FACT), col(ROWTIME))
    names = [item.column.name for item in items]
    listed = [Item(Column(f"{KEY}{n}"), col(name)) for n, name in enumerate(names, 1)]
    shown = tuple(
        Item(replace(item.column, fact=Column("").fact), col(key.column.name))
        for item, key in zip(items, listed, strict=True)
    )
    return GroupBy(fresh(), node, (time, *listed), (), shown, (time,))
