"""A stream of events whose bounds are those of another stream (semantics 9.3: slow reference data).

The rows of the stream and the bounds of the other one come in merged order, as one writer's. So whether a row is late
depends on the items of both, and not on when either was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import BOUND, GIVEN, ORIGIN
from rowtime.core.time import END
from rowtime.operators.contract import Delta, Tick, quoted
from rowtime.operators.contract.intake import Intake
from rowtime.operators.events.event_gate import collected_items
from rowtime.operators.events.gated_rows import GatedControl, GatedRows
from rowtime.operators.streams.union_all import prefix


@dataclass(frozen=True)
class BoundedEvents(GatedRows):
    """Events of a ``shape`` from rows of ``columns``, judged by the bounds that are among them.

    ``input``: the merged rows of the stream (input 0 below) and of `ImportedBounds` (input 1).
    """

    kind: ClassVar[str] = "events under imported bounds"
    promise: ClassVar[str] = "the strongest bound of the other stream among the rows so far"

    def promises(self, clocks: Sequence[Clocks], control: GatedControl) -> Clocks:
        """Return the bound; the end, once both streams have ended."""
        ended = least(clocks[0].values()) >= END
        return {"": END if ended else control.bound}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Judge the rows by the bounds before them, and turn accepted ones into weighted rows."""
        delta, events = deltas[0], None
        if delta.rows is not None:
            # Bounds of its own writers are ignored.
            counted = delta.rows.where(f"{GIVEN} IS NULL OR {ORIGIN[0]} LIKE '{prefix(1)}%'")
            rows = self.gate.timed(counted.selectExpr(*self._read()))
            before = {"": tick.control(self).bound}
            items = collected_items(tick, self, rows, in_band=True)
            events = self._passed(tick, rows, items, Intake(None), before)
        return self._given(tick, delta, events)

    def _read(self) -> list[str]:
        names = [quoted(column.name) for column in self.columns]
        ours = [name for name in self.input.emits().internals if name not in ORIGIN]
        writer = f"substr({ORIGIN[0]}, {len(prefix(0)) + 1}) AS {ORIGIN[0]}"
        bound = f"timestamp_micros({GIVEN} - {self.shape.imported_delay}L) AS {BOUND}"
        return [*names, *ours, writer, ORIGIN[1], bound]
