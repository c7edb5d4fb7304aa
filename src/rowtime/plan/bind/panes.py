"""Binds GROUP BY PANES(t, …): windows of a declared event time, and functions of the pane."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from rowtime.expr.conditions import columns_in
from rowtime.operators.contract import Column, Operator
from rowtime.operators.panes.event_time import EventTimed
from rowtime.operators.panes.pane_facts import FACTS, SIGN, pane_fact
from rowtime.operators.panes.pane_times import PaneTimes
from rowtime.operators.panes.panes import Panes
from rowtime.operators.rows.select import Item
from rowtime.plan.bind.event_time import declared_by, lost_at
from rowtime.plan.bind.groups import Grouping
from rowtime.plan.bind.orders import micros
from rowtime.plan.bind.struct_fields import path_of
from rowtime.sql import nodes
from rowtime.sql.places import refuse_at
from rowtime.sql.script import parse_expression


def has_panes(query: exp.Expr) -> bool:
    """Return True if a query groups by panes."""
    group = query.args.get("group")
    return group is not None and any(isinstance(node, nodes.Panes) for node in group.expressions)


class PaneGrouping(Grouping):
    """Binds the SELECT ``query`` that groups by panes and keys."""

    times = PaneTimes(1, 1)

    def plan(self) -> Callable[[str, Operator], Operator] | None:
        """Return a function that makes the operator from a name and its input; ``None`` if something is refused."""
        before = len(self.scope.problems)
        group = self.query.args["group"]
        panes = [node for node in group.expressions if isinstance(node, nodes.Panes)]
        self.query = self.query.copy()
        others = [node for node in self.query.args["group"].expressions if not isinstance(node, nodes.Panes)]
        self.query.args["group"].set("expressions", others)
        event = self._event(panes[0])
        age = self._settings(panes)
        for node in self._grouping():
            self._key(node)
        items, stamp = self._select_list()
        if stamp is not None:
            hint = "Leave it out: the rowtime of a fire is the end of its pane, or the bound that caused it."
            self.scope.refuse("R170", "AS ROWTIME is not supported with PANES", self.query, hint)
        having = self.query.args.get("having")
        condition = self._over_groups(having.this) if having else None
        if event is None or len(self.scope.problems) > before:
            return None
        changes = bool(self.query.args.get("emit_changes"))
        if changes:
            items = (*items, Item(Column("change", "STRING"), parse_expression(SIGN)))
            self.scope.refuse_twice(self.query, items)
        settings = (event, self.times, age, tuple(self.keys), tuple(self.aggregates), items, condition)
        given = self.query.args.get("emit_every")
        every = None if given is None else max(1, micros(self.scope, given, "EMIT EVERY"))

        def grouped(name: str, source: Operator) -> Operator:
            self._refuse_again(panes[0], source)
            return Panes(name, source, *settings, changes=changes, every=every)

        return grouped

    def _refuse_again(self, node: nodes.Panes, source: Operator) -> None:
        """Refuse to count the fires of a pane that fires again. Raises ``Refused`` (R170)."""
        fires = source.fires()
        if fires is None or not fires.again:
            return
        calls = [item.expression for item in self.aggregates]
        latest = all(isinstance(call, exp.ArgMax) and call.expression.name in fires.indices for call in calls)
        if columns_in(calls) & fires.signs or (latest and not fires.changes):
            return
        what = "the panes below fire again, so an aggregate over all their fires counts a pane more than once"
        hint = (
            "Take the complete fires: add HAVING PANE_TIMING = 'COMPLETE' to the query of the panes below. Or group by "
            "the pane and its keys, and take MAX_BY(n, i) of each, where i is PANE_INDEX."
        )
        if fires.changes:
            hint = "Subtract retracted rows: SUM(CASE WHEN change = 'INSERT' THEN 1 ELSE -1 END)."
        raise refuse_at(self.scope.text, node, "R170", what, hint)

    def _event(self, node: nodes.Panes) -> EventTimed | None:
        """Return the declaration of the panes' event time."""
        event = declared_by(self.scope.input)
        if event is None:
            shown = node.this.name if isinstance(node.this, exp.Column) else "t"
            declared = f"CREATE VIEW v EVENT TIME ({shown}, LAG INTERVAL '10' SECOND) AS SELECT STREAM {self._read()};"
            hint = f"Declare one on the input, and read the view: {declared}"
            fires = self.scope.input.fires()
            if fires is not None and not fires.ends:
                hint = f"Select PANE_END AS {shown} in the query of the panes below."
            self.scope.refuse("R170", "PANES needs an event time", node, hint, lost_at(self.scope.input))
            return None
        bound = self.scope.bind(node.this)
        of_input = self.scope.input.emits().event
        if of_input is not None and of_input.here not in ("", event.column):
            what = "PANES groups the rows of a view, and these are rows of a join"
            hint = (
                f"Group in a query over a view: CREATE VIEW j AS SELECT STREAM {of_input.column}, … FROM …; and read j."  # noqa: S608 - a hint
            )
            self.scope.refuse("R170", what, node, hint)
            return None
        if path_of(bound) != [event.column.lower(), *(name.lower() for name in event.fields)]:
            what = f"the event time here is {event.shown}, and panes are of the event time"
            self.scope.refuse("R170", what, node, f"Write PANES({event.shown}, …).")
        return event

    def _read(self) -> str:
        """Return everything of the stream or view that the query reads; short if it reads another query or a join."""
        source = self.query.args["from_"].this
        named = isinstance(source, exp.Table) and not self.query.args.get("joins")
        return f"* FROM {source.name}" if named else "…"

    def _settings(self, panes: list[nodes.Panes]) -> int:
        """Bind the times of the panes, and return the discard age."""
        node = panes[0]
        if len(panes) > 1:
            self.scope.refuse("R170", "GROUP BY has two PANES", panes[1], "Write a query for each.")

        def setting(key: str, word: str, default: int) -> int:
            given = node.args.get(key)
            return default if given is None else micros(self.scope, given, word)

        before = len(self.scope.problems)
        duration = setting("duration", "DURATION", 0)
        period = setting("period", "PERIOD", duration)
        if len(self.scope.problems) > before:
            return 0
        if duration <= 0 or period <= 0:
            self.scope.refuse("R122", "DURATION and PERIOD of PANES must be above zero", node)
            return 0
        self.times = PaneTimes(duration, period, setting("offset", "OFFSET", 0))
        return setting("discard_age", "DISCARD AGE", 0)

    def _over_groups(self, node: exp.Expr) -> exp.Expr:
        """Bind as in every GROUP BY; functions of the pane are inserted last."""
        marked = _replaced(node.copy(), _fact)
        return _replaced(super()._over_groups(marked), self._pane_column)

    def _pane_column(self, part: exp.Expr) -> exp.Expr:
        if not isinstance(part, nodes.PaneFact):
            return part
        return pane_fact(part.name, self.times.duration)


def _fact(part: exp.Expr) -> exp.Expr:
    bare = isinstance(part, exp.Column) and not part.text("table")
    if bare and part.name.upper() in FACTS:
        fact = nodes.PaneFact(this=part.name.upper())
        fact.meta.update(part.meta)
        return fact
    return part


def _replaced(node: exp.Expr, change: object) -> exp.Expr:
    return node.transform(change)  # type: ignore[arg-type]
