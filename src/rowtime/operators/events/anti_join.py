"""Left anti-join of events: each left event while no matching right event is alive (semantics 9.6).

The uncovered pieces up to the bound are a function of the events alive there. Pieces that end below the bound are
final. Those that reach it have been emitted as open, and are retracted when their end is known. EMIT CHANGES computes
the pieces of a left event again for every change of it and of its matching right events, and emits the differences with
that change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from rowtime.core.columns import CHANGED_BY, DUE, FRESH, LEFT_EVENT, MET, RIGHT_EVENT, STOP, VERSION, WEIGHT
from rowtime.core.fields import UNSTORED
from rowtime.core.time import BEGINNING, END
from rowtime.expr.conditions import conjuncts
from rowtime.operators.contract import Column, Delta, Derivation, Link, Operator, Pairs, Shape, Tick, named, quoted
from rowtime.operators.contract.requirement import VERSIONS
from rowtime.operators.contract.state import Kept, StateNote
from rowtime.operators.events.lifetime_join import COVERING, OfEvents, flagged, side_of
from rowtime.operators.events.versions import BEFORE, as_of, differences, versions_of
from rowtime.operators.joins.join_rows import beside
from rowtime.operators.rows.conditions import joined_if
from rowtime.operators.rows.lifetimes import (
    OVERLAPS,
    TOUCHES,
    WeightedLog,
    advanced,
    both,
    derived,
    derived_columns,
    netted,
    revised,
)
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame


@dataclass(frozen=True)
class AntiJoin(OfEvents):
    """The ``left`` events while no ``right`` event for which ``on`` holds is alive; columns as in `LifetimeJoin`.

    ``refuses_pairs``: pairs for which ``on`` cannot be computed are refused here. In an outer join, its join does that.
    """

    refuses_pairs: bool = field(default=False, metadata=UNSTORED)

    kind: ClassVar[str] = "lifetime anti-join"
    _changed: ClassVar[tuple[str, ...]] = ()
    covering: ClassVar[str] = COVERING
    """The times of a right event that covers a left one."""

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events of both sides, and the emitted pieces that may still end."""
        left = (self._of_side(0), WeightedLog.kept(*self.names[0], "__x", name="open"))
        until = "the left events that began before their end have ended, and the bound has passed their end"
        return (
            StateNote("left events", "the bounds of both have passed their end", rows=left),
            self._of_side(1).noted("right events", until),
        )

    def emits(self) -> Shape:
        """Return the columns of the left side."""
        columns = self.left.emits().columns
        return derived(Shape(tuple(Column(to, c.type) for to, c in zip(self.names[0], columns, strict=True))))

    def link(self, n: int) -> Link:
        """Return the event of the left side, and every right event that may have covered it."""
        if n == 0:
            names = named(list(zip(self.names[0], self.left.emits().names, strict=True)))
            return Link(names, meets=OVERLAPS, narrows="meet")
        return Link(self._equated(), meets=TOUCHES, narrows="meet")

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the left column with this name here; any column of the right side may contribute."""
        olds = [old for old, new in self._renamed(0) if new == column]
        return super().made_from(n, column) if not olds else Derivation(olds) if n == 0 else None

    def _equated(self) -> Pairs:
        """Return the equations of its condition between a column of each side."""
        left, right = set(self.names[0]), dict(zip(self.names[1], self.right.emits().names, strict=True))
        pairs: list[tuple[str, str]] = []
        for part in conjuncts(self.on):
            sides = (part.left.unnest(), part.right.unnest()) if isinstance(part, exp.EQ) else ()
            for own, cover in (sides, sides[::-1]) if sides else ():
                if isinstance(own, exp.Column) and own.name in left and isinstance(cover, exp.Column):
                    pairs += [(quoted(own.name), quoted(right[cover.name]))] if cover.name in right else []
        return tuple(pairs)

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return the columns of each input, under their new names, side by side."""
        return beside(rows, [(self.left, self._renamed(0))])

    def opens_events(self) -> bool:
        """Return True as for the left side: an event lasts until another covers it."""
        return self.left.opens_events()

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the operator for the uncovered pieces in each version."""
        return SpeculativeAntiJoin(self.name, below[0], below[1], self.names, self.on, self.refuses_pairs)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the uncovered pieces of left events up to the bound, minus those emitted before."""
        clocks, before, bound = advanced(tick, self, deltas)
        kept = [WeightedLog(tick, self, "left"), WeightedLog(tick, self, "right")]
        for n, delta in enumerate(deltas):
            if delta.rows is not None:
                kept[n].add(self._side(n, delta.rows))
        rows = None
        left, right = (log.between(before if n == 0 else BEGINNING, END) for n, log in enumerate(kept))
        if bound > before and left is not None:
            rows = self._changes(tick, left, right, (before, bound))
        tick.remember(self, bound=bound)
        self._forget(kept, bound)
        return Delta(rows, clocks)

    def _of_side(self, n: int) -> Kept:
        return WeightedLog.kept(
            *self.names[n], *(LEFT_EVENT, RIGHT_EVENT)[n][:2], *self._changed, name=("left", "right")[n]
        )

    def _side(self, n: int, rows: Frame, more: Sequence[str] = ()) -> Frame:
        """Keep a left event that ends at the bound longer than a right one: it still has a piece that ends there."""
        rows = side_of(self.inputs[n], self.names[n], (LEFT_EVENT, RIGHT_EVENT)[n], rows, more)
        columns = [quoted(name) for name in rows.columns if name != DUE]
        return rows.selectExpr(*columns, f"IF({DUE} < {END}L, {DUE} - {n}, {DUE}) AS {DUE}")

    def _changes(self, tick: Tick, left: Frame, right: Frame | None, span: tuple[int, int]) -> Frame:
        """Return pieces that are open or have ended since, minus those that were open before."""
        went = WeightedLog(tick, self, "open")
        names = list(self.names[0])
        pieces = self._pieces(tick, left, right, span)
        old = went.between(BEGINNING, END)
        gone = None if old is None else old.selectExpr(*map(quoted, names), "__x", f"{END}L AS {STOP}", WEIGHT)
        tick.describe(self, "what no right event covers")
        changes = revised(tick, self, names, pieces, gone)
        if span[1] < END:
            went.add(changes.where(f"{STOP} >= {END}L").select(*map(quoted, names), "__x", WEIGHT, DUE))
        went.forget(span[1], [*names, "__x"])
        return changes.selectExpr(*map(quoted, names), *derived_columns("__x", STOP, WEIGHT))

    def _pieces(self, tick: Tick, left: Frame, right: Frame | None, span: tuple[int, int]) -> Frame:
        """Return, for each left event that has not ended, the gaps between the right events that cover it."""
        before, bound = span
        identity = self._identity(0)
        alive = netted(left.drop(DUE), identity).where(f"__ls < {bound}L")
        covers = alive.selectExpr("*", "__le AS __rs", "__le AS __re")
        if right is not None:
            others = netted(right.drop(DUE), self._identity(1)).where(f"__rs < {bound}L")
            self._refuse(tick, [alive, others], f"greatest(__ls, __rs) >= {before}L")
            met = self._pairs(tick, alive, others.drop(WEIGHT)).select(*map(quoted, covers.columns))
            covers = covers.unionByName(met)
        pieces = gaps(covers, identity).where(f"__x < {bound}L AND __rs >= {before}L")
        until = f"IF(__rs < {bound}L, __rs, {END}L) AS {STOP}"
        return pieces.selectExpr(*map(quoted, self.names[0]), "__x", until, WEIGHT)

    def _refuse(self, tick: Tick, sides: Sequence[Frame | None], also: str) -> None:
        """Refuse the pairs that satisfy ``also`` and for which the condition fails."""
        left, right = sides
        if self.refuses_pairs and tick.trying and self.on is not None and left is not None and right is not None:
            self._refused(tick, left, right, also)

    def _pairs(self, tick: Tick, left: Frame, right: Frame) -> Frame:
        """Return the left events with the right ones that cover them."""
        if tick.trying and self.on is not None:
            parts = [(to_spark(part), "") for part in conjuncts(self.on)]
            return joined_if(left, right, self.covering, parts, "inner")
        on = self._on_parts if self.on is not None else []
        return left.joined(right, " AND ".join([self.covering, *on]), "inner")

    def _forget(self, kept: Sequence[WeightedLog], bound: int) -> None:
        kept[0].forget(bound, self._identity(0))
        oldest = bound
        if kept[1].segments.rows and bound < END:
            oldest = kept[0].oldest(bound, self._identity(0), "__ls")
        kept[1].forget(oldest, self._identity(1))


