"""The bounds of another event stream as items of the merged order (semantics 9.3).

Each time the least bound of that stream's writers rises, a row says so. In the merged order, events are ordered by
arrival (semantics 2.4: the rowtime that the writer gave, else the recorded arrival time), because a start says nothing
about it. So a bound is at its writer's clock after it (semantics 3), among the rows of the importing stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import ARRIVAL, GIVEN, POSITION, ROWTIME, WRITER
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.kernels.events import Mark, advances
from rowtime.operators.contract import NOTHING, Column, Control, Delta, Link, Operator, Shape, Tick
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.event_gate import collected_items, items_of
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.rows.by_writer import by_writer
from rowtime.operators.streams.event_bounds import bound_rows

_ARRIVAL = (f"unix_micros(coalesce({ROWTIME}, {ARRIVAL})) AS at", f"{ROWTIME} IS NOT NULL AS timed")
_TIMES = dict.fromkeys((POSITION, "k", "s", "e", "b", "at"), pa.int64())
_NO_ITEMS = pa.schema({WRITER: pa.string(), **_TIMES, "bad": pa.bool_(), "timed": pa.bool_()}).empty_table()


class _WriterState(NamedTuple):
    """What a writer of the other stream has shown; times in µs. ``timed``: it gives rowtimes to its rows."""

    bound: int = BEGINNING
    highest: int = BEGINNING
    rows: int = 0
    clock: int = BEGINNING
    timed: bool = False


@dataclass(frozen=True)
class Imported(Control):
    """The state of the other stream; clocks are times of arrival, all in µs UTC.

    ``writers``: by writer that is present, what it has shown (`_WriterState`). ``away``: by writer that has left, its
    clock, until it is back. ``bounds``: by writer that holds the stream, its bound. ``pending``: [clock, writer,
    position, bound] of bounds above the least clock, until that passes them. ``shown``: the greatest clock of any
    writer. ``clock``: the least clock of those present, which is promised. ``said``: the greatest bound of any writer.
    ``bound``, ``sent``: the last emitted bound, and their number.
    """

    writers: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    away: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    pending: Sequence[Sequence[Any]] = field(default_factory=list)
    shown: int = BEGINNING
    clock: int = BEGINNING
    said: int = BEGINNING
    bound: int = BEGINNING
    sent: int = 0


class _Moving:
    """The scalars that a tick changes writer by writer."""

    def __init__(self, control: Imported) -> None:
        self.writers = {writer: _WriterState(*stored) for writer, stored in control.writers.items()}
        self.away, self.bounds = {**control.away}, {**control.bounds}
        self.pending, self.said, self.bound = [*control.pending], control.said, control.bound

    def come_back(self, writer: str) -> None:
        """Mark a writer as back: it holds the stream again."""
        self.pending = [step for step in self.pending if step[1:3] != [writer, END]]
        self.bounds.pop(writer, None)
        self.away.pop(writer, None)

    def leave(self, writer: str, clock: int) -> None:
        """Mark a writer as left: it holds nothing after its items."""
        writer_state = self.writers.pop(writer)
        self.away[writer] = writer_state.clock
        if writer_state.bound < END:
            self.pending.append([max(writer_state.clock, clock), writer, END, END])

    def risen(self, clock: int) -> list[tuple[int, int]]:
        """Return (clock, bound) wherever the least bound rose below the clock; an end is no bound of other writers."""
        rises = []
        pending = sorted(self.pending, key=list)
        last = clock + (not self.writers)  # no other item can come at the clock
        due = [step for step in pending if step[0] < last]
        self.pending = pending[len(due) :]
        for at, writer, _, bound in due:
            self.bounds[writer] = max(bound, self.bounds.get(writer, BEGINNING))
            if bound >= END and writer not in self.writers:
                del self.bounds[writer]
            elif bound < END:
                self.said = max(bound, self.said)
            low = least(self.bounds.values()) if self.bounds else self.said
            if self.bound < low < END:
                self.bound = low
                rises.append((at, low))
        return rises


@dataclass(frozen=True)
class ImportedBounds(Operator):
    """The bounds of ``source``, with NULL in ``columns``: those of the importing stream."""

    name: str
    source: EventStream
    columns: tuple[Column, ...]

    control: ClassVar = Imported
    kind: ClassVar[str] = "imported bounds"
    promise: ClassVar[str] = "the arrival time below which that stream can send no more items"
    reason: ClassVar[str] = "the arrival times of its writers never go back"

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return the stream whose bounds these are."""
        return (self.source,)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the items that an earlier item of another writer may still precede."""
        return (
            StateNote("a bound per writer", "the writer leaves", "writers", fields=("writers", "bounds")),
            StateNote("bounds above the least clock of the writers", "that clock passes them", fields=("pending",)),
        )

    def emits(self) -> Shape:
        """Return rows of NULLs with a bound, in the order in which they took effect."""
        return Shape((*self.columns, Column(GIVEN, "BIGINT")), single=True, released=True)

    def promises(self, clocks: Sequence[Clocks], control: Imported) -> Clocks:  # noqa: ARG002
        """Return the least arrival clock of the stream's writers."""
        return {"": control.clock}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return nothing: there are bounds, and no rows."""
        return NOTHING

    def imports_from(self) -> str:
        """Return the stream whose bounds it passes on."""
        return self.source.name

    def timed_by(self, below: Sequence[frozenset[str]]) -> frozenset[str]:  # noqa: ARG002 - it emits no rows of these
        """Return the stream whose bounds it passes on."""
        return frozenset({self.source.name})

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002 - it reads the source
        """Return the bounds whose place in the merged order is certain."""
        intake, control = tick.intake(self.source), tick.control(self)
        moving = _Moving(control)
        states = moving.writers
        starts, writers = tick.control(self.source).starts, [*intake.present, *intake.left]
        for writer in writers:
            if writer not in states or writer in intake.joined:
                states[writer] = _WriterState(starts.get(writer, BEGINNING))
                moving.come_back(writer)
        for writer in states.keys() - set(writers):
            moving.leave(writer, control.clock)
        items, beside = self._items(tick, intake), self._bounds_beside(intake)
        for writer in states:
            moving.bounds.setdefault(writer, states[writer].bound)
            if writer in items or writer in beside or intake.bound > BEGINNING:
                mine = items.get(writer, _NO_ITEMS)
                states[writer], steps = self._advanced(writer, states[writer], mine, beside.get(writer, ()), intake)
                moving.pending += [[max(at, control.clock), *step] for at, *step in steps]
            elif writer in intake.arrived:
                before = states[writer]
                states[writer] = before._replace(clock=max(before.clock, intake.arrived[writer]))
        shown = max([control.shown, *(state.clock for state in states.values())])
        for writer in intake.left:
            moving.leave(writer, control.clock)
        # Without any present writer, the greatest clock of all former ones is certain (semantics 2.6).
        now = max(control.clock, least([state.clock for state in states.values()]) if states else shown)
        risen = moving.risen(now)
        tick.remember(
            self, writers=states, away=moving.away, bounds=moving.bounds, pending=moving.pending, said=moving.said,
            bound=moving.bound, shown=shown, clock=now, sent=control.sent + len(risen),
        )  # fmt: skip
        return Delta(self._rows(tick, control.sent, risen), {"": now})

    def _items(self, tick: Tick, intake: Intake) -> dict[str, pa.Table]:
        """Return the times of each writer's rows, and when they arrived."""
        if intake.rows is None:
            return {}
        rows = self.source.gate.timed(intake.rows)
        items = collected_items(tick, self, rows, _ARRIVAL, in_band=intake.in_band)
        return dict(by_writer(items))

    def _bounds_beside(self, intake: Intake) -> dict[str, list[tuple[int, int, int]]]:
        """Return (position, bound, arrival) of the bounds of each writer that are beside the rows."""
        by_writer: dict[str, list[tuple[int, int, int]]] = {}
        for writer, position, at in intake.bounds:
            by_writer.setdefault(writer, []).append((position, at, intake.sent.get((writer, position), BEGINNING)))
        return by_writer

    def _advanced(
        self, writer: str, state: _WriterState, items: pa.Table, beside: Sequence[tuple[int, int, int]], intake: Intake
    ) -> tuple[_WriterState, list[list[Any]]]:
        """Return a writer's state after the tick, and where its bound rose."""
        timed = state.timed or bool(pc.any(items["timed"]).as_py())
        inside = items.filter(pc.is_valid(items["b"]))
        given = [*beside, *zip(*(inside[name].to_pylist() for name in (POSITION, "b", "at")), strict=True)]
        if timed:  # a writer that gives arrival times gives none for bounds: they arrive with the row before them
            given = [(position, at, BEGINNING) for position, at, _ in given]
        if intake.bound > BEGINNING:  # about the stream as a whole, after all that was read
            given.append((END - 1, intake.bound, BEGINNING))
        own = items.filter(pc.is_null(items["b"]))
        mark = Mark(state.bound, state.highest, state.rows)
        steps, mark, clock = advances(self.source.shape, mark, items_of(own), given, own["at"].to_numpy(), state.clock)
        clock = END if mark.bound >= END else max(clock, intake.arrived.get(writer, BEGINNING))
        risen = [[at, writer, position, bound] for at, position, bound in steps]
        return _WriterState(mark.bound, mark.highest, mark.rows, clock, timed), risen

    def _rows(self, tick: Tick, first: int, risen: Sequence[tuple[int, int]]) -> Frame | None:
        if not risen:
            return None
        items = [("", first + n, bound) for n, (_, bound) in enumerate(risen)]
        return bound_rows(tick, self, self.columns, items, [at for at, _ in risen])


def clocks_of(control: Imported) -> dict[str, int]:
    """Return the arrival clocks of the other stream's writers, from the operator's scalars."""
    return {writer: _WriterState(*stored).clock for writer, stored in control.writers.items()}
