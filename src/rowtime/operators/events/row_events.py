"""Events of rows: a view with an EVENT SHAPE (semantics 9.3).

The rows come in stream order, as one writer's. The bounds are those that they generate. If they generate none, the
start of an event, or the time of an edge, is the ROWTIME of its row: the bounds of the rows are bounds of the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import POSITION, ROWTIME, WRITER
from rowtime.core.shapes import EventShape
from rowtime.core.time import END
from rowtime.operators.contract import Column, Delta, Link, Shape, Tick, Unary, UpTo
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.requirement import GATED
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.event_gate import EventGate, Judging, collected_items
from rowtime.operators.rows.by_writer import by_writer


@dataclass(frozen=True)
class RowEventsControl(UpTo, Judging):
    """The bound, and what the gate keeps of the one writer that all rows count as."""


@dataclass(frozen=True)
class RowEvents(Unary):
    """Events of a ``shape`` from rows of ``columns``."""

    columns: tuple[Column, ...]
    shape: EventShape

    control: ClassVar = RowEventsControl
    kind: ClassVar[str] = "events of rows"
    needs: ClassVar = (GATED,)
    holds_itself: ClassVar[bool] = True
    has_own_time: ClassVar[bool] = True
    is_gate: ClassVar[bool] = True
    promise: ClassVar[str] = "the strongest bound that the rows generated; or that of the rows, if they generate none"
    reason: ClassVar[str] = "an event or a change below that bound is refused, or moved to it"

    @property
    def gate(self) -> EventGate:
        """What judges the rows."""
        return EventGate(self, self.columns, self.shape)

    def keeps(self) -> tuple[StateNote, ...]:
        """Open edges, and the bound."""
        return (StateNote("the bound", "the stream ends", "one", fields=("bound",)), *self.gate.keeps())

    def emits(self) -> Shape:
        """The payload, and the lifetime in hidden columns; as one writer's."""
        return self.gate.emits(single=True)

    def promises(self, clocks: Sequence[Clocks], control: RowEventsControl) -> Clocks:
        """The bound that the rows generated, until they end; or theirs."""
        own = least(clocks[0].values())
        return {"": control.bound if self.shape.generates and own < END else max(control.bound, own)}

    def link(self, n: int) -> Link:
        """An event of two edges has two rows; any other stands where its row does."""
        return Link(self.passed_on(n, *(() if self.shape.edges else (POSITION,))))

    def opens_events(self) -> bool:
        """True of edges."""
        return self.shape.kind == "EDGE"

    def checks_declared(self) -> bool:
        """True: of the times that the view names."""
        return True

    def refused_columns(self) -> tuple[Column, ...]:
        """Those of the rows, with the times."""
        return self.columns

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Judge the rows in their order, turn what is accepted into weighted rows."""
        delta, made, bound = deltas[0], None, tick.control(self).bound
        if delta.rows is not None:
            rows = self.gate.timed(delta.rows)
            items = collected_items(tick, self, rows, [f"unix_micros({ROWTIME}) AS at"], in_band=False)
            before = {writer: bound for writer, _ in by_writer(items)}
            judged = self.gate.judged(tick, items, self._met(items), before)
            made, _ = self.gate.made(tick, rows, judged, delta.count)
            bound = max([bound, *(found.judgement.mark.bound for found in judged.values())])
        clocks = self.promises([delta.clocks], tick.control(self))
        control = tick.remember(self, bound=bound if self.shape.generates else max(bound, clocks[""]))
        clocks = self.promises([delta.clocks], control)
        if clocks[""] >= END:
            tick.segments(self, "open").forget(END)
        return Delta(made, clocks, self.gate.most(delta.count))

    def _met(self, items: pa.Table) -> Intake:
        """The bounds that stand before rows: their rowtimes, unless they generate bounds."""
        if self.shape.generates or not items.num_rows:
            return Intake(None)
        times, positions, writer = items["at"].to_numpy(), items[POSITION].to_numpy(), items[WRITER][0].as_py()
        rises = np.flatnonzero(np.diff(np.maximum.accumulate(times), prepend=times[0] - 1))
        given = zip(positions[rises].tolist(), times[rises].tolist(), strict=True)
        return Intake(None, bounds=[(writer, position - 1, at) for position, at in given])