@dataclass(frozen=True)
class SpeculativeAntiJoin(AntiJoin):
    """An `AntiJoin` of versions of events."""

    kind: ClassVar[str] = "speculative anti-join"
    needs: ClassVar = (VERSIONS, VERSIONS)  # versions, all up to the last one
    _changed: ClassVar[tuple[str, ...]] = (CHANGED_BY, MET)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the uncovered pieces of left events after each new change."""
        clocks, before, bound = advanced(tick, self, deltas)
        kept = [WeightedLog(tick, self, "left"), WeightedLog(tick, self, "right")]
        old = [self._old(n, log.between(before if n == 0 else BEGINNING, END)) for n, log in enumerate(kept)]
        new: list[Frame | None] = [None, None]
        for n, delta in enumerate(deltas):
            written = [] if delta.rows is None else kept[n].add(self._side(n, delta.rows, self._changed))
            new[n] = kept[n].segments.read(written).drop(DUE) if written else None
        rows = self._revised(tick, old, new)
        tick.remember(self, bound=bound)
        self._forget(kept, bound)
        return Delta(rows, clocks)

    def _old(self, n: int, rows: Frame | None) -> Frame | None:
        """Return the events from before the new changes, as one version."""
        return (
            None
            if rows is None
            else netted(rows.drop(DUE, CHANGED_BY, MET), self._identity(n)).selectExpr("*", *BEFORE)
        )

    def _revised(self, tick: Tick, old: Sequence[Frame | None], new: Sequence[Frame | None]) -> Frame | None:
        left, right = (both(before, now) for before, now in zip(old, new, strict=True))
        self._refuse(tick, flagged(old, new), " OR ".join(FRESH))
        own = self._identity(0)
        met = None if left is None or new[1] is None else self._met(tick, left, new[1])
        touched = [None if rows is None else rows.select(*map(quoted, own), CHANGED_BY, MET) for rows in (new[0], met)]
        changes = both(*touched)
        if left is None or changes is None:
            return None
        versions = versions_of(changes, own)
        identity = [*own, *VERSION]
        alive = as_of(left, versions, own, own)
        covers = alive.selectExpr("*", "__le AS __rs", "__le AS __re")
        if right is not None:
            covering = as_of(self._met(tick, left, right), versions, own, [*own, "__rs", "__re"])
            covers = covers.unionByName(covering.drop(WEIGHT).selectExpr("*", f"CAST(NULL AS BIGINT) AS {WEIGHT}"))
        weight = f"max({WEIGHT}) OVER (PARTITION BY {', '.join(map(quoted, identity))}) AS {WEIGHT}"
        covers = covers.selectExpr(*map(quoted, identity), "__rs", "__re", weight).where(f"{WEIGHT} IS NOT NULL")
        names = [quoted(name) for name in self.names[0]]
        pieces = gaps(covers, identity).selectExpr(*names, *VERSION, "__x", f"__rs AS {STOP}", WEIGHT)
        return differences(pieces, self.names[0]).selectExpr(
            *names, *derived_columns("__x", STOP, WEIGHT, CHANGED_BY, MET)
        )

    def _met(self, tick: Tick, left: Frame, right: Frame) -> Frame:
        """Return the left events that right rows cover, with their times, weights and versions."""
        own = [quoted(name) for name in self._identity(0)]
        met = self._pairs(tick, left.select(*own).distinct(), right)
        return met.select(*own, "__rs", "__re", WEIGHT, CHANGED_BY, MET)


def gaps(covers: Frame, identity: Sequence[str]) -> Frame:
    """Return pieces from ``__x`` to ``__rs``, for each left event; the event's end is its last cover."""
    by = f"PARTITION BY {', '.join(map(quoted, identity))} ORDER BY __rs, __re"
    ends = f"max(__re) OVER ({by} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    return covers.selectExpr("*", f"greatest(__ls, coalesce({ends}, __ls)) AS __x").where("__x < __rs")
