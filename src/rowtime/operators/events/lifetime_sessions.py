"""GROUP BY SESSION over events: those of a key whose lifetimes are less than a gap apart (semantics 9.6).

A session begins with its first event and ends a gap after its last one, like a session of rows; then it is final. With
a longest duration it is cut at every multiple of it after its beginning, and an event belongs to each part that it
overlaps. So the content of a part depends on the events alone, and the part is final once the bound has reached its
end, however long events last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import (
    BEGUN,
    CHAIN,
    DUE,
    HIGHEST,
    LIFETIME_END,
    LIFETIME_START,
    LOWEST,
    OVER_AT,
    PART,
    ROUTE,
    START,
    STOP,
    WEIGHT,
    WINDOW_END,
)
from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Link, Shape, Tick, UpTo, passed, quoted
from rowtime.operators.contract.state import Route, StateNote
from rowtime.operators.events.event_groups import EventGroups
from rowtime.operators.events.failing_events import fitting, fitting_in_windows, results
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.collations import grouped
from rowtime.operators.rows.lifetimes import (
    ALWAYS,
    BEGINS,
    OVERLAPS,
    WeightedLog,
    derived_columns,
    netted,
    refuse_endless,
)


@dataclass(frozen=True)
class SessionsSoFar(UpTo):
    """``low`` (µs UTC): the least start of a session, or of a part of one, that has begun and not ended."""

    low: int = BEGINNING


@dataclass(frozen=True)
class LifetimeSessions(EventGroups):
    """``aggregates`` of each session of ``keys``; ``gap`` and ``longest`` in µs, 0 if a session may last forever.

    ``point`` and ``clips`` as in `LifetimeWindows`.
    """

    gap: Micros
    longest: Micros = field(default=0)
    point: bool = False
    clips: str = ""

    control: ClassVar = SessionsSoFar
    kind: ClassVar[str] = "lifetime sessions"
    final_only: ClassVar[bool] = True
    promise: ClassVar[str] = "the beginning of the first session that is not over"
    reason: ClassVar[str] = "a session goes out as a whole once the bound has reached its end, and begins before"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events of sessions that have not ended; for cut sessions, their times."""
        kept = WeightedLog.kept(*self.identity)
        if not self.longest:
            return (kept.noted("events", "the bound reaches the end of their session"),)
        cut = WeightedLog.kept(*self.key_names, BEGUN, OVER_AT, name="cut")
        return (
            kept.noted("events", "the bound has passed their end, and the last part of the session that they are in"),
            cut.noted("the times of each session of which a part is out", "the bound reaches its end"),
        )

    def emits(self) -> Shape:
        """Return the select list; an emitted session is final, and lasts longer than the gap, unless it was cut."""
        whole = self.gap + 1
        lasts = 1 if self.point else min(whole, self.longest or whole)
        return replace(super().emits(), retracts="none", lasts=lasts)

    def promises(self, clocks: Sequence[Clocks], control: SessionsSoFar) -> Clocks:
        """Return the least start of a session that may still be emitted."""
        bound = least(clocks[0].values())
        return {"": bound if self.point or not BEGINNING < bound < END else min(bound, control.low)}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the events that are alive in the session; of a point only its end is known."""
        span = (BEGINS, STOP)
        if self.point:
            span = (f"{STOP} - {self.longest}L" if self.longest else f"{BEGINNING}L", STOP)
        return Link(self.same_keys(), meets=OVERLAPS, span=span, narrows="own" if self.point else "meet")

    def opens_events(self) -> bool:
        """Return False: emitted sessions have their end."""
        return False

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Aggregate the sessions that have ended."""
        delta, control = fitting(tick, self, deltas[0]), tick.control(self)
        kept, before, low = WeightedLog(tick, self), control.bound, control.low
        bound = max(before, least(delta.clocks.values()))
        if delta.rows is not None:
            columns = map(quoted, self.input.emits().names)
            rows = delta.rows.selectExpr(*columns, f"{BEGINS} AS {START}", STOP, WEIGHT, f"{ALWAYS}L AS {DUE}")
            kept.add(rows)
        result = None
        if bound > before:
            events, low = kept.between(BEGINNING, END), bound
            if events is not None:
                result, low = self._over(tick, kept, events, (before, bound))
        control = tick.remember(self, bound=bound, low=low)
        gone = bound if bound >= END else BEGINNING
        kept.forget(gone, self.identity)
        if self.longest:
            WeightedLog(tick, self, "cut").forget(gone, self._times)
        return Delta(result, self.promises([delta.clocks], control))

    def _over(self, tick: Tick, kept: WeightedLog, events: Frame, span: tuple[int, int]) -> tuple[Frame | None, int]:
        """Return what has ended within a span of bounds, and the least start of the rest; drop what has ended."""
        bound = span[1]
        parts = netted(events.drop(DUE), self.identity).where(f"{START} < {bound}L")
        if bound >= END and self.longest:
            refuse_endless(self, parts, STOP, "lasts through endless sessions")
        until = f"IF({STOP} >= {END}L, {END}L, {STOP} + {self.gap}L)"
        parts = selected(tick, parts, ["*", *(key.sql for key in self.keys), f"{until} AS {OVER_AT}"])
        cut = WeightedLog(tick, self, "cut")
        old = cut.between(BEGINNING, END) if self.longest else None
        if old is not None:
            old = netted(old.drop(DUE), self._times)
            times = (f"{BEGUN} AS {START}", f"{OVER_AT} - {self.gap}L AS {STOP}", OVER_AT)
            open_parts = old.selectExpr(*self.key_names, *times, f"0L AS {WEIGHT}")
            parts = parts.unionByName(open_parts, allowMissingColumns=True)
        tick.describe(self, "find sessions")
        parts = self._written(tick, self._chained(parts))
        begun = parts.where(f"{OVER_AT} > {bound}L")
        first = begun.selectExpr(f"{self._part_at(f'{bound}L')} AS __x").selectExpr("min(__x) AS __x").collect()[0][0]
        self._forget(kept, parts, bound)
        if self.longest:
            self._note(cut, begun, old, bound)
        return self._results(tick, parts.where(f"{WEIGHT} > 0"), span), bound if first is None else int(first)

    def _chained(self, parts: Frame) -> Frame:
        """Return parts with the number, the start (`BEGUN`) and the end (`OVER_AT`) of their session."""
        keys = f"PARTITION BY {', '.join(self.key_names)} " if self.keys else ""
        order = f"{keys}ORDER BY {START}, {OVER_AT} ROWS BETWEEN UNBOUNDED PRECEDING AND"
        begins = f"{START} >= max({OVER_AT}) OVER ({order} 1 PRECEDING)"
        parts = parts.selectExpr("*", f"CASE WHEN {begins} THEN 1L ELSE 0L END AS __b")
        parts = parts.selectExpr("*", f"sum(__b) OVER ({order} CURRENT ROW) AS {CHAIN}").drop("__b")
        session = f"OVER (PARTITION BY {', '.join([*self.key_names, CHAIN])})"
        others = [quoted(name) for name in parts.columns if name not in (OVER_AT, CHAIN)]
        return parts.selectExpr(*others, f"min({START}) {session} AS {BEGUN}", f"max({OVER_AT}) {session} AS {OVER_AT}")

    def _written(self, tick: Tick, parts: Frame) -> Frame:
        """Return the same, computed once."""
        names = parts.columns
        due_parts = parts.selectExpr("*", f"{ALWAYS}L AS {DUE}", f"0 AS {ROUTE}")
        segments = tick.write(self, due_parts, {"merged": Route(0, {c: c for c in [*names, DUE]}, DUE)})["merged"]
        return tick.segments(self, "merged").read(segments).drop(DUE) if segments else parts.where("false")

    def _part_at(self, time: str) -> str:
        """Return the start of the part of a session that contains a time."""
        return f"{time} - pmod({time} - {BEGUN}, {self.longest}L)" if self.longest else BEGUN

    def _part_end(self, time: str) -> str:
        """Return the end of that part, as far as the session is known."""
        return f"least({self._part_at(time)} + {self.longest}L, {OVER_AT})" if self.longest else OVER_AT

    def _forget(self, kept: WeightedLog, parts: Frame, bound: int) -> None:
        """Drop events that contribute to no more results."""
        over = f"{OVER_AT} <= {bound}L"
        if self.longest:
            over = f"{over} OR {STOP} < {bound}L AND {self._part_end(f'{STOP} - 1')} <= {bound}L"
        columns = map(quoted, self.input.emits().names)
        gone = parts.where(f"{WEIGHT} > 0").where(over)
        kept.add(gone.selectExpr(*columns, START, STOP, f"-{WEIGHT} AS {WEIGHT}", f"{ALWAYS}L AS {DUE}"))

    def _note(self, cut: WeightedLog, begun: Frame, old: Frame | None, bound: int) -> None:
        """Keep the times of the sessions of which some parts have been emitted and others have not."""
        over_at = f"max(IF({STOP} < {bound}L, {STOP}, {bound}L)) + {self.gap}L AS {OVER_AT}"
        out = begun.where(f"{BEGUN} + {self.longest}L <= {bound}L")
        now = grouped(out, [*self.key_names, BEGUN], [over_at])
        now = now.selectExpr(*self._times, f"1L AS {WEIGHT}", f"{ALWAYS}L AS {DUE}")
        if old is not None:
            gone = old.selectExpr(*self._times, f"-{WEIGHT} AS {WEIGHT}", f"{ALWAYS}L AS {DUE}")
            now = netted(now.unionByName(gone), [*self._times, DUE])
        cut.add(now)

    def _results(self, tick: Tick, events: Frame, span: tuple[int, int]) -> Frame:
        """Return the sessions, or their parts, that end within the span."""
        before, bound = span
        tick.describe(self, "aggregate sessions")
        if self.longest:
            first, last = f"greatest({START}, {passed(before, START)})", f"least({STOP} - 1, {bound}L)"
            parts = f"{self._part_at(first)} AS {LOWEST}", f"{self._part_at(last)} AS {HIGHEST}"
            events = events.selectExpr("*", *parts).where(f"{LOWEST} <= {HIGHEST}")
            each = events.selectExpr("*", f"explode(sequence({LOWEST}, {HIGHEST}, {self.longest}L)) AS {PART}")
            each = each.selectExpr("*", f"least({PART} + {self.longest}L, {OVER_AT}) AS {WINDOW_END}")
        else:
            each = events.selectExpr("*", f"{BEGUN} AS {PART}", f"{OVER_AT} AS {WINDOW_END}")
        each = each.where(f"{WINDOW_END} > {before}L AND {WINDOW_END} <= {bound}L")
        if self.clips:
            start = f"greatest({START}, {PART})" if self.clips == "both" else START
            seen = {LIFETIME_START: start, LIFETIME_END: f"least({STOP}, {WINDOW_END})"}
            each = each.selectExpr("*", *(f"timestamp_micros({micros}) AS {name}" for name, micros in seen.items()))
        each = fitting_in_windows(tick, self, each.drop(LOWEST, HIGHEST))
        each = each.selectExpr("*", f"explode(sequence(1L, {WEIGHT})) AS __i")
        groups = [*self.key_names, PART, WINDOW_END]
        times = derived_columns(f"{WINDOW_END} - 1" if self.point else PART, WINDOW_END)
        if tick.trying:
            return results(tick, self, each, groups, [], times)
        return self.selected(self.aggregated(each, groups), times)

    @property
    def _times(self) -> list[str]:
        """Return what is kept of a session of which a part has been emitted."""
        return [*self.key_names, BEGUN, OVER_AT]
