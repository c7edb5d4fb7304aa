"""Binds queries over events with lifetimes: the limits of their SELECT, and EMIT."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rowtime.operators.contract import Operator, walk
from rowtime.operators.events.emit_changes import NAMES as CHANGES
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.plan.bind.emit import as_rows
from rowtime.plan.bind.orders import is_rowtime
from rowtime.plan.bind.panes import has_panes
from rowtime.plan.bind.scope import Scope
from rowtime.plan.bind.sources import BoundQuery, Sources
from rowtime.plan.bind.speculation import with_changes
from rowtime.sql.places import refuse_at


def emitted(text: str, sources: Sources, query: exp.Expr, bound: BoundQuery, name: str) -> BoundQuery:
    """Return the events of a query as rows, if it EMITs them."""
    if query.args.get("emit_changes") and not has_panes(query):
        return BoundQuery(_changes(text, sources, query, bound.node, name))
    clause = query.args.get("emit")
    if clause is None:
        return bound
    if not is_lifetimes(bound.node):
        hint = "Leave it out; EMIT is for events of streams with an EVENT SHAPE."
        raise refuse_at(text, query, "R191", f"EMIT {clause.name}: these rows have no lifetimes", hint)
    return BoundQuery(as_rows(sources.fresh, bound.node, name, clause, text))


def _changes(text: str, sources: Sources, query: exp.Expr, node: Operator, name: str) -> Operator:
    if not is_lifetimes(node):
        hint = "Leave it out; EMIT CHANGES is for panes, and for events of streams with an EVENT SHAPE."
        raise refuse_at(text, query, "R191", "EMIT CHANGES: this query never changes a row later", hint)
    taken = {column.lower() for column in node.emits().names} & set(CHANGES)
    if taken:
        what = f"the result has two columns {', '.join(sorted(taken))}"
        raise refuse_at(text, query, "R119", what, "Rename the column of the query.")
    _refuse_endless(text, query, node)
    if any(part.final_only for part in walk(node)):
        calls = [call for call in query.find_all(exp.Anonymous) if call.name.upper() == "SESSION"]
        hint = "Leave EMIT CHANGES out: a session goes out when it has ended."
        what = "sessions of events have no changes to show: this is not supported yet"
        raise refuse_at(text, calls[0] if calls else query, "R190", what, hint)
    return with_changes(sources, node, name)


def _refuse_endless(text: str, query: exp.Expr, node: Operator) -> None:
    """Raise ``Refused`` (R195) if the first event would have endless changes."""
    if node.cuts_time and any(child.opens_events() for child in node.inputs):
        calls = [call for call in query.find_all(exp.Anonymous) if call.name.upper() in ("TUMBLE", "HOP", "CHOP")]
        what = (
            "events arrive here before their end is known, so EMIT CHANGES would emit endlessly many windows of "
            "each event at once"
        )
        hint = "Limit the events below: FROM CLIP(s, AT MOST INTERVAL '1' DAY). Or leave EMIT CHANGES out."
        raise refuse_at(text, calls[0] if calls else query, "R195", what, hint)
    for child in node.inputs:
        if is_lifetimes(child):
            _refuse_endless(text, query, child)


def alike(text: str, query: exp.Expr, nodes: Sequence[Operator]) -> bool:
    """Return True if the inputs of a UNION ALL are events, False if they are rows; refuse a mixture."""
    answers = {is_lifetimes(node) for node in nodes}
    if len(answers) > 1:
        hint = "Turn the events into rows with EMIT in a view, or declare an EVENT SHAPE for every input."
        raise refuse_at(text, query, "R197", "some inputs of UNION ALL have lifetimes and others do not", hint)
    return answers == {True}


def refuse_in_select(query: exp.Select, scope: Scope) -> None:
    """Note problems of a SELECT over events."""
    order = query.args.get("order")
    if order is not None:
        hint = "EMIT decides the order in which events go out. Use a T-sort in a query over a view that EMITs."
        scope.refuse("R193", "ORDER BY is not supported for events, which have lifetimes", order, hint)
    for entry in query.expressions:
        if isinstance(entry, exp.Alias) and entry.alias.lower() == "rowtime":
            hint = "Move events with SHIFT(s, interval)."
            what = "AS ROWTIME is not supported for events: the start of an event is its rowtime"
            scope.refuse("R193", what, entry, hint)
        if isinstance(entry, exp.Column) and entry.name.lower() == "rowtime" and not is_rowtime(scope.bind(entry)):
            table = entry.text("table")
            what = f"{table}.ROWTIME, the start of one side of a join, is a column here and needs a name"
            scope.refuse("R193", what, entry, f"Write {table}.ROWTIME AS {table}_start.")
    for key, words in (("limit", "LIMIT"), ("windowed", "WINDOWED BY"), ("qualify", "QUALIFY")):
        if query.args.get(key):
            hint = "Use it in a query over a view that EMITs the events as rows."
            scope.refuse("R193", f"{words} is not supported for events, which have lifetimes", query, hint)
    for window in query.find_all(exp.Window):
        scope.refuse("R193", "OVER is not supported for events, which have lifetimes", window, "Group by SNAPSHOT().")
    if scope.promises:
        scope.refuse("R193", "MONOTONIC is not supported for events, which have no order of arrival", query)
