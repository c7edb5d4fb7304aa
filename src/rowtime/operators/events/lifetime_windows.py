"""GROUP BY TUMBLE or HOP over events: a window holds every event that it overlaps (semantics 9.6).

A window is final once the bound has reached its end. The result is an event of the window's
extent, or a point at its last instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import DUE, START, STOP, WEIGHT, WINDOW_END
from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Link, Operator, Shape, Tick, UpTo, passed, quoted
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.event_groups import EventGroups
from rowtime.operators.events.event_windows import clipped, first_start, in_windows, last_window
from rowtime.operators.events.failing_events import fitting, fitting_in_windows, results
from rowtime.operators.events.speculative_groups import SpeculativeGroups
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.lifetimes import BEGINS, OVERLAPS, WeightedLog, derived_columns, netted, refuse_endless


@dataclass(frozen=True)
class LifetimeWindows(EventGroups):
    """``aggregates`` of each window [k·hop + offset, + size) and ``keys``; ``point``: the result is one at its end.

    ``clips``: how lifetimes are cut to the window for aggregates: at both ends (``both``), at its end (``end``) or not.
    """

    size: Micros
    hop: Micros
    offset: Micros = 0
    point: bool = False
    clips: str = ""

    control: ClassVar = UpTo
    kind: ClassVar[str] = "lifetime windows"
    cuts_time: ClassVar[bool] = True
    promise: ClassVar[str] = "the start of the first window that is not final"
    reason: ClassVar[str] = "a whole window goes out once the bound has reached its end, which is after its start"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events of windows that are not final."""
        return (WeightedLog.kept(*self.identity).noted("events", "the bound reaches the end of their last window"),)

    def emits(self) -> Shape:
        """Return the select list; an emitted window is final, and all last equally long."""
        return replace(super().emits(), retracts="none", lasts=1 if self.point else self.size)

    def promises(self, clocks: Sequence[Clocks], control: UpTo) -> Clocks:  # noqa: ARG002
        """Return the least start of a window that may still be emitted."""
        bound = least(clocks[0].values())
        if not BEGINNING < bound < END:
            return {"": bound}
        start = first_start(bound, self.size, self.hop, self.offset)
        return {"": start + self.size - 1 if self.point else start}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the events that are alive in the window."""
        span = (f"{STOP} - {self.size}L", STOP) if self.point else (BEGINS, STOP)
        return Link(self.same_keys(), meets=OVERLAPS, span=span, narrows="meet")

    def opens_events(self) -> bool:
        """Return False: a window has an end."""
        return False

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the operator for the windows of each version."""
        listed = self.keys, self.aggregates, self.items, self.size, self.hop, self.offset, self.point, self.clips
        return SpeculativeGroups(self.name, below[0], *listed, having=self.having)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Aggregate the windows whose end the bound has reached; keep the events of the others."""
        delta, control = fitting(tick, self, deltas[0]), tick.control(self)
        kept, before = WeightedLog(tick, self), control.bound
        bound = max(before, least(delta.clocks.values()))
        parts = [] if delta.rows is None else [self._events(delta.rows)]
        old = kept.between(before, END) if bound > before else None
        rows = None
        if bound > before and (parts or old is not None):
            whole = parts + ([] if old is None else [old])
            rows = self._windows(tick, whole[0] if len(whole) == 1 else whole[0].unionByName(whole[1]), before, bound)
        if parts and bound < END:
            kept.add(parts[0].where(f"{DUE} > {passed(bound, DUE)}"))
        control = tick.remember(self, bound=bound)
        kept.forget(bound, self.identity)
        return Delta(rows, self.promises([delta.clocks], control))

    def _events(self, rows: Frame) -> Frame:
        """Return events with the end of their last window."""
        last = f"{last_window(self.size, self.hop, self.offset)} AS {DUE}"
        return rows.selectExpr(*map(quoted, self.input.emits().names), f"{BEGINS} AS {START}", STOP, WEIGHT, last)

    def _windows(self, tick: Tick, events: Frame, before: int, bound: int) -> Frame:
        """Return the windows with an end in (before, bound]."""
        events = netted(events, [*self.identity, DUE])
        if bound >= END:
            refuse_endless(self, events, DUE, "lies in endless windows")
        tick.describe(self, "aggregate windows")
        each = in_windows(events, (before, bound), self.size, self.hop, self.offset)
        each = fitting_in_windows(tick, self, each.selectExpr("*", *clipped(self.size, self.clips)))
        each = selected(tick, each, ["*", *(key.sql for key in self.keys)])
        each = each.selectExpr("*", f"explode(sequence(1L, {WEIGHT})) AS __i")
        groups, times = (
            [*self.key_names, WINDOW_END],
            derived_columns(f"{WINDOW_END} - {1 if self.point else self.size}L", WINDOW_END),
        )
        if tick.trying:
            return results(tick, self, each, groups, [], times)
        return self.selected(self.aggregated(each, groups), times)
