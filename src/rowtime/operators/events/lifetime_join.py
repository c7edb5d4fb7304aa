"""Joins of events: an event for each pair that meets the condition, alive while both are (semantics 9.6).

Weights multiply, so a change of one side is a change of its pairs, and only what is new has
to be joined: new left with all right, new right with the left that was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import pyarrow as pa
from sqlglot import exp

from rowtime.core.columns import BROKEN, CHANGED_BY, DUE, FRESH, LEFT_EVENT, MET, RIGHT_EVENT, ROUTE, STOP, WEIGHT
from rowtime.core.time import END
from rowtime.expr.conditions import columns_in
from rowtime.frames.local import joined
from rowtime.operators.contract import Binary, Column, DataFrame, Delta, Link, Made, Operator, Shape, Tick, UpTo, named
from rowtime.operators.contract import functions as F
from rowtime.operators.contract.state import Route, StateNote
from rowtime.operators.contract.texts import passed
from rowtime.operators.events.alter_lifetime import AlterLifetime
from rowtime.operators.events.emit_tables import in_utc
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.events.failing_events import refuse_events
from rowtime.operators.events.lifetime_pairs import Emitted, LifetimePairs, peeked
from rowtime.operators.joins.join_rows import beside
from rowtime.operators.rows.attempt import judged
from rowtime.operators.rows.collected import collected
from rowtime.operators.rows.conditions import sorted_out
from rowtime.operators.rows.lifetimes import BEGINS, OVERLAPS, WeightedLog, advanced, both, derived, due, made, netted
from rowtime.operators.rows.select import Select
from rowtime.sql.generate import quoted, to_spark

SIDES = ("left", "right")  # what is kept of each


@dataclass(frozen=True)
class OfEvents(Binary):
    """A join of events: its condition ``on`` is over the columns of both sides under new ``names``."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    on: exp.Expr | None

    control: ClassVar = UpTo
    keeps_versions: ClassVar[bool] = True

    def between(self, rows: Callable[[Operator], DataFrame]) -> list[DataFrame]:
        """The same as goes on: the condition is over it."""
        return [self.typed(rows)]

    def _renamed(self, n: int) -> list[tuple[str, str]]:
        return list(zip(self.inputs[n].emits().names, self.names[n], strict=True))

    def _identity(self, n: int) -> list[str]:
        return [*self.names[n], *(LEFT_EVENT, RIGHT_EVENT)[n][:2]]


