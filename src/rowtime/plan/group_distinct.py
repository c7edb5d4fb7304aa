"""Binds DISTINCT beside GROUP BY: a group over the groups, one for each row that differs.

Rows that are alike have the same value of a listed expression that closes groups, so they
are gathered at its end, as ORDER BY does, and grouped by that and the select list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.expr.facts import ROWTIME
from rowtime.expr.monotonicity import prove
from rowtime.operators.contract import Column, Operator, T
from rowtime.operators.group_by import GroupBy
from rowtime.operators.select import Item
from rowtime.plan import rewrites
from rowtime.plan.group_order import Grouped, GroupSort, by_value
from rowtime.plan.scope import Scope, columns_of


def bind_distinct(
    query: exp.Select, scope: Scope, keys: Sequence[Item], items: Sequence[Item], groups: Grouped
) -> GroupSort | None:
    """What gathers rows that are alike; ``None`` where no two are, or where it is refused."""
    listed = {item.expression.name for item in items if isinstance(item.expression, exp.Column)}
    if {key.column.name for key in keys} <= listed:
        return None  # each row has the keys of its group
    if query.args.get("order"):
        hint = "Put the DISTINCT query into a sub-query, and sort that."
        scope.refuse("R184", "ORDER BY beside DISTINCT and GROUP BY", query.args["order"], hint)
        return None
    for item in items:
        names, order = columns_of([item.expression]), prove(item.expression, groups.facts).order
        plain = isinstance(item.expression, exp.Column) or not names & groups.loose
        if order.moves and names <= set(groups.clocks) and plain:
            return by_value((), item.expression, groups, descending=order.direction < 0)
    group = query.args["group"].expressions
    hint = rewrites.shown(
        rewrites.listing(query, group), scope.binds, "Select one of the grouping expressions that close groups as well."
    )
    scope.refuse(
        "R184", "DISTINCT of groups lists nothing that closes them, so it would never be complete", query, hint
    )
    return None


def once(node: Operator, items: Sequence[Item], fresh: Callable[[], str]) -> Operator:
    """Each row that differs once, at its rowtime."""
    time = Item(Column("__k0", fact=ROWTIME), exp.column(exp.to_identifier(T, quoted=True)))
    names = [item.column.name for item in items]
    listed = [Item(Column(f"__k{n}"), _column(name)) for n, name in enumerate(names, 1)]
    shown = tuple(
        Item(replace(item.column, fact=Column("").fact), _column(key.column.name))
        for item, key in zip(items, listed, strict=True)
    )
    return GroupBy(fresh(), node, (time, *listed), (), shown, (time,))


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))
