"""The join of events with a static table: each event once per matching row of the table (semantics 5, 9).

The table is the one at the first start, so a change of an event matches the same rows as the event itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import CHANGED_BY, MET, ROWTIME, STOP, WEIGHT
from rowtime.core.fields import LATER
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Control, Delta, Link, Operator, Shape, Tick, named, quoted
from rowtime.operators.events.failing_events import refuse_events
from rowtime.operators.joins.table_join import TableJoin
from rowtime.operators.rows.attempt import judged
from rowtime.operators.rows.conditions import joined_if, sorted_out
from rowtime.operators.rows.lifetimes import BEGINS, derived, derived_columns


@dataclass(frozen=True)
class EventTableJoin(TableJoin):
    """A `TableJoin` of events; ``numbered``: of changes of events."""

    numbered: bool = field(default=False, metadata=LATER)

    kind: ClassVar[str] = "table join of events"
    promise: ClassVar[str] = "the bound of the events"
    reason: ClassVar[str] = "each event goes out at once, with its own lifetime"

    def emits(self) -> Shape:
        """Return both sides' columns, as events."""
        return replace(derived(super().emits()), retracts=self.inputs[0].emits().retracts)

    def promises(self, clocks: Sequence[Clocks], control: Control) -> Clocks:  # noqa: ARG002
        """Return the bound of the events, as one writer's."""
        return {"": least(clocks[0].values())}

    def link(self, n: int) -> Link:
        """Return the event by its values and start, the row of the table by its values."""
        names = set(self.emits().names)
        same = named([(name, old) for old, name in self.sides[n].columns if name in names])
        return Link((*same, (ROWTIME, ROWTIME)), narrows="own") if n == 0 else Link(same)

    def opens_events(self) -> bool:
        """Return True if those of the left side do."""
        return self.inputs[0].opens_events()

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the same operator: each change matches the rows that the event does."""
        return replace(self, inputs=(below[0], below[1]), numbered=True)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the new events with their matches."""
        delta = super().step(tick, deltas)
        clocks = self.promises([deltas[0].clocks], tick.control(self))
        if delta.rows is None:
            return Delta(None, clocks)
        names = [quoted(name) for name in self.emits().names]
        rows = delta.rows.selectExpr(*names, *derived_columns(BEGINS, STOP, WEIGHT, CHANGED_BY, MET))
        return Delta(rows, clocks)

    def _tried(self, tick: Tick, rows: Frame, table: Frame) -> Frame:
        """Return the events to emit; pairs whose condition cannot be computed are refused, each once."""
        equal, others = sorted_out(self.on, self._left, self._types(tick))
        met = " AND ".join(equal) or "true"
        pairs = rows.joined(table, met, "inner")
        refuse_events(tick, self, judged(pairs, [others], {}, [], pairs.columns))
        how = self.alone or ("left" if self.outer else "inner")
        return joined_if(rows, table, met, others, how)
