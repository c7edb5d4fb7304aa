"""Joins of events: an event for each pair that meets the condition, alive while both are (semantics 9.6).

Weights multiply, so a change of one side is a change of its pairs, and only new rows have to be joined: new left rows
with all right rows, new right rows with the old left rows.

If events may be retracted, a row counts as new when the bound has passed its start. From then on no pair with it can
vanish, so it does not depend on the ticks which pairs exist, and which of them fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from rowtime.core.columns import (
    BROKEN,
    CHANGED_BY,
    DUE,
    FRESH,
    LEFT_EVENT,
    MET,
    RIGHT_EVENT,
    ROUTE,
    ROWTIME,
    START,
    STOP,
    WEIGHT,
)
from rowtime.core.time import BEGINNING, END
from rowtime.expr.conditions import columns_in, conjuncts
from rowtime.frames.frame import Frame
from rowtime.kernels.overlaps import Lives, numbered, overlapping
from rowtime.operators.contract import (
    Binary,
    Column,
    Delta,
    Derivation,
    Link,
    Operator,
    Shape,
    Tick,
    UpTo,
    named,
    quoted,
)
from rowtime.operators.contract.state import Route, Segment, StateNote
from rowtime.operators.contract.texts import passed
from rowtime.operators.events.alter_lifetime import AlterLifetime
from rowtime.operators.events.emit_tables import UTC, in_utc
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.events.failing_events import refuse_events
from rowtime.operators.joins.join_rows import beside
from rowtime.operators.over.over_rows import gathered
from rowtime.operators.rows.attempt import NamedSql, judged
from rowtime.operators.rows.conditions import met, sorted_out, whole
from rowtime.operators.rows.lifetimes import (
    BEGINS,
    OVERLAPS,
    WeightedLog,
    advanced,
    both,
    derived,
    derived_columns,
    due,
    least_of,
    netted,
)
from rowtime.operators.rows.select import Select

SIDES = ("left", "right")  # names of the state of each side
STARTS = (LEFT_EVENT[0], RIGHT_EVENT[0])
COVERING = "__ls < __re AND __rs < __le"
"""The condition that two events are alive at one time."""


@dataclass(frozen=True)
class MatchedUpTo(UpTo):
    """``matched`` (µs UTC): rows that begin before it have been joined. It never goes back.

    ``None`` before the first tick, and in checkpoints of 0.2.0, where all kept rows have been joined.
    """

    matched: int | None = None


@dataclass(frozen=True)
class OfEvents(Binary):
    """A join of events: its condition ``on`` is over the columns of both sides under new ``names``."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    on: exp.Expr | None

    control: ClassVar = UpTo
    keeps_versions: ClassVar[bool] = True

    def between(self, rows: Callable[[Operator], Frame]) -> list[Frame]:
        """Return the joined columns: the condition is over them."""
        return [self.typed(rows)]

    @cached_property
    def _on_parts(self) -> list[str]:
        """Return the parts of its condition, as Spark SQL."""
        columns = ({c.name: c for c in child.emits().columns} for child in self.inputs)
        kinds = {new: of[old].known.kind for n, of in enumerate(columns) for old, new in self._renamed(n)}
        return met(self.on, self.names[0], kinds)

    def _renamed(self, n: int) -> list[tuple[str, str]]:
        return list(zip(self.inputs[n].emits().names, self.names[n], strict=True))

    def _identity(self, n: int) -> list[str]:
        return [*self.names[n], *(LEFT_EVENT, RIGHT_EVENT)[n][:2]]

    @property
    def _pair_names(self) -> list[str]:
        return [quoted(name) for side in self.names for name in side]

    @staticmethod
    def _times(left: Frame) -> list[str]:
        """Return the hidden columns of pairs; of two changes, the pair comes with the later one."""
        change = ["greatest(__lq, __rq)", "greatest(__lc, __rc)"] if LEFT_EVENT[3] in left.columns else []
        return derived_columns("greatest(__ls, __rs)", "least(__le, __re)", "__ld * __rd", *change)

    def _refused(self, tick: Tick, left: Frame, right: Frame, also: str) -> Frame:
        """Return the pairs of two sides that satisfy the condition and ``also``; refuse those for which it fails."""
        left, right = _own(left, LEFT_EVENT[2:]), _own(right, RIGHT_EVENT[2:])
        types = [kind for node in self.inputs for kind in tick.types(node)]
        kinds = dict(zip((name for side in self.names for name in side), types, strict=True))
        equal, others = sorted_out(self.on, self.names[0], kinds)
        rows = left.joined(right, " AND ".join([f"({COVERING} AND ({also}))", *equal]), "inner")
        attempts = judged(rows, [others], {}, [], rows.columns)
        return refuse_events(tick, self, attempts.selectExpr(*self._pair_names, *self._times(left), BROKEN))


