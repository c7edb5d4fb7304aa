"""``CURRENT_BOUND()``: the bound of the event time before each row (semantics 8.1).

A row is emitted before the bound that it causes. So the bound before it is that of the rows before it in the merged
order, however they were cut into ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from rowtime.core.clock import Clocks
from rowtime.core.columns import BOUND_BEFORE
from rowtime.core.fields import UNSTORED
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import NOTHING, Column, Control, Delta, FireColumns, Link, Operator, Shape, Tick, quoted
from rowtime.operators.contract.requirement import EVENT_TIME, UNORDERED
from rowtime.operators.panes.event_time import EventTimed
from rowtime.operators.rows.halves import with_value_at


@dataclass(frozen=True)
class CurrentBound(Operator):
    """The rows of ``input``, each with the bound of its ``event`` time before it; NULL for the first one."""

    name: str
    input: Operator
    event: EventTimed = field(metadata=UNSTORED)

    kind: ClassVar[str] = "current bound"
    needs: ClassVar = (EVENT_TIME, UNORDERED)  # the places of the rows in the merged order
    in_traces: ClassVar[bool] = False

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return the rows, and the operator that knows their event time."""
        return (self.input, self.event)

    def emits(self) -> Shape:
        """Return the input's columns, and the bound."""
        below = self.input.emits()
        return replace(below, columns=(*below.columns, Column(BOUND_BEFORE, "TIMESTAMP")))

    def promises(self, clocks: Sequence[Clocks], control: Control) -> Clocks:  # noqa: ARG002
        """Return those of the input."""
        return clocks[0]

    def link(self, n: int) -> Link:
        """Return the row itself."""
        return self.unchanged(0) if n == 0 else NOTHING

    def fires(self) -> FireColumns | None:
        """Return those of its input."""
        return self.input.fires()

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002
        """Return the new rows with their bounds; lazily, without a job."""
        delta, line = deltas[0], deltas[1].timeline
        if delta.rows is None:
            return Delta(None, delta.clocks)
        assert line is not None
        shape, rows, bound = self.input.emits(), delta.rows, f"{line.before}L"
        if len(line.values):
            rows, bound = with_value_at(rows, "__bound", np.append(line.before, line.values), line.positions), "__bound"
        before = f"timestamp_micros(nullif({bound}, {BEGINNING}L)) AS {BOUND_BEFORE}"
        rows = rows.selectExpr(*map(quoted, shape.names), *shape.internals, before)
        return replace(delta, rows=rows, peek=None, files=None, timeline=None)
