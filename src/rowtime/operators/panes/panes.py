"""Panes: GROUP BY windows of event time that fire when they are complete, and again for late rows.

Semantics 8.3 and 8.4. Each row of a pane has the bound that first releases it: the pane's end if the row came before
the bound reached it, else the first strict advance after the row. A group (pane and keys) fires once for each such
bound, with all its rows up to it; the first fire is the complete one. So the fires follow from the items alone. For
each of these bounds (``__u``) partial results are kept, until the bound has reached the pane's end + the discard age.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar

import numpy as np
import pyarrow as pa
from sqlglot import exp

from rowtime.core.clock import Clocks
from rowtime.core.columns import (
    ASKED_FROM,
    ASKED_UPTO,
    FIRE,
    FIRE_CHANGE,
    FIRE_INDEX,
    LAST_FIRE,
    NEXT_FIRE,
    PANE,
    POSITION,
    ROUTE,
    ROWTIME,
    WRITER,
)
from rowtime.core.fields import UNSTORED, Micros
from rowtime.core.time import BEGINNING, END, shift
from rowtime.frames.frame import Frame
from rowtime.kernels.blame import Past, Raise, watched
from rowtime.kernels.timeline import Timeline
from rowtime.operators.contract import (
    NOTHING,
    Delta,
    FireColumns,
    Fired,
    Link,
    Operator,
    Shape,
    Tick,
    quoted,
)
from rowtime.operators.contract.lateness import Lateness, added
from rowtime.operators.contract.requirement import EVENT_TIME, UNORDERED
from rowtime.operators.contract.state import Kept, Route, Segment, StateNote
from rowtime.operators.groups.finished import COMPLETE, Finished, with_failing
from rowtime.operators.groups.grouping import RowGroups
from rowtime.operators.panes.event_time import OUTPUT, EventTimed, came_from, verdict_on
from rowtime.operators.panes.pane_facts import END_OF, INDEX, SIGN, TIMING, pane_fact
from rowtime.operators.panes.pane_times import PaneControl, PaneTimes, less
from rowtime.operators.panes.values_at import with_value_at
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.collations import collated_of, grouped, least
from rowtime.operators.rows.lifetimes import instant
from rowtime.operators.rows.partials import Accumulators
from rowtime.operators.rows.select import Item
from rowtime.operators.streams.raises import LONG, marks_of, raised
from rowtime.sql.generate import to_spark
from rowtime.sql.script import parse_expression

NO_BOUND = "CAST(NULL AS BIGINT)"
TAKEN, LATE, NO_PANE = 0, 1, 2
REASONS = ("", "LATE", "NO_PANE")
NEVER = END + 1  # stands for a bound that is still to come


@dataclass(frozen=True)
class Panes(RowGroups):
    """``GROUP BY PANES(t, …), keys`` with ``aggregates``; ``items`` and ``having`` are over both by name.

    ``times`` are the panes, ``age`` (µs) how long after its end a pane accepts rows, ``event`` the operator that
    declares the event time. ``changes``: a fire retracts the row before it. ``every`` (µs): open panes with new rows
    fire when the bound reaches or passes a multiple of it.
    """

    name: str
    input: Operator
    event: EventTimed = field(metadata=UNSTORED)
    times: PaneTimes
    age: Micros
    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    having: exp.Expr | None = None
    changes: bool = False
    every: Micros | None = None

    control: ClassVar = PaneControl
    kind: ClassVar[str] = "panes"
    finishes_groups: ClassVar = True
    needs: ClassVar = (EVENT_TIME, UNORDERED)  # the places of the rows in the merged order
    awaits_event: ClassVar[bool] = True
    has_own_time: ClassVar[bool] = True
    holds_itself: ClassVar[bool] = True
    numbers: ClassVar[tuple[str, ...]] = (LAST_FIRE, FIRE_INDEX, FIRE_CHANGE)
    is_gate: ClassVar[bool] = True
    promise: ClassVar[str] = "the bound of the event time"
    reason: ClassVar[str] = (
        "the complete fire of a pane has the end of the pane as its rowtime, which the bound has not reached "
        "before; other fires have the bound that caused them"
    )

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return the rows, and the operator that knows their event time."""
        return (self.input, self.event)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return partial results, or rows if an aggregate has no partial form."""
        partials, rows = "partial results per fire of a group", "the aggregated columns of each row"
        until = "the bound reaches the end of the pane + the discard age"
        return (StateNote(partials if self.accumulators.splits else rows, until, rows=(self._state, self._waiting)),)

    def emits(self) -> Shape:
        """Return the select list; rows are released, ordered by their fire's rowtime, the pane and the keys."""
        keys = tuple(key.column.name for key in self.keys)
        hidden = (FIRE, PANE, *keys, *([FIRE_CHANGE] if self.changes else []))
        columns = tuple(item.column for item in self.items)
        return Shape(columns, order=(ROWTIME, *hidden), extra=hidden, placed=False, single=True, released=True)

    def promises(self, clocks: Sequence[Clocks], control: PaneControl) -> Clocks:  # noqa: ARG002
        """Return the bound of the event time: every later fire is caused by a later one."""
        return {"": control.bound}

    def fires(self) -> FireColumns | None:
        """Return which columns tell what about a fire, and whether a pane may fire again."""

        def columns_of(fact: exp.Expr) -> list[str]:
            return [item.column.name for item in self.items if item.expression == fact]

        ends, timings, indices = (columns_of(pane_fact(name, self.times.duration)) for name in (END_OF, TIMING, INDEX))
        signs = frozenset(columns_of(parse_expression(SIGN)))
        again = self.age > 0 or self.every is not None
        columns = FireColumns(tuple(ends), frozenset(timings), frozenset(indices), signs, again, self.changes)
        timing = pane_fact(TIMING, self.times.duration)
        return columns.among(self.having, lambda side: side == timing)

    def link(self, n: int) -> Link:
        """Return the rows of the same keys in the pane that came up to the fire."""
        if n:
            return NOTHING
        time = self.event.micros
        meets, fired = f"{time} >= {ASKED_FROM} AND {time} < {ASKED_UPTO}", Fired(self.event.name, time, self.age)
        return Link(self.same_keys(), meets=meets, span=(f"{PANE} - {self.times.duration}L", PANE), fired=fired)

    def files_are_results(self, *, ordered: bool, at_once: bool) -> bool:  # noqa: ARG002 - also with other names
        """Return True if order does not matter: panes are written in any order."""
        return not ordered

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Refuse rows behind the discard age, keep the others, and fire what the bound has reached."""
        delta, line, control = self.computing(tick, deltas[0], skips=True), deltas[1].timeline, tick.control(self)
        assert line is not None
        before, control = control.bound, tick.remember(self, bound=line.after)
        late = self._resolve(tick, line)  # waiting rows are of earlier ticks
        older = tick.segments(self).overlapping(before, line.after)
        late += self._take(tick, delta, deltas[1].rows, line)
        done = self._fire(tick, before, line, late, max((s.highest for s in older), default=before))
        tick.segments(self).forget(shift(line.after, -self.age))
        if not tick.trying:
            self._state.compact(tick, self, "partial results", lambda rows: self._merged(tick, rows, line.after))
        clocks = self.promises([], control)
        if tick.adopted_as(self) is not None:
            return Delta(None, clocks, files=tuple(done))
        return Delta(tick.segments(self, "complete").read(done) if done else None, clocks)

    # -- input ------------------------------------------------------------------------

    def _take(self, tick: Tick, delta: Delta, declared: Frame | None, line: Timeline) -> list[int]:
        """Judge the new rows and keep them; return the range of ends of the panes that fire again."""
        if delta.rows is None or declared is None:
            return []
        positions, times = self._times(tick, delta, line)
        passed = line.behind(positions, times)  # the others are neither late nor behind the end of their panes
        bounds = line.at(positions[passed])
        is_late = times[passed] < less(bounds, self.age)
        refused = np.full(len(times), TAKEN, np.int8)
        refused[~self.times.covers(times)] = NO_PANE
        refused[passed[is_late]] = LATE
        below = (bounds - times[passed])[is_late & (bounds < END)]
        tick.remember(self, lateness=added(tick.control(self).lateness, Lateness.of(below)))
        self._watch(tick, declared, positions[passed[is_late]], line)
        rows = self._accepted(tick, delta.rows, refused, positions, line)
        fired = ~is_late & (bounds >= self.times.first_end(times[passed]))
        behind = passed[fired]
        fires = line.next(positions[behind], NEVER)
        late = self._late_table(tick, positions[behind], bounds[fired], fires)
        at_ends = late is None and self.every is None
        kept = self._grouped(tick, rows, late, None if at_ends else line)
        tick.describe(self, "aggregate, keep partial results")
        self._write(tick, kept, waits=not at_ends)
        again = times[behind][fires < NEVER]
        if not len(again):
            return []
        return [int(self.times.first_end(times[behind]).min()), int(again.max()) + self.times.duration]

    def _times(self, tick: Tick, delta: Delta, line: Timeline) -> tuple[np.ndarray, np.ndarray]:
        """Return position and event time of each row: those of the declaration, or the ones that filters left."""
        if self.input is self.event and not tick.trying:  # otherwise rows that fail are gone
            return line.rows, line.times
        assert delta.rows is not None
        tick.describe(self, "read the places of rows")
        positions = np.sort(delta.rows.select(POSITION).toArrow()[POSITION].to_numpy())
        return positions, line.times[np.searchsorted(line.rows, positions)]

    def _accepted(self, tick: Tick, rows: Frame, judged: np.ndarray, positions: np.ndarray, line: Timeline) -> Frame:
        """Return the rows above the bound minus the discard age, and in a pane; ``judged`` has the reasons."""
        refused = judged != TAKEN
        if not refused.any():
            tick.count(self, len(positions))
            return rows
        reasons, positions = [REASONS[n] for n in judged[refused].tolist()], positions[refused]
        verdict = verdict_on(rows, int((~refused).sum()), positions, reasons, line.at(positions))
        return tick.account(self, rows, verdict, f"timestamp_micros({self.event.micros})")

    def _watch(self, tick: Tick, rows: Frame, late: np.ndarray, line: Timeline) -> None:
        """Remember the last row that raised the bound by far, and what happened to later rows."""
        control = tick.control(self)
        if self.event.mode != OUTPUT:
            self._watch_bounds(tick, late, line)
            return
        writer, stored = next(iter(control.raised.items()), ("", None))
        highest = control.highest
        tick.remember(self, highest=int(line.times.max(initial=highest)), raised={})
        is_late = np.zeros(len(line.times), bool)
        is_late[np.searchsorted(line.rows, late)] = True
        past = Past.of_rows(line.rows, line.times, is_late, highest)
        poison = watched(None if stored is None else Raise(*stored), past, self.event.lag + self.age, LONG)
        if poison is None:
            return
        if stored is None or poison.position != stored[0]:
            writer, place = came_from(tick, self, rows, poison.position)
            tick.remember(self, place=place)
        tick.remember(self, raised={writer: list(poison)})

    def _watch_bounds(self, tick: Tick, late: np.ndarray, line: Timeline) -> None:
        """Do the same for bounds from elsewhere: of merged regions, or set manually."""
        regions = line.regions or (marks_of(line.before, line.rows, line.at(line.rows), line.after),)
        jumps = {**tick.control(self).jumps}
        for number, (positions, risen) in enumerate(regions):
            poison = raised(jumps.pop(str(number), None), positions, risen, _among(positions, late))
            if poison is not None:
                jumps[str(number)] = poison
        tick.remember(self, jumps=jumps)

    def _late_table(self, tick: Tick, positions: np.ndarray, bounds: np.ndarray, fires: np.ndarray) -> Frame | None:
        if not len(positions):
            return None
        columns = {"__late": pa.array(positions), "__before": pa.array(bounds), "__after": pa.array(fires)}
        return tick.frame(self, pa.table(columns))

    def _in_time(self, rows: Frame, line: Timeline) -> tuple[Frame, str]:
        """Return rows, and the bound that releases one that came before its pane's end, BIGINT in Spark SQL."""
        if self.every is None:
            return rows, PANE
        early = line.passing(self.every)
        if not len(early.values):
            return rows, self._early(NO_BOUND, line.after)
        return with_value_at(rows, "__early", early.values, early.positions), self._early("__early", line.after)

    def _early(self, first: str, after: int) -> str:
        """Return an early fire at ``first``, else the complete one, else one that no bound has caused yet."""
        return f"least({first}, CASE WHEN {PANE} <= {after}L THEN {PANE} ELSE {NEVER}L END)"

    def _grouped(self, tick: Tick, rows: Frame, late: Frame | None, line: Timeline | None) -> Frame:
        """Return partial results of the new rows, for each group and the bound that releases them.

        ``line``: of the bounds for rows before their pane's end, ``None`` if it is the end of the pane for all rows.
        """
        types = self._types(tick, rows)
        panes = self.times.ends_text(self.event.micros)
        fire = PANE
        if line is not None:
            rows, fire = self._in_time(rows, line)
        if late is not None:
            rows = rows.joined(late, f"{POSITION} = __late", "left")
            fire = f"CASE WHEN {PANE} <= __before THEN __after ELSE {fire} END"
        rows = rows.selectExpr("*", f"{panes} AS {PANE}")
        keys = [key.sql for key in self.keys]
        seeded = selected(tick, rows, [*keys, *self.accumulators.seeds(types), PANE, f"{fire} AS {FIRE}"])
        return self._fires(types, exact=tick.trying).merged(seeded, at_ends=line is None)

    def _resolve(self, tick: Tick, line: Timeline) -> list[int]:
        """Resolve rows that no bound had followed: the first advance releases late ones; return the ends of panes."""
        waiting = tick.segments(self, "waiting")
        if not waiting.rows or line.first is None:
            return []
        segments = waiting.overlapping(BEGINNING, END)
        names = [quoted(name) for name in self._state.columns or () if name != FIRE]
        fire = f"{line.first}L"
        if self.every is not None:
            first = line.passing(self.every).first
            early = self._early(NO_BOUND if first is None else f"{first}L", line.after)
            fire = f"CASE WHEN {PANE} <= {line.before}L THEN {fire} ELSE {early} END"
        rows = waiting.read(segments).selectExpr(*names, f"{fire} AS {FIRE}")
        waiting.forget(END)
        tick.describe(self, "rows that have their bound")
        self._write(tick, rows)
        return [min(s.lowest for s in segments), max(s.highest for s in segments)]

    # -- fires ------------------------------------------------------------------------

    def _fire(self, tick: Tick, before: int, line: Timeline, late: Sequence[int], older: int) -> Sequence[Segment]:
        """Emit everything that a bound in (before, after] releases.

        Panes that end after ``older`` have rows of this tick alone, whose partial results are merged.
        """
        state = tick.segments(self)
        if self.every is not None:  # complete fires happen again too, after early ones
            late = [*late, before + 1, END]
        due = state.overlapping(before, line.after) if self.every is None else ()
        again = state.overlapping(min(late) - 1, max(late)) if late else ()
        if line.after <= before or not (due or again):
            return ()
        parts, shown = [], self._fires(self._types(tick), exact=tick.trying)
        if due:
            rows = state.read(due).where(f"{PANE} > {before}L AND {PANE} <= {line.after}L AND {FIRE} = {PANE}")
            if older > before:
                parts.append(shown.first(rows.where(f"{PANE} <= {older}L")))
            if older < min(line.after, max(segment.highest for segment in due)):
                parts.append(shown.first(rows.where(f"{PANE} > {older}L"), merged=True))
        if again:
            parts.append(shown.again(state.read(again), before, line.after))
        fires = reduce(lambda some, more: some.unionByName(more), parts)
        tick.describe(self, "fire panes")
        if tick.trying:
            return self._tried(tick, fires, self._time(before, line))
        selected, routes = self._shown(fires, before, line), self._routes(tick.adopted_as(self))
        return tick.write(self, selected, routes)["complete"]

    def _tried(self, tick: Tick, fires: Frame, time: str) -> Sequence[Segment]:
        """Return the select list of each fire; those that cannot be computed have a route of their own."""
        places = {item.column.name: f"__f{n}" for n, item in enumerate(self.items)}
        complete = self._routes(tick.adopted_as(self))["complete"]
        columns = {name: places.get(own, own) for name, own in complete.columns.items()}
        routes = with_failing(tick, self, {"complete": replace(complete, key=COMPLETE, columns=columns)}, places)
        finished = Finished(self, "true", self.items, time, routes, (FIRE_CHANGE,))
        # The row that a refused one retracts was refused as well.
        return finished.write(tick, fires)["complete"]

    def _shown(self, fires: Frame, before: int, line: Timeline) -> Frame:
        """Return the select list of each fire, at its rowtime: the pane's end, or the bound that caused it."""
        if self.having is not None:
            fires = fires.where(to_spark(self.having))
        places = (f"{self._time(before, line)} AS {ROWTIME}", f"'' AS {WRITER}", f"0L AS {POSITION}")
        return fires.selectExpr(*(item.sql for item in self.items), *places, *self.emits().extra, f"0 AS {ROUTE}")

    @staticmethod
    def _time(before: int, line: Timeline) -> str:
        last = line.values[line.values < END]
        end = int(last[-1]) if len(last) else before
        return instant(f"CASE WHEN {FIRE} >= {END}L THEN {end}L ELSE {FIRE} END")

    def _routes(self, adopted: Mapping[str, str] | None) -> dict[str, Route]:
        shape = self.emits()
        return {"complete": Route(0, adopted or {name: name for name in (*shape.names, *shape.internals)}, FIRE)}

    # -- kept rows --------------------------------------------------------------------

    @property
    def _state(self) -> Kept:
        keys = (*self._key_names(),)
        return Kept(PANE, (*keys, *self.accumulators.columns, PANE, FIRE), groups=keys)

    @property
    def _waiting(self) -> Kept:
        return replace(self._state, name="waiting")

    def _fires(self, types: Mapping[str, str], *, exact: bool = False) -> Fires:
        return Fires(self._key_names(), self.accumulators, types, self.every is not None, self.changes, exact)

    def _write(self, tick: Tick, rows: Frame, *, waits: bool = True) -> None:
        """Keep partial results; ``waits``: perhaps some are to be released by a bound of a later tick."""
        routes, route = {"state": self._state.route(0)}, "0"
        if waits:
            routes["waiting"], route = self._waiting.route(1), f"CASE WHEN {FIRE} >= {NEVER}L THEN 1 ELSE 0 END"
        rows = rows.selectExpr(*map(quoted, routes["state"].columns), f"{route} AS {ROUTE}")
        written = tick.write(self, rows, routes)
        for name, segments in written.items():
            tick.segments(self, name).add(segments)

    def _merged(self, tick: Tick, rows: Frame, bound: int) -> Frame:
        """Merge kept rows that no later bound can separate."""
        rows = rows.where(f"{PANE} > {shift(bound, -self.age)}L")
        return self._fires(self._types(tick)).merged(rows).sortWithinPartitions(PANE)


