"""Binds EVENT TIME of a stream or view: its settings and operator; and the event time of panes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlglot import exp

from rowtime.core.errors import Place, Refused, refuse
from rowtime.core.time import BEGINNING, END
from rowtime.expr.conditions import col
from rowtime.expr.facts import Kind, kind_of
from rowtime.operators.contract import Column, Operator, walk
from rowtime.operators.panes.event_time import FORWARDED, EventTimed
from rowtime.operators.panes.fired_bounds import FiredBounds
from rowtime.operators.panes.passed_bounds import PassedBounds
from rowtime.operators.streams.stream import Stream
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.bind.struct_fields import missing_fields, type_inside
from rowtime.plan.enforce import over
from rowtime.plan.finite import is_finite
from rowtime.plan.stored import StoredPlan
from rowtime.sql.intervals import duration_of
from rowtime.sql.statements import EventTimeDef, SetBound, Statement

GAP = 100_000  # µs: the default of MINIMUM GAP, as at the source
MANUAL = "MANUAL"


@dataclass(frozen=True)
class EventTimeSettings:
    """The settings of EVENT TIME; durations in µs. ``unit``: of whole numbers. ``fields``: inside the column."""

    column: str
    unit: str | None = None
    lag: int = 0
    gap: int = GAP
    mode: str = "OUTPUT_EVENT_TIME"
    beyond: int | None = None
    fields: tuple[str, ...] = ()


def settings_of(declared: EventTimeDef, *, source: bool = False) -> EventTimeSettings:
    """Return the settings of a declaration; ``source``: of a stream. Raises ``Refused`` (R122, R170)."""
    mode = declared.mode or "OUTPUT_EVENT_TIME"
    if mode == FORWARDED and source:
        what = "MODE INPUT_WATERMARK is for views: a stream has no inputs whose bounds it could pass on"
        raise refuse("R170", what, "Use OUTPUT_EVENT_TIME or MANUAL.", declared.place)
    if mode == FORWARDED and (declared.lag is not None or declared.gap is not None):
        what = "MODE INPUT_WATERMARK passes on the bounds of its inputs unchanged"
        raise refuse("R170", what, "Leave LAG and MINIMUM GAP out, or use OUTPUT_EVENT_TIME.", declared.place)
    if mode == FORWARDED and declared.early is not None:
        what = (
            "EARLY BEYOND guards a bound that is computed from the times; MODE INPUT_WATERMARK passes on the "
            "bounds of its inputs"
        )
        raise refuse("R170", what, "Put EARLY BEYOND where the event time of the input is declared.", declared.place)
    lag = _micros(declared.lag, "LAG", declared.place, 0)
    gap = _micros(declared.gap, "MINIMUM GAP", declared.place, GAP)
    beyond = None if declared.early is None else _micros(declared.early, "EARLY BEYOND", declared.place, 0)
    return EventTimeSettings(declared.column, declared.resolution, lag, gap, mode, beyond, declared.fields)


def _micros(node: exp.Expr | None, word: str, place: Place, default: int) -> int:
    if node is None:
        return default
    micros = duration_of(node)
    if micros is None or micros < 0:
        hint = "For example INTERVAL '10' SECOND."
        raise refuse("R122", f"{word} takes a duration that is not negative", hint, place)
    return micros


def event_timed(
    node: Operator, settings: EventTimeSettings, name: str, place: Place, gate: Stream | None = None
) -> EventTimed:
    """Return the operator of the declaration. Raises ``Refused`` (R103, R170) for a column that is not a time."""
    columns = {column.name.lower(): column for column in node.emits().columns if not column.name.startswith("__")}
    column = columns.get(settings.column.lower())
    if column is None:
        hint = f"There are: {', '.join(c.name for c in columns.values())}."
        raise refuse("R103", f"EVENT TIME ({settings.column}): there is no such column", hint, place)
    time: exp.Expr = col(column.name)
    for field in settings.fields:
        time = exp.Dot(this=time, expression=exp.to_identifier(field, quoted=True))
    for missing in missing_fields(time, [column]):
        raise refuse("R103", f"EVENT TIME: {missing.what}", missing.hint, place)
    shown = Column(".".join((column.name, *settings.fields)), type_inside(time, column))
    unit = _unit(shown, settings.unit, place)
    timed = EventTimed(name, node, column.name, unit, settings.lag, settings.gap, settings.mode, gate)
    return replace(timed, beyond=settings.beyond, fields=settings.fields)


def _unit(column: Column, unit: str | None, place: Place) -> str | None:
    """Return the unit of whole numbers; nothing for a timestamp."""
    kind = kind_of(column.type)
    if kind is Kind.TIMESTAMP and unit is not None:
        hint = "Leave RESOLUTION out; it says what a column of whole numbers counts."
        raise refuse("R170", f"{column.name} is a timestamp, which has its own resolution", hint, place)
    if kind is Kind.INTEGER:
        if unit is None:
            hint = f"Write EVENT TIME ({column.name}, RESOLUTION MILLISECONDS), or SECONDS, MICROSECONDS, NANOSECONDS."
            what = f"{column.name} is {column.type}, and no RESOLUTION says in which unit its numbers count from 1970"
            raise refuse("R170", what, hint, place)
        return unit
    if kind not in (Kind.TIMESTAMP, Kind.OTHER):
        hint = "Declare a TIMESTAMP, or a BIGINT with RESOLUTION MILLISECONDS."
        raise refuse("R170", f"{column.name} is {column.type}, which cannot be an event time", hint, place)
    return unit


def forwarded(
    fresh: Callable[[str], str], node: Operator, settings: EventTimeSettings, name: str, place: Place
) -> Operator:
    """Return a region in MODE INPUT_WATERMARK above another. Raises ``Refused`` (R170) if there is none below."""
    node = over_fires(fresh, node)
    event = declared_by(node)
    if event is None:
        hint = f"Declare one in the input and pass its column on, or write MODE {EventTimeSettings.mode}."
        why = lost_at(node)
        what = "MODE INPUT_WATERMARK needs an event time in what it reads"
        raise refuse("R170", f"{what}; {why}" if why else what, hint, place)
    same = (event.column.lower(), *event.fields) == (settings.column.lower(), *settings.fields)
    if same and settings.unit in (None, event.unit):
        return node
    below = PassedBounds(fresh(f"{name}.passed_bounds"), node, event)
    timed = event_timed(below, settings, fresh(f"{name}.event_time"), place)
    return replace(timed, gap=0, regions=1)


def meeting(fresh: Callable[[str], str], parts: Sequence[Operator], name: str) -> Operator | None:
    """Return the region of a UNION ALL: that of all inputs, if they have one event time; else ``None``."""
    if not any(node.emits().event for node in parts):
        return None
    parts = [over_fires(fresh, node) for node in parts]
    events = [declared_by(node) for node in parts]
    if differing(parts):
        return None
    passed = tuple(
        PassedBounds(fresh(f"{name}.{n + 1}.passed_bounds"), node, event, n)
        for n, (node, event) in enumerate(zip(parts, events, strict=True))
        if event is not None
    )
    union = UnionAll(fresh(f"{name}.union"), passed)
    assert events[0] is not None
    column, unit = events[0].column, events[0].unit
    met = EventTimed(fresh(f"{name}.union.event_time"), union, column, unit, mode=FORWARDED, regions=len(parts))
    return replace(met, fields=events[0].fields)


def differing(parts: Sequence[Operator]) -> str:
    """Say why the regions of some inputs do not merge; empty if they do."""
    events = [declared_by(node) for node in parts]
    if any(event is None for event in events):
        without = " and ".join(str(n) for n, event in enumerate(events, 1) if event is None)
        return f"input {without} has no event time"
    declarations = []
    for node, event in zip(parts, events, strict=True):
        assert event is not None
        names = [name.lower() for name in node.emits().names]
        kind = event.unit or next(c.type for c in node.emits().columns if c.name == event.column) or "TIMESTAMP"
        declarations.append((event.shown, kind, names.index(event.column.lower())))
    if len({(column.lower(), kind, index) for column, kind, index in declarations}) > 1:
        listed = ", ".join(f"{column} ({kind}, column {index + 1})" for column, kind, index in declarations)
        return f"the event times of its inputs differ: {listed}"
    return ""


def over_fires(fresh: Callable[[str], str], node: Operator) -> Operator:
    """Return the rows ordered by the ends of the panes that fired them, if a column has these; else the node."""
    fires = None if node.emits().event else node.fires()
    return next(_over_fires(fresh, node), node) if fires and fires.ends else node


def _over_fires(fresh: Callable[[str], str], node: Operator) -> Iterator[Operator]:
    """Yield one operator per column that has the ends."""
    if node.awaits_event:
        event, columns = cast("EventTimed", node.inputs[1]), node.fires()
        for end in columns.ends if columns else ():
            fires = FiredBounds(fresh(f"{node.name}.fired_bounds"), node, event)
            yield EventTimed(fresh(f"{node.name}.event_time"), fires, end, mode=FORWARDED, regions=1)
    elif node.side_by_side:
        met = meeting(fresh, [over_fires(fresh, child) for child in node.inputs], node.name)
        yield from [met] if met else []
    elif node.merges_writers:  # operators above the bounds put rows in order again
        yield from _over_fires(fresh, node.inputs[0])
    elif not node.is_gate:
        for below in _over_fires(fresh, node.inputs[0]):
            copied = over(replace(cast("Any", node), name=fresh(node.name)), [below, *node.inputs[1:]])
            if copied.emits().event:
                yield copied


def declared_by(node: Operator) -> EventTimed | None:
    """Return the declaration whose event time a node still has."""
    event = node.emits().event
    operator = next((part for part in walk(node) if event and part.name == event.declared), None)
    return cast("EventTimed | None", operator)  # only these declare event times


def lost_at(node: Operator) -> str:
    """Say in words where the event time of the input ends; empty if it has none."""
    reason = ""
    for part in walk(node):
        events = [event for child in part.inputs if (event := child.event_of_rows())]
        if events and part.event_of_rows() is None:
            why = differing(part.inputs) if part.emits().unmerged else _unended(part)
            reason = f"the event time {events[0].column} ends at {part.kind} {part.name}{': ' + why if why else ''}"
    return reason


def _unended(node: Operator) -> str:
    fires = node.fires() if node.awaits_event else None
    return "no column of its select list is PANE_END" if fires and not fires.ends else ""


def manual(plan: StoredPlan, name: str, at: int = BEGINNING) -> str:
    """Return the operator of a described plan whose bound can be set under a name. Raises ``Refused`` (R171).

    It is an event time in MODE MANUAL, or the operator that promotes an event time to rowtime. A view that does both
    has two bounds; the one that it declares is used. A stream over files can be ended (``at`` is END).
    """
    operators, wanted = settable(plan), name.lower()
    for node in (f"{wanted}.event_time", wanted):
        if node in operators:
            return node
    listed = [node.removesuffix(".event_time") for node in operators]
    if at >= END and is_finite(plan.formats.get(wanted, "")):
        return wanted
    hint = f"These have one: {', '.join(listed)}." if listed else "Write EVENT TIME (t, MODE MANUAL), or t AS ROWTIME."
    raise refuse("R171", f"{name} has no event time whose bound can be set here", hint)


def settable(plan: StoredPlan) -> list[str]:
    """Return the operators of a described plan whose bound can be set manually."""
    return [name for name, operator in plan.operators.items() if operator.answers.is_settable(operator.fields)]


def check_set(plan: StoredPlan, statements: Iterable[Statement]) -> None:
    """Check that ALTER VIEW … SET ROWTIME BOUND names a view whose bound can be set. Raises ``Refused`` (R171)."""
    for statement in statements:
        if isinstance(statement, SetBound) and statement.view:
            try:
                manual(plan, statement.stream.text)
            except Refused as refused:
                raise Refused(*(replace(p, place=statement.stream.place) for p in refused.problems)) from None
