"""Event time of a stream or view: its column, and the bounds that its items cause.

Semantics 8.1. Rows pass unchanged, with their own rowtimes; the operator adds the bound of the event time, in the
merged order of the items. Operators above read it from this node (`panes`), so filters and projections between them
change nothing. The bound is beside the rows, as a `Timeline`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import GIVEN, ORIGIN, POSITION, REGION, ROWTIME, WRITER
from rowtime.core.fields import LATER, UNSTORED, Micros
from rowtime.core.time import BEGINNING, END, UNREACHED
from rowtime.frames.frame import Frame
from rowtime.kernels.guard import EARLY, Items, Limits, guard
from rowtime.kernels.timeline import FIRST, LAST, Timeline, advances
from rowtime.operators.contract import (
    Delta,
    EventTime,
    Operator,
    Shape,
    Tick,
    Unary,
    UpTo,
    quoted,
)
from rowtime.operators.contract.gates import READMITTED, Verdict
from rowtime.operators.contract.requirement import BATCH, TIMED, Requirement
from rowtime.operators.contract.state import StateNote
from rowtime.operators.rows.calendar import in_calendar, in_micros, those_in_calendar, times_of
from rowtime.operators.streams.raises import marks_of
from rowtime.operators.streams.stream import Stream

BETWEEN = 1024  # how many positions there are between two items if bounds pass among rows
OUTPUT, FORWARDED, SET = "OUTPUT_EVENT_TIME", "INPUT_WATERMARK", "MANUAL"


@dataclass(frozen=True)
class EventClock(UpTo):
    """The state of the event time, for as long as the query runs; instants in µs UTC.

    ``bound``: the bound last sent. ``reached``: what the bound would be without the gap. ``regions``: the bound of each
    region. ``highest``: by writer, the greatest time that the guard accepted. ``early`` (µs): the distance of the
    guard, for the re-admission of early rows; ``None`` without it. ``set``: bounds that were set manually, until the
    next tick takes them.
    """

    reached: int = BEGINNING
    regions: Sequence[int] = field(default_factory=list)
    highest: Mapping[str, int] = field(default_factory=dict)
    early: int | None = None
    set: Sequence[int] = field(default_factory=list)


@dataclass(frozen=True)
class WithEventTime(Operator):
    """An operator over the rows of ``input`` and the bounds of their ``event`` time; it passes on those of the rows."""

    name: str
    input: Operator
    event: EventTimed = field(metadata=UNSTORED)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return the rows, and the operator that knows their event time."""
        return (self.input, self.event)

    def promises(self, clocks: Sequence[Clocks], control: Any) -> Clocks:  # noqa: ARG002 - the operator's
        """Return those of the input: no bound of the event time is below the clock of its item."""
        return clocks[0]


