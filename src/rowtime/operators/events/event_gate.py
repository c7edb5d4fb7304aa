"""The gate of events: judges rows with lifetimes by bounds, and turns accepted ones into weighted rows.

Semantics 9.1 and 9.2. A row behind the bound of its writer is refused as ``LATE`` or, if the stream adjusts and the
event extends beyond the bound, moved to it. An end edge ends the oldest open event of its writer with the same payload
and start; one without such an event is refused as ``UNMATCHED_EDGE``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import (
    AS_GIVEN,
    BOUND,
    CHANGED_BY,
    EDGE_KIND,
    MALFORMED,
    MET,
    NEW_EDGE,
    POSITION,
    ROWTIME,
    START,
    STARTED_AT,
    STOP,
    WEIGHT,
    WRITER,
)
from rowtime.core.shapes import EventShape
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.kernels.blame import Past, Raise, watched
from rowtime.kernels.events import (
    ACCEPTED,
    INTERVAL,
    LATE,
    REASONS,
    START_EDGE,
    STOP_EDGE,
    Items,
    Judgement,
    Mark,
    judge,
)
from rowtime.kernels.events import POINT as POINT_ROW
from rowtime.kernels.identity import only_value
from rowtime.kernels.timeline import values_at
from rowtime.operators.contract import Column, Control, Operator, Shape, Tick, quoted
from rowtime.operators.contract.gates import READMITTED, Verdict
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.lateness import Lateness, added
from rowtime.operators.contract.state import Kept, StateNote
from rowtime.operators.events.edge_pairs import COMPLETE, OPEN, UNMATCHED, changes_of
from rowtime.operators.rows.by_writer import by_writer
from rowtime.operators.rows.calendar import in_calendar, in_micros
from rowtime.operators.rows.lifetimes import EVENT, WeightedLog, both, instant, netted_by, routed
from rowtime.operators.streams.raises import LONG


@dataclass(frozen=True)
class Judging(Control):
    """The scalars that the operator of a gate keeps for it in the journal.

    ``early`` (µs): the guard's distance, for the re-admission of early events; ``None`` without a guard. By writer, for
    the life of the query: ``marks``, the greatest start (µs UTC) and the number of rows; ``raised``, the last row that
    raised its bound by far. ``lateness``: how far the late rows were below what their bound was derived from
    (`Lateness`), as long as the query lives.
    """

    early: int | None = None
    marks: Mapping[str, Sequence[int]] = field(default_factory=dict)
    raised: Mapping[str, Sequence[int]] = field(default_factory=dict)
    lateness: Mapping[str, Any] = field(default_factory=dict)


class Judged(NamedTuple):
    """The rows of one writer (``__w``, ``__p``, kind and times) and the decisions about them."""

    rows: pa.Table
    judgement: Judgement


@dataclass(frozen=True)
class EventGate:
    """The gate of an operator ``node``, whose rows have ``columns`` and are events of a ``shape``."""

    node: Operator
    columns: tuple[Column, ...]
    shape: EventShape

    @property
    def _open(self) -> Kept:
        return WeightedLog.kept(*(c.name for c in self.payload), WRITER, STARTED_AT, AS_GIVEN, START, name="open")

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the open edges."""
        until = "their end edges arrive or the stream ends"
        return (self._open.noted("events without an end", until, "edges"),) if self.shape.edges else ()

    def emits(self, *, single: bool) -> Shape:
        """Return the payload, and the lifetime in hidden columns."""
        return Shape(self.payload, extra=EVENT, single=single, retracts="open" if self.shape.edges else "none")

    @property
    def payload(self) -> tuple[Column, ...]:
        """Return every column that the shape does not name."""
        return tuple(column for column in self.columns if column.name not in self.shape.columns)

    # -- the gate ---------------------------------------------------------------------

    def events_of(self, tick: Tick, rows: Frame, judged: Mapping[str, Judged]) -> tuple[Frame | None, bool]:
        """Return the events of timed rows, and whether there are edges; count refused rows in the ledger."""
        verdict, table = _verdict(judged)
        accepted = tick.account(self.node, rows, verdict, self._judged_time())
        counts = np.bincount(table["k"].to_numpy() + 1) if table.num_rows else ()  # the kind -1 is NULL
        kinds = {kind - 1 for kind, count in enumerate(counts) if count}
        accepted = self._noted(tick, accepted, judged)
        whole = self._whole(accepted) if kinds & {POINT_ROW, INTERVAL} else None
        edges = self._edges(tick, accepted) if kinds & {START_EDGE, STOP_EDGE} else None
        return both(whole, edges), edges is not None

    def timed(self, rows: Frame) -> Frame:
        """Add the kind of each row, its start and its end."""
        return rows.selectExpr("*", *self._times())

    @property
    def _given(self) -> tuple[str, str]:
        return tuple(quoted(name) if name else "NULL" for name in (self.shape.start, self.shape.stop))  # type: ignore[return-value]  # two

    def _kind(self) -> str:
        _, stop = self._given
        return {
            "POINT": f"{POINT_ROW}",
            "INTERVAL": f"{INTERVAL}",
            "EDGE": f"CASE WHEN {stop} IS NULL THEN {START_EDGE} ELSE {STOP_EDGE} END",
            "BY": f"CASE translate({quoted(self.shape.by or '')}, 'POINTERVALSD', 'pointervalsd') "
            f"WHEN 'point' THEN {POINT_ROW} WHEN 'interval' THEN IF({stop} IS NULL, {START_EDGE}, {INTERVAL}) "
            f"WHEN 'start' THEN {START_EDGE} WHEN 'end' THEN {STOP_EDGE} END",
        }[self.shape.kind]

    def _judged_time(self) -> str:
        """Return the time that is judged, TIMESTAMP."""
        given, ended = map(self._micros, self._given)
        at = f"CASE WHEN ({self._kind()}) = {STOP_EDGE} THEN {ended} ELSE {given} END"
        return f"timestamp_micros({in_calendar(at)})"

    def _times(self) -> list[str]:
        (_, stop), kind = self._given, self._kind()
        given, ended = map(self._micros, self._given)
        # A number outside the calendar is no time; NULL is an end that is not known.
        end = f"IF({stop} IS NULL, {END}L, coalesce({ended}, {BEGINNING}L))"
        if self.shape.kind in ("POINT", "BY"):
            whole = f"({kind}) IN ({POINT_ROW})"
            after = f"IF({given} < {2**63 - 1}L, {given} + 1L, NULL)"
            end = f"CASE WHEN {whole} THEN {after} WHEN ({kind}) = {START_EDGE} THEN {END}L ELSE {end} END"
        return [f"{kind} AS {EDGE_KIND}", f"{given} AS {AS_GIVEN}", f"{end} AS {STOP}"]

    def _micros(self, column: str) -> str:
        """Return a time in µs; NULL for no time, or one too far away to have a number."""
        if self.shape.resolution is None or column == "NULL":
            return f"unix_micros(CAST({column} AS TIMESTAMP))"
        return in_micros(column, self.shape.resolution)

    def judged(
        self, tick: Tick, items: pa.Table, intake: Intake, before: Mapping[str, int], *, ordered: bool = True
    ) -> dict[str, Judged]:
        """Return each writer's rows with the decisions about them."""
        control = tick.control(self.node)
        assert isinstance(control, Judging)
        marks, jumps = {**control.marks}, {**control.raised}
        bounds: dict[str, list[tuple[int, int]]] = {}
        for writer, position, at in intake.bounds:
            bounds.setdefault(writer, []).append((position, at))
        verdicts, lateness = {}, Lateness()
        for writer, mine in by_writer(items):
            given = bounds.get(writer, [])
            inside = mine.filter(pc.is_valid(mine["b"]))
            given += zip(inside[POSITION].to_pylist(), inside["b"].to_pylist(), strict=True)
            rows = mine.filter(pc.is_null(mine["b"])) if inside.num_rows else mine
            highest, count = marks.get(writer, (BEGINNING, 0))
            mark = Mark(before.get(writer, BEGINNING), highest, count)
            # Re-admitted rows have been judged by the guard, against the time of the other rows.
            shape = self.shape if writer != READMITTED else replace(self.shape, beyond=None)
            judgement = judge(shape, mark, items_of(rows), given, ordered=ordered)
            marks[writer] = [judgement.mark.highest, judgement.mark.rows]
            if rows.num_rows and self.shape.generates:
                stored = jumps.pop(writer, None)
                so_far = None if stored is None else Raise(*stored)
                poison = watched(so_far, _past(rows, judgement), self.shape.delay, LONG)
                jumps.update({} if poison is None else {writer: list(poison)})
            verdicts[writer] = Judged(rows, judgement)
            lateness += _lateness(self.shape, items_of(rows), judgement)
        # The distance is needed for the re-admission of early events.
        early = control.early if self.shape.beyond is None else self.shape.beyond
        tick.remember(self.node, early=early, marks=marks, raised=jumps, lateness=added(control.lateness, lateness))
        return verdicts

    def _noted(self, tick: Tick, rows: Frame, judged: Mapping[str, Judged]) -> Frame:
        """Return rows with their adjusted start, and the bound when they came."""
        rows = with_met(rows, {writer: steps_of(mine, judgement) for writer, (mine, judgement) in judged.items()})
        items, starts = _together(judged), _all(judgement.starts for _, judgement in judged.values())
        moved = starts != items["s"].to_numpy() if judged else starts
        if not moved.any():
            return rows.selectExpr("*", f"{AS_GIVEN} AS {START}")
        notes = pa.table({"__from": items[WRITER], "__at": items[POSITION], "__moved": starts}).filter(pa.array(moved))
        columns = [quoted(name) for name in rows.columns if name != START]
        noted = rows.joined(tick.frame(self.node, notes), f"{WRITER} = __from AND {POSITION} = __at", "left")
        return noted.selectExpr(*columns, f"coalesce(__moved, {AS_GIVEN}) AS {START}")

    # -- events -----------------------------------------------------------------------

    def _columns(self) -> list[str]:
        return [quoted(column.name) for column in self.payload]

    def _whole(self, rows: Frame) -> Frame:
        """Return points and intervals; an event without length is dropped."""
        chosen = rows.where(f"{EDGE_KIND} IN ({POINT_ROW}, {INTERVAL}) AND {STOP} > {START}")
        return self._events(chosen, POSITION, f"1L AS {WEIGHT}", f"{POSITION} AS {CHANGED_BY}")

    def _events(self, rows: Frame, position: str, weight: str, changed_by: str) -> Frame:
        """Return rows with `START`, `STOP` and `MET` as events."""
        start = f"{instant(START)} AS {ROWTIME}"
        return rows.selectExpr(*self._columns(), start, WRITER, position, STOP, weight, changed_by, MET)

    def _edges(self, tick: Tick, rows: Frame) -> Frame | None:
        """Match new end edges with open events; refuse those without one."""
        open_ones = WeightedLog(tick, self.node, "open")
        state = [*(c.name for c in self.payload), WRITER, STARTED_AT, AS_GIVEN, START]
        columns = [*self._columns(), WRITER, POSITION, EDGE_KIND, AS_GIVEN, START, STOP, MET]
        edges = rows if self.shape.kind == "EDGE" else rows.where(f"{EDGE_KIND} IN ({START_EDGE}, {STOP_EDGE})")
        new = edges.selectExpr(*columns, f"1 AS {NEW_EDGE}")
        kept = open_ones.all_rows()
        every = new
        if kept is not None:
            old = netted_by(kept, [WRITER, STARTED_AT], state).selectExpr(
                *self._columns(),
                WRITER,
                f"{STARTED_AT} AS {POSITION}",
                f"{START_EDGE} AS {EDGE_KIND}",
                AS_GIVEN,
                START,
                f"{END}L AS {STOP}",
                f"0L AS {MET}",
                f"0 AS {NEW_EDGE}",
            )
            every = old.unionByName(new)  # so that the edges of an event are in order
        tick.describe(self.node, "match edges")
        payload = [c.name for c in self.payload]
        routes = {
            "complete": (COMPLETE, [*payload, WRITER, START, STARTED_AT, STOP, WEIGHT, CHANGED_BY, MET]),
            "open": (OPEN, self._open.columns or ()),
            "merged": (UNMATCHED, [WRITER, STARTED_AT, MET]),
        }
        written = routed(tick, self.node, changes_of(every, payload, each=tick.shows_each_change(self.node)), routes)
        self._unmatched(tick, rows, written["merged"])
        open_ones.forget(BEGINNING, state)
        complete = written["complete"]
        return None if complete is None else self._events(complete, f"{STARTED_AT} AS {POSITION}", WEIGHT, CHANGED_BY)

    def _unmatched(self, tick: Tick, rows: Frame, merged: Frame | None) -> None:
        if merged is None:
            return
        listed = merged.selectExpr(
            WRITER, f"{STARTED_AT} AS {POSITION}", "'UNMATCHED_EDGE' AS reason", f"{MET} AS mark"
        ).toArrow()
        counts = {"in": 0, "accepted": -listed.num_rows, "UNMATCHED_EDGE": listed.num_rows}
        tick.account(
            self.node,
            rows.drop(EDGE_KIND, AS_GIVEN, START, STOP, MET),
            Verdict(listed, counts, {}, BEGINNING, END),
            self._judged_time(),
        )


