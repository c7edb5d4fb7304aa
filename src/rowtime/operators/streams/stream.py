"""A stream: the rows of its writers, each with a rowtime; refuses rows below a clock.

Semantics 2. A writer's clock is the strongest bound it has shown, by a row or by a bound. A row below it is refused as
``OUT_OF_ORDER``; as ``LATE`` if the writer came or came back below the stream's clock. A record that does not decode is
``MALFORMED``. With a guard, a row too far above the clock is ``EARLY`` and does not raise it (semantics 7.2), unless
later rows are near it. So is one too far above its arrival time (semantics 7.3).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa
from sqlglot import exp

from rowtime.core.clock import NOBODY, Clocks, least
from rowtime.core.columns import (
    ARRIVAL,
    BOUND,
    CANDIDATE,
    COLUMN_BOUND,
    GIVEN,
    MALFORMED,
    POSITION,
    REFUSED,
    ROWTIME,
    SHOWN,
    TRIED,
    WRITER,
)
from rowtime.core.fields import OPTIONS, UNSTORED, Micros
from rowtime.core.time import BEGINNING, END, UNREACHED
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Column, Delta, Distribution, Operator, Shape, Tick, micros, quoted
from rowtime.operators.contract.gates import Gate, Verdict, beyond_arrival
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.lateness import added
from rowtime.operators.contract.state import StateNote
from rowtime.operators.rows.attempt import with_attempts
from rowtime.operators.rows.by_writer import beside
from rowtime.operators.rows.sized_texts import holds_lengths, in_length, kept_in_size
from rowtime.operators.streams.arrival_times import is_timed_by_arrival
from rowtime.operators.streams.column_bounds import with_column_bounds
from rowtime.operators.streams.event_bounds import with_bounds, without_bounds
from rowtime.operators.streams.quarantine import Quarantine, undecided
from rowtime.operators.streams.stream_clocks import StreamClocks
from rowtime.sql.generate import literal, to_rowtime, to_spark


@dataclass(frozen=True)
class Stream(Operator):
    """A named stream and where its items come from.

    ``source`` is the format with its options, as in CREATE STREAM; ``idle_after`` (µs): the silence after which a
    writer is set aside. ``single``: there can be only one writer. ``batched``: rows come in sets that have no order
    inside (``foreachBatch``). ``checks``: conditions over the columns; a row for which one is false is refused as
    malformed. ``early`` (µs): a row whose rowtime, as its writer gave it, is further above the clock is EARLY; unless
    ``resync`` rows after it are near it. ``ahead`` (µs): so is one that is at least this far above its arrival time.
    ``event_bounds``: bounds are about an event time; they are passed among the rows and move no clock.
    ``column_bounds``: so are those of columns of declared order. ``from_now``: data that exist at the first start are
    not read.
    """

    name: str
    columns: tuple[Column, ...]
    source: tuple[str, tuple[tuple[str, str], ...]] = field(default=("log", ()), metadata=OPTIONS)
    idle_after: Micros | None = field(default=None, metadata=UNSTORED)  # its decisions are journaled
    single: bool = False
    batched: bool = False
    checks: tuple[exp.Expr, ...] = ()
    early: Micros | None = None
    resync: int = 0
    ahead: Micros | None = None
    event_bounds: bool = False
    column_bounds: bool = False
    from_now: bool = False

    control: ClassVar[type[StreamClocks]] = StreamClocks
    kind: ClassVar[str] = "stream"
    is_gate: ClassVar[bool] = True
    passes_all: ClassVar[bool] = True
    promise: ClassVar[str] = "each writer's clock"
    reason: ClassVar[str] = "a row promises its own rowtime, a bound its time"

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return nothing: the source is below it."""
        return ()

    def keeps(self) -> tuple[StateNote, ...]:
        """Return a clock per writer, and the rows that wait for later rows to decide about them."""
        clock = StateNote("one clock per writer", "the writer leaves", "writers", fields=("clocks",))
        columns = (*(column.name for column in self.columns), ROWTIME, WRITER, POSITION, ARRIVAL, CANDIDATE)
        return (clock, undecided(self.resync, columns, (BOUND, MALFORMED))) if self.resync else (clock,)

    def emits(self) -> Shape:
        """Return the declared columns, placed by writer and position, with the arrival time."""
        released = self.single and not self.batched
        columns = (*self.columns, Column(GIVEN, "BIGINT")) if self.event_bounds else self.columns
        columns = (*columns, Column(COLUMN_BOUND, "STRING")) if self.column_bounds else columns
        shape = Shape(columns, single=self.single, released=released, arrival=True, batched=self.batched)
        return replace(shape, stamped=is_timed_by_arrival(self.source))

    def promises(self, clocks: Sequence[Clocks], control: StreamClocks) -> Clocks:  # noqa: ARG002
        """Return the clock of each writer that holds the stream."""
        return dict(control.clocks)

    def found_by_name(self) -> bool:
        """Return True: offsets are found by the name."""
        return True

    def may_change(self) -> Mapping[str, str]:
        """Its gate judges each row by itself; held rows are judged by the guard of their arrival."""
        guard = {} if self.resync else {"early": "EARLY BEYOND", "ahead": "EARLY BEYOND … AFTER ARRIVAL"}
        return {**guard, "checks": "CHECK or NOT NULL of its rows"}

    def timed_by(self, below: Sequence[frozenset[str]]) -> frozenset[str]:  # noqa: ARG002 - it has no inputs
        """Return itself."""
        return frozenset() if self.has_own_time else frozenset({self.name})

    def distribution(self) -> Distribution:
        """Return any task, unless a guard or a bound among the rows decides about later ones."""
        guarded = self.early is not None or self.ahead is not None or self.resync
        bounded = self.event_bounds or self.column_bounds
        return Distribution.SINGLE if guarded or bounded or self.batched else Distribution.ANY

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002
        """Take the tick's range, give each row its rowtime, and refuse rows below the clock."""
        intake = tick.intake(self)
        if self.column_bounds:
            before = tick.control(self).clocks
            return with_column_bounds(tick, self, self._stepped(tick, intake), self.columns, intake, before)
        if not self.event_bounds:
            return self._stepped(tick, intake)
        intake, given = without_bounds(tick, self, intake)
        return with_bounds(tick, self, self._stepped(tick, intake), self.columns, given)

    def _stepped(self, tick: Tick, intake: Intake) -> Delta:
        tick.remember(self, early=self.early, ahead=self.ahead)
        before, own = self._welcome(tick, intake)
        control = tick.control(self)
        quarantine = Quarantine.of(self, tick, control) if self.resync else None
        waits = quarantine is not None and quarantine.is_open
        if waits or (intake.rows is not None and self._is_guarded(intake, before, control)):
            return self._guarded(tick, intake, control, (before, own), quarantine)
        if intake.rows is None:
            left = self._settle(tick, intake, self._bounded(own, intake))
            return Delta(None, self.promises([], tick.control(self)), left=left)
        timed = self._checked(tick, self._timed_rows(intake), intake)
        rows = timed = self._raised(tick, timed, intake, before)
        lowest, highest, marks = intake.lowest, intake.highest, own
        if intake.gated or intake.decodes or intake.in_band or self.demands:
            gate = self._gate(intake, own, control, guarded=False)
            verdict = tick.judge(self, timed, gate)
            tick.remember(self, lateness=added(tick.control(self).lateness, verdict.lateness))
            if verdict.refused is not None and intake.all_columns is not None:  # those that are refused are kept whole
                intake = replace(intake, rows=intake.all_columns())
                timed = self._checked(tick, self._timed_rows(intake), intake)
                timed = self._raised(tick, timed, intake, before)
            rows = tick.account(self, timed, verdict, CANDIDATE)
            lowest, highest, marks = verdict.lowest, verdict.highest, dict(verdict.marks)
            intake = replace(intake, shown={})  # the clocks of ordered rows count only if the rows are accepted
        elif intake.count is not None:
            tick.count(self, intake.count, intake.span)
        left = self._settle(tick, intake, self._bounded(marks, intake))
        clocks = self.promises([], tick.control(self))
        return Delta(self._emitted(rows), clocks, lowest, highest, left=left)

    def _guarded(
        self,
        tick: Tick,
        intake: Intake,
        control: StreamClocks,
        clocks: tuple[Mapping[str, int], Mapping[str, int]],
        quarantine: Quarantine | None,
    ) -> Delta:
        """Judge by the guard first: an early row raises nothing, so rows after it are raised only then."""
        before, own = clocks
        timed = None if intake.rows is None else self._checked(tick, self._timed_rows(intake), intake)
        waits = quarantine is not None and quarantine.is_open
        if quarantine is not None:
            intake = replace(intake, bounds=[*quarantine.bounds, *intake.bounds], raises=intake.raises or waits)
            timed = quarantine.before(timed)
        assert timed is not None
        verdict = tick.judge(self, timed, self._gate(intake, own, control, guarded=True))
        if quarantine is not None:
            timed = quarantine.after(timed, verdict)
            intake = replace(intake, bounds=quarantine.released(intake.bounds, verdict, intake.bound))
        timed = self._raised(tick, timed, intake, before, verdict)
        rows = tick.account(self, timed, verdict, CANDIDATE)
        lateness = added(tick.control(self).lateness, verdict.lateness)
        tick.remember(self, started=sorted(verdict.started), lateness=lateness)
        marks = self._bounded(verdict.marks, replace(intake, shown={}), verdict.held)
        left = self._settle(tick, intake, marks)
        # A raised row is at a mark or at the stream's clock, not at the time that was judged.
        highest = max([verdict.highest, *marks.values(), *before.values()])
        after = self.promises([], tick.control(self))
        return Delta(self._emitted(rows), after, verdict.lowest, highest, left=left)

    def _emitted(self, rows: Frame) -> Frame:
        return rows.selectExpr(
            *(quoted(column.name) for column in self.columns if column.name in rows.columns),
            *(f"{CANDIDATE} AS {ROWTIME}", WRITER, POSITION, ARRIVAL),
        )

    def _gate(self, intake: Intake, before: Mapping[str, int], control: StreamClocks, *, guarded: bool) -> Gate:
        return Gate(
            CANDIDATE,
            0,
            "OUT_OF_ORDER",
            before,
            intake.bounds,
            control.floors,
            BOUND if intake.in_band else None,
            MALFORMED if intake.decodes or self.demands else None,
            far=beyond_arrival(ROWTIME, self.ahead) if guarded else None,
            batched=self.batched,
            early=(UNREACHED if self.early is None else self.early) if guarded else None,
            resync=self.resync if guarded else 0,
            present=intake.present if intake.bound < END else (),
            guarded="true" if intake.stamped else f"{ROWTIME} IS NOT NULL",
            lifted=f"{ROWTIME} IS NULL" if guarded else "false",
            started=control.started,
        )

    def _is_guarded(self, intake: Intake, clocks: Mapping[str, int], control: StreamClocks) -> bool:
        """Return False if no row of the range can be too far above its writer's clock, or its arrival."""
        if self.ahead is not None and intake.given:
            return True
        if self.early is None or not (intake.given or intake.stamped):
            return False
        all_started = set(intake.present) <= set(control.started)
        return not all_started or intake.highest > least(clocks.values()) + self.early

    def _welcome(self, tick: Tick, intake: Intake) -> tuple[dict[str, int], dict[str, int]]:
        """Return the clock of each writer of the tick, and the part of it that the writer has shown itself.

        Semantics 2.6: a new writer starts at the stream's clock; one that comes back at the greater of that and its own
        last one. A writer that leaves in this tick leaves after its items, so it is included.
        """
        writers, joined = [*intake.present, *intake.left], set(intake.joined)
        control = tick.control(self)
        shown, floors = {**control.clocks, **control.own}, {**control.floors}
        away = {**control.away, **{w: at for w, at in shown.items() if w not in writers and w != NOBODY}}
        now = max(control.reached, least(at for w, at in control.clocks.items() if w in writers))
        own: dict[str, int] = {}
        starts: dict[str, int] = {}
        for writer in writers:
            own[writer] = shown.get(writer, BEGINNING)
            if writer in joined:
                own[writer] = max(own[writer], away.pop(writer, BEGINNING))
                if control.clock is not None:
                    floors[writer] = now
                    starts[writer] = max(now, own[writer])
        tick.remember(self, away=away, floors=floors, starts=starts)
        return {w: max(at, floors.get(w, BEGINNING)) for w, at in own.items()}, own

    def _bounded(self, marks: Mapping[str, int], intake: Intake, held: Collection[str] = ()) -> dict[str, int]:
        bounds = [(writer, at) for writer, _, at in intake.bounds]
        after = dict(marks)
        everyone = [(writer, intake.bound) for writer in intake.present]
        # If rows of a writer are undecided, the bounds after them wait too.
        arrived = [(writer, at) for writer, at in intake.arrived.items() if writer in marks]
        last = [(writer, at) for writer, at in [*arrived, *everyone] if writer not in held]
        for writer, at in [*intake.shown.items(), *bounds, *last]:
            after[writer] = max(after.get(writer, BEGINNING), at)
        return after

    def _settle(self, tick: Tick, intake: Intake, own: Mapping[str, int]) -> dict[str, int]:
        """Keep the clocks of the writers after the tick; return those of writers that left after their items."""
        control = tick.control(self)
        present, floors, clock = set(intake.present), control.floors, control.clock
        after = {w: max(at, floors.get(w, BEGINNING)) for w, at in own.items()}
        clocks = {w: at for w, at in after.items() if w in present}
        below = {w: own[w] for w, at in clocks.items() if own[w] < at}
        shown = max([control.shown, *after.values()])
        if intake.present:
            clock = max(control.reached, least(clocks.values()))
        elif after or intake.bound > BEGINNING or clock is not None:
            # No writer is present: every clock that a writer had shown is certain, in whatever order they left.
            clock = max(control.reached, intake.bound, shown)
            clocks = {NOBODY: clock}
        floors = {w: at for w, at in floors.items() if w in present}
        away = {**control.away, **{w: own[w] for w in intake.left if w in own}}
        tick.remember(self, clocks=clocks, own=below, floors=floors, away=away, shown=shown, clock=clock)
        return {w: after[w] for w in intake.left if w in after}

    def judged_by(self) -> frozenset[str]:
        """Return the columns that decide about its rows: those of checks, and texts that have a length."""
        mentioned = {word for words, _ in self.demands for word in re.findall(r"\w+", words)}
        return frozenset(column.name for column in self.columns if {*re.findall(r"\w+", column.name)} <= mentioned)

    @cached_property
    def demands(self) -> tuple[tuple[str, str], ...]:
        """Return the conditions on each row, in words and as Spark SQL: the checks, and the lengths of its texts.

        Those of a log are checked when it is written.
        """
        checks = ((to_rowtime(check), to_spark(check)) for check in self.checks)
        return (*checks, *((f"{name} {kind}", in_length(quoted(name), kind)) for name, kind in self._sized.items()))

    @cached_property
    def _sized(self) -> dict[str, str]:
        """Return the columns whose texts have a length."""
        columns = () if self.source[0] == "log" else self.columns
        return {c.name: c.type for c in columns if holds_lengths(c.type)}

    def _checked(self, tick: Tick, rows: Frame, intake: Intake) -> Frame:
        """Put the broken condition where the raw text of a record that does not decode is."""
        if not self.demands:
            return rows
        # A condition that cannot be computed is broken too: it ends the attempt, and in the next one rows are tried.
        at_once = not tick.trying and rows.can(*(sql for _, sql in self.demands))
        cases = (
            f"WHEN {f'NOT ({sql})' if at_once else f'{TRIED}{n} IS NULL OR NOT {TRIED}{n}.c0'} THEN {literal(words)}"
            for n, (words, sql) in enumerate(self.demands)
        )
        failure = f"CASE {' '.join(cases)} END"
        if intake.in_band:
            failure = f"CASE WHEN {BOUND} IS NULL THEN {failure} END"
        if intake.decodes:
            failure = f"coalesce({MALFORMED}, {failure})"
        sized, names = self._sized, [name for name in rows.columns if name != MALFORMED]
        others = [kept_in_size(name, sized[name]) if name in sized else quoted(name) for name in names]
        if at_once:
            return rows.selectExpr(*others, f"{failure} AS {MALFORMED}")
        tried = with_attempts(rows, {f"{TRIED}{n}": sql for n, (_, sql) in enumerate(self.demands)})
        return tried.selectExpr(*others, f"{failure} AS {MALFORMED}")

    def _timed_rows(self, intake: Intake) -> Frame:
        # Semantics 2.4: the rowtime is the writer's, else the arrival time.
        assert intake.rows is not None
        time = ROWTIME if _all_given(intake) else f"coalesce({ROWTIME}, {ARRIVAL})"
        return intake.rows.selectExpr("*", f"{time} AS {CANDIDATE}")

    def _raised(
        self, tick: Tick, rows: Frame, intake: Intake, before: Mapping[str, int], verdict: Verdict | None = None
    ) -> Frame:
        """Raise arrival times that go back to the writer's previous rowtime; refused rows raise nothing."""
        if _all_given(intake):
            return rows  # no row has its arrival time
        arrival = ARRIVAL
        bounds = [item for item in intake.bounds if intake.raises and item[2] < END]
        moved = {w: at for w, at in before.items() if BEGINNING < at < END}
        if not intake.raises and not moved:
            return rows
        if moved:
            rows = beside(rows, moved, SHOWN)
            arrival = f"greatest({ARRIVAL}, {SHOWN})"
        if intake.raises:
            tick.needs_all_rows("arrival times that go back")
            shown = f"coalesce({ROWTIME}, {ARRIVAL})"
            if bounds:  # they raise only the rows after them
                rows = rows.unionByName(self._bound_items(tick, bounds), allowMissingColumns=True)
            if verdict is not None and verdict.refused is not None:
                rows = refused_marked(tick, self, rows, verdict.refused)
                shown = f"CASE WHEN {REFUSED} IS NULL THEN {shown} END"
            if intake.in_band or bounds:  # the end raises no row: a later row is refused
                shown = f"CASE WHEN {BOUND} IS NULL THEN {shown} WHEN {BOUND} < {micros(END)} THEN {BOUND} END"
            frame = f"PARTITION BY {WRITER} ORDER BY {POSITION} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
            arrival = f"greatest({arrival}, max({shown}) OVER ({frame}))"
        others = [quoted(name) for name in rows.columns if name not in (CANDIDATE, SHOWN)]
        rows = rows.selectExpr(*others, f"coalesce({ROWTIME}, {arrival}) AS {CANDIDATE}")
        return rows.where(f"{BOUND} IS NULL").drop(BOUND) if bounds and not intake.in_band else rows

    def _bound_items(self, tick: Tick, bounds: Sequence[tuple[str, int, int]]) -> Frame:
        """Return bounds that are beside the rows, as items among them."""
        writers, positions, times = zip(*bounds, strict=True)
        columns = {
            WRITER: pa.array(writers),
            POSITION: pa.array(positions),
            BOUND: pa.array(times, pa.timestamp("us", "UTC")),
        }
        return tick.frame(self, pa.table(columns))


def _all_given(intake: Intake) -> bool:
    """Return True if each row was given its rowtime."""
    return intake.given and intake.rows is not None and not intake.rows.column(ROWTIME).null_count


def streams_of(operators: Iterable[Operator]) -> list[Stream]:
    """Return the streams among some operators."""
    return [node for node in operators if isinstance(node, Stream)]


def refused_marked(tick: Tick, stream: Operator, rows: Frame, refused: pa.Table) -> Frame:
    """Return the rows of a stream, with refused ones marked."""
    places = pa.table({"__from": refused[WRITER], "__at": refused[POSITION]})
    key = tick.frame(stream, places).selectExpr("*", f"true AS {REFUSED}")
    return rows.joined(key, f"{WRITER} = __from AND {POSITION} = __at", "left").drop("__from", "__at")