@dataclass(frozen=True)
class LifetimeJoin(OfEvents):
    """Pairs of ``left`` and ``right`` for which ``on`` holds; ``names`` are the names of each side's columns.

    ``versioned``: each pair comes with the later change of its two events.
    """

    versioned: bool = False

    control: ClassVar = MatchedUpTo
    kind: ClassVar[str] = "lifetime join"
    decides: ClassVar[str] = "JOIN"
    writes_final: ClassVar[bool] = True

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events of both sides."""
        kept = (WeightedLog.kept(*self._identity(n), *self._changes, name=side) for n, side in enumerate(SIDES))
        return (StateNote("events of both sides", "the bounds of both have passed their end", rows=tuple(kept)),)

    def emits(self) -> Shape:
        """Return the columns of both."""
        columns = [c for side in self.inputs for c in side.emits().columns]
        named = [name for side in self.names for name in side]
        own = tuple(Column(name, c.type) for name, c in zip(named, columns, strict=True))
        return derived(Shape(own, retracts="any" if any(map(self._retracts, (0, 1))) else "none"))

    def _retracts(self, side: int) -> bool:
        return self.inputs[side].emits().retracts != "none"

    @property
    def _waits(self) -> bool:
        """Return True if a pair may vanish until the bound has passed its start."""
        return not self.versioned and any(map(self._retracts, (0, 1)))

    def link(self, n: int) -> Link:
        """Return the event of that side that was alive at the pair's time."""
        same = named(list(zip(self.names[n], self.inputs[n].emits().names, strict=True)))
        return Link(same, meets=OVERLAPS, narrows="meet")

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the column of that name of its side."""
        olds = [old for old, new in self._renamed(n) if new == column]
        return Derivation(olds) if any(column in side for side in self.names) else super().made_from(n, column)

    def decided_by(self, n: int) -> Iterable[str]:
        """Return the columns of its condition."""
        columns = columns_in([self.on])
        return [old for old, new in self._renamed(n) if new in columns]

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return the columns of each input, under their new names, side by side."""
        return beside(rows, [(child, self._renamed(n)) for n, child in enumerate(self.inputs)])

    def opens_events(self) -> bool:
        """Return True if both do: a pair ends when one of its events does."""
        return all(child.opens_events() for child in self.inputs)

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the same operator: each pair comes with the later change."""
        return replace(self, left=below[0], right=below[1], versioned=True)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Join the new rows, and keep them."""
        clocks, before, bound = advanced(tick, self, deltas)
        kept = [WeightedLog(tick, self, side) for side in SIDES]
        pairs = LifetimePairs(self, (tick.types(self.left), tick.types(self.right)))
        if pairs.typed and not (self.versioned or self._waits):
            emitted = self._emitted(tick, pairs, deltas, before, bound)
            result = Delta(emitted.rows, clocks, final=emitted.final)
        else:
            result = Delta(self._joins(tick, kept, deltas, before, bound), clocks)
        tick.remember(self, bound=bound)
        for n, log in enumerate(kept):
            log.forget(bound, self._identity(n))
        return result

    def _emitted(self, tick: Tick, pairs: LifetimePairs, deltas: Sequence[Delta], before: int, bound: int) -> Emitted:
        """Return the pairs; keep new rows that are still alive."""
        sides = []
        for side, (n, delta) in zip(SIDES, enumerate(deltas), strict=True):
            segments, new = tick.segments(self, side), self._collected(tick, n, delta)
            kept = pairs.kept_rows(segments.tables(segments.overlapping(before, END)), n, before)
            if new is not None:
                segments.add(pairs.kept(tick, side, new, bound))
            sides.append((kept, new))
        return pairs.emitted(tick, pairs.pairs(*sides), bound)

    def _collected(self, tick: Tick, side: int, delta: Delta) -> pa.Table | None:
        """Return the new rows of a side, from their source's reader if it has them."""
        if delta.rows is None:
            return None
        times, names = (LEFT_EVENT, RIGHT_EVENT)[side], self.names[side]
        tick.describe(self, "new events")
        return in_utc(side_of(self.inputs[side], names, times, delta.rows).toArrow())

    def _joins(
        self, tick: Tick, kept: Sequence[WeightedLog], deltas: Sequence[Delta], before: int, bound: int
    ) -> Frame | None:
        """Return the pairs, by joins of frames: with changes among them, or of rows whose types are not known."""
        # Events that end up to the bound match nothing new.
        old = [log.between(before, END) for log in kept]
        new_rows = sum(0 if delta.rows is None else delta.rows.sized for delta in deltas)
        few = sum(log.count(before, END) for log in kept) <= new_rows
        if not self._waits:
            old = [self._netted(n, rows) for n, rows in enumerate(old)]
            return self._pairs(tick, old, self._new(tick, deltas, bound), at_once=few)
        matched = self._matched(tick, old)
        now = max(matched, bound)
        tick.remember(self, matched=now)
        new = self._new(tick, deltas, bound)
        if now == matched and new == [None, None]:
            return None
        before_it, of_it = [], []
        for n, (kept_rows, rows) in enumerate(zip(old, new, strict=True)):
            before_it.append(self._begun(n, kept_rows, f"< {passed(matched, STARTS[n])}"))
            waiting = None if kept_rows is None else kept_rows.where(f"{STARTS[n]} >= {passed(matched, STARTS[n])}")
            of_it.append(self._begun(n, both(waiting, rows), f"< {passed(now, STARTS[n])}"))
        return self._pairs(tick, before_it, of_it, at_once=few)

    def _begun(self, side: int, rows: Frame | None, when: str) -> Frame | None:
        """Return the events of a side that begin at some time, without retracted ones."""
        return None if rows is None else self._netted(side, rows.where(f"{STARTS[side]} {when}"))

    def _matched(self, tick: Tick, old: Sequence[Frame | None]) -> int:
        """Return the time before which rows begin that have been joined."""
        matched: int | None = tick.control(self).matched
        if matched is not None:
            return matched
        kept = [(rows, start) for rows, start in zip(old, STARTS, strict=True) if rows is not None]
        last = [least_of(rows.selectExpr(f"-{start} AS {start}"), start) for rows, start in kept]
        return max((1 - start for start in last if start is not None), default=BEGINNING)

    @property
    def _changes(self) -> tuple[str, ...]:
        return (CHANGED_BY, MET) if self.versioned else ()

    def _netted(self, side: int, rows: Frame | None) -> Frame | None:
        """Return rows without retracted ones, whose open ends would match everything later."""
        if rows is None or self.versioned or not self._retracts(side):
            return rows
        return netted(rows, [*self._identity(side), DUE])

    def _new(self, tick: Tick, deltas: Sequence[Delta], bound: int) -> list[Frame | None]:
        """Return the new rows of both sides; keep those that are still alive."""
        rows = [self._side(n, delta) for n, delta in enumerate(deltas)]
        cheap = {n: side for n, side in enumerate(rows) if side is not None and self._is_cheap(n)}
        if cheap:
            self._keep(tick, cheap, bound)
        for n, side in enumerate(rows):
            if side is not None and n not in cheap:
                rows[n] = self._written(tick, n, side, bound)
        return rows

    def _side(self, side: int, delta: Delta) -> Frame | None:
        if delta.rows is None:
            return None
        rows = side_of(self.inputs[side], self.names[side], (LEFT_EVENT, RIGHT_EVENT)[side], delta.rows, self._changes)
        return self._netted(side, rows)

    def _is_cheap(self, side: int) -> bool:
        """Return True if reading a tick's rows twice costs less than writing them."""
        source = self.inputs[side]
        while isinstance(source, Select | AlterLifetime):
            source = source.input
        return isinstance(source, EventStream) and not self._retracts(side)

    def _keep(self, tick: Tick, rows: Mapping[int, Frame], bound: int) -> None:
        """Keep the rows of both sides that are still alive."""
        parts = [
            one.where(f"{DUE} > {passed(bound, DUE)}").selectExpr("*", f"{n} AS {ROUTE}") for n, one in rows.items()
        ]
        routes = {SIDES[n]: Route(n, {name: name for name in one.columns}, DUE) for n, one in rows.items()}
        together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
        tick.describe(self, "keep events")
        for side, written in tick.write(self, together, routes).items():
            tick.segments(self, side).add(written)

    def _written(self, tick: Tick, side: int, rows: Frame, bound: int) -> Frame | None:
        """Return the new rows of a side from files; keep those that are still alive."""
        columns, what = {name: name for name in rows.columns}, SIDES[side]
        over = f"IF({DUE} > {passed(bound, DUE)}, 0, 1) AS {ROUTE}"
        tick.describe(self, "keep events")
        routes = {what: Route(0, columns, DUE), "merged": Route(1, columns, DUE)}
        written = tick.write(self, rows.selectExpr("*", over), routes)
        tick.segments(self, what).add(written[what])
        read = {name: tick.segments(self, name).read(segments) for name, segments in written.items() if segments}
        return both(read.get(what), read.get("merged"))

    def _pairs(
        self, tick: Tick, old: Sequence[Frame | None], new: Sequence[Frame | None], *, at_once: bool
    ) -> Frame | None:
        """Return the pairs with a new row: in two joins or, ``at_once``, in one that excludes pairs of old rows.

        In one if some may fail: an end that removes a pair of an old row counts with that pair.
        """
        if tick.trying or (at_once and not any(rows is None for rows in (*old, *new))):
            left, right = flagged(old, new)
            return self._joined(tick, left, right, " OR ".join(FRESH))
        everything = [both(one, other) for one, other in zip(old, new, strict=True)]
        sides = [(new[0], everything[1]), (old[0], new[1])]
        return reduce(both, (self._joined(tick, one, other) for one, other in sides), None)

    def _joined(self, tick: Tick, left: Frame | None, right: Frame | None, also: str = "true") -> Frame | None:
        """Return the pairs of two sides that satisfy the condition, and ``also``."""
        if left is None or right is None:
            return None
        if tick.trying:
            return self._refused(tick, left, right, also)
        left, right = _own(left, LEFT_EVENT[2:]), _own(right, RIGHT_EVENT[2:])
        met_by = " AND ".join([*self._on_parts, COVERING, f"({also})"])
        return left.joined(right, met_by, "inner").selectExpr(*self._pair_names, *self._times(left))