def collected_items(tick: Tick, node: Operator, rows: Frame, more: Sequence[str] = (), *, in_band: bool) -> pa.Table:
    """Return the kinds and times (µs) of timed rows, each writer's in order; ``b`` of the bounds among them."""
    bad = f"{MALFORMED} IS NOT NULL" if MALFORMED in rows.columns else "false"
    bound = f"unix_micros({BOUND})" if in_band else "CAST(NULL AS BIGINT)"
    tick.describe(node, "times of new events")
    columns = [
        WRITER,
        POSITION,
        *more,
        f"coalesce({EDGE_KIND}, -1) AS k",
        f"coalesce({AS_GIVEN}, {BEGINNING}L) AS s",
        f"coalesce({STOP}, {BEGINNING}L) AS e",
    ]
    items = rows.selectExpr(*columns, f"{bad} AS bad", f"{bound} AS b").toArrow()
    return items.sort_by([(WRITER, "ascending"), (POSITION, "ascending")])


def _past(rows: pa.Table, judgement: Judgement) -> Past:
    """Return what moved the greatest start: starts of accepted events, and of those that are late."""
    items, late = items_of(rows), judgement.reasons == LATE
    moves = (late | (judgement.reasons == ACCEPTED)) & (items.kinds != STOP_EDGE)
    times = np.where(moves, items.starts, BEGINNING)
    return Past(items.positions, times, times, np.ones(len(times), bool), late & moves, judgement.risen[:-1])


