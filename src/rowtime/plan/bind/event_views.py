"""Binds ``CREATE VIEW v AS SELECT STREAM … EVENT SHAPE …``: rows become events (semantics 9.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rowtime.core.columns import ROWTIME
from rowtime.core.errors import Place, refuse
from rowtime.core.shapes import EventShape
from rowtime.operators.contract import EDGES, Operator
from rowtime.operators.events.row_events import RowEvents
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.plan.bind.stream_defs import check_times
from rowtime.plan.bind.suggestions import suggestion


def events_of(fresh: Callable[[str], str], node: Operator, shape: EventShape, name: str, place: Place) -> RowEvents:
    """Return the events of a view's rows. Raises ``Refused`` (R103, R170, R190, R193)."""
    if is_lifetimes(node):
        hint = "Leave it out; SHIFT, EXTEND, ALTER_DURATION and CLIP change the lifetimes of events."
        raise refuse("R193", f"EVENT SHAPE turns rows into events, and {name} already has events", hint, place)
    if shape.imports is not None:
        hint = f"Pump the rows into a stream of events that has BOUND FROM {shape.imports}."
        raise refuse("R190", "BOUND FROM of a view is not supported yet", hint, place)
    columns = node.emits().of_users
    by_name = {column.name.lower(): column for column in columns}
    for named in shape.columns:
        if named.lower() not in by_name:
            what = f"the event shape names a column {named}, which {name} does not have"
            hint = suggestion(named, [column.name for column in columns])
            if named.upper() == "ROWTIME":
                renamed = ", ".join("at" if column.upper() == "ROWTIME" else column for column in shape.columns)
                hint = f"Select it under a name: SELECT STREAM ROWTIME AS at, … EVENT SHAPE {shape.kind} ({renamed})."
            raise refuse("R103", what, hint, place)
    start, stop, by = (part and by_name[part.lower()].name for part in (shape.start, shape.stop, shape.by))
    shape = replace(shape, start=start or "", stop=stop, by=by)
    check_times(shape, {column.name: column.type for column in columns}, place)
    _check_order(node, shape, name, place)
    return RowEvents(fresh(f"{name}.events"), node, columns, shape)


def _check_order(node: Operator, shape: EventShape, name: str, place: Place) -> None:
    """Check (R193) that rows without bounds of their own come in the order in which events are judged."""
    if shape.generates:
        return
    start, stop = (node.origin(column or "") for column in (shape.start, shape.stop))
    if start is not None and start.what == ROWTIME and not shape.edges:
        return
    if shape.edges and start is not None and stop is not None and (start.what, stop.what) == EDGES:
        return
    what = f"{shape.start} is not the ROWTIME of the rows of {name}, so their bounds say nothing about it"
    or_else = f"or select s.ROWTIME AS {shape.start}"
    if shape.edges:
        what = f"the rows of {name} are not edges that a view EMITs, so their bounds say nothing about the edges"
        or_else = f"or select both times of a view that EMITs EDGES (edge, {shape.start}, {shape.stop})"
    hint = (
        f"Generate bounds from the rows: write BOUND EVERY 1 ROW DELAY INTERVAL '1' MINUTE after the shape; {or_else}."
    )
    raise refuse("R193", what, hint, place)
