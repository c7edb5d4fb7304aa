"""Binds EVENT TIME of a stream or view: the settings, and the operator on what they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rowtime.core.errors import Place, Problem, Refused, refuse
from rowtime.expr.facts import Kind, kind_of
from rowtime.operators.contract import Column, Operator, walk
from rowtime.operators.event_time import EventTimed
from rowtime.operators.tsort import TSort
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.statements import EventTimeDef, SetBound, Statement

if TYPE_CHECKING:
    from sqlglot import exp

GAP = 100_000  # µs: MINIMUM GAP where nothing is said, as in the source
MANUAL = "MANUAL"


@dataclass(frozen=True)
class EventTimeSettings:
    """What EVENT TIME says; durations in µs. ``unit``: what a column of whole numbers counts."""

    column: str
    unit: str | None = None
    lag: int = 0
    gap: int = GAP
    mode: str = "OUTPUT_EVENT_TIME"


def settings_of(found: EventTimeDef) -> EventTimeSettings:
    """The settings of a declaration. Raises ``Refused`` (R122, R190)."""
    mode = found.mode or "OUTPUT_EVENT_TIME"
    if mode == "INPUT_WATERMARK":
        hint = "Leave EVENT TIME out: the event time of what is read goes on with its bound."
        raise Refused(Problem("R190", "MODE INPUT_WATERMARK is not supported yet", found.place, hint))
    lag = _micros(found.lag, "LAG", found.place, 0)
    return EventTimeSettings(
        found.column, found.resolution, lag, _micros(found.gap, "MINIMUM GAP", found.place, GAP), mode
    )


def _micros(node: exp.Expr | None, word: str, place: Place, default: int) -> int:
    if node is None:
        return default
    span = span_of(node)
    if not isinstance(span, Duration) or span.micros < 0:
        hint = "For example INTERVAL '10' SECOND."
        raise Refused(Problem("R122", f"{word} takes a duration that is not negative", place, hint))
    return span.micros


def event_timed(
    node: Operator, settings: EventTimeSettings, name: str, place: Place, gate: Operator | None = None
) -> EventTimed:
    """The declaration on one sequence of rows. Raises ``Refused`` (R103, R170) for a column that is none."""
    columns = {column.name.lower(): column for column in node.emits().columns if not column.name.startswith("__")}
    column = columns.get(settings.column.lower())
    if column is None:
        hint = f"There are: {', '.join(c.name for c in columns.values())}."
        raise Refused(Problem("R103", f"EVENT TIME ({settings.column}): there is no such column", place, hint))
    unit = _unit(column, settings.unit, place)
    return EventTimed(name, node, column.name, unit, settings.lag, settings.gap, settings.mode, gate)


def _unit(column: Column, unit: str | None, place: Place) -> str | None:
    """What whole numbers count, by default milliseconds; nothing for a timestamp."""
    kind = kind_of(column.type)
    if kind is Kind.TIMESTAMP and unit is not None:
        hint = "Leave RESOLUTION out; it says what a column of whole numbers counts."
        raise Refused(Problem("R170", f"{column.name} is a timestamp, which has its own resolution", place, hint))
    if kind is Kind.INTEGER:
        return unit or "MILLISECOND"
    if kind not in (Kind.TIMESTAMP, Kind.OTHER):
        hint = "Declare a TIMESTAMP, or a BIGINT with RESOLUTION MILLISECONDS."
        raise Refused(Problem("R170", f"{column.name} is {column.type}, which is no event time", place, hint))
    return unit


def declarations(node: Operator) -> Iterator[EventTimed]:
    """The event times declared below, the nearest last."""
    yield from (part for part in walk(node) if isinstance(part, EventTimed))


def declared_by(node: Operator) -> EventTimed | None:
    """The declaration whose event time a node still has."""
    event = node.emits().event
    return next((part for part in declarations(node) if event and part.name == event.declared), None)


def lost_at(node: Operator) -> str:
    """Where the event time of what is below ends, in words; empty if there never was one."""
    for part in walk(node):
        below = [child for child in part.inputs if child.emits().event]
        if below and part.emits().event is None:
            event = below[0].emits().event
            assert event is not None
            return f"the event time {event.column} ends at {part.kind} {part.name}"
    return ""


def manual(plan: Mapping[str, Any], name: str) -> str:
    """The operator of a described plan whose bound is set under a name. Raises ``Refused`` (R171).

    It is an event time in MODE MANUAL, or what promotes an event time to rowtime. A view that
    does both has two bounds; the one that it declares is meant.
    """
    settable = [node for node, kind in plan["kinds"].items() if _waits(kind, plan["operators"][node])]
    wanted = name.lower()
    for node in (f"{wanted}.event_time", wanted):
        if node in settable:
            return node
    listed = [node.removesuffix(".event_time") for node in settable]
    hint = f"These have one: {', '.join(listed)}." if listed else "Write EVENT TIME (t, MODE MANUAL), or t AS ROWTIME."
    raise refuse("R171", f"{name} has no event time whose bound can be set here", hint)


def _waits(kind: str, text: str) -> bool:
    return kind == TSort.kind or (kind == EventTimed.kind and f"mode={MANUAL}" in text)


def check_set(plan: Mapping[str, Any], statements: Iterable[Statement]) -> None:
    """ALTER VIEW … SET ROWTIME BOUND needs a view that takes it. Raises ``Refused`` (R171)."""
    for statement in statements:
        if isinstance(statement, SetBound) and statement.view:
            try:
                manual(plan, statement.stream.text)
            except Refused as refused:
                raise Refused(*(replace(p, place=statement.stream.place) for p in refused.problems)) from None
