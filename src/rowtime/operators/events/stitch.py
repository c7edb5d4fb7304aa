"""Stitch: events of one payload that touch or overlap become one (semantics 9.6).

Below the bound no start can come, so an event that has ended there is final. An event that reaches the bound has been
emitted as open, and only its start is kept. EMIT CHANGES stitches events again after every change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rowtime.core.columns import CHANGED_BY, DUE, MET, PIECE_END, STOP, VERSION, WEIGHT
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Link, Operator, Shape, Tick, Unary, UpTo, quoted
from rowtime.operators.contract.requirement import VERSIONS
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.versions import BEFORE, as_of, differences, versions_of
from rowtime.operators.rows.lifetimes import (
    BEGINS,
    TOUCHES,
    WeightedLog,
    advanced,
    derived,
    derived_columns,
    due,
    least_of,
    netted,
    revised,
)


@dataclass(frozen=True)
class Stitch(Unary):
    """The events of ``input``; payloads are compared like group keys, so NULLs are equal."""

    control: ClassVar = UpTo
    kind: ClassVar[str] = "stitch"
    promises = Operator.promises
    keeps_versions: ClassVar[bool] = True

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events that have not ended, and their starts."""
        until = "the bound has passed their end"
        begun = WeightedLog.kept(*self._names, "__x", name="open")
        return (
            WeightedLog.kept(*self._names, "__ls", "__le").noted("events that are open", until),
            begun.noted("the start of each combined event", until),
        )

    def emits(self) -> Shape:
        """Return the columns of the events."""
        return derived(Shape(self.input.emits().columns))

    def link(self, n: int) -> Link:
        """Return the events with these values that touch it."""
        return Link(self.passed_on(n), meets=TOUCHES, narrows="own")

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the operator for the stitched events of each version."""
        return SpeculativeStitch(self.name, below[0])

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the stitched events up to the bound, minus those emitted before."""
        clocks, before, bound = advanced(tick, self, deltas)
        kept, going = WeightedLog(tick, self), WeightedLog(tick, self, "open")
        if deltas[0].rows is not None:
            rows = deltas[0].rows.selectExpr(*self._quoted, f"{BEGINS} AS __ls", f"{STOP} AS __le", WEIGHT, due(STOP))
            kept.add(rows)
        events = kept.between(before, END)
        result = None
        if bound > before and events is not None:
            result = self._results(tick, events, going, (before, bound))
        tick.remember(self, bound=bound)
        kept.forget(bound, [*self._names, "__ls", "__le"])
        going.forget(bound, [*self._names, "__x"])
        return Delta(result, clocks)

    def _results(self, tick: Tick, events: Frame, going: WeightedLog, span: tuple[int, int]) -> Frame:
        before, bound = span
        alive = netted(events.drop(DUE), [*self._names, "__ls", "__le"]).where(f"__ls < {bound}L")
        parts = alive.selectExpr(*self._quoted, "__ls", "__le")
        old = going.between(BEGINNING, END)
        gone = None
        if old is not None:
            old = netted(old, [*self._names, "__x"])
            parts = parts.unionByName(old.selectExpr(*self._quoted, "__x AS __ls", f"{before}L AS __le"))
            gone = old.selectExpr(*self._quoted, "__x", f"{END}L AS {STOP}", WEIGHT)
        tick.describe(self, "stitch events")
        changes = revised(tick, self, self._names, self._stitched(parts, bound), gone)
        if bound < END:
            going.add(changes.where(f"{STOP} >= {END}L").selectExpr(*self._quoted, "__x", WEIGHT, DUE))
        return changes.selectExpr(*self._quoted, *derived_columns("__x", STOP, WEIGHT))

    def _stitched(self, parts: Frame, bound: int) -> Frame:
        whole = runs(parts, self._names)
        return whole.selectExpr(
            *self._quoted, "__x", f"IF({PIECE_END} < {bound}L, {PIECE_END}, {END}L) AS {STOP}", f"1L AS {WEIGHT}"
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return self.input.emits().names

    @property
    def _quoted(self) -> list[str]:
        return [quoted(name) for name in self._names]


@dataclass(frozen=True)
class StitchSoFar(UpTo):
    """``low`` (µs UTC): stitched events up to it can change no more; their parts are dropped."""

    low: int = BEGINNING


@dataclass(frozen=True)
class SpeculativeStitch(Stitch):
    """A `Stitch` of versions of events: each payload is stitched again for every change of one of its events."""

    control: ClassVar = StitchSoFar
    kind: ClassVar[str] = "speculative stitch"
    needs: ClassVar = (VERSIONS,)  # versions, all up to the last one

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events that may still become longer."""
        until = "the bound has passed the end of the whole event and of all that began before it"
        return (WeightedLog.kept(*self._identity, CHANGED_BY, MET).noted("events", until),)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return how each new change affects its payload."""
        delta, control, kept = deltas[0], tick.control(self), WeightedLog(tick, self)
        clocks = self.promises([delta.clocks], control)
        bound, low = max(control.bound, clocks[""]), control.low
        old, rows = kept.between(low, END), None
        if delta.rows is not None:
            new = delta.rows.selectExpr(
                *self._quoted, f"{BEGINS} AS __ls", f"{STOP} AS __le", WEIGHT, CHANGED_BY, MET, due(STOP)
            )
            written = kept.add(new)
            rows = self._revised(kept.segments.read(written), old) if written else None
        low = self._begun(kept, low, bound)
        tick.remember(self, bound=bound, low=low)
        kept.forget(low, self._identity)
        return Delta(rows, clocks)

    @property
    def _identity(self) -> list[str]:
        return [*self._names, "__ls", "__le"]

    def _begun(self, kept: WeightedLog, low: int, bound: int) -> int:
        """Return the least start of a stitched event that has not ended below the bound."""
        rows = kept.between(low, END) if bound < END else None
        if rows is None:
            return bound
        alive = runs(netted(rows.drop(DUE, CHANGED_BY, MET), self._identity), self._names).where(
            f"{PIECE_END} >= {bound}L"
        )
        least_start = least_of(alive, "__x")
        return bound if least_start is None else min(bound, least_start)

    def _revised(self, new: Frame, old: Frame | None) -> Frame:
        """Return the results of each version of the payloads with new changes, minus those of the version before."""
        versions, events = versions_of(new, self._names), new.drop(DUE)
        if old is not None:
            events = events.unionByName(netted(old.drop(DUE, CHANGED_BY, MET), self._identity).selectExpr("*", *BEFORE))
        alive = as_of(events, versions, self._names, self._identity)
        results = (
            runs(alive, [*self._names, *VERSION]).withColumnRenamed(PIECE_END, STOP).selectExpr("*", f"1L AS {WEIGHT}")
        )
        return differences(results, self._names).selectExpr(
            *self._quoted, *derived_columns("__x", STOP, WEIGHT, CHANGED_BY, MET)
        )


def runs(parts: Frame, by: Sequence[str]) -> Frame:
    """Return runs [__x, __y) of parts [__ls, __le) of a group ``by``: no part begins after those before it end."""
    names = list(map(quoted, by))
    ordered = f"{'PARTITION BY ' if names else ''}{', '.join(names)} ORDER BY __ls, __le"
    ended = f"max(__le) OVER ({ordered} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    begun = parts.selectExpr("*", f"IF(__ls <= {ended}, 0, 1) AS __begins")
    numbered = begun.selectExpr("*", f"sum(__begins) OVER ({ordered} ROWS UNBOUNDED PRECEDING) AS __run")
    ends = ["min(__ls) AS __x", f"max(__le) AS {PIECE_END}"]
    return numbered.grouped([*names, "__run"], ends).drop("__run")
