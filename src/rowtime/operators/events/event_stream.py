"""A stream of events with lifetimes: points, intervals and edges become weighted rows at its gate.

Semantics 9.1 to 9.3. Each writer has a bound of its own, given by it or generated from its rows; a row alone promises
nothing. A row behind the bound of its writer is refused as ``LATE`` or, if the stream adjusts and the event extends
beyond the bound, moved to it. An end edge ends the oldest open event of its writer with the same payload and start; one
without such an event is refused as ``UNMATCHED_EDGE``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.clock import least
from rowtime.core.columns import POSITION, WRITER
from rowtime.core.shapes import EventShape
from rowtime.core.time import BEGINNING, END
from rowtime.kernels.events import INTERVAL, START_EDGE, STOP_EDGE
from rowtime.kernels.events import POINT as POINT_ROW
from rowtime.operators.contract import Column, Delta, Distribution, Shape, Tick
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.event_gate import EventGate, Judging, collected_items
from rowtime.operators.rows.calendar import times_of
from rowtime.operators.streams.stream import Stream
from rowtime.operators.streams.stream_clocks import StreamClocks

POINTS = EventShape("POINT", "start")


@dataclass(frozen=True)
class EventClocks(StreamClocks, Judging):
    """The clocks, and the scalars of the gate."""


@dataclass(frozen=True)
class EventStream(Stream):
    """A stream whose rows are events of a ``shape``; its payload is every column that the shape does not name."""

    shape: EventShape = POINTS

    control: ClassVar = EventClocks
    kind: ClassVar[str] = "event stream"
    has_own_time: ClassVar[bool] = True
    promise: ClassVar[str] = "the strongest bound that each writer gave or its rows generated"
    reason: ClassVar[str] = "an event or a change below the bound of its writer is refused, or moved to the bound"

    @classmethod
    def over(cls, rows: Stream, shape: EventShape) -> EventStream:
        """Return the stream whose rows are events of a shape."""
        return cls(**{field.name: getattr(rows, field.name) for field in fields(rows)}, shape=shape)

    @property
    def gate(self) -> EventGate:
        """Return the gate that judges the rows."""
        return EventGate(self, self.columns, self.shape)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the open edges, and a mark per writer."""
        what = "a bound and a greatest start per writer"
        return (StateNote(what, "the writer leaves", "writers", fields=("clocks", "marks")), *self.gate.keeps())

    def emits(self) -> Shape:
        """Return the payload, and the lifetime in hidden columns."""
        return self.gate.emits(single=self.single)

    def opens_events(self) -> bool:
        """Return True for edges."""
        return self.shape.kind == "EDGE"

    def may_change(self) -> Mapping[str, str]:
        """Return only the conditions on its rows: its guard is that of its events."""
        return {"checks": super().may_change()["checks"]}

    def refused_columns(self) -> tuple[Column, ...]:
        """Return the columns of the stream, with the times."""
        return self.columns

    def distribution(self) -> Distribution:
        """Return one task: an end belongs to a start that another part may have."""
        return Distribution.SINGLE

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002
        """Judge the tick's rows by the bounds, and turn accepted ones into weighted rows."""
        # Neither rows nor their arrival say what will come: only bounds do.
        intake = replace(tick.intake(self), shown={}, arrived={})
        before, _ = self._welcome(tick, intake)
        marks, events = self._bounded(before, intake), None
        if intake.rows is not None:
            rows = self.gate.timed(self._checked(tick, intake.rows, intake))
            items = self._items(intake)
            items = collected_items(tick, self, rows, in_band=intake.in_band) if items is None else items
            judged = self.gate.judged(tick, items, intake, before, ordered=not self.batched)
            events, _ = self.gate.events_of(tick, rows, judged)
            shown = {writer: verdict.judgement.mark.bound for writer, verdict in judged.items()}
            marks = self._bounded({**before, **shown}, intake)
        self._settle(tick, intake, marks)
        clocks = self.promises([], tick.control(self))
        if least(clocks.values()) >= END:
            tick.segments(self, "open").forget(END)
        return Delta(events, clocks)

    def _items(self, intake: Intake) -> pa.Table | None:
        """Return the times of all rows, each writer's in order; ``None`` if that needs a query."""
        own = {column.name.lower(): column.name for column in self.columns}
        names = [own.get(name.lower(), name) for name in (self.shape.start, self.shape.stop) if name]
        types = {column.name: column.type.upper() for column in self.columns}
        plain = all(types.get(name) == "TIMESTAMP" for name in names) and not self.demands
        if intake.rows is None or intake.in_band or intake.decodes or self.shape.by or not plain:
            return None
        read = [times_of(intake.rows, name) for name in names]
        if any(times is None for times in read):
            return None
        starts, *stops = (times for times in read if times is not None)
        start = starts["t"].fill_null(BEGINNING)
        count = len(start)
        if self.shape.kind == "POINT":
            kinds, end = np.full(count, POINT_ROW, np.int32), pc.add(start, 1)
        else:
            end = stops[0]["t"].fill_null(END)
            kinds_by = [STOP_EDGE, START_EDGE] if self.shape.kind == "EDGE" else [INTERVAL, INTERVAL]
            kinds = np.array(kinds_by, np.int32)[stops[0]["t"].is_null().to_numpy().view(np.uint8)]
        none = {"bad": pa.repeat(pa.scalar(value=False), count), "b": pa.nulls(count, pa.int64())}
        writers = starts[WRITER].cast(pa.string())
        return pa.table({WRITER: writers, POSITION: starts[POSITION], "k": kinds, "s": start, "e": end, **none})