def _lateness(shape: EventShape, rows: Items, judgement: Judgement) -> Lateness:
    """Return how far late rows are below the start, or the bound from elsewhere, that their bound was derived from.

    So it does not depend on the DELAY, and a DELAY of at least so much accepts the row.
    """
    late = np.flatnonzero((judgement.reasons == LATE) & (judgement.bounds < END))
    bounds, times = judgement.bounds[late], np.where(rows.kinds == STOP_EDGE, rows.stops, rows.starts)[late]
    elsewhere = shape.imported_delay if shape.imports else 0
    own = bounds <= judgement.risen[late] - shape.delay
    return Lateness.of(bounds + np.where(own & shape.generates, shape.delay, elsewhere) - times)


def items_of(rows: pa.Table) -> Items:
    """Return the rows of one writer as arrays."""
    return Items(*(rows[name].to_numpy() for name in (POSITION, "k", "s", "e", "bad")))


def _together(judged: Mapping[str, Judged]) -> pa.Table:
    return pa.concat_tables([rows for rows, _ in judged.values()]) if judged else pa.table({"k": []})


def _all(arrays: Iterable[np.ndarray]) -> np.ndarray:
    parts = [*arrays]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _verdict(judged: Mapping[str, Judged]) -> tuple[Verdict, pa.Table]:
    """Return the refused rows with their reasons, counts for the ledger, and all rows with their kinds."""
    table, judgements = _together(judged), [judgement for _, judgement in judged.values()]
    reasons = _all(judgement.reasons for judgement in judgements)
    wrong = reasons != ACCEPTED
    counts = {"in": table.num_rows, "accepted": int((~wrong).sum())}
    if not judged:
        return Verdict(None, counts, {}, BEGINNING, END), table
    counts |= {REASONS[n]: times for n, times in enumerate(np.bincount(reasons[wrong]).tolist()) if times}
    moved = (_all(judgement.starts for judgement in judgements) != table["s"].to_numpy()) & ~wrong
    counts |= {"ADJUSTED": int(moved.sum())} if moved.any() else {}
    if not wrong.any():
        return Verdict(None, counts, {}, BEGINNING, END), table
    named = pa.array(np.array(REASONS, object)[reasons[wrong]], pa.string())
    bounds = pa.array(_all(judgement.marks for judgement in judgements)[wrong], pa.int64())
    listed = (
        table.filter(pa.array(wrong))
        .select([WRITER, POSITION])
        .append_column("reason", named)
        .append_column("mark", bounds)
    )
    return Verdict(listed, counts, {}, BEGINNING, END), table


