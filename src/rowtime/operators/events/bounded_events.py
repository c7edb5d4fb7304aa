"""A stream of events whose bounds are those of another stream (semantics 9.3: slow reference data).

The rows of the stream and the bounds of the other one come in their merged order, as one writer's. So whether a row is
late follows from the items of both, and not from when either was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import BOUND, GIVEN, ORIGIN, POSITION
from rowtime.core.shapes import EventShape
from rowtime.core.time import END
from rowtime.operators.contract import Column, Delta, Link, Shape, Tick, Unary, UpTo, quoted
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.requirement import GATED
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.event_gate import EventGate, Judging, collected_items
from rowtime.operators.streams.union_all import prefix


@dataclass(frozen=True)
class BoundedControl(UpTo, Judging):
    """The bound, and what the gate keeps of the one writer that all rows count as."""


@dataclass(frozen=True)
class BoundedEvents(Unary):
    """Events of a ``shape`` from rows of ``columns``, judged by the bounds that stand among them.

    ``input``: the merged rows of the stream (input 0 below) and of `ImportedBounds` (input 1).
    """

    columns: tuple[Column, ...]
    shape: EventShape

    control: ClassVar = BoundedControl
    kind: ClassVar[str] = "events under imported bounds"
    needs: ClassVar = (GATED,)  # the merged order, which decides which rows a bound comes before
    holds_itself: ClassVar[bool] = True
    has_own_time: ClassVar[bool] = True
    is_gate: ClassVar[bool] = True
    promise: ClassVar[str] = "the strongest bound of the other stream that stands among the rows so far"
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

    def promises(self, clocks: Sequence[Clocks], control: BoundedControl) -> Clocks:
        """The bound; the end, once both streams have ended."""
        ended = least(clocks[0].values()) >= END
        return {"": END if ended else control.bound}

    def link(self, n: int) -> Link:
        """An event of two edges has two rows; any other stands where its row does."""
        return Link(self.passed_on(n, *(() if self.shape.edges else (POSITION,))))

    def opens_events(self) -> bool:
        """True of edges."""
        return self.shape.kind == "EDGE"

    def checks_declared(self) -> bool:
        """True: of the time that the definition gives."""
        return True

    def refused_columns(self) -> tuple[Column, ...]:
        """Those of the stream, with the times."""
        return self.columns

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Judge the rows by the bounds before them, turn what is accepted into weighted rows."""
        delta, made = deltas[0], None
        if delta.rows is not None:
            # Bounds that the own writers send are promises that nobody needs.
            counted = delta.rows.where(f"{GIVEN} IS NULL OR {ORIGIN[0]} LIKE '{prefix(1)}%'")
            rows = self.gate.timed(counted.selectExpr(*self._read()))
            before = {"": tick.control(self).bound}
            judged = self.gate.judged(tick, collected_items(tick, self, rows, in_band=True), Intake(None), before)
            made, _ = self.gate.made(tick, rows, judged, delta.count)
            tick.remember(self, bound=max([before[""], *(found.judgement.mark.bound for found in judged.values())]))
        clocks = self.promises([delta.clocks], tick.control(self))
        if clocks[""] >= END:
            tick.segments(self, "open").forget(END)
        return Delta(made, clocks, self.gate.most(delta.count))

    def _read(self) -> list[str]:
        names = [quoted(column.name) for column in self.columns]
        ours = [name for name in self.input.emits().internals if name not in ORIGIN]
        writer = f"substr({ORIGIN[0]}, {len(prefix(0)) + 1}) AS {ORIGIN[0]}"
        bound = f"timestamp_micros({GIVEN} - {self.shape.imported_delay}L) AS {BOUND}"
        return [*names, *ours, writer, ORIGIN[1], bound]
