"""Events of rows: a view with an EVENT SHAPE (semantics 9.3).

The rows come in stream order, as one writer's. They generate the bounds. If they generate none, the start of an event,
or the time of an edge, is the ROWTIME of its row: the bounds of the rows are bounds of the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import POSITION, ROWTIME, WRITER
from rowtime.core.time import END
from rowtime.operators.contract import Delta, Tick
from rowtime.operators.contract.intake import Intake
from rowtime.operators.events.event_gate import collected_items
from rowtime.operators.events.gated_rows import GatedControl, GatedRows
from rowtime.operators.rows.by_writer import by_writer


@dataclass(frozen=True)
class RowEvents(GatedRows):
    """Events of a ``shape`` from rows of ``columns``."""

    kind: ClassVar[str] = "events of rows"
    promise: ClassVar[str] = (
        "the strongest bound that the rows generated; or the bound of the rows, if they generate none"
    )

    def promises(self, clocks: Sequence[Clocks], control: GatedControl) -> Clocks:
        """Return the bound that the rows generated, until they end; else the bounds of the rows."""
        own = least(clocks[0].values())
        return {"": control.bound if self.shape.generates and own < END else max(control.bound, own)}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Judge the rows in order, and turn accepted ones into weighted rows."""
        delta, events = deltas[0], None
        if delta.rows is not None:
            rows, bound = self.gate.timed(delta.rows), tick.control(self).bound
            items = collected_items(tick, self, rows, [f"unix_micros({ROWTIME}) AS at"], in_band=False)
            before = {writer: bound for writer, _ in by_writer(items)}
            events = self._passed(tick, rows, items, self._met(items), before)
        if not self.shape.generates:
            tick.remember(self, bound=self.promises([delta.clocks], tick.control(self))[""])
        return self._given(tick, delta, events)

    def _met(self, items: pa.Table) -> Intake:
        """Return the bounds that precede rows: their rowtimes, unless they generate bounds."""
        if self.shape.generates or not items.num_rows:
            return Intake(None)
        times, positions, writer = items["at"].to_numpy(), items[POSITION].to_numpy(), items[WRITER][0].as_py()
        rises = np.flatnonzero(np.diff(np.maximum.accumulate(times), prepend=times[0] - 1))
        given = zip(positions[rises].tolist(), times[rises].tolist(), strict=True)
        return Intake(None, bounds=[(writer, position - 1, at) for position, at in given])
