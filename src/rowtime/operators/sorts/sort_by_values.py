"""ORDER BY m, k… if m follows an ordered value: rows sorted within each value of m.

Semantics 5. A value is complete once its clock has moved on. Then its rows are released together, with the rowtime of
the last one, like the groups that such a value closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import BEFORE, FIRST, ROUTE, ROWTIME, SORT_VALUE, STAMP
from rowtime.core.fields import UNSTORED
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Shape, Tick, quoted
from rowtime.operators.contract.requirement import Requirement
from rowtime.operators.contract.state import Kept, Route, Segment, StateNote
from rowtime.operators.groups.finished import COMPLETE, KEPT
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.over.over_calls import RunningMark
from rowtime.operators.over.value_clocks import ByValues, Closer, ValueClocks
from rowtime.operators.sorts.sort_by import moved_shape, sortable
from rowtime.sql.generate import to_spark


@dataclass(frozen=True)
class SortByValues(ByValues):
    """``value`` is m, which rows have in the column ``__m``; ``keys`` and ``directions`` as in `SortBy`.

    ``stamp``: the ``AS ROWTIME`` of the select list, over ``__m``; else the rowtime of the last row of the value.
    """

    value: exp.Expr
    closer: Closer
    gates: tuple[Ordered | RunningMark, ...] = field(metadata=UNSTORED)
    keys: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    stamp: exp.Expr | None = None

    kind: ClassVar[str] = "order by"
    same_below: ClassVar = ()
    promise: ClassVar[str] = "the first row of the open value, if that is before the bound"
    reason: ClassVar[str] = "no open or future value can have its last row before it"

    def requires(self) -> tuple[Requirement, ...]:
        """Require places, if the order of the rows below may use the hidden names of this one."""
        return (sortable(self.input),)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the rows of the value at the mark."""
        return (self._state.noted("the rows of the last value", "the value moves on", "values"),)

    def emits(self) -> Shape:
        """Return the input's columns under the new rowtime, value by value."""
        value = f"{SORT_VALUE} {'DESC' if self.closer.descending else 'ASC'}"
        if self.closer.descending and any(gate.starts_null for gate in self.gates):
            value += " NULLS FIRST"  # other values come after NULL, in either direction
        ways = (f"{key} {way}" for key, way in zip(self.keys, self.directions, strict=True))
        return moved_shape(self.input.emits(), (value, *ways), (SORT_VALUE, *self.keys), released=True)

    @property
    def _clocks(self) -> ValueClocks:
        return ValueClocks((SORT_VALUE,), (self.closer,), self.gates)

    def _close(self, tick: Tick, delta: Delta, past: Sequence[str]) -> Sequence[Segment]:
        segments, closed = tick.segments(self), " OR ".join(past)
        kept = segments.overlapping(BEGINNING, END)
        parts = [] if delta.rows is None else [self._new(delta)]
        if kept:
            parts.append(segments.read(kept))
        rows = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
        last = f"max({ROWTIME}) OVER (PARTITION BY {SORT_VALUE})"
        if self.stamp is not None:
            last = f"CASE WHEN {closed} THEN CAST({to_spark(self.stamp)} AS TIMESTAMP) END"
        tick.describe(self, "let out whole values")
        shape, moved = self.emits(), {ROWTIME: STAMP, BEFORE: ROWTIME}
        columns = {name: moved.get(name, name) for name in (*shape.names, *shape.internals)}
        routes = {"complete": Route(COMPLETE, columns, FIRST), "state": self._state.route(KEPT)}
        written = tick.write(
            self,
            rows.selectExpr(
                "*", f"{last} AS {STAMP}", f"CASE WHEN {closed} THEN {COMPLETE} ELSE {KEPT} END AS {ROUTE}"
            ),
            routes,
        )
        segments.forget(END)
        segments.add(written["state"])
        tick.remember(self, since=min((segment.lowest for segment in written["state"]), default=END))
        return written["complete"]

    def _keep(self, tick: Tick, delta: Delta) -> None:
        tick.describe(self, "keep rows of the last value")
        written = self._state.keep(tick, self, self._new(delta))
        tick.remember(self, since=min([tick.control(self).since, *(segment.lowest for segment in written)]))
        self._state.compact(tick, self, "rows of the last value", lambda rows: rows)

    def _new(self, delta: Delta) -> Frame:
        assert delta.rows is not None
        columns = [quoted(name) for name in self._state.columns or () if name != FIRST]
        return delta.rows.selectExpr(*columns, f"unix_micros({ROWTIME}) AS {FIRST}")

    @property
    def _state(self) -> Kept:
        below = self.input.emits().without_origin()
        return Kept(FIRST, tuple(dict.fromkeys([*below.names, *below.internals, *self.keys, SORT_VALUE, FIRST])))