def side_of(
    source: Operator, names: Sequence[str], times: Sequence[str], rows: Frame, more: Sequence[str] = ()
) -> Frame:
    """Return the rows of one side with their names in the join; ``times``: those of start and end."""
    named = [f"{quoted(name)} AS {quoted(to)}" for name, to in zip(source.emits().names, names, strict=True)]
    return rows.selectExpr(*named, f"{BEGINS} AS {times[0]}", f"{STOP} AS {times[1]}", WEIGHT, *more, due(STOP))


def _own(rows: Frame, names: Sequence[str]) -> Frame:
    """Return the rows of one side with names of weight and change that differ from the other side's."""
    named = dict(zip((WEIGHT, CHANGED_BY, MET), names, strict=True))
    return rows.selectExpr(
        *(f"{quoted(name)} AS {quoted(named.get(name, name))}" for name in rows.columns if name != DUE)
    )


def flagged(old: Sequence[Frame | None], new: Sequence[Frame | None]) -> list[Frame | None]:
    """Return the rows of each side, old and new ones, with a flag (`FRESH`) that a row is new."""
    sides = zip(FRESH, old, new, strict=True)
    return [both(_flagged(one, name, "false"), _flagged(other, name, "true")) for name, one, other in sides]


def _flagged(rows: Frame | None, name: str, value: str) -> Frame | None:
    return None if rows is None else rows.selectExpr("*", f"{value} AS {name}")


