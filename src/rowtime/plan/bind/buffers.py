"""Binds what buffers rows, after FROM: ``STREAM(DELAY(TABLE s, interval))``, ``STREAM(GATE(TABLE s, TABLE permits))``.

SPEC 8.2. An event time that is passed on begins anew behind it: its bound is the time of what was sent last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.errors import Place, Problem, Refused
from rowtime.operators.contract import Operator
from rowtime.operators.gates.permit_gate import PermitGate
from rowtime.operators.panes.event_time import EventTimed
from rowtime.operators.streams.delay import Delay
from rowtime.plan.bind.catalog import suggestion
from rowtime.plan.bind.event_time import declared_by
from rowtime.sql.intervals import duration_of

if TYPE_CHECKING:
    from rowtime.plan.bind.sources import Sources

BUFFERS = ("DELAY", "GATE")
_HINTS = {
    "DELAY": "Write STREAM(DELAY(TABLE s, INTERVAL '10' SECOND)).",
    "GATE": "Write STREAM(GATE(TABLE s, TABLE permits)), or GATE(TABLE s, TABLE permits, n) with a column of permits.",
}


def buffered(  # noqa: PLR0913 - a call, its inputs, and where it stands
    sources: Sources, call: exp.Anonymous, inputs: Sequence[Operator], name: str, place: Place, *, endless: bool
) -> Operator:
    """The operator of a call over its inputs; ``endless``: state may grow. Raises ``Refused`` (R141, R103, R152)."""
    kind = call.name.upper()
    rest = call.expressions[len(inputs) :]
    made = _delay(sources, inputs[0], rest, name) if kind == "DELAY" else _gate(sources, inputs, rest, name, place)
    if made is None:
        raise Refused(Problem("R141", f"{kind} cannot be called like this", place, _HINTS[kind]))
    if kind == "GATE" and not endless:
        what = "GATE keeps every row that has no permit yet, which nothing limits"
        raise Refused(Problem("R152", what, place, "Write WITH UNBOUNDED STATE behind the query."))
    event = declared_by(inputs[0])
    if event is None:
        return made
    return EventTimed(sources.fresh(f"{name}.event_time"), made, event.column, event.unit)


def _delay(sources: Sources, below: Operator, rest: Sequence[exp.Expr], name: str) -> Operator | None:
    by = duration_of(rest[0]) if len(rest) == 1 else None
    if by is None or by < 0:
        return None
    return Delay(sources.fresh(f"{name}.delay"), below, by)


def _gate(
    sources: Sources, inputs: Sequence[Operator], rest: Sequence[exp.Expr], name: str, place: Place
) -> Operator | None:  # fmt: skip
    if not inputs[1:] or inputs[2:] or rest[1:] or not all(isinstance(column, exp.Column) for column in rest):
        return None
    count = _column(inputs[1], rest[0].name, place) if rest else None
    return PermitGate(sources.fresh(name), inputs[0], inputs[1], count)


def _column(node: Operator, name: str, place: Place) -> str:
    columns = {column.name.lower(): column.name for column in node.emits().columns}
    if name.lower() not in columns:
        what = f"GATE: the permits have no column {name}"
        raise Refused(Problem("R103", what, place, suggestion(name, columns.values())))
    return columns[name.lower()]
