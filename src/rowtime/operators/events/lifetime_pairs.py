"""The pairs of a join of events: searches over Arrow columns.

A query would compare every two events of a key. Here pairs are found by the times at which events begin
(`kernels.overlaps`), and final pairs go directly to the files of the sink.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from rowtime.core.columns import CHANGED_BY, DUE, MET, POSITION, ROWTIME, START, STOP, WEIGHT, WRITER
from rowtime.core.time import END
from rowtime.expr.conditions import conjuncts
from rowtime.kernels.overlaps import Lives, numbered, overlapping
from rowtime.operators.contract import Tick, quoted
from rowtime.operators.contract.peek import Peek
from rowtime.operators.contract.state import Route, Segment
from rowtime.operators.events.emit_tables import UTC, in_micros, in_utc
from rowtime.operators.events.failing_events import refuse_events
from rowtime.operators.over.over_rows import gathered
from rowtime.operators.rows.attempt import NamedSql, judged
from rowtime.operators.rows.conditions import sorted_out, whole
from rowtime.operators.rows.lifetimes import derived_columns

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.events.lifetime_join import LifetimeJoin

PAIRS = 1_000_000  # at a time
_KEYS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIMESTAMP", "BOOLEAN", "STRING", "DECIMAL")


@dataclass(frozen=True)
class Emitted:
    """The events of a join, the final ones in files, and the others."""

    rows: Frame | None
    final: tuple[Segment, ...]
    peek: Peek | None


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
            return Emitted(None, tuple(final), None)
        names = [quoted(name) for side in self.node.names for name in side]
        frames = (
            tick.frame(self.node, table).selectExpr(*names, *derived_columns(START, STOP, WEIGHT)) for table in tables
        )
        rows = reduce(lambda one, other: one.unionByName(other), frames)
        if others and tick.trying:
            rows = refuse_events(tick, self.node, judged(rows, [others], {}, [], rows.columns))
        if others and not tick.trying:
            rows = rows.where(whole(" AND ".join(f"({text})" for text, _ in others)))
        peek = None if others else Peek(lambda _: None, partial(_columns, tables))
        return Emitted(rows, tuple(final), peek)

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


def peeked(source: Peek | None, columns: Mapping[str, str], times: Sequence[str]) -> pa.Table | None:
    """Return events of a side from their source's reader, with the names in the join; ``None`` if it cannot."""
    wanted = {**columns, times[0]: ROWTIME, times[1]: STOP, WEIGHT: WEIGHT}
    read = None if source is None else source.rows(wanted)
    if read is None:
        return None
    table = in_micros(read, times[0])
    ends = table[times[1]]
    return table.append_column(DUE, pc.if_else(pc.less(ends, END), pc.add(ends, 1), ends))


def _columns(tables: Sequence[pa.Table], wanted: Mapping[str, str]) -> Iterable[pa.Table]:
    """Yield the wanted columns of pairs, hidden ones too."""
    for table in tables:
        zeros = pa.array(np.zeros(table.num_rows, np.int64))
        start = table[START].cast(pa.timestamp("us")).cast(UTC)
        own = {ROWTIME: start, WRITER: pa.repeat("", table.num_rows), POSITION: zeros, CHANGED_BY: zeros, MET: zeros}
        yield pa.table({name: own[of] if of in own else table[of] for name, of in wanted.items()})


def _equates(part: exp.Expr) -> bool:
    return isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table[name].combine_chunks())
