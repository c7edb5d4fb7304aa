"""``CURRENT_BOUND()``: the bound of the event time before each row (semantics 8.1).

A row is emitted before the bound that it causes. So the bound before it is that of the rows before it in the merged
order, however they were cut into ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rowtime.core.columns import BOUND_BEFORE
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import NOTHING, Column, Delta, Link, Shape, Tick, quoted
from rowtime.operators.contract.requirement import EVENT_TIME, UNORDERED
from rowtime.operators.panes.event_time import WithEventTime
from rowtime.operators.panes.values_at import with_value_at


@dataclass(frozen=True)
class CurrentBound(WithEventTime):
    """The rows of ``input``, each with the bound of its ``event`` time before it; NULL for the first one."""

    kind: ClassVar[str] = "current bound"
    needs: ClassVar = (EVENT_TIME, UNORDERED)  # the places of the rows in the merged order
    in_traces: ClassVar[bool] = False
    keeps_fires: ClassVar[bool] = True

    def emits(self) -> Shape:
        """Return the input's columns, and the bound."""
        below = self.input.emits()
        return replace(below, columns=(*below.columns, Column(BOUND_BEFORE, "TIMESTAMP")))

    def link(self, n: int) -> Link:
        """Return the row itself."""
        return self.unchanged(0) if n == 0 else NOTHING

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002
        """Return the new rows with their bounds; lazily."""
        delta, line = deltas[0], deltas[1].timeline
        if delta.rows is None:
            return Delta(None, delta.clocks)
        assert line is not None
        shape, rows, bound = self.input.emits(), delta.rows, f"{line.before}L"
        if len(line.values):
            rows, bound = with_value_at(rows, "__bound", np.append(line.before, line.values), line.positions), "__bound"
        before = f"timestamp_micros(nullif({bound}, {BEGINNING}L)) AS {BOUND_BEFORE}"
        rows = rows.selectExpr(*map(quoted, shape.names), *shape.internals, before)
        return replace(delta, rows=rows, files=None, timeline=None)