@dataclass(frozen=True)
class LifetimeJoin(OfEvents):
    """Pairs of ``left`` and ``right`` for which ``on`` holds; ``names`` are what the columns of each are called.

    ``versioned``: each pair comes with the later change of its two.
    """

    versioned: bool = False

    kind: ClassVar[str] = "lifetime join"
    decides: ClassVar[str] = "JOIN"
    writes_final: ClassVar[bool] = True

    def keeps(self) -> tuple[StateNote, ...]:
        """Events of both sides."""
        kept = (WeightedLog.kept(*self._identity(n), *self._changes, name=side) for n, side in enumerate(SIDES))
        return (StateNote("events of both sides", "the bounds of both have passed their end", rows=tuple(kept)),)

    def emits(self) -> Shape:
        """The columns of both."""
        columns = [c for side in self.inputs for c in side.emits().columns]
        named = [name for side in self.names for name in side]
        own = tuple(Column(name, c.type) for name, c in zip(named, columns, strict=True))
        return derived(Shape(own, retracts="any" if any(map(self._retracts, (0, 1))) else "none"))

    def _retracts(self, side: int) -> bool:
        return self.inputs[side].emits().retracts != "none"

    def link(self, n: int) -> Link:
        """The event of that side that was alive in the pair's time."""
        same = named(list(zip(self.names[n], self.inputs[n].emits().names, strict=True)))
        return Link(same, meets=OVERLAPS, narrows="meet")

    def made_from(self, n: int, column: str) -> Made | None:
        """From the column of that name of its side."""
        olds = [old for old, new in self._renamed(n) if new == column]
        return Made(olds) if any(column in side for side in self.names) else super().made_from(n, column)

    def decided_by(self, n: int) -> Iterable[str]:
        """Those of its condition."""
        asked = columns_in([self.on])
        return [old for old, new in self._renamed(n) if new in asked]

    def typed(self, rows: Callable[[Operator], DataFrame]) -> DataFrame:
        """What goes on of each input, under its new names, side by side."""
        return beside(rows, [(one, self._renamed(n)) for n, one in enumerate(self.inputs)])

    def opens_events(self) -> bool:
        """A pair ends when one of its events does."""
        return all(one.opens_events() for one in self.inputs)

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """The same: each pair comes with the later change."""
        return replace(self, left=below[0], right=below[1], versioned=True)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Join what is new, keep it."""
        clocks, before, bound = advanced(tick, self, deltas)
        kept = [WeightedLog(tick, self, side) for side in SIDES]
        here = LifetimePairs(self, (tick.types(self.left), tick.types(self.right)))
        if self._fit(here, kept, deltas, before):
            found = self._on_the_driver(tick, here, deltas, before, bound)
            made = Delta(found.rows, clocks, found.count, peek=found.peek, final=found.final)
        else:
            made = Delta(self._in_spark(tick, kept, deltas, before, bound), clocks)
        tick.remember(self, bound=bound)
        for n, one in enumerate(kept):
            one.forget(bound, self._identity(n))
        return made

    def _fit(self, here: LifetimePairs, kept: Sequence[WeightedLog], deltas: Sequence[Delta], before: int) -> bool:
        """True if the driver finds the pairs: where nothing is taken back and it takes all rows."""
        counts = [0 if delta.rows is None else delta.count for delta in deltas]
        if self.versioned or None in counts or any(map(self._retracts, (0, 1))):
            return False
        return here.fit([one.count(before, END) + (n or 0) for one, n in zip(kept, counts, strict=True)])

    def _on_the_driver(
        self, tick: Tick, here: LifetimePairs, deltas: Sequence[Delta], before: int, bound: int
    ) -> Emitted:
        """The pairs; new rows that live on are kept."""
        sides = []
        for side, (n, delta) in zip(SIDES, enumerate(deltas), strict=True):
            segments, new = tick.segments(self, side), self._collected(tick, n, delta)
            kept = here.known(segments.tables(segments.overlapping(before, END)), n, before)
            if new is not None:
                segments.add(here.kept(tick, side, new, bound))
            sides.append((kept, new))
        return here.emitted(tick, here.found(*sides), bound)

    def _collected(self, tick: Tick, side: int, delta: Delta) -> pa.Table | None:
        """The new rows of a side, as their source reads them or from Spark."""
        if delta.rows is None:
            return None
        times, names = (LEFT_EVENT, RIGHT_EVENT)[side], self.names[side]
        read = peeked(delta.peek, dict(zip(names, self.inputs[side].emits().names, strict=True)), times)
        if read is not None:
            return read
        tick.describe(self, "new events")
        return in_utc(collected(side_of(self.inputs[side], names, times, delta.rows)))

    def _in_spark(
        self, tick: Tick, kept: Sequence[WeightedLog], deltas: Sequence[Delta], before: int, bound: int
    ) -> DataFrame | None:
        """The pairs, where there are too many rows for the driver, or of changes."""
        # What ends up to the bound meets nothing new.
        old = [self._netted(n, one.between(before, END)) for n, one in enumerate(kept)]
        few = sum(one.count(before, END) for one in kept) <= sum(delta.count or 0 for delta in deltas)
        return self._pairs(tick, old, self._new(tick, deltas, bound), at_once=few)

    @property
    def _changes(self) -> tuple[str, ...]:
        return (CHANGED_BY, MET) if self.versioned else ()

    def _netted(self, side: int, rows: DataFrame | None) -> DataFrame | None:
        """Without what was taken back, which would meet all that its open end reaches over."""
        if rows is None or self.versioned or not self._retracts(side):
            return rows
        return netted(rows, [*self._identity(side), DUE])

    def _new(self, tick: Tick, deltas: Sequence[Delta], bound: int) -> list[DataFrame | None]:
        """The new rows of both sides; those that live on are kept."""
        rows = [self._side(n, delta) for n, delta in enumerate(deltas)]
        cheap = {n: one for n, one in enumerate(rows) if one is not None and self._is_cheap(n)}
        if cheap:
            counts = [deltas[n].count for n in cheap]
            self._keep(tick, cheap, None if None in counts else sum(n or 0 for n in counts), bound)
        for n, one in enumerate(rows):
            if one is not None and n not in cheap:
                rows[n] = self._written(tick, n, one, deltas[n].count, bound)
        return rows

    def _side(self, side: int, delta: Delta) -> DataFrame | None:
        if delta.rows is None:
            return None
        rows = side_of(self.inputs[side], self.names[side], (LEFT_EVENT, RIGHT_EVENT)[side], delta.rows, self._changes)
        return self._netted(side, rows)

    def _is_cheap(self, side: int) -> bool:
        """True if reading the rows of a tick twice costs less than to write them; what may fail is computed of all."""
        source = self.inputs[side]
        if source.may_fail_later():
            return False
        while isinstance(source, Select | AlterLifetime):
            source = source.input
        return isinstance(source, EventStream) and not self._retracts(side)

    def _keep(self, tick: Tick, rows: Mapping[int, DataFrame], count: int | None, bound: int) -> None:
        """Keep the rows that live on, of both sides in one job."""
        parts = [
            one.where(f"{DUE} > {passed(bound, DUE)}").selectExpr("*", f"{n} AS {ROUTE}") for n, one in rows.items()
        ]
        routes = {SIDES[n]: Route(n, {name: name for name in one.columns}, DUE) for n, one in rows.items()}
        together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
        tick.describe(self, "keep events")
        for side, written in tick.write(self, together, routes, count).items():
            tick.segments(self, side).add(written)

    def _written(self, tick: Tick, side: int, rows: DataFrame, count: int | None, bound: int) -> DataFrame | None:
        """The new rows of a side from files, of which those that live on are kept."""
        columns, what = {name: name for name in rows.columns}, SIDES[side]
        over = f"IF({DUE} > {passed(bound, DUE)}, 0, 1) AS {ROUTE}"
        tick.describe(self, "keep events")
        routes = {what: Route(0, columns, DUE), "merged": Route(1, columns, DUE)}
        written = tick.write(self, rows.selectExpr("*", over), routes, count)
        tick.segments(self, what).add(written[what])
        read = {name: tick.segments(self, name).read(segments) for name, segments in written.items() if segments}
        return both(read.get(what), read.get("merged"))

    def _pairs(
        self, tick: Tick, old: Sequence[DataFrame | None], new: Sequence[DataFrame | None], *, at_once: bool
    ) -> DataFrame | None:
        """The pairs of which a row is new: in two joins or, ``at_once``, in one that leaves out those of old rows."""
        everything = [both(one, other) for one, other in zip(old, new, strict=True)]
        if at_once and not any(rows is None for rows in (*old, *new)):
            left, right = (
                both(_flagged(old[n], FRESH[n], "false"), _flagged(new[n], FRESH[n], "true")) for n in (0, 1)
            )
            return self._joined(tick, left, right, " OR ".join(FRESH))
        sides = [(new[0], everything[1]), (old[0], new[1])]
        return reduce(both, (self._joined(tick, one, other) for one, other in sides), None)

    def _joined(
        self, tick: Tick, left: DataFrame | None, right: DataFrame | None, also: str = "true"
    ) -> DataFrame | None:
        """The pairs of two sides for which the condition holds, and what is ``also`` asked of them."""
        if left is None or right is None:
            return None
        left, right = _own(left, LEFT_EVENT[2:]), _own(right, RIGHT_EVENT[2:])
        together = f"__ls < __re AND __rs < __le AND ({also})"
        names = [quoted(name) for side in self.names for name in side]
        change = ["greatest(__lq, __rq)", "greatest(__lc, __rc)"] if self.versioned else []
        times = made("greatest(__ls, __rs)", "least(__le, __re)", "__ld * __rd", *change)
        if tick.trying:
            types = [kind for node in self.inputs for kind in tick.types(node)]
            equal, others = sorted_out(self.on, dict(zip((n for side in self.names for n in side), types, strict=True)))
            rows = left.join(right, F.expr(" AND ".join([f"({together})", *equal])), "inner")
            found = judged(rows, others, {}, [], rows.columns)
            return refuse_events(tick, self, found.selectExpr(*names, *times, BROKEN))
        condition = f"({to_spark(self.on)}) AND {together}" if self.on is not None else together
        return joined(left, right, condition, "inner").selectExpr(*names, *times)


def side_of(
    source: Operator, names: Sequence[str], times: Sequence[str], rows: DataFrame, more: Sequence[str] = ()
) -> DataFrame:
    """The rows of one side under the names that they have in the join; ``times``: those of start and end."""
    named = [f"{quoted(name)} AS {quoted(to)}" for name, to in zip(source.emits().names, names, strict=True)]
    return rows.selectExpr(*named, f"{BEGINS} AS {times[0]}", f"{STOP} AS {times[1]}", WEIGHT, *more, due(STOP))


def _own(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows of one side, whose weight and change have names that the other side does not have."""
    named = dict(zip((WEIGHT, CHANGED_BY, MET), names, strict=True))
    return rows.selectExpr(
        *(f"{quoted(name)} AS {quoted(named.get(name, name))}" for name in rows.columns if name != DUE)
    )


def _flagged(rows: DataFrame | None, name: str, value: str) -> DataFrame | None:
    return None if rows is None else rows.selectExpr("*", f"{value} AS {name}")
