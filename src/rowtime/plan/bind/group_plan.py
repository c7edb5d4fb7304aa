"""A bound GROUP BY: its operator, and which columns are functions of the rowtime of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.columns import HOP_END, JUDGED, PASSED_ROWTIME, PROMOTED_TIME, ROWTIME, SESSION_END
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.facts import ROWTIME_FACT, Kind
from rowtime.expr.grids import at_end, filled, flat, is_short, on_grid
from rowtime.expr.group_end import group_end, moved, unshifted
from rowtime.expr.monotonicity import order_of, prove
from rowtime.expr.readable import readable
from rowtime.operators.contract import Column, Operator
from rowtime.operators.groups.group_by import GroupBy
from rowtime.operators.groups.group_values import GroupByValues
from rowtime.operators.over.value_clocks import Closer
from rowtime.operators.rows.select import Item
from rowtime.operators.windows.session import SessionGroup
from rowtime.plan.bind.group_distinct import distinct_rows
from rowtime.plan.bind.group_order import GroupSort
from rowtime.plan.bind.orders import gates_of, over
from rowtime.plan.bind.struct_fields import kind_of_field
from rowtime.plan.bind.windows import TICK, is_value, session_end
from rowtime.sql.dialect import Rowtime
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import Windowed

if TYPE_CHECKING:
    from rowtime.plan.bind.scope import Scope


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
    loose: frozenset[str] = frozenset()
    """The keys whose closer is only a clock: the ends of overlapping windows."""
    alike: bool = False
    """All keys that close a group end together."""
    session_time: exp.Expr | None = None
    """The time of sessions, over the rowtime."""
    clocks: Mapping[str, exp.Expr] = field(default_factory=dict)
    """The keys over the rowtime of the rows, if they follow it."""

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
        many = bool(self.loose)
        return GroupBy(
            name, source, self.keys, self.aggregates, self.items, self.closers, self.having, self.stamp, many
        )

    def lineage(self) -> dict[str, exp.Expr]:
        """Return the columns that are functions of the groups' rowtime, by keys that close the groups.

        The key and the rowtime of a group belong to one instant, its last: all its ends are of one kind, or the stamp
        would not tell which. The end of an overlapping window is the rowtime only if every key ends with it.
        """
        if self.stamp is not None or self.sort is not None or self.by_value:
            return {}
        if self.gap is not None:
            edges = {item.column.name: unshifted(item.expression) for item in self.items}
            time = self.session_time or col(ROWTIME)
            end, ahead = session_end(time, self.gap), unshifted(on_grid(time))[1]
            return {n: moved(end.copy(), by - ahead) for n, (edge, by) in edges.items() if edge == col(SESSION_END)}
        closed = {group_end(closer.expression, closer.column.name).closed for closer in self.closers}
        instant = any(isinstance(unshifted(closer.expression)[0], exp.Column) for closer in self.closers)
        keys = {
            closer.column.name: self._at_end(closer, instant=instant, closed=closed == {True})
            for closer in self.closers
            if len(closed) == 1 and is_short(closer.expression) and (self.alike or closer.column.name not in self.loose)
        }
        listed = [
            item for item in self.items if columns_in([item.expression]) and columns_in([item.expression]) <= set(keys)
        ]
        return {
            item.column.name: flat(filled(keys, item.expression))
            for item in listed
            if item.column.order.moves or isinstance(unshifted(item.expression)[0], exp.Column)
        }

    def _at_end(self, closer: Item, *, instant: bool, closed: bool) -> exp.Expr:
        """Return a key as a function of the groups' rowtime; all rows of a group of an ``instant`` have it already."""
        at = self.clocks[closer.column.name]
        if instant and closed and columns_in([at]) == {ROWTIME} and is_value(at):
            return flat(at)
        return at_end(closer.expression, closed=closed)


