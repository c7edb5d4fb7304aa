"""Windows and snapshots after every change: EMIT CHANGES of GROUP BY (semantics 9.5).

Each group is computed again for every change of an event in it, from the events at that time; the differences are
emitted with that change. So the output is a function of the order of the changes, and any aggregate is possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import (
    BROKEN,
    CHANGED_BY,
    DUE,
    LIFETIME_END,
    LIFETIME_START,
    MET,
    NEXT_SNAPSHOT,
    SNAPSHOT_AT,
    START,
    STOP,
    VERSION,
    WEIGHT,
    WINDOW_END,
)
from rowtime.core.fields import LATER, Micros
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Link, Operator, Tick, UpTo, quoted
from rowtime.operators.contract.requirement import VERSIONS
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.event_groups import EventGroups
from rowtime.operators.events.event_windows import clipped, first_start, in_snapshots, in_windows, last_window
from rowtime.operators.events.failing_events import changed, fitting, fitting_in_windows, tried_groups
from rowtime.operators.events.versions import BEFORE, as_of, versions_of
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.lifetimes import BEGINS, OVERLAPS, WeightedLog, due, netted, refuse_endless


@dataclass(frozen=True)
class GroupsSoFar(UpTo):
    """``low`` (µs UTC): the start below which no window can change; events that have ended by then are dropped."""

    low: int = BEGINNING


@dataclass(frozen=True)
class SpeculativeGroups(EventGroups):
    """``aggregates`` of each window or, without a ``size``, of each snapshot; fields as in `LifetimeWindows`.

    ``inner``: an operator that keeps events is above, and needs the time below which no window changes any more.
    """

    size: Micros = 0
    hop: Micros = 0
    offset: Micros = 0
    point: bool = False
    clips: str = ""
    inner: bool = field(default=False, kw_only=True, metadata=LATER)

    control: ClassVar = GroupsSoFar
    kind: ClassVar[str] = "speculative groups"
    needs: ClassVar = (VERSIONS,)  # versions, all up to the last one
    promise: ClassVar[str] = (
        "the input's bound; below an operator that keeps events, the start of the first window that ends later"
    )
    reason: ClassVar[str] = (
        "changes go out with the bounds that their items met, and only windows that end after these bounds change"
    )

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events of groups that may still change."""
        passed = "the bound has passed their end and that of all that began before it"
        until = "the bound reaches the end of their last window" if self.size else passed
        return (WeightedLog.kept(*self.identity, CHANGED_BY, MET).noted("events", until),)

    def promises(self, clocks: Sequence[Clocks], control: GroupsSoFar) -> Clocks:
        """Return the least of the input's bounds, or the least time that a change may affect."""
        (bound,) = super().promises(clocks, control).values()
        known = BEGINNING < bound < END
        moves = self.inner and self.size and not self.point and known
        return {"": first_start(bound, self.size, self.hop, self.offset) if moves else bound}

    def link(self, n: int) -> Link:
        """Return the link of the groups that wait for the bound."""
        if not self.size:
            return super().link(n)
        span = (f"{STOP} - {self.size}L", STOP) if self.point else (BEGINS, STOP)
        return Link(self.same_keys(), meets=OVERLAPS, span=span, narrows="meet")

    def beneath_keeping(self) -> Operator:
        """Return the same operator, which knows the time below which no window changes any more."""
        return replace(self, inner=True)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return how each new change affects its groups."""
        delta, control, kept = fitting(tick, self, deltas[0]), tick.control(self), WeightedLog(tick, self)
        clocks = self.promises([delta.clocks], control)
        bound, low = max(control.bound, least(delta.clocks.values())), control.low
        old, rows = kept.between(low, END), None
        if delta.rows is not None:
            written = kept.add(self._events(delta.rows))
            if written:
                rows = self._revised(tick, kept.segments.read(written), old, control.bound)
        low = bound if self.size or bound >= END else kept.oldest(bound, self.identity, START)
        tick.remember(self, low=low, bound=bound)
        kept.forget(low, self.identity)
        return Delta(rows, clocks)

    @property
    def _groups(self) -> list[str]:
        """Return the columns that distinguish groups that are computed separately."""
        return [*self.key_names, *([WINDOW_END] if self.size else [])]

    def _events(self, rows: Frame) -> Frame:
        until = f"{last_window(self.size, self.hop, self.offset)} AS {DUE}" if self.size else due(STOP)
        return rows.selectExpr(
            *map(quoted, self.input.emits().names), f"{BEGINS} AS {START}", STOP, WEIGHT, CHANGED_BY, MET, until
        )

    # -- versions of groups -----------------------------------------------------------

    def _revised(self, tick: Tick, new: Frame, old: Frame | None, before: int) -> Frame:
        """Return the results of each version of the groups with new changes, minus those of the version before."""
        if self.size:
            refuse_endless(self, new, STOP, "lies in endless windows", at_once=True)
        events = self._grouped(tick, new, before)
        versions = versions_of(events, self._groups)
        if old is not None:
            old = netted(old.drop(CHANGED_BY, MET), [*self.identity, DUE]).selectExpr("*", *BEFORE)
            events = events.unionByName(self._grouped(tick, old, before, new=False))
        results = self._results(tick, as_of(events, versions, self._groups, [*self.identity, *self._groups]))
        return changed(tick, self, results)

    def _grouped(self, tick: Tick, events: Frame, before: int, *, new: bool = True) -> Frame:
        """Return events with the keys of their groups, and in the windows that are not final."""
        rows = selected(tick, events, ["*", *(key.sql for key in self.keys)])
        if self.size:
            rows = in_windows(rows, (before, END), self.size, self.hop, self.offset)
            rows = fitting_in_windows(tick, self, rows.selectExpr("*", *clipped(self.size, self.clips)), new=new)
        return rows.drop(DUE, LIFETIME_START, LIFETIME_END)

    def _results(self, tick: Tick, events: Frame) -> Frame:
        """Return the select list at each version, with the extent of the window or snapshot."""
        groups, extent = [*self._groups, *VERSION], (f"{WINDOW_END} - {1 if self.point else self.size}L", WINDOW_END)
        if not self.size:
            events, extent = in_snapshots(events, START, groups), (SNAPSHOT_AT, NEXT_SNAPSHOT)
            groups = [*groups, *extent]
        each = events.selectExpr("*", *clipped(self.size, self.clips), f"explode(sequence(1L, {WEIGHT})) AS __i")
        times = [f"{extent[0]} AS __x", f"{extent[1]} AS {STOP}", f"1L AS {WEIGHT}"]
        if tick.trying:
            return tried_groups(self, each, groups).selectExpr(*self.item_names, *VERSION, *times, BROKEN)
        return self.selected(self.aggregated(each, groups), [*VERSION, *times])
