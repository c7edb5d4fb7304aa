"""Turns final events into rows: points, intervals or edges.

Semantics 9.1, 9.4, 9.5. Nothing below the bound changes any more. So an interval that ends up to the bound is emitted,
a start below it too, and no retraction is ever seen. The output are ordinary rows, ordered by their rowtime: of a point
its start, of an edge its time, of an interval its end (chain order) or its start (full order, which waits for the
oldest open event).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import (
    CHANGED_BY,
    DUE,
    EMITTED_END,
    IS_START,
    POSITION,
    ROUTE,
    ROWTIME,
    START,
    STOP,
    TIE,
    WEIGHT,
    WRITER,
)
from rowtime.core.threads import per_column
from rowtime.core.time import END, shift
from rowtime.frames.frame import Frame
from rowtime.operators.contract import EDGES, Column, Delta, Link, Origin, Shape, Tick, Unary, UpTo
from rowtime.operators.contract.state import Route, Segment, StateNote
from rowtime.operators.contract.texts import passed
from rowtime.operators.events.emit_tables import as_rows, in_utc, left_over, together
from rowtime.operators.rows.lifetimes import BEGINS, WeightedLog, instant, netted
from rowtime.sql.generate import quoted

Form = Literal["POINTS", "INTERVALS", "EDGES"]
NAMES: Mapping[str, tuple[str, ...]] = {
    "POINTS": (),
    "INTERVALS": ("start", "stop"),
    "EDGES": ("edge", "start", "stop"),
}
"""The columns that a form adds to the payload, by default."""


@dataclass(frozen=True)
class NotFinal(UpTo):
    """``held``: by writer the least start (µs UTC) of its events that are not final; set anew after each tick."""

    held: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class EmitLifetimes(Unary):
    """``EMIT form (names) [FULLY ORDERED]``: final events as rows; ``names`` of the added columns."""

    form: Form
    names: tuple[str, ...]
    fully: bool = False

    control: ClassVar = NotFinal
    kind: ClassVar[str] = "emit lifetimes"
    promise: ClassVar[str] = (
        "the input's bounds; with FULLY ORDERED, at most the start of the oldest event without an end"
    )
    reason: ClassVar[str] = "every event that can still go out is final, or becomes final, at or above the bound"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events that are not final."""
        kept = WeightedLog.kept(*self._identity, CHANGED_BY)
        return (kept.noted("events that are not final", "the bound reaches their end"),)

    def emits(self) -> Shape:
        """Return the payload and the columns of the form, as ordinary rows."""
        below = self.input.emits()
        types = ("STRING", "TIMESTAMP", "TIMESTAMP") if self.form == "EDGES" else ("TIMESTAMP", "TIMESTAMP")
        added = tuple(Column(name, kind) for name, kind in zip(self.names, types, strict=False))
        payload = tuple(Column(c.name, c.type) for c in below.columns)
        columns = (*added, *payload)
        extra: tuple[str, ...] = ()
        order: tuple[str, ...] = (ROWTIME, POSITION, WRITER) if self.fully else (ROWTIME, WRITER, POSITION)
        if not below.placed:
            extra, order = (TIE,), (ROWTIME, TIE, *(quoted(c.name) for c in columns))
        elif self.form == "EDGES":
            extra, order = (TIE,), (ROWTIME, TIE, WRITER, POSITION)
        # Windows that end at the bound itself have all been emitted, before those that begin there.
        released = self.form == "EDGES" and below.lasts > 0
        single = below.single and not released
        shape = Shape(columns, order=order, extra=extra, placed=below.placed, single=single, unmerged=True)
        return replace(shape, released=released)

    def promises(self, clocks: Sequence[Clocks], control: NotFinal) -> Clocks:
        """Return the input's bounds; for ends, plus the least duration; in full order, the least start still held.

        Semantics 9.4: full order waits for the oldest open event, whether or not its writer has left; it may come back.
        """
        held, lasts = control.held, 0 if self.fully else self._lasts
        left = min((at for writer, at in held.items() if writer not in clocks[0]), default=END)
        return {writer: min(shift(at, lasts), held.get(writer, END), left) for writer, at in clocks[0].items()}

    @property
    def _lasts(self) -> int:
        """Return how far beyond the bound no other end can come, µs."""
        return self.input.emits().lasts if self.form == "INTERVALS" else 0

    def link(self, n: int) -> Link:
        """Return the events with these values that were alive at the row's time."""
        payload = self.passed_on(n)
        if self.form == "POINTS":
            return Link((*payload, (BEGINS, BEGINS)), span=(BEGINS, f"{BEGINS} + 1"))
        columns = [f"unix_micros({quoted(name)})" for name in self.names]
        start, stop = columns[-2], f"coalesce({columns[-1]}, {END}L)"
        if self.form == "EDGES":
            stop = f"IF({quoted(self.names[0])} = 'start', {start} + 1, {stop})"
        return Link((*payload, (start, BEGINS)), span=(start, stop))

    def files_are_results(self, *, ordered: bool, at_once: bool) -> bool:  # noqa: ARG002 - also with other names
        """Return True if order does not matter: events are written in any order."""
        return not ordered

    def origin(self, column: str) -> Origin | None:
        """Return a time of the event; its start is the rowtime if rows are ordered by it."""
        parts = ("edge", *EDGES) if self.form == "EDGES" else ("start", "stop")
        what = dict(zip(self.names, parts, strict=False)).get(column, "payload")
        by_start = what == "start" and (self.form == "POINTS" or self.fully)
        return Origin(ROWTIME if by_start else what, "in the order of their ends")

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Combine new and kept rows, and release what is final."""
        delta, control = deltas[0], tick.control(self)
        kept, before = WeightedLog(tick, self), control.bound
        bound = max(before, shift(least(delta.clocks.values()), self._lasts))
        released = self._released_here(tick, delta, kept, (before, bound))
        final = tuple(self._released(tick, delta, kept, (before, bound)) if released is None else released)
        tick.remember(self, bound=bound)
        kept.forget(bound, [*self._identity])
        self._hold(tick, kept, bound)
        clocks = self.promises([delta.clocks], tick.control(self))
        if tick.adopted_as(self) is not None:
            return Delta(None, clocks, files=(*delta.final, *final))
        return Delta(self._rows(tick.segments(self, "complete").read(final)) if final else None, clocks)

    def _released_here(
        self, tick: Tick, delta: Delta, kept: WeightedLog, span: tuple[int, int]
    ) -> Sequence[Segment] | None:
        """Emit what is final by the end of a span and keep the rest, in Arrow; ``None`` if rows have to be combined."""
        adopted, retracts = tick.adopted_as(self), self.input.emits().retracts
        if adopted is None or self.form != "INTERVALS" or self.fully or retracts == "any":
            return None
        new = None if delta.rows is None else in_utc(self._events(delta.rows).toArrow())
        whole = together(new, kept.tables(*span), span)
        if whole is None:
            return ()
        # Open events that are retracted are combined when kept rows are merged, and at the end of the stream.
        at_end = retracts == "open" and span[1] >= END
        left = left_over(whole, EMITTED_END, [POSITION, *self._identity]) if at_end else None
        if at_end and left is None:
            return None
        over = pc.less_equal(whole[DUE], span[1]) if left is None else pa.array(left)
        shown = self._shown
        columns = {name: shown.get(own, own) for name, own in adopted.items()}
        works: list[Callable[[], pa.Table | None]] = [
            lambda: as_rows(whole.filter(over), START, EMITTED_END, shown),
            lambda: None if at_end else self._keep(kept, whole.filter(pc.invert(over))),
        ]
        rows = per_column(lambda work: work(), works, whole.num_rows)[0]
        if rows is None or not rows.num_rows:
            return ()
        return tick.write(self, rows, {"complete": Route(0, columns, DUE)})["complete"]

    @staticmethod
    def _keep(kept: WeightedLog, rest: pa.Table) -> None:
        """Keep rows; those without an end in files of their own, as the other files can go when their events end."""
        endless = pc.greater_equal(rest[DUE], END)
        kept.put(rest.filter(pc.invert(endless)))
        kept.put(rest.filter(endless))

    @property
    def _shown(self) -> dict[str, str]:
        """Return the names, in the files, of the rowtime and of the columns that the form adds."""
        return {ROWTIME: "__at", **{name: f"__shown{n}" for n, name in enumerate(self.names)}}

    def _released(self, tick: Tick, delta: Delta, kept: WeightedLog, span: tuple[int, int]) -> Sequence[Segment]:
        """Write what is final by the end of a span in the columns of the taking sink, and keep the rest."""
        before, bound = span
        parts = [] if delta.rows is None else [self._events(delta.rows)]
        old = kept.between(before, bound) if bound > before else None
        parts += [] if old is None else [old]
        if not parts:
            return ()
        whole = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
        if bound >= END or not self._ends_are_final:
            whole = netted(whole, [*self._identity, DUE])
        elif self.input.emits().retracts == "open":  # most events begin and end in one tick
            ended = f"{EMITTED_END} < {END}L"
            whole = whole.where(ended).unionByName(netted(whole.where(f"NOT {ended}"), [*self._identity, DUE]))
        rows = whole.selectExpr("*", f"IF({DUE} <= {passed(bound, DUE)}, 0, 1) AS {ROUTE}")
        columns = {name: name for name in rows.columns if name != ROUTE}
        adopted, complete = tick.adopted_as(self), columns
        if adopted is not None:
            others = f"sequence(1L, IF({ROUTE} = 1, 1L, {WEIGHT}))"
            shown = self._shown
            values = zip(shown.values(), [instant(self._at), *self._added()], strict=True)
            rows = rows.selectExpr("*", *(f"{value} AS {name}" for name, value in values), f"explode({others}) AS __i")
            complete = {name: shown.get(own, own) for name, own in adopted.items()}
        tick.describe(self, "what is final goes out")
        routes = {"complete": Route(0, complete, DUE), "state": Route(1, columns, DUE)}
        written = tick.write(self, rows, routes)
        tick.segments(self).add(written["state"])
        return written["complete"]

    def asks_changes(self, *, above: bool) -> bool:  # noqa: ARG002 - only final events are emitted
        """Return False: retracted events have never been emitted."""
        return False

    def final_columns(self, taken: Mapping[str, str]) -> dict[str, str] | None:
        """Return T for its start, E for its end, and the payload."""
        if self.form != "INTERVALS" or self.fully:
            return None
        own = {ROWTIME: STOP, **dict(zip(self.names, (ROWTIME, STOP), strict=False))}
        return {name: own.get(column, column) for name, column in taken.items()}

    @property
    def _ends_are_final(self) -> bool:
        """Return True if ends are never retracted: then nothing need be combined before the end of the stream."""
        return self.form == "INTERVALS" and self.input.emits().retracts != "any"

    @property
    def _identity(self) -> list[str]:
        return [*self.input.emits().names, WRITER, POSITION, START, EMITTED_END, IS_START]

    def _events(self, rows: Frame) -> Frame:
        """Return one row per time, and when it is final: a start once the bound has passed it, an end once reached."""
        payload = [*map(quoted, self.input.emits().names), WRITER, POSITION, WEIGHT]
        starts = {START: BEGINS, EMITTED_END: f"{END}L", IS_START: "1", DUE: f"{BEGINS} + 1", CHANGED_BY: POSITION}
        ends = {START: BEGINS, EMITTED_END: STOP, IS_START: "0", DUE: STOP, CHANGED_BY: CHANGED_BY}
        if self.form in ("POINTS", "INTERVALS"):
            values = starts if self.form == "POINTS" else ends
            return rows.selectExpr(*payload, *(f"{value} AS {name}" for name, value in values.items()))
        each = f"explode(sequence(1L, IF({STOP} < {END}L, 2L, 1L))) AS __edge"
        values = {name: f"IF(__edge = 1, {starts[name]}, {ends[name]})" for name in starts}
        given = [*payload, ROWTIME, STOP, CHANGED_BY, each]
        return rows.selectExpr(*given).selectExpr(*payload, *(f"{value} AS {name}" for name, value in values.items()))

    def _rows(self, events: Frame) -> Frame:
        """Return events as rows under their rowtime, as often as their weight says."""
        events = events.selectExpr("*", f"explode(sequence(1L, {WEIGHT})) AS __i")
        place = CHANGED_BY if self.form == "INTERVALS" and not self.fully else POSITION
        added = [f"{value} AS {quoted(name)}" for value, name in zip(self._added(), self.names, strict=True)]
        tie = [f"{IS_START} AS {TIE}"] if self.emits().extra else []
        payload = map(quoted, self.input.emits().names)
        return events.selectExpr(
            *added, *payload, f"{instant(self._at)} AS {ROWTIME}", WRITER, f"{place} AS {POSITION}", *tie
        )

    @property
    def _at(self) -> str:
        """Return the rowtime of a row, µs."""
        if self.form == "EDGES":
            return f"IF({IS_START} = 1, {START}, {EMITTED_END})"
        return EMITTED_END if self.form == "INTERVALS" and not self.fully else START

    def _added(self) -> list[str]:
        """Return the values of the columns that the form adds, as many as are named."""
        edge = [f"IF({IS_START} = 1, 'start', 'end')"] if self.form == "EDGES" else []
        ends = f"IF({EMITTED_END} < {END}L, timestamp_micros({EMITTED_END}), NULL)"
        return [*edge, f"timestamp_micros({START})", ends][: len(self.names)]

    def _hold(self, tick: Tick, kept: WeightedLog, bound: int) -> None:
        """Remember, in full order, the least start of the held events, per writer."""
        if not self.fully:
            return
        rows = kept.between(bound, END)
        events = None if rows is None else netted(rows, self._identity)
        least_starts = None if events is None else events.grouped([WRITER], [f"min({START}) AS {START}"])
        tick.remember(self, held={} if least_starts is None else dict(map(tuple, least_starts.collect())))
