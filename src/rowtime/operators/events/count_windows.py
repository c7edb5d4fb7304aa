"""GROUP BY COUNT_WINDOW(n) over events: those that start at n start times in a row (semantics 9.6).

In each group every start time ends a window, from the n-th on. Below the bound no start can come, so the window is
final; its result is a point at its last start. EMIT CHANGES computes the windows of a group again for every change of
its starts, from the starts that may still change and the last ones before these; it emits the differences with that
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from rowtime.core.columns import (
    ASKED_AT,
    BROKEN,
    CHANGED_BY,
    DUE,
    FIRST_RANK,
    HIGHEST,
    LAST_START,
    LOWEST,
    MET,
    MOST,
    RANK,
    START,
    STOP,
    VERSION,
    WEIGHT,
)
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Link, Operator, Tick, UpTo, passed, quoted
from rowtime.operators.contract.requirement import VERSIONS
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.event_groups import EventGroups
from rowtime.operators.events.failing_events import changed, fitting, results, tried_groups
from rowtime.operators.events.versions import BEFORE, as_of, versions_of
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.lifetimes import ALWAYS, BEGINS, WeightedLog, advanced, derived_columns, netted

LAST = f"max({START}) AS {LAST_START}"


@dataclass(frozen=True)
class CountWindows(EventGroups):
    """``aggregates`` of the events that start at ``size`` start times in a row, for each of ``keys``."""

    size: int

    control: ClassVar = UpTo
    kind: ClassVar[str] = "count windows"
    _changed: ClassVar[tuple[str, ...]] = ()

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the past events that the next windows contain."""
        ahead = WeightedLog.kept(*self.identity, *self._changed, name="ahead")
        last = WeightedLog.kept(*self.identity, name="last")
        return (
            ahead.noted("events ahead of the bound", "the bound passes their start"),
            last.noted(f"events of the last {self.size - 1} starts of each key", "others start", "keys"),
        )

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the events that began up to the start of the window."""
        return Link(self.same_keys(), meets=f"{BEGINS} <= {ASKED_AT}", narrows="own")

    def opens_events(self) -> bool:
        """Return False: each result is a point."""
        return False

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the operator for the windows of each version."""
        listed = self.keys, self.aggregates, self.items, self.size
        return SpeculativeCountWindows(self.name, below[0], *listed, having=self.having)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the windows whose last start the bound has passed."""
        delta = fitting(tick, self, deltas[0])
        clocks, before, bound = advanced(tick, self, deltas)
        ahead, last = WeightedLog(tick, self, "ahead"), WeightedLog(tick, self, "last")
        if delta.rows is not None:
            ahead.add(self._starts(delta.rows, before))
        new = ahead.between(before, bound)
        result = None if new is None or bound <= before else self._windows(tick, self._move(tick, new, last))
        self._pass(tick, bound, ahead, last)
        return Delta(result, clocks)

    def _starts(self, rows: Frame, before: int, more: Sequence[str] = ()) -> Frame:
        """Return events with their starts and ``more`` columns, without those that began below the bound.

        Only the end of those can change.
        """
        rows = rows.selectExpr(*self._quoted, f"{BEGINS} AS {START}", WEIGHT, *more, f"{BEGINS} + 1 AS {DUE}")
        return rows.where(f"{START} >= {passed(before, START)}") if before > BEGINNING else rows

    def _move(self, tick: Tick, new: Frame, last: WeightedLog) -> Frame:
        """Keep the events of the last starts of groups with ``new`` events below the bound.

        Return these, those that were kept, and the number of each start.
        """
        events, old = self._grouped(tick, new, 1), last.between(BEGINNING, END)
        if old is not None:
            events = events.unionByName(self._met(self._grouped(tick, old, 0), events))
        ranked = self._ranked(events, self.key_names)
        tick.describe(self, "keep events of the last starts")
        moved = ranked.where(f"({RANK} > {MOST} - {self.size - 1}) = (__came = 1)")
        weight = f"IF(__came = 1, {WEIGHT}, -{WEIGHT}) AS {WEIGHT}"
        last.add(moved.selectExpr(*self._quoted, START, weight, f"{ALWAYS}L AS {DUE}"))
        return ranked

    def _pass(self, tick: Tick, bound: int, ahead: WeightedLog, last: WeightedLog) -> None:
        """Drop what has been moved; at the end of the stream, everything."""
        tick.remember(self, bound=bound)
        ahead.forget(bound, self.identity)
        last.forget(bound if bound >= END else BEGINNING, self.identity)

    def _grouped(self, tick: Tick, rows: Frame, new: int) -> Frame:
        """Return the events that exist, with their keys."""
        events = netted(rows.drop(DUE, CHANGED_BY, MET), self.identity)
        return selected(tick, events, ["*", *(key.sql for key in self.keys), f"{new} AS __came"])

    def _met(self, rows: Frame, others: Frame) -> Frame:
        """Return the rows of groups that also have other rows."""
        if not self.keys:
            return rows
        groups = others.selectExpr(*(f"{name} AS __o{name}" for name in self.key_names)).distinct()
        return rows.joined(groups, " AND ".join(f"{name} <=> __o{name}" for name in self.key_names), "left_semi")

    def _ranked(self, events: Frame, groups: Sequence[str]) -> Frame:
        """Return events with the rank of their start in their group, and the greatest rank."""
        by = f"PARTITION BY {', '.join(groups)}" if groups else ""
        ranked = events.selectExpr("*", f"dense_rank() OVER ({by} ORDER BY {START}) AS {RANK}")
        return ranked.selectExpr("*", f"max({RANK}) OVER ({by}) AS {MOST}")

    def _windows(self, tick: Tick, ranked: Frame) -> Frame:
        """Return the results of the windows that these starts end."""
        times = derived_columns(LAST_START, f"{LAST_START} + 1")
        if tick.trying:
            return results(tick, self, self._each(ranked), [*self.key_names, FIRST_RANK], [LAST], times)
        return self.selected(self._windowed(ranked, self.key_names), times)

    def _each(self, ranked: Frame) -> Frame:
        """Return every event in each of its windows, which `FIRST` distinguishes."""
        first, end = f"greatest({RANK} - {self.size - 1}, 1)", f"least({RANK}, {MOST} - {self.size - 1})"
        each = ranked.selectExpr("*", f"{first} AS {LOWEST}", f"{end} AS {HIGHEST}").where(f"{LOWEST} <= {HIGHEST}")
        each = each.selectExpr("*", f"explode(sequence({LOWEST}, {HIGHEST})) AS {FIRST_RANK}")
        return each.selectExpr("*", f"explode(sequence(1L, {WEIGHT})) AS __i")

    def _windowed(self, ranked: Frame, groups: Sequence[str]) -> Frame:
        """Return keys and aggregates of each window of a group, and its last start (`WINDOW`)."""
        return self.aggregated(self._each(ranked), [*groups, FIRST_RANK], [LAST])

    @property
    def identity(self) -> list[str]:
        """Return the columns without the end, which does not affect the windows of an event."""
        return [*self.input.emits().names, START]

    @property
    def _quoted(self) -> list[str]:
        return [quoted(name) for name in self.input.emits().names]


@dataclass(frozen=True)
class SpeculativeCountWindows(CountWindows):
    """`CountWindows` of versions of events; the kept state is the same."""

    kind: ClassVar[str] = "speculative count windows"
    needs: ClassVar = (VERSIONS,)  # versions, all up to the last one
    _changed: ClassVar[tuple[str, ...]] = (CHANGED_BY, MET)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return how each new change affects the windows of its group."""
        delta = fitting(tick, self, deltas[0])
        clocks, before, bound = advanced(tick, self, deltas)
        ahead, last = WeightedLog(tick, self, "ahead"), WeightedLog(tick, self, "last")
        rows = None
        if delta.rows is not None:
            old = [ahead.between(before, END), last.between(BEGINNING, END)]
            written = ahead.add(self._changes(delta.rows, before))
            rows = self._revised(tick, ahead.segments.read(written), old) if written else None
        due = ahead.between(before, bound) if before < bound < END else None
        if due is not None:
            self._move(tick, due, last)
        self._pass(tick, bound, ahead, last)
        return Delta(rows, clocks)

    def _changes(self, rows: Frame, before: int) -> Frame:
        """Return events that a version adds and removes, without those whose end it changes."""
        changes = netted(self._starts(rows, before, (CHANGED_BY, MET)), [*self.identity, CHANGED_BY, DUE])
        return changes.select(*self._quoted, START, WEIGHT, CHANGED_BY, MET, DUE)

    def _revised(self, tick: Tick, new: Frame, old: Sequence[Frame | None]) -> Frame:
        """Return the windows of each version of the groups with new changes, minus those of the version before."""
        keys, groups = [key.sql for key in self.keys], [*self.key_names, *VERSION]
        changes = selected(tick, new.drop(DUE), ["*", *keys])
        versions = versions_of(changes, self.key_names)
        before = [
            selected(tick, one.drop(DUE, CHANGED_BY, MET).selectExpr("*", *BEFORE), ["*", *keys])
            for one in old
            if one is not None
        ]
        events = reduce(lambda one, other: one.unionByName(other), before, changes)
        alive = as_of(events, versions, self.key_names, [*self.identity, *self.key_names])
        ranked, times = (
            self._ranked(alive, groups),
            (f"{LAST_START} AS __x", f"{LAST_START} + 1 AS {STOP}", f"1L AS {WEIGHT}"),
        )
        if tick.trying:
            results = tried_groups(self, self._each(ranked), [*groups, FIRST_RANK], [LAST])
            return changed(tick, self, results.selectExpr(*self.item_names, *VERSION, *times, BROKEN))
        return changed(tick, self, self.selected(self._windowed(ranked, groups), [*VERSION, *times]))