def former(node: exp.Expr) -> exp.Expr:
    """Return the expression with the rowtime from before WITHIN in place of the present one."""

    def renamed(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.name != ROWTIME:
            return part
        column = col(PASSED_ROWTIME)
        column.meta.update(part.meta)
        return column

    return node.transform(renamed)


def time_in(key: exp.Expr, columns: Sequence[Column]) -> exp.Expr | None:
    """Return the time that a key of GROUP BY … WITHIN rounds: the innermost part that is one, the key itself at last.

    The key is a monotonic function of that time alone. ``None`` if no part is a time of the row.
    """
    part, facts = key.unnest(), {**{column.name: column.known for column in columns}, ROWTIME: ROWTIME_FACT}

    def kind(node: exp.Expr) -> Kind:
        known = prove(node, facts).fact.kind
        return known if known is not Kind.OTHER else kind_of_field(node, columns)

    while len(inner := [inner.unnest() for inner in part.iter_expressions() if inner.find(exp.Column)]) == 1:
        # A cast may be what makes a time of a value whose type only Spark knows.
        times = (Kind.TIMESTAMP, Kind.DATE, *([] if isinstance(part, exp.Cast | exp.TryCast) else [Kind.OTHER]))
        rounded = over(key, inner[0], ROWTIME)
        if kind(inner[0]) not in times or rounded is None or not order_of(rounded, {ROWTIME: ROWTIME_FACT}).moves:
            break
        part = inner[0]
    hidden = any(name.startswith("__") for name in columns_in([key]) - {ROWTIME})  # one of several windows
    times = (Kind.TIMESTAMP, Kind.OTHER, *([] if part == key.unnest() else [Kind.DATE]))
    return part if part.find(exp.Column) and not hidden and kind(part) in times else None


def within_window(scope: Scope, window: Windowed, tolerance: int, node: exp.Expr) -> WithinGroup | None:
    """Return the tolerance of windows of a time in no order: a row is late for a window that has ended.

    Refuses (R128) the start of a growing window, and windows whose time the rows no longer have.
    """
    time, end = window.args["time"], window.args["end"]
    if isinstance(window.this.this, exp.Null):
        hint = f"Group by the end too, and give it the tolerance: GROUP BY {readable(node)}, {readable(end)} WITHIN …."
        scope.refuse("R128", "the start of a window that grows does not tell when it ends", node, hint)
        return None
    lacking = columns_in([time, end]) - {ROWTIME, *(column.name for column in scope.columns)}
    if window.args.get("lost") or any(not name.startswith(HOP_END) for name in lacking):
        what = f"WITHIN is about the time of these windows, {readable(time)}, which is no column of this input"
        hint = (
            f"Select {readable(time)} and {readable(end)} in the view or sub-query. After a join, put the join below "
            f"the windows: TABLE(HOP((SELECT STREAM …), DESCRIPTOR({readable(time)}), …))."
        )
        scope.refuse("R128", what, node, hint)
        return None
    last = exp.Sub(this=end.copy(), expression=TICK.copy())
    return WithinGroup((Item(Column(PROMOTED_TIME), time.copy()), Item(Column(JUDGED), last)), tolerance)


_LOCAL = ("FROM_UTC_TIMESTAMP", "CONVERT_TIMEZONE")


def refuse_local(scope: Scope, time: exp.Expr, tolerance: exp.Expr, node: exp.Expr) -> None:
    """Refuse (R104) groups WITHIN by a local time that goes back with the clocks: no rowtime would be their end."""
    local = next((call for call in time.find_all(exp.Anonymous) if call.name.upper() in _LOCAL), None)
    if local is not None:
        at = readable(next(part for part in local.expressions if not isinstance(part.unnest(), exp.Literal)))
        hint = (
            f"Promote the time in a view, and group its rows by a function of ROWTIME: SELECT STREAM {at} AS ROWTIME, "
            f"… ORDER BY {at} WITHIN {to_rowtime(tolerance)}."
        )
        scope.refuse("R104", f"{readable(local)} goes back when clocks do, so it is no rowtime of groups", node, hint)


def of_the_group(node: exp.Expr, shown: str) -> str:
    """Return what to write for the ROWTIME of the rows in the select list of their groups."""
    if not isinstance(node, exp.Column):
        return f"Group by {to_rowtime(node)} as well, or aggregate it, for example MAX({shown})."
    if isinstance(node.parent, exp.Alias):
        name = node.parent.args["alias"].sql(Rowtime)
        return (
            f"The ROWTIME of a group is its end: write g.ROWTIME AS {name} in a SELECT STREAM around the groups, "
            "(…) AS g."
        )
    return "Leave it out: the rowtime of a group is its end, and is written with every row."