@dataclass(frozen=True)
class EventTimed(Unary):
    """``EVENT TIME (column, …)``: the event time of the rows, and its bounds.

    ``unit``: the unit of a whole-number column (SECOND, MILLISECOND, …); a timestamp has none. ``lag`` and ``gap`` in
    µs. ``mode``: OUTPUT_EVENT_TIME (the greatest time so far minus the lag), MANUAL (set bounds) or INPUT_WATERMARK
    (the least of the bounds that the ``regions`` below pass on). ``gate``: the stream whose bounds are about the event
    time. A time more than ``beyond`` (µs) above the greatest so far of its writer is EARLY, and does not move the
    bound. ``fields``: the time is this field inside the column.
    """

    column: str
    unit: str | None = None
    lag: Micros = 0
    gap: Micros = 0
    mode: str = "OUTPUT_EVENT_TIME"
    gate: Stream | None = field(default=None, metadata=UNSTORED)
    regions: int = 0
    beyond: Micros | None = field(default=None, metadata=LATER)
    fields: tuple[str, ...] = field(default=(), metadata=LATER)

    control: ClassVar = EventClock
    kind: ClassVar[str] = "event time"
    same_below: ClassVar = (ROWTIME,)
    is_gate: ClassVar[bool] = True
    passes_all: ClassVar[bool] = True
    keeps_fires: ClassVar[bool] = True

    def requires(self) -> tuple[Requirement, ...]:
        """Require the merged order, which decides which row a bound comes after."""
        return (BATCH if self.input.emits().batched else TIMED,)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the bound of the event time."""
        says = {"MANUAL": "the bound that was set", FORWARDED: "the bound of each input"}
        what = says.get(self.mode, f"the greatest {self.column} less the lag")
        until, fields = "the stream ends", ("reached", "regions", "bound")
        bound = StateNote(f"{what}, and the bound last sent", until, "one", fields=fields)
        guard = StateNote(f"the greatest {self.column} of each writer", until, "writers", fields=("highest",))
        return (bound,) if self.beyond is None else (bound, guard)

    def emits(self) -> Shape:
        """Return the input's columns; above, it is known which of them is the event time."""
        shape = self.input.emits()
        columns = tuple(column for column in shape.columns if column.name not in (GIVEN, REGION))
        return replace(shape, columns=columns, event=EventTime(self.name, self.column))

    @property
    def micros(self) -> str:
        """Return the event time as Spark SQL, BIGINT µs."""
        column = ".".join(map(quoted, (self.column, *self.fields)))
        return f"unix_micros({column})" if self.unit is None else in_micros(column, self.unit)

    @property
    def shown(self) -> str:
        """Return the column or field as a query writes it."""
        return ".".join((self.column, *self.fields))

    def checks_declared(self) -> bool:
        """Return True: it checks the time that the definition gives."""
        return True

    @classmethod
    def is_settable(cls, fields: Mapping[str, Any]) -> bool:
        """Return True in MODE MANUAL."""
        return fields["mode"] == SET  # type: ignore[no-any-return]

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Read the event times of the new rows, and find which of them moved the bound."""
        delta = deltas[0]
        items = self._items(tick, delta)
        items = items.set_column(items.column_names.index("t"), "t", those_in_calendar(items["t"]))
        items, early = self._guarded(tick, items)
        line = self._timeline(tick, items, ended=least(delta.clocks.values()) >= END)
        if delta.rows is not None:
            line = replace(line, stamps=partial(_stamps, tick, self, delta.rows))
        rows = None if delta.rows is None else self._accepted(tick, delta.rows, items, line, early)
        return Delta(rows, delta.clocks, delta.lowest, delta.highest, timeline=line)

    # -- the items --------------------------------------------------------------------

    def _items(self, tick: Tick, delta: Delta) -> pa.Table:
        """Return position, event time and set bound (BIGINT µs or null) of each item, in the merged order."""
        writer = [] if self.beyond is None else [self._writer]
        if delta.rows is None:
            numbers = {name: pa.array([], pa.int64()) for name in (POSITION, "t", "b")}
            return pa.table({**numbers, **{name: pa.array([], pa.string()) for name in writer}})
        plain = self.unit is None and not self.fields and not self.regions and GIVEN not in delta.rows.columns
        items = times_of(delta.rows, self.column) if plain else None
        if items is not None:
            items = items.select([POSITION, "t", *writer])
            items = items.append_column("b", pa.nulls(items.num_rows, pa.int64()))
        else:
            tick.describe(self, "read event times")
            bound = GIVEN if GIVEN in delta.rows.columns else "CAST(NULL AS BIGINT)"
            region = [REGION] if self.regions else []
            items = delta.rows.selectExpr(POSITION, f"{self.micros} AS t", f"{bound} AS b", *region, *writer).toArrow()
        positions = items[POSITION].to_numpy()
        if (positions[1:] > positions[:-1]).all():
            return items
        return items.take(pa.array(np.argsort(positions, kind="stable")))

    def _timeline(self, tick: Tick, items: pa.Table, *, ended: bool) -> Timeline:
        control = tick.control(self)
        before = control.bound
        regions = control.regions or [BEGINNING] * self.regions
        by_region = self._reached(tick, items)
        wanted = self._wanted(items) if not by_region else np.minimum.reduce(by_region)
        # Bounds set manually come after everything that earlier ticks have read.
        first, last = control.set, [*self._given(tick), *([END] if ended else [])]
        positions = read = items[POSITION].to_numpy()
        if first or last:
            positions = np.concatenate([np.full(len(first), FIRST), read, np.full(len(last), LAST)])
            wanted = np.concatenate([np.array(first, np.int64), wanted, np.array(last, np.int64)])
        where, values, reached = advances(positions, wanted, control.reached, before, self.gap)
        is_row = pc.is_valid(items["t"]).to_numpy()
        times = items["t"].drop_null().to_numpy()
        line = Timeline(before, where, values, read if len(times) == len(read) else read[is_row], times)
        tick.remember(self, set=[], reached=reached, bound=line.after)
        return replace(line, regions=_by_region(items, is_row, regions, by_region))

    def _wanted(self, items: pa.Table) -> np.ndarray:
        """Return the bound that each item asks for."""
        column = items["t" if self.mode == OUTPUT else "b"]
        wanted: np.ndarray = pc.fill_null(column, BEGINNING).to_numpy()
        if self.mode == OUTPUT and self.lag:
            return np.where(wanted > BEGINNING, wanted - self.lag, BEGINNING)
        return wanted

    def _reached(self, tick: Tick, items: pa.Table) -> list[np.ndarray]:
        """Return the bound of each region after each item; their least is the bound of all."""
        if not self.regions or REGION not in items.column_names:
            return []
        wanted, region = self._wanted(items), items[REGION].to_numpy()
        regions = tick.control(self).regions or [BEGINNING] * self.regions
        reached = [_running(wanted, region == n, regions[n]) for n in range(self.regions)]
        tick.remember(self, regions=[int(of[-1]) if len(of) else regions[n] for n, of in enumerate(reached)])
        return reached

    def _given(self, tick: Tick) -> list[int]:
        """Return a bound of the event time for the stream as a whole, outside of a writer's order."""
        if self.gate is None:
            return []
        bound = tick.control(self.gate).given
        return [] if bound is None else [bound]

    # -- the guard --------------------------------------------------------------------

    @property
    def _writer(self) -> str:
        """Return the column of a row's writer, also if rows of several writers were merged."""
        return ORIGIN[0] if self.input.emits().has_origin else WRITER

    def _guarded(self, tick: Tick, items: pa.Table) -> tuple[pa.Table, dict[int, int]]:
        """Return the items, with early rows' times NULL; and the mark that each of these exceeded, by its position."""
        if self.beyond is None or not items.num_rows:
            return items, {}
        marks = {**tick.control(self).highest}
        writers = items[self._writer].combine_chunks().cast(pa.string())
        times, known = pc.fill_null(items["t"], BEGINNING).to_numpy(), pc.is_valid(items["t"]).to_numpy()
        early, above = np.zeros(items.num_rows, bool), np.zeros(items.num_rows, np.int64)
        for writer in pc.unique(writers).to_pylist():
            if writer == READMITTED:
                continue  # its rows have been judged, against the time of the other rows
            mine = np.flatnonzero(pc.equal(writers, writer).to_numpy(zero_copy_only=False))
            mark = marks.get(writer, marks.get("", BEGINNING))  # "": all writers, if rows' writers were unknown
            verdict = guard(Items.of(times[mine], known[mine]), mark, Limits(UNREACHED, self.beyond))
            early[mine], above[mine] = verdict.result == EARLY, verdict.before
            marks[writer] = verdict.mark
        tick.remember(self, early=self.beyond, highest=marks)  # the distance is for the re-admission of early rows
        if not early.any():
            return items, {}
        positions = items[POSITION].to_numpy()[early].tolist()
        left = pc.if_else(pa.array(early), pa.scalar(None, pa.int64()), items["t"])
        items = items.set_column(items.column_names.index("t"), "t", left)
        return items, dict(zip(positions, above[early].tolist(), strict=True))

    # -- the rows ---------------------------------------------------------------------

    def _accepted(self, tick: Tick, rows: Frame, items: pa.Table, line: Timeline, early: Mapping[int, int]) -> Frame:
        missing = pc.and_(pc.is_null(items["t"]), pc.is_null(items["b"]))
        lost = items.filter(missing)[POSITION].to_numpy()
        accepted = len(line.rows)
        if GIVEN in rows.columns:
            rows = rows.where(f"{GIVEN} IS NULL").drop(GIVEN, REGION)
        if not len(lost):
            tick.count(self, accepted)
            return rows
        reasons = ["EARLY" if position in early else "NULL_ROWTIME" for position in lost.tolist()]
        marks = [early.get(at, bound) for at, bound in zip(lost.tolist(), line.at(lost).tolist(), strict=True)]
        verdict = verdict_on(rows, accepted, lost, reasons, np.array(marks, np.int64))
        return tick.account(self, rows, verdict, f"timestamp_micros({in_calendar(self.micros)})")


