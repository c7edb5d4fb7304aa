"""Rows of one writer that become events at a gate of their own: shared by views and by streams with imported bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from rowtime.core.columns import POSITION
from rowtime.core.shapes import EventShape
from rowtime.core.time import END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Column, Delta, Link, Shape, Tick, Unary, UpTo
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.requirement import GATED
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.event_gate import EventGate, Judging


@dataclass(frozen=True)
class GatedControl(UpTo, Judging):
    """The bound, and the gate's scalars for the one writer that all rows count as."""


@dataclass(frozen=True)
class GatedRows(Unary):
    """Events of a ``shape`` from rows of ``columns``, judged in stream order, as one writer's."""

    columns: tuple[Column, ...]
    shape: EventShape

    control: ClassVar = GatedControl
    needs: ClassVar = (GATED,)  # the merged order decides which rows come after a bound
    holds_itself: ClassVar[bool] = True
    has_own_time: ClassVar[bool] = True
    is_gate: ClassVar[bool] = True
    reason: ClassVar[str] = "an event or a change below that bound is refused, or moved to it"

    @property
    def gate(self) -> EventGate:
        """Return the gate that judges the rows."""
        return EventGate(self, self.columns, self.shape)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the open edges, and the bound."""
        return (StateNote("the bound", "the stream ends", "one", fields=("bound",)), *self.gate.keeps())

    def emits(self) -> Shape:
        """Return the payload, and the lifetime in hidden columns; as one writer's."""
        return self.gate.emits(single=True)

    def link(self, n: int) -> Link:
        """Return the rows of an event: two for an event of two edges; any other has the place of its row."""
        return Link(self.passed_on(n, *(() if self.shape.edges else (POSITION,))))

    def opens_events(self) -> bool:
        """Return True for edges."""
        return self.shape.kind == "EDGE"

    def checks_declared(self) -> bool:
        """Return True: it checks the times that the definition names."""
        return True

    def refused_columns(self) -> tuple[Column, ...]:
        """Return the columns of the rows, with the times."""
        return self.columns

    def _passed(
        self, tick: Tick, rows: Frame, items: pa.Table, intake: Intake, before: Mapping[str, int]
    ) -> Frame | None:
        """Return the accepted ones of timed rows, as weighted rows; the bound rises to what they have shown."""
        judged = self.gate.judged(tick, items, intake, before)
        events, _ = self.gate.events_of(tick, rows, judged)
        bound = tick.control(self).bound
        tick.remember(self, bound=max([bound, *(verdict.judgement.mark.bound for verdict in judged.values())]))
        return events

    def _given(self, tick: Tick, delta: Delta, events: Frame | None) -> Delta:
        """Return the events of a tick; once the stream has ended, no event is open any more."""
        clocks = self.promises([delta.clocks], tick.control(self))
        if clocks[""] >= END:
            tick.segments(self, "open").forget(END)
        return Delta(events, clocks)
