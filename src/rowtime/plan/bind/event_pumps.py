"""Pumps into streams of events: whether events come in the order that the stream accepts (semantics 9.3).

A pump writes its bound, which is about ROWTIME. The stream judges an event by the times of its shape. So these must be
the ROWTIME: for a point or an interval its start, for an edge the time of the edge. Otherwise events in time would be
judged late.
"""

from __future__ import annotations

from rowtime.core.columns import ROWTIME
from rowtime.core.errors import Problem, Refused
from rowtime.operators.contract import EDGES, Operator, Origin
from rowtime.plan.bind.stream_defs import StreamDef
from rowtime.sql.statements import CreatePump


def check_order(stream: StreamDef, pump: CreatePump, node: Operator) -> None:
    """Raise ``Refused`` (R193) if a pump's events would not come in the order in which they are judged."""
    shape = stream.shape
    if shape is None or shape.imports is not None:  # imported bounds are used there, not those of its writers
        return
    names = [name.lower() for name in (pump.columns or [name for name, _ in stream.columns])]
    given = node.emits().names
    if len(given) != len(names):
        return  # refused elsewhere
    column_of = dict(zip(names, given, strict=True))
    start, stop = (node.origin(column_of.get((name or "").lower(), "")) for name in (shape.start, shape.stop))
    if start is not None and start.what == ROWTIME:
        return
    if shape.edges and start is not None and stop is not None and (start.what, stop.what) == EDGES:
        return
    raise Refused(_problem(stream, pump, start, shape.kind))


def _problem(stream: StreamDef, pump: CreatePump, start: Origin | None, kind: str) -> Problem:
    assert stream.shape is not None
    column = stream.shape.start
    judged = f"{stream.name} takes events in the order of {column}, and judges them by the bounds of the pump"
    columns = ", ".join(name for name in (column, stream.shape.stop) if name)
    if start is None:
        what = f"{judged}. Those bounds are about ROWTIME, and {column} is not the ROWTIME of these rows"
        hint = (
            f"Write q.ROWTIME AS {column} in the select list, where q is the input in FROM; or promote it first: "
            f"SELECT STREAM t AS ROWTIME, t AS {column}, … ORDER BY t WITHIN INTERVAL '1' MINUTE."
        )
        return Problem("R193", what, pump.place, hint)
    what = f"{judged}. Here the events come {start.order}, so events that began long ago would be LATE"
    form = {"POINT": f"POINTS ({column})", "INTERVAL": f"INTERVALS ({columns}) FULLY ORDERED"}.get(kind)
    hint = f"Write EMIT {form} after the query."
    if form is None:
        hint = f"Let a view EMIT EDGES (edge, {columns}); read {columns} and the payload from it."
    return Problem("R193", what, pump.place, hint)
