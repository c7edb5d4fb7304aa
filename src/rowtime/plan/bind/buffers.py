"""Binds the functions after FROM that re-emit the rows of a stream: DELAY, GATE and SAMPLE.

``STREAM(DELAY(TABLE s, interval))``, ``STREAM(GATE(TABLE s, TABLE permits))`` and ``STREAM(SAMPLE(TABLE s PARTITION BY
k, percent))``. Semantics 8.2: above an operator that holds rows, an event time starts anew: its bound is the time of
the last row sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.core.errors import Place, refuse
from rowtime.operators.contract import Operator
from rowtime.operators.gates.permit_gate import PermitGate
from rowtime.operators.panes.event_time import EventTimed
from rowtime.operators.rows.sample import WHOLE, Sample
from rowtime.operators.streams.delay import Delay
from rowtime.plan.bind.event_time import declared_by
from rowtime.plan.bind.sources import Sources
from rowtime.plan.bind.suggestions import suggestion
from rowtime.sql.intervals import duration_of
from rowtime.sql.nodes import TableArgument
from rowtime.sql.numbers import number_of

BUFFERS = ("DELAY", "GATE", "SAMPLE")
_HINTS = {
    "DELAY": "Write STREAM(DELAY(TABLE s, INTERVAL '10' SECOND)).",
    "GATE": "Write STREAM(GATE(TABLE s, TABLE permits)), or GATE(TABLE s, TABLE permits, n) with a column of permits.",
    "SAMPLE": "Write STREAM(SAMPLE(TABLE s PARTITION BY k, 10)), with columns of s and a percentage up to 100.",
}


def buffered(  # noqa: PLR0913 - a call, its inputs, and its place
    sources: Sources, call: exp.Anonymous, inputs: Sequence[Operator], name: str, place: Place, *, endless: bool
) -> Operator:
    """Return the operator of a call over its inputs; ``endless``: state may grow. Raises R141, R103 or R152."""
    kind = call.name.upper()
    rest = call.expressions[len(inputs) :]
    if kind == "SAMPLE":
        operator = _sample(sources, inputs[0], call.expressions, name, place)
    else:
        operator = (
            _delay(sources, inputs[0], rest, name) if kind == "DELAY" else _gate(sources, inputs, rest, name, place)
        )
    if operator is None:
        raise refuse("R141", f"{kind} cannot be called like this", _HINTS[kind], place)
    if kind == "GATE" and not endless:
        what = "GATE keeps every row that has no permit yet, and nothing limits their number"
        raise refuse("R152", what, "Write WITH UNBOUNDED STATE after the query.", place)
    event = declared_by(inputs[0])
    if event is None or kind == "SAMPLE":
        return operator
    timed = EventTimed(sources.fresh(f"{name}.event_time"), operator, event.column, event.unit)
    return replace(timed, fields=event.fields)


def _delay(sources: Sources, below: Operator, rest: Sequence[exp.Expr], name: str) -> Operator | None:
    by = duration_of(rest[0]) if len(rest) == 1 else None
    if by is None or by < 0:
        return None
    return Delay(sources.fresh(f"{name}.delay"), below, by)


def _sample(
    sources: Sources, below: Operator, given: Sequence[exp.Expr], name: str, place: Place
) -> Operator | None:  # fmt: skip
    listed = given[0].expressions if isinstance(given[0], TableArgument) else ()
    percent = number_of(given[1]) if len(given) == 2 else None  # noqa: PLR2004 - as written
    keys = tuple(_column(below, key.name, place, "SAMPLE: the rows") for key in listed)
    types = {column.name: column.type.upper() for column in below.emits().columns}
    if any("MAP<" in types[key] for key in keys):
        raise refuse(
            "R113", "SAMPLE: a map cannot be a key, because maps have no order", "Use map_entries of the column.", place
        )
    share = 0 if percent is None or percent > 100 else round(percent * WHOLE / 100)  # noqa: PLR2004 - a percentage
    return Sample(sources.fresh(f"{name}.sample"), below, keys, share) if keys and share else None


def _gate(
    sources: Sources, inputs: Sequence[Operator], rest: Sequence[exp.Expr], name: str, place: Place
) -> Operator | None:  # fmt: skip
    if not inputs[1:] or inputs[2:] or rest[1:] or not all(isinstance(column, exp.Column) for column in rest):
        return None
    count = _column(inputs[1], rest[0].name, place, "GATE: the permits") if rest else None
    return PermitGate(sources.fresh(name), inputs[0], inputs[1], count)


def _column(node: Operator, name: str, place: Place, whose: str) -> str:
    columns = {column.name.lower(): column.name for column in node.emits().columns}
    if name.lower() not in columns:
        raise refuse("R103", f"{whose} have no column {name}", suggestion(name, columns.values()), place)
    return columns[name.lower()]
