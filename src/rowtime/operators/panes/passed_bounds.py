"""Passed bounds: the bounds of an event time among the rows, on the way to where regions merge.

Semantics 8.1, mode INPUT_WATERMARK. A bound follows the item that caused it: with its rowtime and its writer, at a
position between its own and the next. So wherever inputs are merged, rows and bounds have one order (semantics 3), and
a reader of it knows the least bound of the inputs. A bound that no item caused follows everything before it; the end is
last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from rowtime.core.clock import least
from rowtime.core.columns import GIVEN, ORIGIN, POSITION, REGION, ROWTIME, WRITER
from rowtime.core.time import BEGINNING, END, MAX_MICROS, MIN_MICROS
from rowtime.kernels.timeline import FIRST, LAST
from rowtime.operators.contract import NOTHING, Column, Control, Delta, EventTime, Link, Shape, Tick, quoted
from rowtime.operators.contract.requirement import EVENT_TIME, UNORDERED
from rowtime.operators.contract.state import StateNote
from rowtime.operators.panes.event_time import BETWEEN, OUTPUT, WithEventTime, came_from
from rowtime.operators.streams.raises import raised_by_times

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.kernels.timeline import Timeline


@dataclass(frozen=True)
class PassedOn(Control):
    """``clock`` (µs UTC): that of the input. ``last``: the position of the last item; no later one is below it.

    ``highest`` (µs UTC): the greatest event time. ``jump``: [writer, position, from, to] of the last row that raised it
    by far.
    """

    clock: int = BEGINNING
    last: int = -1
    highest: int = BEGINNING
    jump: Sequence[Any] | None = None


@dataclass(frozen=True)
class PassedBounds(WithEventTime):
    """The rows of ``input`` with the bounds of their ``event`` time as rows between them; ``region`` numbers both."""

    region: int = 0

    control: ClassVar = PassedOn
    kind: ClassVar[str] = "passed bounds"
    needs: ClassVar = (EVENT_TIME, UNORDERED)  # the places of the rows in the merged order
    passes_bounds: ClassVar[bool] = True

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the place of the last item."""
        return (StateNote("the place of the last item", "the stream ends", "one", fields=("last",)),)

    def emits(self) -> Shape:
        """Return the input's columns, a bound (null for a row), and the number of the input."""
        below = self.input.emits()
        columns = (*below.columns, Column(GIVEN, "BIGINT"), Column(REGION, "INT"))
        return replace(below, columns=columns, extra=ORIGIN, arrival=False, event=None)

    def link(self, n: int) -> Link:
        """Return the row at its own rowtime."""
        return Link(self.passed_on(n, ROWTIME)) if n == 0 else NOTHING

    def event_of_rows(self) -> EventTime | None:
        """Return that of its input, whose bounds are rows."""
        return self.input.event_of_rows()

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the new rows and bounds."""
        delta, line = deltas[0], deltas[1].timeline
        assert line is not None
        rows = None if delta.rows is None else self._rows(delta.rows)
        self._watch(tick, deltas[1].rows, line)
        bounds = self._bounds(tick, line, least(delta.clocks.values()))
        if not bounds.num_rows:
            return Delta(rows, delta.clocks, delta.lowest, delta.highest)
        bound_rows = self._bound_rows(tick, bounds)
        rows = bound_rows if rows is None else rows.unionByName(bound_rows)
        return Delta(rows, delta.clocks)

    def _rows(self, rows: Frame) -> Frame:
        columns = [quoted(name) for name in self.input.emits().names]
        origins = ORIGIN if self.input.emits().has_origin else (WRITER, POSITION)
        origin = [f"{name} AS {ours}" for name, ours in zip(origins, ORIGIN, strict=True)]
        ours = [ROWTIME, WRITER, f"{POSITION} * {BETWEEN}L AS {POSITION}", *origin]
        return rows.selectExpr(*columns, f"CAST(NULL AS BIGINT) AS {GIVEN}", f"{self.region} AS {REGION}", *ours)

    def _watch(self, tick: Tick, rows: Frame | None, line: Timeline) -> None:
        """Remember which row raised the bound by far: where regions merge, its effect on other rows is known."""
        if self.event.mode != OUTPUT:
            return
        highest = tick.control(self).highest
        tick.remember(self, highest=int(line.times.max(initial=highest)))
        jump = raised_by_times(None, line.rows, highest, line.times, np.array([], np.int64))
        if jump is not None and rows is not None:
            tick.remember(self, jump=[*came_from(tick, self, rows, jump[0]), *jump[1:3]])

    def _bounds(self, tick: Tick, line: Timeline, clock: int) -> pa.Table:
        """Return rowtime (BIGINT µs), position and value of each advance."""
        control = tick.control(self)
        before, last = control.clock, control.last
        where, values = line.positions, line.values
        stands, newest = [], last
        if len(line.rows) or len(where):
            items = where[(where > FIRST) & (where < LAST)]
            newest = max([last, *line.rows[-1:].tolist(), *items[-1:].tolist()])
        tick.remember(self, clock=clock, last=newest)
        for kind, at, after, first in ((FIRST, before, last, 2), (LAST, clock, newest, BETWEEN // 2)):
            rows = np.flatnonzero(where == kind)
            rest = np.minimum(np.arange(len(rows)) + first, first + BETWEEN // 2 - 3)
            times = np.where(values[rows] >= END, MAX_MICROS, min(max(at, MIN_MICROS), MAX_MICROS))
            stands.append((rows, times, after * BETWEEN + rest))
        caused = np.flatnonzero((where > FIRST) & (where < LAST))
        if len(caused):
            assert line.stamps is not None
            stands.append((caused, line.stamps(where[caused]), where[caused] * BETWEEN + 1))
        rows, times, places = (np.concatenate(part).astype(np.int64) for part in zip(*stands, strict=True))
        return pa.table({"t": times, POSITION: places, GIVEN: values[rows]})

    def _bound_rows(self, tick: Tick, bounds: pa.Table) -> Frame:
        types = zip(self.input.emits().names, tick.types(self.input), strict=True)
        columns = [f"CAST(NULL AS {kind or 'VOID'}) AS {quoted(name)}" for name, kind in types]
        fixed = [f"{self.region} AS {REGION}", f"timestamp_micros(t) AS {ROWTIME}", f"'' AS {WRITER}"]
        nobody = (f"CAST(NULL AS {kind}) AS {name}" for kind, name in zip(("STRING", "BIGINT"), ORIGIN, strict=True))
        return tick.frame(self, bounds).selectExpr(*columns, GIVEN, *fixed, POSITION, *nobody)
