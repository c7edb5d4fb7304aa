"""A bound GROUP BY: its operator, and which columns are functions of the rowtime of its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from rowtime.core.columns import KEY, PASSED_ROWTIME, ROWTIME, SESSION_END
from rowtime.expr.conditions import col
from rowtime.expr.group_end import fixed_end, unshifted
from rowtime.operators.contract import Operator
from rowtime.operators.groups.group_by import GroupBy
from rowtime.operators.groups.group_values import GroupByValues
from rowtime.operators.over.value_clocks import Closer
from rowtime.operators.rows.select import Item
from rowtime.operators.windows.session import SessionGroup
from rowtime.plan.bind.group_distinct import distinct_rows
from rowtime.plan.bind.group_order import GroupSort
from rowtime.plan.bind.orders import gates_of
from rowtime.plan.bind.windows import moved


@dataclass(frozen=True)
class WithinGroup:
    """GROUP BY … WITHIN: the time and the end of its group as hidden columns, the tolerance in µs.

    Above it the rowtime is that time. The query's expressions over ROWTIME, or over a column that follows it, use the
    row's rowtime from before, which stays in the column `BEFORE` (see `former`).
    """

    hidden: tuple[Item, ...]
    micros: int


@dataclass(frozen=True)
class GroupPlan:
    """A bound GROUP BY, ready to be put on its input."""

    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    closers: tuple[Item, ...]
    having: exp.Expr | None
    stamp: exp.Expr | None
    within: WithinGroup | None
    by_value: tuple[Closer, ...] = ()
    sort: GroupSort | None = None
    gap: int | None = None
    distinct: bool = False
    """Equal rows of groups are emitted once; ``sort`` gathers them."""
    endless: bool = False
    """Only the end of the stream closes the groups."""

    def build(self, name: str, source: Operator, fresh: Callable[[str], str]) -> Operator:
        """Return the operator on its input, with the order of its rows."""
        groups = self._grouped(fresh(f"{name}.group"), source)
        node = groups if self.sort is None else self.sort.put_on(groups, lambda: fresh(f"{name}.order"))
        return distinct_rows(node, self.items, lambda: fresh(f"{name}.distinct")) if self.distinct else node

    def _grouped(self, name: str, source: Operator) -> GroupBy | GroupByValues | SessionGroup:
        if self.gap is not None:
            return SessionGroup(name, source, self.keys, self.aggregates, self.items, self.gap, self.having, self.stamp)
        if self.by_value or self.endless:
            gates = tuple(dict.fromkeys(gate for closer in self.by_value for gate in gates_of(source, closer)))
            return GroupByValues(
                name, source, self.keys, self.aggregates, self.items, self.by_value, gates, self.having, self.stamp,
                ordered=self.within is None,
            )  # fmt: skip
        many = any(closer not in self.keys for closer in self.closers)
        return GroupBy(
            name, source, self.keys, self.aggregates, self.items, self.closers, self.having, self.stamp, many
        )

    def lineage(self) -> dict[str, exp.Expr]:
        """Return the columns that are functions of the groups' rowtime: keys whose groups all end equally later.

        Such a key plus or minus an interval is one as well, for example TUMBLE_END.
        """
        time = col(ROWTIME)
        own = self.stamp is not None or self.sort is not None
        if self.gap is not None:
            ended = [item.column.name for item in self.items if item.expression == col(SESSION_END)]
            return {name: time.copy() for name in ended if not own}
        end_of = {closer.column.name: fixed_end(closer.expression) for closer in self.closers}
        ends = {end for end in end_of.values() if end is not None}
        if own or self.by_value or None in end_of.values() or len({text for text, _ in ends}) != 1:
            return {}
        shifted = {item.column.name: unshifted(item.expression) for item in self.items}
        names = {name: (end_of.get(key.name), by) for name, (key, by) in shifted.items() if _is_key(key)}
        return {name: moved(time.copy(), by - end[1]) for name, (end, by) in names.items() if end is not None}


def _is_key(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.name.startswith(KEY)


def former(node: exp.Expr) -> exp.Expr:
    """Return the expression with the rowtime from before WITHIN in place of the present one."""

    def renamed(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.name != ROWTIME:
            return part
        column = col(PASSED_ROWTIME)
        column.meta.update(part.meta)
        return column

    return node.transform(renamed)