def _running(wanted: np.ndarray, mine: np.ndarray, mark: int) -> np.ndarray:
    """Return the bound of one region after each item."""
    marks: np.ndarray = np.maximum.accumulate(np.maximum(np.where(mine, wanted, BEGINNING), mark))
    return marks


def _by_region(
    items: pa.Table, is_row: np.ndarray, befores: Sequence[int], reached: Sequence[np.ndarray]
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return, for each region, the positions of its rows, and its bound before each of them and after all."""
    if not reached:
        return ()
    positions, region = items[POSITION].to_numpy(), items[REGION].to_numpy()
    regions = []
    for number, (before, after) in enumerate(zip(befores, reached, strict=True)):
        mine = np.flatnonzero(is_row & (region == number))
        bounds = np.concatenate([[before], after])
        regions.append(marks_of(before, positions[mine], bounds[mine], int(bounds[-1])))
    return tuple(regions)


def _stamps(tick: Tick, node: Operator, rows: Frame, positions: np.ndarray) -> np.ndarray:
    """Return the rowtimes of items, µs."""
    tick.describe(node, "read the rowtimes of what moved the bound")
    table = rows.selectExpr(POSITION, f"unix_micros({ROWTIME}) AS t").toArrow().sort_by(POSITION)
    times: np.ndarray = table["t"].to_numpy()[np.searchsorted(table[POSITION].to_numpy(), positions)]
    return times


def came_from(tick: Tick, node: Operator, rows: Frame, position: int) -> tuple[str, int]:
    """Return the writer and the position of a row before it was merged."""
    tick.describe(node, "read where a row came from")
    names = ORIGIN if ORIGIN[0] in rows.columns else (WRITER, POSITION)
    return tuple(rows.where(f"{POSITION} = {position}L").select(*names).collect()[0])


def verdict_on(
    rows: Frame, accepted: int, positions: np.ndarray, reasons: Sequence[str], bounds: np.ndarray
) -> Verdict:
    """Return the verdict on the rows of one sequence; those at some positions are refused."""
    writer = rows.select(WRITER).limit(1).collect()[0][0]  # there is one: a row was refused
    columns = {WRITER: pa.array([writer] * len(positions), pa.string()), POSITION: pa.array(positions, pa.int64())}
    refused = {**columns, "reason": pa.array(reasons, pa.string()), "mark": pa.array(bounds, pa.int64())}
    counts = Counter({"in": accepted + len(positions), "accepted": accepted, **Counter(reasons)})
    return Verdict(pa.table(refused), counts, {}, BEGINNING, END)