def _among(positions: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return the indexes of the positions that are among some; usually there are none."""
    return np.flatnonzero(np.isin(positions, some)) if len(some) else some


# Fires of panes: the results of a group each time that a bound releases some of its rows.
#
# Semantics 8.3. The rows of a group are ordered by the bounds that release them. Each such bound is a fire, with all
# rows up to it; so the partial results of a fire are a running total over the group's fires. Many late fires of one
# pane cost in proportion to their number. If an aggregate has no partial form, each fire reads its rows again.


@dataclass(frozen=True)
class Fires:
    """The fires of groups (a pane and ``keys``); ``accumulators`` of their rows are kept.

    ``types`` are those of the accumulators. ``early``: there are fires before panes are complete. ``changes``: a fire
    retracts the row before it. ``exact``: sums may overflow their types, so nothing is merged before a fire
    (`Accumulators.exact`). The output has `CHANGE`, `INDEX`, `LAST` and the aggregates.
    """

    keys: Sequence[str]
    accumulators: Accumulators
    types: Mapping[str, str]
    early: bool
    changes: bool
    exact: bool = False

    def merged(self, rows: Frame, *, at_ends: bool = False) -> Frame:
        """Return one row for each fire of a group, if partial results are enough.

        ``at_ends``: all rows are released by the end of their pane.
        """
        if not self._splits:
            return rows
        if at_ends:
            return grouped(rows, [*self.keys, PANE], self._merges()).selectExpr("*", f"{PANE} AS {FIRE}")
        return grouped(rows, self._by, self._merges())

    def first(self, rows: Frame, *, merged: bool = False) -> Frame:
        """Return one fire for each group, by the end of its pane. ``merged``: as `merged` returned the rows."""
        if self._splits:
            fires = (rows if merged else self.merged(rows, at_ends=True)).selectExpr(*self._by, *self._finals)
        else:
            fires = self._of_rows(rows, self._by)
        names = self._names_of(fires)
        return fires.selectExpr(
            *self._by, f"1 AS {FIRE_CHANGE}", f"0L AS {FIRE_INDEX}", f"{FIRE} AS {LAST_FIRE}", *names
        )

    def again(self, rows: Frame, before: int, after: int) -> Frame:
        """Return late and early fires by bounds in (``before``, ``after``], over all rows of their groups.

        With early fires, complete ones too: such a fire may have no rows of its own.
        """
        rows = rows.where(f"{FIRE} <= {after}L")
        wanted = f"{FIRE} > {before}L" + ("" if self.early else f" AND {FIRE} > {PANE}")
        fires = self._numbered(rows, after).where(f"{LAST_FIRE} > {before}L OR {NEXT_FIRE} > {before}L")
        fires = fires.selectExpr(*self._place, *self._finals) if self._splits else self._read(rows, fires)
        names = self._names_of(fires)
        fires.share()
        changes = [(LAST_FIRE, 1), *([(NEXT_FIRE, 0)] if self.changes else [])]
        shown = (
            fires.selectExpr(
                *self.keys, PANE, f"{at} AS {FIRE}", f"{kind} AS {FIRE_CHANGE}", FIRE_INDEX, LAST_FIRE, *names
            )
            for at, kind in changes
        )
        return reduce(lambda some, more: some.unionByName(more), shown).where(wanted)

    def _numbered(self, rows: Frame, after: int) -> Frame:
        """Return every fire of each group, its number, the next one, and the partial results up to it."""
        if self.early:
            complete = rows.where(f"{FIRE} < {PANE} AND {PANE} <= {after}L")
            ends = complete.selectExpr(*self.keys, PANE, f"{PANE} AS {FIRE}")
            rows = rows.unionByName(ends, allowMissingColumns=True)
        fires = grouped(rows, self._by, self._merges())
        group = f"PARTITION BY {', '.join([*self.keys, PANE])} ORDER BY {FIRE}"
        number = f"CAST(row_number() OVER ({group}) - 1 AS BIGINT) AS {FIRE_INDEX}"
        upto = f"{FIRE} AS {LAST_FIRE}"
        collated = collated_of(fires, self.keys)
        so_far = f"OVER ({group} ROWS UNBOUNDED PRECEDING)"
        totals = self._merges(f" {so_far}")
        keys = [f"{least(key)} {so_far} AS {key}" if key in collated else key for key in self.keys]
        return fires.selectExpr(*keys, PANE, upto, number, f"lead({FIRE}) OVER ({group}) AS {NEXT_FIRE}", *totals)

    def _read(self, rows: Frame, fires: Frame) -> Frame:
        """Return each fire over all rows of its group up to it."""
        named = [f"{name} AS __f{name}" for name in (*self.keys, PANE)]
        same = [f"{name} <=> __f{name}" for name in (*self.keys, PANE)]
        others = fires.selectExpr(*named, LAST_FIRE, FIRE_INDEX, NEXT_FIRE)
        pairs = rows.joined(others, " AND ".join([*same, f"{FIRE} <= {LAST_FIRE}"]), "inner")
        return self._of_rows(pairs, self._place)

    def _of_rows(self, rows: Frame, by: Sequence[str]) -> Frame:
        if self.exact:
            return self.accumulators.exact(rows, by, [], self.types)
        return self.accumulators.of_rows(rows, by)

    @property
    def _splits(self) -> bool:
        return self.accumulators.splits and not self.exact

    def _merges(self, over: str = "") -> list[str]:
        return self.accumulators.merges(self.types, over) if self._splits else []

    @property
    def _by(self) -> list[str]:
        return [*self.keys, PANE, FIRE]

    @property
    def _place(self) -> list[str]:
        return [*self.keys, PANE, LAST_FIRE, FIRE_INDEX, NEXT_FIRE]

    @property
    def _finals(self) -> list[str]:
        return self.accumulators.finals(self.types)

    def _names_of(self, fires: Frame) -> list[str]:
        """Return the aggregates, and which of them overflow their types."""
        beyond = [flag for flag, _ in self.accumulators.beyond(fires)] if self.exact else []
        return [*(name for name, _ in self.accumulators.aggregates), *beyond]
