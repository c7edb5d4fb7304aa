"""Binds ORDER BY of a grouped stream: it begins with the group's ROWTIME, or with an expression that closes groups.

Semantics 5: rows are sorted within each value of the first key; the rowtime is the end of that value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rowtime.core.columns import ROWTIME, SORT_VALUE
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.facts import Fact
from rowtime.expr.monotonicity import prove
from rowtime.operators.contract import Column, Operator
from rowtime.operators.groups.group_by import GroupBy
from rowtime.operators.groups.group_values import GroupByValues
from rowtime.operators.over.value_clocks import Closer
from rowtime.operators.rows.ends import Lead
from rowtime.operators.rows.select import Item
from rowtime.operators.sorts.sort_by import SortBy
from rowtime.operators.sorts.sort_by_values import SortByValues
from rowtime.operators.windows.session import SessionGroup
from rowtime.plan.bind import rewrites
from rowtime.plan.bind.orders import Keyed, Keys, gates_of, keys_of, leads, meant, over, unfit, way_of
from rowtime.plan.bind.scope import Scope


@dataclass(frozen=True)
class GroupSort(Keyed):
    """The order of the rows of groups: ``value`` first, over the keys, and ``at`` over rowtime and marks.

    Without ``value``, the group's ROWTIME comes first.
    """

    keys: Keys
    value: exp.Expr | None = None
    at: exp.Expr | None = None
    descending: bool = False

    def put_on(self, node: GroupBy | GroupByValues | SessionGroup, fresh: Callable[[], str]) -> Operator:
        """Return the groups in this order; ``fresh`` names an operator."""
        lead = Lead(self.value, self.at) if self.value is not None and self.at is not None else None
        ordered = node.in_order(lead, self.items, self.ways)
        if ordered is not None:
            return ordered
        if self.value is None or self.at is None or columns_in([self.at]) == {ROWTIME}:
            # The rowtime of a row is that of a row of its group or session, so the value can be computed from it.
            key = self.at or col(ROWTIME)
            node = replace(node, items=(*node.items, *self.items))
            return SortBy(fresh(), node, Item(Column(SORT_VALUE), key), self.names, self.ways)
        node = replace(node, items=(*node.items, *self.items, Item(Column(SORT_VALUE), self.value)))
        closer = Closer(0, self.at, self.descending)
        gates = gates_of(node, closer)
        return SortByValues(fresh(), node, self.value, closer, gates, self.names, self.ways)


@dataclass(frozen=True)
class Grouped:
    """What ORDER BY needs from a bound GROUP BY.

    ``facts``: of its keys. ``clocks``: the closing keys over rowtime and marks. ``over_groups`` binds an expression,
    and ``shown`` returns the names of keys and aggregates in the query. For ``loose`` keys (ends of overlapping
    windows) the clock is not the value.
    """

    facts: Mapping[str, Fact]
    clocks: Mapping[str, exp.Expr]
    stamp: exp.Expr | None
    over_groups: Callable[[exp.Expr], exp.Expr]
    shown: Callable[[exp.Expr], str]
    loose: frozenset[str] = frozenset()


def bind_group_sort(query: exp.Select, scope: Scope, groups: Grouped) -> GroupSort | None:
    """Return the ORDER BY of a grouped query; ``None`` if there is none, or if the rows have this order anyway."""
    order = query.args.get("order")
    if order is None:
        return None
    first, *others = order.expressions
    if first.args.get("within") is not None:
        hint = "Sort by an event time before grouping: SELECT STREAM t AS ROWTIME, … ORDER BY t WITHIN …."
        scope.refuse("R181", "ORDER BY … WITHIN of a grouped stream", first, hint)
        return None
    keys = keys_of(query, scope, others, groups.over_groups, "__o")
    if _names_rowtime(query, first):
        if first.args.get("desc"):
            leads(query, scope, prove(exp.column(ROWTIME), scope.facts), exp.column(ROWTIME))
        return None if first.args.get("desc") or not keys else GroupSort(keys)
    value = groups.over_groups(meant(query, scope, first.this))
    if value == groups.stamp and not keys:
        return None
    if not leads(query, scope, prove(value, groups.facts), value, groups.shown):
        return None
    return _by_value(query, scope, keys, value, groups) if _closes(query, scope, value, groups) else None


def by_value(keys: Keys, value: exp.Expr, groups: Grouped, *, descending: bool) -> GroupSort:
    """Return the order in which rows with one value, over the keys, come together at its end."""
    at = value.copy().transform(lambda p: groups.clocks[p.name].copy() if isinstance(p, exp.Column) else p)
    # If a key that closes all groups comes first, its end is the rowtime that they have anyway.
    alone = len(groups.clocks) == 1 and isinstance(value, exp.Column) and columns_in([at]) == {ROWTIME}
    return GroupSort(keys) if alone else GroupSort(keys, value, at, descending)


def _by_value(query: exp.Select, scope: Scope, keys: Keys, value: exp.Expr, groups: Grouped) -> GroupSort | None:
    first = query.args["order"].expressions[0]
    if groups.stamp is None:
        return by_value(keys, value, groups, descending=bool(first.args.get("desc")))
    if over(groups.stamp, value, SORT_VALUE) is None:
        unfit(query, scope)
        return None
    # Several values may have one rowtime, so the value comes first in it.
    return GroupSort(((Item(Column("__v"), value), way_of(first)), *keys))


def _closes(query: exp.Select, scope: Scope, value: exp.Expr, groups: Grouped) -> bool:
    names = columns_in([value])
    if names <= set(groups.clocks) and (isinstance(value, exp.Column) or not names & groups.loose):
        return True
    what = "ORDER BY of groups starts with an expression that does not close them"
    hint = rewrites.shown(
        rewrites.ordered(query, scope.rowtime), scope.binds, "Start with the expression that closes them."
    )
    scope.refuse("R180", what, query.args["order"].expressions[0], hint)
    return False


def _names_rowtime(query: exp.Select, first: exp.Expr) -> bool:
    """Return True for ROWTIME alone: that of the groups, which are sorted."""
    node = first.this
    listed: Sequence[exp.Expr] = query.expressions
    if isinstance(node, exp.Literal) and node.name.isdigit() and 1 <= int(node.name) <= len(listed):
        return listed[int(node.name) - 1].alias_or_name.lower() == "rowtime"
    return isinstance(node, exp.Column) and not node.text("table") and node.name.lower() == "rowtime"
