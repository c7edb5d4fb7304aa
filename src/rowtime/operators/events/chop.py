"""Chop: each event in pieces, cut at every step of time (semantics 9.6).

An open event has pieces up to the bound: those that end below it are final, and the one that reaches it has been
emitted as open. EMIT CHANGES shows the pieces after every change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rowtime.core.columns import CHANGED_BY, DUE, MET, PIECE_END, STOP, WEIGHT
from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Link, Operator, Shape, Tick, Unary, UpTo, quoted
from rowtime.operators.contract.state import StateNote
from rowtime.operators.rows.lifetimes import (
    BEGINS,
    OVERLAPS,
    WeightedLog,
    advanced,
    derived,
    derived_columns,
    due,
    netted,
    refuse_endless,
    revised,
)


@dataclass(frozen=True)
class Chop(Unary):
    """The events of ``input``, cut at ``offset`` + k · ``by`` (µs, from 1970-01-01)."""

    by: Micros
    offset: Micros = 0

    control: ClassVar = UpTo
    kind: ClassVar[str] = "chop"
    cuts_time: ClassVar[bool] = True
    promises = Operator.promises

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events that have not ended."""
        kept = WeightedLog.kept(*self._names, "__ls", "__le")
        return (kept.noted("events that are open", "the bound has passed their end"),)

    def emits(self) -> Shape:
        """Return the columns of the events."""
        return derived(Shape(self.input.emits().columns))

    def link(self, n: int) -> Link:
        """Return the event with these values that was alive then."""
        return Link(self.passed_on(n), meets=OVERLAPS, narrows="meet")

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the operator for the pieces of each version."""
        return SpeculativeChop(self.name, below[0], self.by, self.offset)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the pieces up to the bound, minus those emitted before."""
        clocks, before, bound = advanced(tick, self, deltas)
        kept = WeightedLog(tick, self)
        was = kept.between(before, END)
        if deltas[0].rows is not None:
            rows = deltas[0].rows.selectExpr(
                *map(quoted, self._names), f"{BEGINS} AS __ls", f"{STOP} AS __le", WEIGHT, due(STOP)
            )
            kept.add(rows)
        now = kept.between(before, END)
        result = None
        if bound > before and now is not None:
            if bound >= END:
                refuse_endless(self, netted(now, [*self._names, "__ls", "__le"]), "__le", "has endless pieces")
            gone = None if was is None else self._pieces(was, BEGINNING, before).where(f"{STOP} >= {END}L")
            tick.describe(self, "cut events into pieces")
            pieces = revised(tick, self, self._names, self._pieces(now, before, bound), gone)
            result = pieces.selectExpr(*map(quoted, self._names), *derived_columns("__x", STOP, WEIGHT))
        tick.remember(self, bound=bound)
        kept.forget(bound, [*self._names, "__ls", "__le"])
        return Delta(result, clocks)

    def _pieces(self, rows: Frame, since: int, bound: int) -> Frame:
        """Return the pieces that begin below the bound and end at ``since`` or later; others are open."""
        alive = netted(rows.drop(DUE), [*self._names, "__ls", "__le"]).where(f"__ls < {bound}L")
        first = f"greatest(__ls, {since}L - {self.by}L)" if since > BEGINNING else "__ls"
        steps = [f"{at} - pmod({at} - {self.offset}L, {self.by}L)" for at in (first, f"least(__le, {bound}L) - 1")]
        cuts = alive.selectExpr("*", f"explode(sequence({steps[0]}, {steps[1]}, {self.by}L)) AS __k")
        ends = cuts.selectExpr(
            *map(quoted, self._names),
            "greatest(__ls, __k) AS __x",
            f"least(__le, __k + {self.by}L) AS {PIECE_END}",
            WEIGHT,
        )
        ends = (
            ends.where(f"__x < {PIECE_END} AND {PIECE_END} >= {since}L")
            if since > BEGINNING
            else ends.where(f"__x < {PIECE_END}")
        )
        return ends.selectExpr(
            *map(quoted, self._names), "__x", f"IF({PIECE_END} < {bound}L, {PIECE_END}, {END}L) AS {STOP}", WEIGHT
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return self.input.emits().names


@dataclass(frozen=True)
class SpeculativeChop(Chop):
    """A `Chop` of versions of events: each row is cut by itself, retractions too."""

    kind: ClassVar[str] = "speculative chop"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return nothing."""
        return ()

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the pieces of each row, with its change."""
        delta = deltas[0]
        clocks = self.promises([delta.clocks], tick.control(self))
        if delta.rows is None:
            return Delta(None, clocks)
        tick.describe(self, "look for endless events")
        refuse_endless(self, delta.rows, STOP, "has endless pieces", at_once=True)
        names = list(map(quoted, self.emits().names))
        first, last = (f"{at} - pmod({at} - {self.offset}L, {self.by}L)" for at in (BEGINS, f"({STOP} - 1)"))
        cuts = f"explode(sequence({first}, {last}, {self.by}L)) AS __k"
        rows = delta.rows.selectExpr(*names, f"{BEGINS} AS __ls", f"{STOP} AS __le", WEIGHT, CHANGED_BY, MET, cuts)
        pieces = derived_columns("greatest(__ls, __k)", f"least(__le, __k + {self.by}L)", WEIGHT, CHANGED_BY, MET)
        return Delta(rows.selectExpr(*names, *pieces), clocks)