def steps_of(rows: pa.Table, judgement: Judgement) -> list[tuple[int, int]]:
    """Return from which position on rows came at which bound."""
    if not rows.num_rows:
        return []
    bounds = judgement.bounds
    first = np.concatenate([[0], np.flatnonzero(bounds[1:] != bounds[:-1]) + 1])
    return list(zip(rows[POSITION].to_numpy()[first].tolist(), bounds[first].tolist(), strict=True))


def with_met(rows: Frame, steps: Mapping[str, Sequence[tuple[int, int]]]) -> Frame:
    """Return the rows with the bound when each came, by its writer and position."""
    by_writer = {writer: of_writer for writer, of_writer in steps.items() if of_writer}
    rows.share()  # computed once, so that its rows keep their order
    return rows.with_column(MET, "bigint", _met_here(rows.select(WRITER, POSITION).toArrow(), by_writer))


def _met_here(rows: pa.Table, steps: Mapping[str, Sequence[tuple[int, int]]]) -> pa.Array:
    """Return the bound of each row: its place and those of the steps are sorted together.

    The first step of a writer is before all of its rows; NULL for a writer about which nothing is known.
    """
    if not steps:
        return pa.array(np.full(rows.num_rows, BEGINNING))
    if len(steps) == 1 and only_value(rows[WRITER]) in steps:
        [of_writer] = steps.values()
        [at, bounds] = np.array(of_writer, dtype=np.int64).T
        return pa.array(values_at(rows[POSITION].to_numpy(), at[1:] - 1, bounds))
    numbers = {writer: number for number, writer in enumerate(steps)}
    codes = rows[WRITER].combine_chunks().dictionary_encode()
    writers = np.array([numbers.get(writer, -1) for writer in codes.dictionary.to_pylist()], dtype=np.int64)
    of_rows = writers[codes.indices.to_numpy()] if len(writers) else np.zeros(0, np.int64)
    of_steps = np.repeat(np.arange(len(steps)), [len(of_writer) for of_writer in steps.values()])
    first = np.concatenate([[True], of_steps[1:] != of_steps[:-1]])
    at, bounds = np.array([step for of_writer in steps.values() for step in of_writer], dtype=np.int64).T
    places = np.concatenate([np.where(first, np.iinfo(np.int64).min, at), rows[POSITION].to_numpy()])
    count = len(at)
    order = np.lexsort((np.arange(len(places)) >= count, places, np.concatenate([of_steps, of_rows])))
    last = np.empty(len(order), np.int64)
    last[order] = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    mine = order[np.maximum(last[count:], 0)]
    return pa.array(bounds[np.minimum(mine, count - 1)], mask=of_rows < 0)
