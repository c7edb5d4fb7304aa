"""Merge, the order enforcer: holds rows above the bound, releases the rest in stream order.

Semantics 2.5. Order is a property of an edge: a merge is planned only if a consumer needs it (a T-sort above a UNION
ALL, a sink), as a database plans a sort. The rows that may be released are a prefix of the merged order (see
`core.clock.frontier`), so the output does not depend on the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow.compute as pc

from rowtime.core.clock import NOBODY, Clocks, frontier, least
from rowtime.core.columns import HELD_TIME, ORIGIN, POSITION, ROUTE, ROWTIME, WRITER
from rowtime.core.fields import UNSTORED
from rowtime.core.time import BEGINNING, END
from rowtime.expr.store_assignment import as_read, same_type
from rowtime.frames.frame import Frame
from rowtime.operators.contract import (
    Control,
    Delta,
    EventTime,
    Link,
    Origin,
    Shape,
    Tick,
    Unary,
)
from rowtime.operators.contract.state import Kept, Route, StateNote, rows_in
from rowtime.operators.contract.texts import passed
from rowtime.sql.generate import literal, quoted

Frontier = tuple[int, str]
_MICROS = f"unix_micros({ROWTIME})"


@dataclass(frozen=True)
class Merged(Control):
    """The place up to which rows have been released, ``clock`` (µs UTC) and ``writer``; ``numbered``: how many."""

    clock: int = BEGINNING
    writer: str = ""
    numbered: int = 0


@dataclass(frozen=True)
class Merge(Unary):
    """Releases the input's rows in stream order.

    ``numbers``: the consumer needs positions, so each released row gets its number in the merged order as its position.
    ``origins``: it also keeps the row's former place (``ORIGIN``), for a gate above that may refuse it. ``traced``: the
    same, for a gate that needed it only in a later version; the state is the same.
    """

    numbers: bool = False
    origins: bool = False
    traced: bool = field(default=False, metadata=UNSTORED)

    control: ClassVar = Merged
    kind: ClassVar[str] = "merge"
    passes_all: ClassVar[bool] = True
    keeps_fires: ClassVar[bool] = True
    decides: ClassVar[str] = "SORT"
    finishes_groups: ClassVar = False
    merges_writers: ClassVar[bool] = True
    keeps_rows_alone: ClassVar[bool] = True
    promise: ClassVar[str] = "the least clock of its input"
    reason: ClassVar[str] = "all rows below the least clock have been released, and none can follow"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the rows that are ahead of the bound."""
        return (self._state.noted("rows above the bound", "the least clock of its writers passes them"),)

    def emits(self) -> Shape:
        """Return the same columns, released in order, as one writer's."""
        below = replace(self._below, single=True, released=True, placed=self.numbers, unmerged=False, event=None)
        return replace(below, order=(POSITION,), extra=self._origin) if self.numbers else below

    @property
    def _below(self) -> Shape:
        """Return the shape of the rows that it holds and releases."""
        below = self.input.emits()
        return below if self._origin else below.without_origin()

    @property
    def _origin(self) -> tuple[str, ...]:
        return ORIGIN if (self.origins or self.traced) and self.input.emits().placed else ()

    @property
    def strict(self) -> bool:
        """Return True if keys order equal rowtimes: then rows at the bound itself have to wait."""
        return self.input.emits().order[:2] != (ROWTIME, WRITER)

    @property
    def _at_bound(self) -> str:
        """Return the last writer whose rows at the bound itself are released although keys order them: none, or any."""
        shape = self.input.emits()
        return NOBODY if shape.settled and shape.settled == shape.order else ""

    def promises(self, clocks: Sequence[Clocks], control: Merged) -> Clocks:
        """Return the least of the input's clocks, as one writer's."""
        return {"": max(least(clocks[0].values()), control.clock)}

    def begins_now(self) -> bool:
        """Return True if it only orders rows: those read from then on."""
        return not self.numbers

    def link(self, n: int) -> Link:
        """Return the row itself; one that was numbered has another writer and position."""
        return Link(self.passed_on(n, ROWTIME)) if self.numbers else self.unchanged(n)

    def origin(self, column: str) -> Origin | None:
        """Return the origin of the same column of the input."""
        return self.input.origin(column)

    def event_of_rows(self) -> EventTime | None:
        """Return that of its input, whose rows it orders."""
        return self.input.event_of_rows()

    def reads_once(self) -> bool:
        """Return True if all its rows are emitted: none is examined first."""
        return self.numbers and self.input.emits().released

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Release the kept and new rows that the clocks allow; keep the rest."""
        delta, control = self._held(deltas[0]), tick.control(self)
        before: Frontier = (control.clock, control.writer)
        at, writer = frontier(delta.clocks)
        after = max(before, (at, self._at_bound if self.strict else writer))
        clocks = self.promises([delta.clocks], control)
        tick.remember(self, clock=after[0], writer=after[1])
        released = self._release(tick, delta, before, after)
        # The rows at the clock itself are out if their writer is one that the frontier has passed.
        tick.segments(self).forget(after[0] - 1, writer=after[1] if after[1] or not self.strict else None)
        self._state.compact(
            tick, self, "rows above the bound", lambda rows: self._beyond(self._below.with_origin(rows), after)
        )
        return Delta(released, clocks)

    def _held(self, delta: Delta) -> Delta:
        if delta.rows is None or self._below.extra == self.input.emits().extra:
            return delta
        return replace(delta, rows=delta.rows.drop(*ORIGIN))

    def _release(self, tick: Tick, delta: Delta, before: Frontier, after: Frontier) -> Any:
        segments = tick.segments(self)
        kept = segments.overlapping(before[0] - 1, after[0])
        parts = []
        if kept and after > before:
            due = f"NOT ({self._within(before)}) AND {self._within(after)}"
            parts.append(self._as_now(segments.read(kept).where(due), delta))
        if delta.rows is not None:
            parts.extend(self._new(tick, delta, after))
        if not parts:
            return None
        rows = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
        return self._numbered(tick, rows)

    def _as_now(self, kept: Frame, delta: Delta) -> Frame:
        """Convert kept rows to the present columns, if a target's declaration or a pump's names have changed."""
        kept = self._below.with_origin(kept)
        ours = [name for name in kept.columns if name.startswith("__")]
        before = [name for name in kept.columns if name not in ours]
        names = list(self.emits().names)
        types = {} if delta.rows is None else dict(delta.rows.dtypes)
        if before == names:
            return self._retyped(kept)
        if len(before) != len(names):
            return kept
        columns = [
            f"CAST({quoted(old)} AS {types[new]}) AS {quoted(new)}"
            if new in types
            else f"{quoted(old)} AS {quoted(new)}"
            for old, new in zip(before, names, strict=True)
        ]
        return kept.selectExpr(*columns, *ours)

    def _retyped(self, kept: Frame) -> Frame:
        wanted = {column.name: as_read(column.type) for column in self.emits().columns if column.type}
        kinds = dict(kept.dtypes)
        other = {name: kind for name, kind in wanted.items() if not same_type(kinds[name], kind)}
        if not other:
            return kept
        columns = {name: f"CAST({quoted(name)} AS {other[name]}) AS {quoted(name)}" for name in other}
        return kept.selectExpr(*(columns.get(name, quoted(name)) for name in kept.columns))

    def _new(self, tick: Tick, delta: Delta, after: Frontier) -> list[Any]:
        assert delta.rows is not None
        if self.input.emits().released or delta.highest < after[0] or after[0] >= END:
            return [delta.rows]
        tick.describe(self, "keep rows above the bound")
        self._state.keep(tick, self, self._beyond(delta.rows, after))
        return [] if delta.lowest > after[0] else [delta.rows.where(self._within(after))]

    def _beyond(self, rows: Frame, after: Frontier) -> Frame:
        """Return the rows beyond the frontier, in the form in which they are kept."""
        return rows.where(f"NOT ({self._within(after)})").selectExpr("*", f"unix_micros({ROWTIME}) AS {HELD_TIME}")

    @property
    def _state(self) -> Kept:
        return Kept(HELD_TIME, (*self._below.names, *self._below.internals), timed_by=ROWTIME)

    def _within(self, edge: Frontier) -> str:
        """Return the condition for rows up to the frontier."""
        at, writer = edge
        if at <= BEGINNING:
            return "false"
        if at >= END:
            return "true"
        edge_text = passed(at, _MICROS)
        tie = f" OR ({_MICROS} = {edge_text} AND {WRITER} <= {literal(writer)})" if writer or not self.strict else ""
        return f"({_MICROS} < {edge_text}{tie})"

    def _came_from(self) -> tuple[str, str]:
        """Return the former writer and position of a row, as Spark SQL."""
        writer, position = ORIGIN if self._below.has_origin else (WRITER, POSITION)
        below = self.input
        while below.keeps_places:
            below = below.inputs[0]
        if self.traced and below.side_by_side:  # writers have the number of the input before their names
            writer = f"regexp_replace({writer}, '^([0-9]{{4}}/)+', '')"
        return writer, position

    def _numbered(self, tick: Tick, rows: Any) -> Any:
        if not self.numbers:
            return rows
        control = tick.control(self)
        base = control.numbered
        internals = [name for name in self.emits().internals if name not in (WRITER, POSITION, *self._origin)]
        columns = [*map(quoted, self.emits().names), *internals]
        origin = [f"{ours} AS {name}" for ours, name in zip(self._came_from(), self._origin, strict=False)]
        order = self.input.emits().order
        number = f"{passed(base - 1, POSITION)} + row_number() OVER (ORDER BY {', '.join(order)}) AS {POSITION}"
        if not origin and (places := rows.places(order)) is not None:
            rows, number = rows.with_column(POSITION, "bigint", pc.add(places, base)), POSITION
        rows = rows.selectExpr(
            *columns, *origin, f"'' AS {WRITER}", number, f"unix_micros({ROWTIME}) AS {HELD_TIME}", f"0 AS {ROUTE}"
        )
        tick.describe(self, "number rows in merged order")
        names = {name: name for name in (*self.emits().names, *internals, *self._origin, WRITER, POSITION)}
        written = tick.write(self, rows, {"merged": Route(0, names, HELD_TIME)})["merged"]
        total = rows_in(written)
        tick.remember(self, numbered=base + total)
        return tick.segments(self, "merged").read(written) if total else None
