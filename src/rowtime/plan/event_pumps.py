"""Pumps into streams of events: whether what comes is in the order that the stream accepts (SPEC 9.3).

What a pump writes carries its bound, which is about ROWTIME. The stream judges an event by the times of its shape. So
these are to be the ROWTIME: the start of a point or an interval, of an edge the time of the edge. Else events would be
late that were in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.errors import Problem, Refused
from rowtime.operators.contract import Operator, T
from rowtime.operators.emit_changes import EmitChanges
from rowtime.operators.emit_lifetimes import EmitLifetimes
from rowtime.operators.merge import Merge
from rowtime.operators.select import Item, Select
from rowtime.operators.tsort import TIME, TSort

if TYPE_CHECKING:
    from rowtime.plan.catalog import StreamDef
    from rowtime.sql.statements import CreatePump

ROWTIME = "ROWTIME"
_PARTS = {"POINTS": ("start",), "INTERVALS": ("start", "stop"), "EDGES": ("edge", "start", "stop")}


@dataclass(frozen=True)
class Origin:
    """What a column of a query is: the ``node`` that makes it and which of its columns, or ROWTIME."""

    node: Operator
    what: str


def check_order(stream: StreamDef, pump: CreatePump, node: Operator) -> None:
    """Raise ``Refused`` (R193) if the events that a pump writes would come in another order than they are judged in."""
    shape = stream.shape
    if shape is None or shape.imports is not None:  # bounds of its own writers are not looked at there
        return
    names = [name.lower() for name in (pump.columns or [name for name, _ in stream.columns])]
    given = node.emits().names
    if len(given) != len(names):
        return  # refused anyway
    told = dict(zip(names, given, strict=True))
    start = _origin(node, told.get(shape.start.lower()))
    if _at_rowtime(start):
        return
    stop = _origin(node, told.get((shape.stop or "").lower()))
    if shape.edges and start is not None and stop is not None and _edges(start, stop):
        return
    raise Refused(_problem(stream, pump, start, shape.kind))


def _problem(stream: StreamDef, pump: CreatePump, start: Origin | None, kind: str) -> Problem:
    assert stream.shape is not None
    column = stream.shape.start
    judged = f"{stream.name} takes events in the order of {column}, behind the bounds of the pump"
    columns = ", ".join(name for name in (column, stream.shape.stop) if name)
    if start is None or not isinstance(start.node, EmitLifetimes | EmitChanges):
        what = f"{judged}, which are about ROWTIME; and {column} is not the ROWTIME of these rows"
        hint = (
            f"Write q.ROWTIME AS {column} in the select list, where q is what is behind FROM; or promote it first: "
            f"SELECT STREAM t AS ROWTIME, t AS {column}, … ORDER BY t WITHIN INTERVAL '1' MINUTE."
        )
        return Problem("R193", what, pump.place, hint)
    order = "as they change" if isinstance(start.node, EmitChanges) else "in the order of their ends"
    what = f"{judged}; these come {order}, so those that began long ago would be LATE"
    form = {"POINT": f"POINTS ({column})", "INTERVAL": f"INTERVALS ({columns}) FULLY ORDERED"}.get(kind)
    hint = f"Write EMIT {form} behind the query."
    if form is None:
        hint = f"Let a view EMIT EDGES (edge, {columns}); {columns} and the payload of it are to be selected."
    return Problem("R193", what, pump.place, hint)


def _at_rowtime(start: Origin | None) -> bool:
    """True if the column has the rowtime of its row."""
    if start is None or not isinstance(start.node, EmitLifetimes):
        return start is not None and start.what == ROWTIME
    return start.what == "start" and (start.node.form == "POINTS" or start.node.fully)


def _edges(start: Origin, stop: Origin) -> bool:
    """True if both are those of the edges of one EMIT EDGES."""
    same = isinstance(start.node, EmitLifetimes) and start.node is stop.node and start.node.form == "EDGES"
    return same and (start.what, stop.what) == ("start", "stop")


def _origin(node: Operator, column: str | None) -> Origin | None:
    """Where a column of a query comes from, under the same rowtime; ``None`` if that is not known."""
    found: Origin | None = None
    match node:
        case Select() if column is not None:
            expression = _item(node, column)
            if isinstance(expression, exp.Column):
                found = Origin(node, ROWTIME) if expression.name == T else _origin(node.input, expression.name)
        case Merge():
            found = _origin(node.input, column)
        case TSort() if column is not None:
            found = _promoted(node, column)
        case EmitLifetimes():
            found = Origin(node, dict(zip(node.names, _PARTS[node.form], strict=False)).get(column or "", ""))
        case EmitChanges():
            found = Origin(node, column or "")
    return found


def _promoted(node: TSort, column: str) -> Origin | None:
    """The column that a T-sort makes the rowtime has it."""
    below = node.input
    if not isinstance(below, Select):
        return None
    time = next((item.expression for item in below.hidden if item.column.name == TIME), None)
    return Origin(node, ROWTIME) if time is not None and time == _item(below, column) else None


def _item(node: Select, column: str) -> exp.Expr | None:
    found: list[Item] = [item for item in node.items if item.column.name == column]
    return found[0].expression.unnest() if found else None