# The pairs of a join of events: searches over Arrow columns.
#
# A query would compare every two events of a key. Here pairs are found by the times at which events begin
# (`kernels.overlaps`), and final pairs go directly to the files of the sink.

PAIRS = 1_000_000  # at a time
_KEYS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIMESTAMP", "BOOLEAN", "STRING", "DECIMAL")


@dataclass(frozen=True)
class Emitted:
    """The events of a join, the final ones in files, and the others."""

    rows: Frame | None
    final: tuple[Segment, ...]


@dataclass(frozen=True)
class LifetimePairs:
    """The join ``node`` in a tick; ``times`` of each side: the names of start, end and weight in its rows."""

    node: LifetimeJoin
    types: tuple[Sequence[str], Sequence[str]]

    @cached_property
    def _split(self) -> tuple[list[tuple[str, str]], list[NamedSql]]:
        """Return the columns that must be equal, left and right, and the rest of the condition, as it is tested."""
        places = [dict(zip(*side, strict=True)) for side in zip(self.node.names, self.types, strict=True)]
        equal, others = [], []
        for part in conjuncts(self.node.on):
            sides = (part.this.name, part.expression.name) if _equates(part) else ("", "")
            left, right = sides if sides[0] in places[0] else sides[::-1]
            kind = places[0].get(left, "").upper()
            plain = kind.startswith(_KEYS) and "COLLATE" not in kind  # can be compared by its bytes
            if plain and kind == places[1].get(right, "").upper():
                equal.append((left, right))
            else:
                others.append(part)
        types = {name: kind for place in places for name, kind in place.items()}
        same, rest = sorted_out(exp.and_(*others) if others else None, self.node.names[0], types)
        return equal, [*((text, text) for text in same), *rest]

    @property
    def typed(self) -> bool:
        """Return True if the types of all columns are known."""
        return all(kind for types in self.types for kind in types)

    def kept_rows(self, tables: Sequence[pa.Table], side: int, before: int) -> pa.Table | None:
        """Return the kept rows of a side that a new row may match."""
        if not tables:
            return None
        names = [*self.node.names[side], *(f"__{'lr'[side]}{of}" for of in "se"), WEIGHT, DUE]
        rows = pa.concat_tables(in_utc(table.select(names)) for table in tables)
        return rows.filter(pc.greater(rows[DUE], before))

    def pairs(
        self, left: tuple[pa.Table | None, pa.Table | None], right: tuple[pa.Table | None, pa.Table | None]
    ) -> Iterator[pa.Table]:
        """Yield the pairs with a new row, from kept and new rows: the columns of both, `START`, `STOP` and `WEIGHT`."""
        present = [[table for table in side if table is not None] for side in (left, right)]
        if not all(present):
            return
        everything = [pa.concat_tables(side) for side in present]
        equal, _ = self._split
        numbers = [np.zeros(side.num_rows, np.int64) for side in everything]
        if equal:
            ours, theirs = ([everything[n][pair[n]] for pair in equal] for n in (0, 1))
            numbers = [*numbered(ours, theirs)]
        lives = [Lives(numbers[n], *(_numbers(everything[n], f"__{'lr'[n]}{of}") for of in "se")) for n in (0, 1)]
        # The new rows come after the kept ones.
        first = [0 if kept is None else kept.num_rows for kept, _ in (left, right)]
        fresh = [Lives(*(of[at:] for of in side)) for side, at in zip(lives, first, strict=True)]
        before = Lives(*(of[: first[0]] for of in lives[0]))
        for rows, others in overlapping(fresh[0], lives[1], PAIRS):
            yield self._pairs(everything, rows + first[0], others)
        for rows, others in overlapping(before, fresh[1], PAIRS):
            yield self._pairs(everything, rows, others + first[1])

    def _pairs(self, sides: Sequence[pa.Table], rows: np.ndarray, others: np.ndarray) -> pa.Table:
        left, right = (
            side.select([*names, f"__{letter}s", f"__{letter}e", WEIGHT]).take(pa.array(at))
            for side, names, letter, at in zip(sides, self.node.names, "lr", (rows, others), strict=True)
        )
        columns = {
            name: side[name] for side, names in zip((left, right), self.node.names, strict=True) for name in names
        }
        return pa.table(
            columns
            | {
                START: pc.max_element_wise(left["__ls"], right["__rs"]),
                STOP: pc.min_element_wise(left["__le"], right["__re"]),
                WEIGHT: pc.multiply(left[WEIGHT], right[WEIGHT]),
            }
        )

    def emitted(self, tick: Tick, pairs: Iterator[pa.Table], bound: int) -> Emitted:
        """Return pairs as events; final ones in files, if a sink takes these over."""
        adopted, (_, others) = tick.adopted_as(self.node), self._split
        final: list[Segment] = []
        tables = [*gathered(self._lasting(tick, pairs, bound, adopted if not others else None, final), PAIRS)]
        if not tables:
            return Emitted(None, tuple(final))
        names = [quoted(name) for side in self.node.names for name in side]
        frames = (
            tick.frame(self.node, table).selectExpr(*names, *derived_columns(START, STOP, WEIGHT)) for table in tables
        )
        rows = reduce(lambda one, other: one.unionByName(other), frames)
        if others and tick.trying:
            rows = refuse_events(tick, self.node, judged(rows, [others], {}, [], rows.columns))
        if others and not tick.trying:
            rows = rows.where(whole(" AND ".join(f"({text})" for text, _ in others)))
        return Emitted(rows, tuple(final))

    def _lasting(
        self, tick: Tick, pairs: Iterator[pa.Table], bound: int, adopted: Mapping[str, str] | None, final: list[Segment]
    ) -> Iterator[pa.Table]:
        """Yield pairs without final ones, which go into files if a sink has ``adopted`` them."""
        for table in pairs:
            over = pc.and_(pc.less_equal(table[STOP], bound), pc.less(table[STOP], END))
            if adopted is not None:
                final += self._to_files(tick, table.filter(over), adopted)
            yield table if adopted is None else table.filter(pc.invert(over))

    def _to_files(self, tick: Tick, table: pa.Table, adopted: Mapping[str, str]) -> Sequence[Segment]:
        if not table.num_rows:
            return []
        table = table.take(pa.array(np.repeat(np.arange(table.num_rows), np.asarray(table[WEIGHT]))))
        table = table.append_column(ROWTIME, table[START].cast(pa.timestamp("us")).cast(UTC))
        table = table.append_column("__ended", table[STOP].cast(pa.timestamp("us")).cast(UTC))
        columns = {name: {STOP: "__ended"}.get(of, of) for name, of in adopted.items()}
        return tick.write(self.node, table, {"complete": Route(0, columns, STOP)})["complete"]

    def kept(self, tick: Tick, side: str, table: pa.Table, bound: int) -> Sequence[Segment]:
        """Keep the rows that are still alive."""
        live = table.filter(pc.greater(table[DUE], bound))
        if not live.num_rows:
            return []
        return tick.write(self.node, live, {side: Route(0, {c: c for c in live.column_names}, DUE)})[side]


def _equates(part: exp.Expr) -> bool:
    return isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table[name].combine_chunks())
