"""GROUP BY SNAPSHOT(): the events alive between two successive changes of a group (semantics 9.6).

A new snapshot begins at every start and every end. Its counts and sums are running sums over the starts and ends, cut
at the bound: snapshots below it are final, and the sums at the bound are kept per group. So a tick costs its own events
and the open groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import DUE, ENDING, OLD, ROUTE, ROWTIME, SNAPSHOT_AT, STARTING, STOP, WEIGHT
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Operator, Shape, Tick, UpTo, passed, quoted
from rowtime.operators.contract.state import Kept, Route, Segment, StateNote
from rowtime.operators.events.event_groups import EventGroups
from rowtime.operators.events.failing_events import fitting, refused, tried
from rowtime.operators.events.running_sums import RunningSums
from rowtime.operators.events.speculative_groups import SpeculativeGroups
from rowtime.operators.groups.finished import in_words
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.collations import grouped, in_bytes, restored
from rowtime.operators.rows.lifetimes import ALWAYS, BEGINS, WeightedLog, derived_columns, instant, netted
from rowtime.sql.generate import to_spark

AHEAD, ENDED, OPENED, CLOSED, LEFT_OUT = range(5)
"""The state of a time, as a route.

It is ahead of the bound; the snapshot that begins there has ended; it lasts; the snapshot before it has ended; or that
one is excluded from the result by HAVING.
"""


@dataclass(frozen=True)
class SnapshotTypes(UpTo):
    """``types``: the Spark type of each aggregate's sum, empty if it only counts; from the first rows on.

    The prefix "exact " marks a sum that is kept in limbs (`RunningSums`), permanently. ``means``: the type of each
    average of decimals.
    """

    types: Sequence[str] = field(default_factory=list)
    means: Sequence[str] = field(default_factory=list)


@dataclass(frozen=True)
class Snapshot(EventGroups):
    """Counts and sums ``aggregates`` of each snapshot and ``keys``; ``items`` and ``having`` are over both by name."""

    control: ClassVar = SnapshotTypes
    kind: ClassVar[str] = "snapshot"
    writes_final: ClassVar[bool] = True

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the times ahead of the bound, and the sums at it."""
        ahead, alive = self._kept("state", ENDING), self._kept("open", WEIGHT)
        return (
            ahead.noted("starts and ends ahead of the bound", "the bound passes them"),
            alive.noted("the sums of each group in which events are alive", "they have ended"),
        )

    def _kept(self, name: str, *more: str) -> Kept:
        every, some = RunningSums.declared(self.aggregates)
        columns = (*self.key_names, SNAPSHOT_AT, STARTING, *every, *more, DUE)
        counts = (WEIGHT,) if WEIGHT in more else (STARTING, ENDING)
        return Kept(DUE, columns, name, tuple(some), counts=counts)

    def emits(self) -> Shape:
        """Return the select list; a snapshot has no end until the next change of its group."""
        return replace(super().emits(), retracts="open")

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the operator for the snapshots of each version."""
        return SpeculativeGroups(self.name, below[0], self.keys, self.aggregates, self.items, having=self.having)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Add the new starts and ends to the due ones, and emit the snapshots below the bound."""
        delta, control = fitting(tick, self, deltas[0]), tick.control(self)
        ahead, sums = WeightedLog(tick, self), WeightedLog(tick, self, "open")
        before = control.bound
        clocks = self.promises([delta.clocks], control)
        bound = max(before, clocks[""])
        if delta.rows is not None and not control.types:
            of_rows = RunningSums.of(self.aggregates, delta.rows)
            control = tick.remember(self, types=list(of_rows.kinds), means=list(of_rows.means))
        running = RunningSums(self.aggregates, control.types, control.means)
        due = ahead.between(before, bound) if bound > before else None
        kept = sums.between(BEGINNING, END)
        roomy = running.roomy(trying=tick.trying)
        if roomy != running:  # all kept rows are written again
            old = ahead.between(before, END), kept
            due, kept = (None if rows is None else running.moved(rows, roomy) for rows in old)
            running = roomy
            tick.remember(self, types=list(roomy.kinds))
            for log in (ahead, sums):
                log.segments.forget(END)
        parts = [] if delta.rows is None else [self._points(tick, delta.rows, running)]
        parts += [] if due is None else [due.drop(DUE).selectExpr("*", f"0 AS {OLD}")]
        rows, final, columns = None, tuple[Segment, ...](), [*self.key_names, SNAPSHOT_AT, STARTING, *running.columns]
        if parts:
            if kept is not None:
                own = [*self.key_names, SNAPSHOT_AT, STARTING, f"0L AS {ENDING}", *running.columns]
                parts.append(netted(kept, columns).selectExpr(*own, f"1 AS {OLD}"))
            rows, final = self._advance(tick, parts, running, bound)
        tick.remember(self, bound=bound)
        ahead.segments.forget(bound)
        sums.forget(bound, columns)
        return Delta(rows, clocks, final=final)

    # -- starts and ends --------------------------------------------------------------

    def _points(self, tick: Tick, rows: Frame, sums: RunningSums) -> Frame:
        """Return each event as its start and, if it has one, its end."""
        keys = [key.sql for key in self.keys]
        starts = (BEGINS, WEIGHT, "0L", WEIGHT)
        ends = (STOP, "0L", WEIGHT, f"-{WEIGHT}")
        parts = []
        for part, (at, starting, ending, weight) in ((rows, starts), (rows.where(f"{STOP} < {END}L"), ends)):
            values = [f"{at} AS {SNAPSHOT_AT}", f"{starting} AS {STARTING}", f"{ending} AS {ENDING}"]
            parts.append(selected(tick, part, [*keys, *values, *sums.values(weight), f"0 AS {OLD}"]))
        return parts[0].unionByName(parts[1])

    # -- snapshots --------------------------------------------------------------------

    def _advance(
        self, tick: Tick, parts: Sequence[Frame], running: RunningSums, bound: int
    ) -> tuple[Frame | None, tuple[Segment, ...]]:
        """Return new or changed events, and the final ones if a sink takes them over."""
        adopted = None if tick.trying else tick.adopted_as(self)
        sums, keys = running.columns, self.key_names
        changes = self._changes(reduce(lambda one, other: one.unionByName(other), parts), sums, bound)
        ended = {c: c for c in (*keys, SNAPSHOT_AT, *sums)} | {STOP: "__next"}
        if adopted is not None:
            changes = self._with_ended(changes, running, adopted)
            ended = {name: f"__final{n}" for n, name in enumerate(adopted)}
        kept = {c: c for c in (*keys, SNAPSHOT_AT, STARTING, *sums, DUE)}
        routes = {
            "complete": Route(ENDED, ended, DUE, more=(CLOSED,)),
            "merged": Route(OPENED, {c: c for c in (*keys, SNAPSHOT_AT, WEIGHT, *sums)}, DUE, more=(CLOSED, LEFT_OUT)),
            "open": Route(OPENED, {**kept, WEIGHT: WEIGHT}, DUE, more=(CLOSED, LEFT_OUT)),
            "state": Route(AHEAD, {**kept, ENDING: ENDING}, DUE),
        }
        tick.describe(self, "snapshots up to the bound")
        written = tick.write(self, changes, routes)
        for what in ("state", "open"):
            tick.segments(self, what).add(written[what])
        missing = {"complete": f"1L AS {WEIGHT}", "merged": f"{END}L AS {STOP}"}
        unpublished = {
            what: written[what] for what in missing if written[what] and (what == "merged" or adopted is None)
        }
        rows = [
            tick.segments(self, what).read(files).selectExpr("*", missing[what]) for what, files in unpublished.items()
        ]
        events = reduce(lambda one, other: one.unionByName(other), rows) if rows else None
        final = () if adopted is None else tuple(written["complete"])
        return None if events is None else self._results(tick, events, running), final

    def _with_ended(self, changes: Frame, running: RunningSums, adopted: Mapping[str, str]) -> Frame:
        """Return changes in which snapshots that have ended also have the columns of the adopted file."""
        kept = {name: f"__kept{n}" for n, name in enumerate(changes.columns)}
        rows = changes.selectExpr("*", f"{ROUTE} IN ({ENDED}, {CLOSED}) AS __over", *running.finals())
        # Nothing is computed for the others: it might fail.
        named = [f"{name} AS {other}" for name, other in kept.items() if name != ROUTE]
        items = [f"IF(__over, {to_spark(i.expression)}, NULL) AS {quoted(i.column.name)}" for i in self.items]
        route = ROUTE
        if self.having is not None:
            left_out = f"__over AND NOT coalesce({to_spark(self.having)}, false)"
            route = f"IF({left_out}, IF({ROUTE} = {CLOSED}, {LEFT_OUT}, NULL), {ROUTE}) AS {ROUTE}"
        events = rows.selectExpr(*named, route, *items, f"{instant(SNAPSHOT_AT)} AS {ROWTIME}", f"__next AS {STOP}")
        own = [f"{other} AS {name}" for name, other in kept.items() if name != ROUTE]
        values = {ROWTIME: ROWTIME, STOP: instant(STOP)}
        final = [f"{values.get(of, quoted(of))} AS __final{n}" for n, of in enumerate(adopted.values())]
        return events.where(f"{ROUTE} IS NOT NULL").selectExpr(*own, ROUTE, *final)

    def _changes(self, points: Frame, sums: Sequence[str], bound: int) -> Frame:
        """Return each time of a group, with the sums from it on, the next time, and the state of the time (route)."""
        keys = self.key_names
        totals = [*(f"sum({name}) AS {name}" for name in (STARTING, ENDING, *sums)), f"max({OLD}) AS {OLD}"]
        points, back = in_bytes(points, keys)
        times = points.grouped([*keys, SNAPSHOT_AT], totals).where(f"{STARTING} <> 0 OR {ENDING} <> 0")
        if back:  # of equal texts, the least of those that begin or end there
            times = grouped(restored(times, back), [*keys, SNAPSHOT_AT], totals)
        times = times.selectExpr("*", f"{SNAPSHOT_AT} < {passed(bound, SNAPSHOT_AT)} AS __due")
        by = ", ".join([*keys, "__due"])
        running = f"OVER (PARTITION BY {by} ORDER BY {SNAPSHOT_AT} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        so_far = [f"sum({name}) {running} AS __r{name}" for name in sums]
        following = f"lead({SNAPSHOT_AT}) OVER (PARTITION BY {by} ORDER BY {SNAPSHOT_AT}) AS __next"
        times = times.selectExpr("*", f"sum({STARTING} - {ENDING}) {running} AS __alive", *so_far, following)
        route = (
            f"CASE WHEN NOT __due THEN {AHEAD} WHEN {OLD} = 1 THEN IF(__next IS NULL, NULL, {CLOSED}) "
            f"WHEN __alive > 0 THEN IF(__next IS NULL, {OPENED}, {ENDED}) END AS {ROUTE}"
        )
        values = {STARTING: "__alive", **{name: f"__r{name}" for name in sums}}
        return times.selectExpr(
            *keys,
            SNAPSHOT_AT,
            "__next",
            ENDING,
            *(f"IF(__due, {value}, {name}) AS {name}" for name, value in values.items()),
            f"IF({OLD} = 1, -1L, 1L) AS {WEIGHT}",
            f"IF(__due, {ALWAYS}L, {SNAPSHOT_AT} + 1) AS {DUE}",
            route,
        ).where(f"{ROUTE} IS NOT NULL")

    def _results(self, tick: Tick, rows: Frame, sums: RunningSums) -> Frame:
        """Return the select list over keys and sums, as events."""
        rows = rows.selectExpr("*", *sums.finals(trying=tick.trying))
        if tick.trying:
            beyond = [(condition, in_words(call)) for condition, call in sums.beyond()]
            return refused(tick, self, tried(self, rows, beyond), derived_columns(SNAPSHOT_AT, STOP, WEIGHT))
        return self.selected(rows, derived_columns(SNAPSHOT_AT, STOP, WEIGHT))


SUMS = (exp.Count, exp.Sum, exp.Avg)


def summed(call: exp.Expr) -> bool:
    """Return True for the aggregates of a snapshot: a start adds to them and an end subtracts."""
    return isinstance(call, SUMS) and not isinstance(call.this, exp.Distinct) and not call.expressions
