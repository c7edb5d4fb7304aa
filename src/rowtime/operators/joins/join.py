"""The join of two streams whose rows have a limited distance in time: windowed and interval joins.

Semantics 5. With d = right rowtime - left rowtime, a pair matches if and only if ``low`` <= d <= ``high`` and the
condition holds; windows of x on the left and y on the right are the range [-y, x]. Its rowtime T is the later one. A
row of an outer side without a match is emitted once, ``stamp`` after its rowtime, when all rows that could match it are
known.

Rows of both sides are kept from tick to tick while they can match a later row. If a row is dropped before the rows that
it matches go out, or are known to have no match, these are recorded. When the bound goes from b to c, the pairs with
b <= T < c are computed: those of a left row in that time, and those of a right row in it with an earlier left row.
Emitted pairs are final, and the same however the input is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

from sqlglot import exp

from rowtime.core.clock import Clocks, frontier, least
from rowtime.core.columns import ARRIVED, BROKEN, DUE, PLACES, POSITION, ROWTIME, WRITER
from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING, END, MAX_MICROS, MIN_MICROS, shift
from rowtime.frames.frame import Frame
from rowtime.operators.contract import (
    ByKeys,
    Column,
    Delta,
    Distribution,
    Gathered,
    Link,
    Operator,
    Shape,
    Tick,
    UpTo,
    passed,
    quoted,
)
from rowtime.operators.contract.requirement import PLACED
from rowtime.operators.contract.state import Kept, StateNote
from rowtime.operators.joins.join_rows import SideRows, between, divided, span
from rowtime.operators.joins.of_rows import OfRows, Side
from rowtime.operators.rows.attempt import judged
from rowtime.operators.rows.conditions import joined_if, sorted_out
from rowtime.operators.rows.lifetimes import instant
from rowtime.sql.generate import literal

_LATER = f"greatest({', '.join(f'unix_micros({side[0]})' for side in PLACES)})"


@dataclass(frozen=True)
class Joined(UpTo):
    """``edge``: which pairs at ``bound`` itself have been emitted (`Edge.entry`); ``None`` before the first tick.

    ``met`` (µs UTC), by side: which rows of the other side match its rows up to this time has been recorded.
    """

    edge: Sequence[Any] | None = None
    met: Sequence[int] = (BEGINNING, BEGINNING)


@dataclass(frozen=True)
class Edge:
    """How far pairs have been emitted: all below ``at`` (µs), and some at it.

    Those at it are the pairs of rows of ``side`` that came up to ``tick`` and belong to writers up to ``writer``; for
    the right side, only with the left row whose place is ``first``.
    """

    at: int
    side: int | None = None
    writer: str = ""
    tick: int = 0
    first: tuple[int, str, int] | None = None

    @classmethod
    def of(cls, control: Joined) -> Edge:
        """Return the edge after the last tick."""
        side, writer, tick, first = control.edge or (None, "", 0, None)
        return cls(control.bound, side, writer, tick, first and tuple(first))

    @property
    def entry(self) -> list[Any]:
        """Return the edge for the journal, which has the bound separately."""
        return [self.side, self.writer, self.tick, self.first and list(self.first)]

    @property
    def frontier(self) -> tuple[int, int | None, str]:
        """Return what moves it, besides new rows."""
        return (self.at, self.side, self.writer)

    @property
    def covers(self) -> str:
        """Return the pairs at the bound that have been emitted, as Spark SQL."""
        return "false" if self.side is None else f"{self._here} AND {self._inside(self.side)}"

    @property
    def allows(self) -> str:
        """Return the pairs at the bound that may be emitted."""
        return "true" if self.side is None else f"NOT ({self._here}) OR {self._inside(self.side)}"

    @property
    def _here(self) -> str:
        return f"{_LATER} = {passed(self.at, _LATER)}"

    def _inside(self, side: int) -> str:
        time, writer, _ = PLACES[side]
        micros_text = f"unix_micros({time})"
        tests = [
            f"({micros_text} < {passed(self.at, micros_text)} OR {writer} <= {literal(self.writer)})",
            f"{ARRIVED[side]} <= {passed(self.tick, ARRIVED[side])}",
        ]
        if self.first is not None:
            time, writer, position = (f"unix_micros({PLACES[0][0]})", *PLACES[0][1:])
            at, who, place = self.first
            tests += [
                f"{time} = {passed(at, time)}",
                f"{position} = {passed(place, position)}",
                f"{writer} = {literal(who)}",
            ]
        return f"({' AND '.join(tests)})"


EVER = MAX_MICROS - MIN_MICROS + 1
"""µs: more than the distance of any two rowtimes, if nothing limits a join (WITH UNBOUNDED STATE)."""


@dataclass(frozen=True)
class Join(OfRows):
    """``on`` is over the names of both sides; ``low`` and ``high`` in µs.

    ``alone``: only rows of the left are emitted, when all rows that could match are known: those with a match
    (``left_semi``), or those without (``left_anti``).
    """

    name: str
    inputs: tuple[Operator, Operator]
    sides: tuple[Side, Side]
    low: Micros
    high: Micros
    on: exp.Expr | None = None
    alone: str = ""

    control: ClassVar = Joined
    kind: ClassVar[str] = "join"
    needs: ClassVar = (PLACED, PLACED)  # they order the pairs of one rowtime
    merges_writers: ClassVar[bool] = True

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the rows of each side that a later row can match."""
        notes = []
        for n, (node, keep) in enumerate(zip(self.inputs, self._kept_for, strict=True)):
            until = f"the bound is {span(keep)} past their rowtime" if keep else "the bound is past their rowtime"
            ends = ("the stream ends", "nothing") if keep >= EVER else (until, "time")
            matched = (self._matched(n),) if self._records(n) else ()
            notes.append(StateNote(f"rows of {node.name}", *ends, rows=(self._side(n), *matched)))
        return tuple(notes)

    def emits(self) -> Shape:
        """Return both sides' columns and rowtimes; ordered by T, the left row, the right row."""
        places = tuple(name for side in PLACES for name in side)
        columns = tuple(column for n in (0, 1) for column in self._columns(n))
        return Shape(columns, order=(ROWTIME, *places), extra=places, placed=False, single=True, released=True)

    def promises(self, clocks: Sequence[Clocks], control: Joined) -> Clocks:
        """Return the least of the inputs, as one writer's; for an outer join, at most the last instant, or the end."""
        bound = max(min(least(side.values()) for side in clocks), control.bound)
        return {"": min(bound, MAX_MICROS) if bound < END and self._outer else bound}

    def link(self, n: int) -> Link:
        """Return the row of that side, by its place."""
        return Link(tuple(zip(PLACES[n], (ROWTIME, WRITER, POSITION), strict=True)))

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Keep the new rows; emit the pairs that the bound has passed; drop rows that can match no more."""
        control = tick.control(self)
        before = Edge.of(control)
        clocks = self.promises([delta.clocks for delta in deltas], control)
        bound = clocks[""]
        gone = tuple(self._gone(tick, n, bound) for n in (0, 1))
        sides = [self._take(tick, n, deltas[n], gone[n]) for n in (0, 1)]
        after = self._edge(tick, sides, [delta.clocks for delta in deltas], before, bound)
        if tick.of_keys:
            rows = self._results(tick, sides, before, Edge(bound)) if bound > before.at else None
            self._leave(tick, sides, before, after)
        else:
            new = after.side is not None and (after.frontier != before.frontier or deltas[after.side].rows is not None)
            rows = self._results(tick, sides, before, after) if bound > before.at or new else None
        tick.remember(self, bound=bound, edge=after.entry)
        for n in (0, 1):
            self._record(tick, sides, n, gone[1 - n], bound)
        tick.remember(self, met=gone if self._records(0) or self._records(1) else control.met)
        for n in (0, 1):
            self._forget(tick, n, gone[n], bound)
        return Delta(rows, clocks, before.at, bound)

    def distribution(self) -> Distribution | ByKeys:
        """Return the columns that have to be equal; rows that are dropped before they match have no keys recorded."""
        keys = self._equal_keys()
        if not keys:
            return Distribution.SINGLE
        olds = [{new: old for old, new in side.columns} for side in self.sides]
        given = [[old[name] for name in of] for old, of in zip(olds, keys, strict=True)]
        return ByKeys(given, {**dict(zip(_SIDES, keys, strict=True)), **dict.fromkeys(_MATCHED, ())})

    def gathered(self, tick: Tick, delta: Delta, parts: Sequence[Gathered]) -> Delta:
        """Return the pairs at the bound itself that are certain by the rows of all keys."""
        controls = [part.control for part in parts if isinstance(part.control, Joined)]
        edges = [*map(Edge.of, controls)]
        edge = min((of for of in edges if of.side is not None), key=lambda of: of.first or (), default=edges[0])
        super().gathered(tick, delta, [Gathered(replace(control, edge=edge.entry)) for control in controls])
        left = [p.left for p, of in zip(parts, edges, strict=True) if p.left is not None and of.first == edge.first]
        return replace(delta, rows=reduce(lambda one, other: one.unionByName(other), left) if left else None)

    def _leave(self, tick: Tick, sides: Sequence[SideRows], before: Edge, after: Edge) -> None:
        """Leave the pairs at the bound that are certain, if the first left row of all keys is the first of these."""
        if after.side is None:
            return
        for rows in self._pairs(tick, sides, after.at, after.at + 1):
            tick.leave(self, self._output(tick, rows.where(f"NOT ({before.covers}) AND ({after.allows})"), (0, 1)))

    @property
    def _outer(self) -> bool:
        return any(side.stamp is not None for side in self.sides)

    @property
    def _kept_for(self) -> tuple[int, int]:
        """Return how long past its rowtime a row of each side is needed, µs: by later rows, or to go out itself."""
        stamps = [side.stamp or 0 for side in self.sides]
        return max(0, self.high, stamps[0]), max(0, -self.low, stamps[1])

    def _records(self, n: int) -> bool:
        """Return True if rows of side ``n`` go out later than the rows that match them are dropped."""
        stamp = self.sides[n].stamp
        return stamp is not None and (-self.low, self.high)[n] + stamp > self._kept_for[1 - n]

    def _columns(self, n: int) -> Iterator[Column]:
        side, columns = self.sides[n], {column.name: column for column in self.inputs[n].emits().columns}
        yield from (Column(name, columns[old].type) for old, name in side.columns)
        yield from (Column(name, "TIMESTAMP") for name in side.rowtimes)

    # -- state ------------------------------------------------------------------------

    def _gone(self, tick: Tick, n: int, bound: int) -> int:
        """Return the rowtime up to which the rows of a side are dropped after this tick."""
        dead = self._dead(n, bound)
        if not self._records(1 - n) or bound >= END:
            return dead
        return max(tick.control(self).met[n], dead)

    def _take(self, tick: Tick, n: int, delta: Delta, dead: int) -> SideRows:
        """Return the rows of a side; keep those that a later tick may need."""
        side = SideRows(tick.segments(self, _SIDES[n]), PLACES[n][0])
        if delta.rows is None:
            return side
        renamed = [f"{quoted(old)} AS {quoted(name)}" for old, name in self.sides[n].columns]
        placed = [f"{old} AS {name}" for old, name in zip((ROWTIME, WRITER, POSITION), PLACES[n], strict=True)]
        rows = delta.rows.selectExpr(*renamed, *placed, f"{passed(tick.number, POSITION)} AS {ARRIVED[n]}")
        ending, others = divided(rows, side.time, dead)
        if others is not None:
            tick.describe(self, f"keep rows of the {_SIDES[n]} side")
            self._side(n).keep(tick, self, _placed(n, others))
        return replace(side, new=ending)

    def _side(self, n: int) -> Kept:
        columns = (*(name for _, name in self.sides[n].columns), *PLACES[n], ARRIVED[n])
        return Kept(DUE, columns, _SIDES[n], timed_by=PLACES[n][0])

    def _matched(self, n: int) -> Kept:
        """Return the places of the rows of a side that have a match which may be dropped."""
        return Kept(DUE, PLACES[n], _MATCHED[n], timed_by=PLACES[n][0], waits=False)

    def _record(self, tick: Tick, sides: Sequence[SideRows], n: int, gone: int, bound: int) -> None:
        """Record which waiting rows of side ``n`` match rows of the other side that are dropped after this tick."""
        stamp, since = self.sides[n].stamp, tick.control(self).met[1 - n]
        if stamp is None or not self._records(n) or gone <= since:
            return
        nearest, farthest = self._range(1 - n)
        low, high = max(shift(bound, -stamp), shift(since, nearest)), shift(gone, farthest + 1)
        others, rows = sides[1 - n].between(since + 1, gone + 1), sides[n].between(low, high)
        if others is None or rows is None or low >= high:
            return
        self._test_pairs(tick, n, rows, others)
        known = self._known(tick, n, low, high)
        rows = rows if known is None else rows.joined(known, _same(n), "left_anti")
        matched = self._joined(tick, n, rows, others, "left_semi")
        tick.describe(self, f"record rows of the {_SIDES[n]} side that have a match")
        self._matched(n).keep(tick, self, _placed(n, matched))

    def _known(self, tick: Tick, n: int, low: int, high: int) -> Frame | None:
        """Return the recorded places of rows of a side with rowtimes in [low, high), under other names."""
        if not self._records(n):
            return None
        rows = SideRows(tick.segments(self, _MATCHED[n]), PLACES[n][0]).between(low, high)
        return None if rows is None else rows.selectExpr(*(f"{name} AS {name}_m" for name in PLACES[n]))

    def _forget(self, tick: Tick, n: int, dead: int, bound: int) -> None:
        segments, matched = tick.segments(self, _SIDES[n]), tick.segments(self, _MATCHED[n])
        segments.forget(dead, dead=self._dead(n, bound))
        matched.forget(self._dead(n, bound))
        time = PLACES[n][0]

        def alive(rows: Frame) -> Frame:
            return _placed(n, between(rows, time, dead + 1, END).sortWithinPartitions(time))

        self._side(n).compact(tick, self, f"rows of the {_SIDES[n]} side", alive)
        if self._records(n):
            self._matched(n).compact(tick, self, "rows that have a match", lambda rows: _placed(n, rows))

    def _dead(self, n: int, bound: int) -> int:
        """Return the rowtime up to which no row of a side is needed any more."""
        return shift(bound, -self._kept_for[n] - 1)

    # -- results ----------------------------------------------------------------------

    def _edge(self, tick: Tick, sides: Sequence[SideRows], clocks: Sequence[Clocks], before: Edge, bound: int) -> Edge:
        """Return what is certain at the bound itself, because no later row can come before it.

        If the left clock is at the bound: the pairs of the left rows that a merge would release. If the right clock is:
        those of such right rows with the first left row in range.
        """
        behind = [least(side.values()) == bound for side in clocks]
        if all(behind) or not BEGINNING < bound < END or self._outer:
            return Edge(bound)
        n = behind.index(True)
        if not sides[n].segments.overlapping(bound - 1, bound):
            return Edge(bound)
        first = None
        if n == 1 and self.high >= 0:
            unchanged = before.at == bound and before.side == 1
            first = before.first if unchanged else self._first(tick, sides[0], bound)
            if first is None:
                return Edge(bound)
        return Edge(bound, n, frontier(clocks[n])[1], tick.number, first)

    def _first(self, tick: Tick, left: SideRows, bound: int) -> tuple[int, str, int] | None:
        """Return the place of the first left row that a right row at the bound may match."""
        rows = left.between(bound - self.high, bound - self.low + 1)
        if rows is None:
            return None
        tick.describe(self, "find the first left row in reach")
        time, writer, position = PLACES[0]
        place = f"struct(unix_micros({time}) AS t, {writer} AS w, {position} AS p)"
        least = rows.selectExpr(f"min_by({place}, {place}) AS f").selectExpr(*(f"f.{part} AS {part}" for part in "twp"))
        at, by, nth = least.collect()[0]
        return None if at is None else (at, by, nth)

    def _results(self, tick: Tick, sides: Sequence[SideRows], before: Edge, after: Edge) -> Frame | None:
        limit = after.at + (after.side is not None)
        pairs = (
            []
            if self.alone
            else [
                self._output(tick, rows.where(f"NOT ({before.covers}) AND ({after.allows})"), (0, 1))
                for rows in self._pairs(tick, sides, before.at, limit)
            ]
        )
        pairs = [self._computed(tick, rows) for rows in pairs]
        parts = [*pairs, *(part for n in (0, 1) for part in self._unmatched(tick, sides, n, before.at, after.at))]
        return reduce(lambda one, other: one.unionByName(other), parts) if parts else None

    def _pairs(self, tick: Tick, sides: Sequence[SideRows], since: int, bound: int) -> Iterator[Frame]:
        """Yield pairs whose later rowtime is in [since, bound)."""
        left = sides[0].between(since, bound)
        right = sides[1].between(shift(since, self.low), min(bound, shift(bound, self.high)))
        if left is not None and right is not None:
            yield self._joined(tick, 0, left, right, "inner")
        if self.high <= 0 or since <= BEGINNING:
            return
        left = sides[0].between(shift(since, -self.high), since)
        right = sides[1].between(since, bound)
        if left is not None and right is not None:
            yield self._joined(tick, 1, right, left, "inner")

    def _unmatched(self, tick: Tick, sides: Sequence[SideRows], n: int, since: int, bound: int) -> Iterator[Frame]:
        """Yield rows of an outer side with a stamp in [since, bound) and no match; for a semi-join, with a match."""
        stamp = self.sides[n].stamp
        if stamp is None:
            return
        low, high = shift(since, -stamp), shift(bound, -stamp)
        rows = sides[n].between(low, high)
        if rows is None:
            return
        nearest, farthest = self._range(n)
        recorded = tick.control(self).met[1 - n] + 1 if self._records(n) else BEGINNING
        others = sides[1 - n].between(max(recorded, shift(low, nearest)), shift(high, farthest))
        known, whole = self._known(tick, n, low, high), rows
        if known is not None:
            rows = whole.joined(known, _same(n), "left_anti")
            if self.alone == "left_semi":
                yield self._output(tick, whole.joined(known, _same(n), "left_semi"), (n,))
        if others is not None:
            self._test_pairs(tick, n, whole, others)
            rows = self._joined(tick, n, rows, others, self.alone or "left_anti")
        if others is not None or self.alone != "left_semi":
            yield self._output(tick, rows, (n,))

    def _range(self, n: int) -> tuple[int, int]:
        """Return how far the other side's rowtime may be from that of side ``n``: least and greatest, µs."""
        return (self.low, self.high) if n == 0 else (-self.high, -self.low)

    def _test_pairs(self, tick: Tick, n: int, rows: Frame, others: Frame) -> None:
        """Compute the condition for all pairs, if they are computed nowhere else."""
        if self.alone and self._may_fail:
            pairs = self._joined(tick, n, rows, others, "inner")
            if tick.trying:
                self._computed(tick, self._output(tick, pairs, (0, 1)))
            else:
                self._compute(tick, pairs)

    def _tries(self, tick: Tick) -> bool:
        """Return True if pairs whose condition cannot be computed are separated."""
        return tick.trying and self.on is not None

    def _computed(self, tick: Tick, pairs: Frame) -> Frame:
        """Return the pairs without those whose condition cannot be computed."""
        return tick.refuse_computed(self, pairs, BROKEN) if self._tries(tick) else pairs

    def _joined(self, tick: Tick, n: int, rows: Frame, others: Frame, how: str) -> Frame:
        """Return rows of side ``n`` with their matches."""
        nearest, farthest = self._range(n)
        mine, theirs = (f"unix_micros({PLACES[side][0]})" for side in (n, 1 - n))
        tests = [f"{theirs} >= {mine} + {nearest}L AND {theirs} <= {mine} + {farthest}L"]
        if not tick.trying:
            tests += self._on_parts
        if not self._tries(tick):
            return rows.joined(others, " AND ".join(tests), how)
        types = dict(zip(self.emits().names, tick.types(self), strict=True))
        equal, others_of = sorted_out(self.on, self._left, types)
        met = " AND ".join([*tests, *equal])
        if how == "inner":
            pairs = rows.joined(others, met, how)
            return judged(pairs, [others_of], {}, [], pairs.columns)
        return joined_if(rows, others, met, others_of, how)

    def _output(self, tick: Tick, rows: Frame, given: Sequence[int]) -> Frame:
        """Return the output columns; those of a missing side are NULL."""
        columns: list[str] = []
        places: list[str] = [BROKEN] if BROKEN in rows.columns else []
        for n in (0, 1):
            names, kinds = [name for _, name in self.sides[n].columns], PLACES[n]
            if n in given:
                columns += [*map(quoted, names), *(f"{kinds[0]} AS {quoted(r)}" for r in self.sides[n].rowtimes)]
                places += kinds
                continue
            # Their types are those of rows, even if this side has never had one.
            types = dict(zip(self.emits().names, tick.types(self), strict=True))
            columns += [f"CAST(NULL AS {types[c.name] or 'STRING'}) AS {quoted(c.name)}" for c in self._columns(n)]
            places += [
                f"CAST(NULL AS {kind}) AS {p}" for kind, p in zip(("TIMESTAMP", "STRING", "BIGINT"), kinds, strict=True)
            ]
        return rows.selectExpr(
            *columns, f"{self._stamped(given)} AS {ROWTIME}", f"'' AS {WRITER}", f"0L AS {POSITION}", *places
        )

    def _stamped(self, given: Sequence[int]) -> str:
        if len(given) > 1:
            return f"greatest({PLACES[0][0]}, {PLACES[1][0]})"
        [n] = given
        return instant(f"unix_micros({PLACES[n][0]}) + {self.sides[n].stamp}L")


_SIDES = ("left", "right")
_MATCHED = ("left_matched", "right_matched")


def _same(n: int) -> str:
    """Return the condition that a row of a side is a recorded one."""
    return " AND ".join(f"{name} = {name}_m" for name in PLACES[n])


def _placed(n: int, rows: Frame) -> Frame:
    """Return rows of a side in the form in which they are kept."""
    return rows.selectExpr("*", f"unix_micros({PLACES[n][0]}) AS {DUE}")
