"""Fired bounds: the bounds that fire panes, among the fires, for queries that group these by the ends of their panes.

Semantics 8.2. A fire has the end of its pane as its event time, and the bound of the panes' input follows the fires
that it causes. So under its own time it comes after every fire of that time; the end is last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from rowtime.core.columns import FIRE, GIVEN, PANE, POSITION, REGION, ROWTIME, WRITER
from rowtime.core.time import END, MAX_MICROS, MIN_MICROS
from rowtime.kernels.timeline import LAST
from rowtime.operators.contract import NOTHING, Column, Delta, Link, Shape, Tick, quoted
from rowtime.operators.contract.requirement import UNORDERED
from rowtime.operators.panes.event_time import WithEventTime

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.kernels.timeline import Timeline


@dataclass(frozen=True)
class FiredBounds(WithEventTime):
    """The fires of the panes ``input`` with the bounds of their ``event`` time as rows between them."""

    region: int = 0

    kind: ClassVar[str] = "fired bounds"
    needs: ClassVar = (UNORDERED, UNORDERED)  # the fires have an order of their own
    passes_bounds: ClassVar[bool] = True
    keeps_fires: ClassVar[bool] = True
    promise: ClassVar[str] = "the bound of the panes"
    reason: ClassVar[str] = "a bound stands under its own time, behind the fires that it caused"

    def emits(self) -> Shape:
        """Return the columns of the fires, and a bound (null for a fire)."""
        below = self.input.emits()
        return replace(below, columns=(*below.columns, Column(GIVEN, "BIGINT"), Column(REGION, "INT")))

    def link(self, n: int) -> Link:
        """Return the fire itself."""
        return self.unchanged(0) if n == 0 else NOTHING

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the new fires and bounds."""
        delta, line = deltas[0], deltas[1].timeline
        assert line is not None
        rows = None if delta.rows is None else self._rows(delta.rows)
        if not len(line.values):
            return replace(delta, rows=rows, files=None, timeline=None)
        bounds = self._bound_rows(tick, line, {} if rows is None else dict(rows.dtypes))
        return Delta(bounds if rows is None else rows.unionByName(bounds), delta.clocks)

    def _rows(self, rows: Frame) -> Frame:
        shape = self.input.emits()
        columns = (*map(quoted, shape.names), *shape.internals)
        return rows.selectExpr(*columns, f"CAST(NULL AS BIGINT) AS {GIVEN}", f"{self.region} AS {REGION}")

    def _bound_rows(self, tick: Tick, line: Timeline, kinds: Mapping[str, str]) -> Frame:
        """Return bounds as rows; ``kinds``: the types of the fires' columns, if there are fires."""
        shape = self.input.emits()
        times = np.where(line.values >= END, MAX_MICROS, np.clip(line.values, MIN_MICROS, MAX_MICROS))
        bounds = tick.frame(self, pa.table({"t": times.astype(np.int64), GIVEN: line.values.astype(np.int64)}))
        types = dict(zip(shape.names, tick.types(self.input), strict=True))
        hidden = {ROWTIME: "timestamp_micros(t)", WRITER: "''", POSITION: "0L", FIRE: GIVEN, PANE: f"{LAST}L"}
        nulls = {name: f"CAST(NULL AS {kind or 'VOID'})" for name, kind in types.items()}
        internals = {name: f"CAST(NULL AS {kinds.get(name, 'BIGINT')})" for name in shape.internals}
        values = {**internals, **nulls, **hidden}
        columns = [f"{values[name]} AS {quoted(name)}" for name in (*shape.names, *shape.internals)]
        return bounds.selectExpr(*columns, GIVEN, f"{self.region} AS {REGION}")
