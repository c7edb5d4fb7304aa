"""The bounds of another event stream as items of the merged order (SPEC 9.3).

Each time the least bound of that stream's writers rises, a row says so. Events go by arrival in the merged order (SPEC
2.4: the rowtime that the writer gave, else the recorded arrival time), since a start says nothing about it. So a bound
stands at the clock of its writer after it (SPEC 3), among the rows of whoever takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import ARRIVAL, GIVEN, POSITION, ROWTIME, WRITER
from rowtime.core.time import BEGINNING, END
from rowtime.kernels.events import Mark, advances
from rowtime.operators.contract import NOTHING, Column, Control, Delta, Link, Operator, Shape, StateNote, Tick
from rowtime.operators.contract.intake import Intake
from rowtime.operators.events.event_gate import collected_items, items_of
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.rows.by_writer import by_writer
from rowtime.operators.streams.event_bounds import bound_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ARRIVAL = (f"unix_micros(coalesce({ROWTIME}, {ARRIVAL})) AS at", f"{ROWTIME} IS NOT NULL AS timed")
_TIMES = dict.fromkeys((POSITION, "k", "s", "e", "b", "at"), pa.int64())
_NO_ITEMS = pa.schema({WRITER: pa.string(), **_TIMES, "bad": pa.bool_(), "timed": pa.bool_()}).empty_table()


class _Known(NamedTuple):
    """What a writer of the other stream has shown; times in µs. ``timed``: it gives rowtimes to its rows."""

    bound: int = BEGINNING
    highest: int = BEGINNING
    rows: int = 0
    clock: int = BEGINNING
    timed: bool = False


@dataclass(slots=True)
class Imported(Control):
    """What is known of the other stream; clocks are times of arrival, all in µs UTC.

    ``writers``: by writer that is present, what it has shown (`_Known`).
    ``away``: by writer that has left, its clock, until it is back.
    ``bounds``: by writer that holds the stream, its bound.
    ``pending``: [clock, writer, position, bound] of bounds above the least clock, until that passes them.
    ``shown``: the greatest clock of any writer.
    ``clock``: the least clock of those present, which is promised.
    ``said``: the greatest bound of any writer.
    ``bound``, ``sent``: the bound that went out last, and how many have.
    """

    writers: dict[str, list[Any]] = field(default_factory=dict)
    away: dict[str, int] = field(default_factory=dict)
    bounds: dict[str, int] = field(default_factory=dict)
    pending: list[list[Any]] = field(default_factory=list)
    shown: int = BEGINNING
    clock: int = BEGINNING
    said: int = BEGINNING
    bound: int = BEGINNING
    sent: int = 0


@dataclass(frozen=True)
class ImportedBounds(Operator):
    """The bounds of ``source``, beside NULL in ``columns``: those of the stream that takes them."""

    name: str
    source: EventStream
    columns: tuple[Column, ...]

    control: ClassVar = Imported
    kind: ClassVar[str] = "imported bounds"
    promise: ClassVar[str] = "the time of arrival below which no item of that stream can come any more"
    reason: ClassVar[str] = "its writers' arrival times do not go back"

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The stream whose bounds these are."""
        return (self.source,)

    def keeps(self) -> tuple[StateNote, ...]:
        """What an earlier item of another writer may stand before."""
        return (
            StateNote("a bound a writer", "the writer leaves", "writers", fields=("writers", "bounds")),
            StateNote("bounds above the least clock of the writers", "that clock passes them", fields=("pending",)),
        )

    def emits(self) -> Shape:
        """Rows of NULLs with a bound, in the order in which they took effect."""
        return Shape((*self.columns, Column(GIVEN, "BIGINT")), single=True, released=True)

    def promises(self, clocks: Sequence[Clocks], control: Imported) -> Clocks:  # noqa: ARG002
        """The least arrival clock of the stream's writers."""
        return {"": control.clock}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Nothing: bounds, and no rows."""
        return NOTHING

    def imports_from(self) -> str:
        """The stream whose bounds it gives."""
        return self.source.name

    def timed_by(self, below: Sequence[frozenset[str]]) -> frozenset[str]:  # noqa: ARG002 - it gives no rows of these
        """The stream whose bounds it gives."""
        return frozenset({self.source.name})

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The bounds whose place in the merged order is certain."""
        intake, control = tick.intake(self.source), tick.control(self)
        known, bounds = control.writers, control.bounds
        starts, here = tick.control(self.source).starts, [*intake.present, *intake.left]
        for writer in here:
            if writer not in known or writer in intake.joined:
                known[writer] = list(_Known(starts.get(writer, BEGINNING)))
                self._return(control, writer)
                control.away.pop(writer, None)
        for writer in known.keys() - set(here):
            self._leave(control, writer)
        items, said = self._items(tick, intake), self._said(intake)
        for writer in known:
            bounds.setdefault(writer, known[writer][0])
            if writer in items or writer in said or intake.bound > BEGINNING:
                mine = items.get(writer, _NO_ITEMS)
                known[writer] = list(self._advanced(control, writer, mine, said.get(writer, ()), intake))
            elif writer in intake.arrived:
                before = _Known(*known[writer])
                known[writer] = list(before._replace(clock=max(before.clock, intake.arrived[writer])))
        control.shown = max(control.shown, *clocks_of(control).values(), BEGINNING)
        for writer in intake.left:
            self._leave(control, writer)
        # With no writer present the greatest that any had shown is certain (SPEC 2.6).
        now = least(clocks_of(control).values()) if known else control.shown
        control.clock = max(control.clock, now)
        risen = self._risen(control)
        return Delta(self._rows(tick, control, risen), self.promises([deltas[0].clocks], control), len(risen))

    def _items(self, tick: Tick, intake: Intake) -> dict[str, pa.Table]:
        """The times of each writer's rows, and when they arrived."""
        if intake.rows is None:
            return {}
        rows = self.source.gate.timed(intake.rows)
        items = collected_items(tick, self, rows, _ARRIVAL, in_band=intake.in_band)
        return dict(by_writer(items))

    def _said(self, intake: Intake) -> dict[str, list[tuple[int, int, int]]]:
        """(position, bound, arrival) of the bounds of each writer that stand beside the rows."""
        found: dict[str, list[tuple[int, int, int]]] = {}
        for writer, position, at in intake.bounds:
            found.setdefault(writer, []).append((position, at, intake.sent.get((writer, position), BEGINNING)))
        return found

    def _advanced(
        self, control: Imported, writer: str, items: pa.Table, said: Sequence[tuple[int, int, int]], intake: Intake
    ) -> _Known:
        """What a writer has shown after the tick; where its bound rose is pending from now on."""
        known, floor = _Known(*control.writers[writer]), control.clock
        timed = known.timed or bool(pc.any(items["timed"]).as_py())
        inside = items.filter(pc.is_valid(items["b"]))
        given = [*said, *zip(*(inside[name].to_pylist() for name in (POSITION, "b", "at")), strict=True)]
        if timed:  # who says when its rows arrived does not say so of bounds: they arrive with the row before them
            given = [(position, at, BEGINNING) for position, at, _ in given]
        if intake.bound > BEGINNING:  # said of the stream as a whole, behind all that was read
            given.append((END - 1, intake.bound, BEGINNING))
        own = items.filter(pc.is_null(items["b"]))
        mark = Mark(known.bound, known.highest, known.rows)
        steps, mark, clock = advances(self.source.shape, mark, items_of(own), given, own["at"].to_numpy(), known.clock)
        clock = END if mark.bound >= END else max(clock, intake.arrived.get(writer, BEGINNING))
        pending = control.pending
        pending += [[max(at, floor), writer, position, bound] for at, position, bound in steps]
        return _Known(mark.bound, mark.highest, mark.rows, clock, timed)

    def _return(self, control: Imported, writer: str) -> None:
        """Who comes back holds the stream again, and has not left."""
        control.pending = [step for step in control.pending if step[1:3] != [writer, END]]
        control.bounds.pop(writer, None)

    def _leave(self, control: Imported, writer: str) -> None:
        """Who has left holds nobody, behind what it has sent."""
        bound, _, _, clock, _ = control.writers.pop(writer)
        control.away[writer] = clock
        if bound < END:
            control.pending.append([max(clock, control.clock), writer, END, END])

    def _risen(self, control: Imported) -> list[tuple[int, int]]:
        """(clock, bound) wherever the least bound rose below the clock; the end of the stream is no bound of others."""
        bounds, found = control.bounds, []
        pending = sorted(control.pending)
        last = control.clock + (not control.writers)  # nobody can send another item at the clock
        due = [step for step in pending if step[0] < last]
        control.pending = pending[len(due) :]
        for at, writer, _, bound in due:
            bounds[writer] = max(bound, bounds.get(writer, BEGINNING))
            if bound >= END and writer not in control.writers:
                del bounds[writer]
            elif bound < END:
                control.said = max(bound, control.said)
            low = least(bounds.values()) if bounds else control.said
            if control.bound < low < END:
                control.bound = low
                found.append((at, low))
        return found

    def _rows(self, tick: Tick, control: Imported, risen: Sequence[tuple[int, int]]) -> DataFrame | None:
        if not risen:
            return None
        first = control.sent
        control.sent = first + len(risen)
        items = [("", first + n, bound) for n, (_, bound) in enumerate(risen)]
        return bound_rows(tick, self.columns, items, [at for at, _ in risen])


def clocks_of(control: Imported) -> dict[str, int]:
    """The arrival clocks of the other stream's writers, as the operator's scalars have them."""
    return {writer: _Known(*known).clock for writer, known in control.writers.items()}
