"""Window functions over the rows of one tick and kept rows of earlier ones, as Arrow tables.

Rows, kept rows and heads (see `kernels.frames`) are combined, arranged by key, and every call is computed over all keys
at once. The result is the values of the new rows, the rows to keep and the new heads. This module does not depend on
Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa

from rowtime.core.columns import AT, DUE, KEY_HASH, POSITION, RANGE_VALUE
from rowtime.core.time import END
from rowtime.kernels import collated
from rowtime.kernels.exact import Overflow, numbers
from rowtime.kernels.frames import Flags, Frames, Ints, Layout, by_range, by_rows, layout, sessions
from rowtime.kernels.identity import numbered, together
from rowtime.kernels.stock import Stock
from rowtime.kernels.window_functions import Avg, Decayed, Distinct, Extreme, Function, Nth, Spread, Sum, Table

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "void")


@dataclass(frozen=True)
class Frame:
    """From ``lower`` before the row (``None``: from the beginning) to ``upper`` before it.

    Counted in rows; ``by_range``: in µs of the order value, both ends inclusive. ``own``: the row itself may be in it.
    """

    lower: int | None
    upper: int = 0
    by_range: bool = False
    own: bool = True

    def __str__(self) -> str:
        unit = (lambda n: str(timedelta(microseconds=n))) if self.by_range else str
        lower = "all that came" if self.lower is None else f"{unit(self.lower)} before"
        return f"({lower} to {f'{unit(self.upper)} before' if self.upper else 'the row'})"

    def over(self, rows: Layout, values: Ints) -> Frames:
        """Return the frames of the new rows."""
        if self.by_range:
            frames = by_range(rows, values, self.lower, self.upper)
        else:
            frames = by_rows(rows, self.lower, self.upper)
        return frames if self.own else Frames(np.minimum(frames.lo, rows.at), np.minimum(frames.hi, rows.at))


@dataclass(frozen=True)
class Wanted:
    """One call: the column for its values, the column of its argument, function and frame."""

    name: str
    argument: str
    function: Function
    frame: Frame

    @property
    def running(self) -> bool:
        """Return True if its frames begin with the first row, so that a head represents dropped rows."""
        return self.frame.lower is None

    @property
    def parts(self) -> tuple[set[str], set[str]]:
        """Return the columns of its heads: those for every type of argument, and those for some."""
        nothing = (pa.array([], kind) for kind in (pa.int64(), pa.float64()))
        whole, broken = (self.function.seeds(argument, np.zeros(0, np.int64)).keys() for argument in nothing)
        every, some = ({f"{self.name}.{part}" for part in parts} for parts in (whole & broken, whole ^ broken))
        return every, some


@dataclass(frozen=True)
class Windows:
    """The calls of one operator over one set of keys.

    ``expires``: a key without a row for longer than that (µs) starts anew.
    """

    keys: tuple[str, ...]
    calls: tuple[Wanted, ...]
    expires: int | None = None

    @cached_property
    def heads(self) -> bool:
        """Return True if heads are kept."""
        return any(call.running for call in self.calls)

    @cached_property
    def rows_kept(self) -> int:
        """Return how many of the last rows of a key a later row may need."""
        ends = (f for f in (call.frame for call in self.calls) if not f.by_range)
        return max([0, *(f.upper - 1 if f.lower is None else f.lower for f in ends)])

    @cached_property
    def span(self) -> int | None:
        """Return how far back (µs of the order value) a later row may need rows; ``None``: not by time."""
        ends = [f for f in (call.frame for call in self.calls) if f.by_range]
        return max((f.upper - 1 if f.lower is None else f.lower for f in ends), default=None)

    @property
    def timed(self) -> bool:
        """Return True if time alone decides which rows are still needed."""
        return self.span is not None and not self.heads and not self.rows_kept

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the columns of the arguments, each once."""
        return tuple(dict.fromkeys(call.argument for call in self.calls))


def lasting(keys: Sequence[str], rows: pa.Table, number: int, span: int | None) -> pa.Table:
    """Return, of rows in stream order, the last ``number`` of each key, and those up to ``span`` before its last."""
    codes = ranks([[rows[key]] for key in keys], rows.num_rows)
    laid = layout(codes, 0, rows.num_rows)
    ends = np.repeat(laid.ends, laid.ends - laid.begins)
    wanted = np.arange(rows.num_rows) >= ends - number
    if span is not None:
        values = np.asarray(whole(rows[RANGE_VALUE if RANGE_VALUE in rows.column_names else AT]))[laid.order]
        wanted |= values >= values[ends - 1] - span
    return rows.take(pa.array(np.sort(laid.order[wanted])))


def newest(rows: pa.Table) -> pa.Table:
    """Return rows in stream order; of rows that were kept again with a later end, the last."""
    rows = rows.sort_by([(POSITION, "ascending"), (DUE, "ascending")])
    places = np.asarray(whole(rows[POSITION]))
    last = np.ones(len(places), np.bool_)
    last[:-1] = places[1:] != places[:-1]
    return rows.filter(pa.array(last))


def standing(windows: Windows, parts: Mapping[str, pa.Array] | pa.Table, count: int) -> Flags:
    """Return for each of ``count`` heads whether it stands for a row: not if all calls pick a value, and none came."""
    stands = np.zeros(count, np.bool_)
    for call in windows.calls:
        if call.running:
            stands |= numbers(whole(parts[f"{call.name}.c"])) > 0 if isinstance(call.function, Nth) else True
    return stands


@dataclass(frozen=True)
class Answer:
    """The values of the new rows, in their order; the rows to keep; the heads of their keys.

    ``before``, ``after``: what the keys of the new rows had, and have now; nothing if time alone decides what is kept.
    """

    values: Table
    kept: pa.Table
    heads: pa.Table | None
    before: Stock
    after: Stock


class Computation:
    """One tick of ``windows``: heads (at most one per key), kept rows and new rows, each in stream order."""

    def __init__(self, windows: Windows, heads: pa.Table | None, kept: pa.Table | None, fresh: pa.Table) -> None:
        self.windows, self.fresh = windows, fresh
        parts = [part for part in (heads, kept, fresh) if part is not None]
        codes = ranks([[part[key] for part in parts] for key in windows.keys], sum(part.num_rows for part in parts))
        if heads is not None:
            heads, kept, codes = _latest(heads, kept, fresh, codes)
        self.heads = heads
        columns = [POSITION, AT, RANGE_VALUE, *windows.keys, KEY_HASH, DUE, *windows.arguments]
        names = [name for name in columns if name in fresh.column_names]
        rows = [part.select(names) for part in (kept, fresh) if part is not None]
        self.rows = (pa.concat_tables(rows) if len(rows) > 1 else rows[0]).combine_chunks()
        self.times = np.asarray(whole(self.rows[AT]))
        if windows.expires is not None:
            before = [] if heads is None else [np.asarray(whole(heads[AT]))]
            codes = sessions(codes, np.concatenate([*before, self.times]), windows.expires)
        self.layout = layout(codes, 0 if heads is None else heads.num_rows, fresh.num_rows)
        self.order = np.asarray(whole(self.rows[RANGE_VALUE])) if RANGE_VALUE in names else self.times

    def answer(self) -> Answer:
        """Compute every call."""
        suffix = self._suffix(self.layout.ends)
        values: dict[str, pa.Array] = {}
        states: dict[str, pa.Array] = {}
        frames = {frame: frame.over(self.layout, self.order) for frame in {call.frame for call in self.windows.calls}}
        beyond: list[Overflow] = []
        for call in self.windows.calls:
            parts = self._parts(call)
            try:
                columns = call.function.value(call.function.fold(parts, frames[call.frame]))
            except Overflow as wrong:
                beyond.append(Overflow(str(wrong), np.asarray(self._in_order(pa.array(wrong.beyond))), call.name))
                continue
            values.update({f"{call.name}{part}": self._in_order(column) for part, column in columns.items()})
            if call.running:
                state = call.function.fold(parts, Frames(self.layout.begins, suffix))
                states.update({f"{call.name}.{part}": column for part, column in state.items()})
        if beyond:
            raise self._first_of(beyond)
        stands = (suffix > self.layout.begins) & standing(self.windows, states, len(suffix))
        before, after = self._stocks(suffix, stands)
        heads = self._heads(states, suffix, after) if self.windows.heads else None
        return Answer(values, self._kept(suffix, after), heads, before, after)

    def _first_of(self, beyond: Sequence[Overflow]) -> Overflow:
        """Return, for the first row of each key with a sum or average that overflows, those of one call."""
        wanted = np.logical_or.reduce([overflow.beyond for overflow in beyond])
        codes = np.asarray(self._in_order(pa.array(self.layout.code[self.layout.at])))
        places = np.flatnonzero(wanted)
        first = np.zeros(len(wanted), np.bool_)
        first[places[np.unique(codes[places], return_index=True)[1]]] = True
        return next(Overflow(str(o), o.beyond & first, o.name) for o in beyond if (o.beyond & first).any())

    def _in_order(self, column: pa.Array) -> pa.Array:
        """Return arranged values in the order in which the new rows came."""
        if not self.windows.keys:
            return column
        came = np.empty(len(column), np.int64)
        came[self.layout.place[self.layout.at] - (self.rows.num_rows - len(column))] = np.arange(len(column))
        return column.take(pa.array(came))

    def _parts(self, call: Wanted) -> Table:
        seeds = call.function.seeds(_given(call.function, whole(self.rows[call.argument])), self.times)
        if self.heads is not None:
            before = {part: whole(self.heads[f"{call.name}.{part}"]) if call.running else None for part in seeds}
            seeds = {part: _led(before[part], column, self.heads.num_rows) for part, column in seeds.items()}
        order = pa.array(self.layout.order) if self.windows.keys else None
        return {part: column if order is None else column.take(order) for part, column in seeds.items()}

    # -- state ----------------------------------------------------------------------------

    def _stocks(self, suffix: Ints, stands: Flags) -> tuple[Stock, Stock]:
        """Return what each key with a new row had before, and has now."""
        rows = self.layout
        if self.windows.timed:
            nothing = Stock(*np.zeros((3, 0), np.int64))
            return nothing, nothing
        ends = rows.ends - np.searchsorted(rows.at, rows.ends) + np.searchsorted(rows.at, rows.begins)
        count = np.maximum(ends - self._suffix(ends), 0)
        headed = rows.place[rows.begins] < 0
        before = Stock(np.where(ends > rows.begins + headed, count, 0), headed.astype(np.int64), self._due(ends - 1))
        if headed.any():
            assert self.heads is not None
            mine = np.where(headed, rows.order[rows.begins], 0)
            before = replace(before, heads=before.heads * standing(self.windows, self.heads, self.heads.num_rows)[mine])
        due = self._due(rows.ends - 1)
        if self.windows.expires is not None:
            due = np.minimum(due, self.times[rows.place[rows.ends - 1]] + self.windows.expires + 1)
        return before, Stock(rows.ends - suffix, stands.astype(np.int64), due)

    def _due(self, last: Ints) -> Ints:
        """Return from when on the keys are dropped of which some elements are the last ones."""
        if DUE not in self.rows.column_names:
            return np.full(len(last), END)
        place = self.layout.place[last]
        due = np.asarray(whole(self.rows[DUE]))[place]
        if self.heads is not None and self.heads.num_rows:
            mine = np.where(place < 0, self.layout.order[last], 0)
            due = np.where(place < 0, np.asarray(whole(self.heads[DUE]))[mine], due)
        return due

    def _suffix(self, ends: Ints) -> Ints:
        """Return, for each key with a new row, its first element that a row after those up to ``ends`` may need."""
        rows, windows = self.layout, self.windows
        first = np.maximum(rows.begins, ends - windows.rows_kept)
        if windows.span is not None and not windows.timed:
            values = self.order[rows.place]
            last = values[ends - 1]
            axis = rows.code * (len(self.order) + 1) + rows.place + 1
            reach = np.searchsorted(self.order, last - windows.span, "left")
            base = rows.code[rows.begins] * (len(self.order) + 1) + 1
            first = np.minimum(first, np.searchsorted(axis, base + reach, "left"))
        return np.asarray(np.maximum(first, rows.begins + (rows.place[rows.begins] < 0)))

    def _kept(self, suffix: Ints, after: Stock) -> pa.Table:
        """Return the new rows that a later row may need; the kept ones stay where they are."""
        old = self.rows.num_rows - self.fresh.num_rows
        if self.windows.timed:
            return self.rows.slice(old)
        lengths = self.layout.ends - suffix
        steps = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places = self.layout.place[np.repeat(suffix, lengths) + steps]
        if self.windows.expires is None:
            return self.rows.take(pa.array(np.sort(places[places >= old])))
        return _until(self.rows.take(pa.array(places)), np.repeat(after.due, lengths))

    def _heads(self, states: Mapping[str, pa.Array], suffix: Ints, after: Stock) -> pa.Table:
        """Return the heads of keys with a new row, by the last row that each represents."""
        last = self.layout.ends - 1
        key = self.rows.select([n for n in (*self.windows.keys, KEY_HASH, DUE) if n in self.rows.column_names])
        key = key.take(pa.array(self.layout.place[last]))
        before = self.layout.place[np.maximum(suffix - 1, self.layout.begins)]
        marks = {name: np.asarray(whole(self.rows[name]))[np.maximum(before, 0)] for name in (POSITION, AT)}
        moved = (suffix > self.layout.begins) & (before >= 0)  # otherwise the former head is still valid
        if self.windows.expires is not None:
            key = _until(key, after.due)
            moved = self._renewed(marks, moved, suffix)
        columns = {name: key[name] for name in key.column_names}
        table = pa.table({**columns, **{name: pa.array(mark) for name, mark in marks.items()}, **states})
        return table.filter(pa.array(moved & (after.heads > 0)))

    def _renewed(self, marks: dict[str, Ints], moved: Flags, suffix: Ints) -> Flags:
        """Keep a valid head again, because its key lives on."""
        stands = ~moved & (suffix > self.layout.begins)
        if self.heads is not None:
            mine = self.layout.order[self.layout.begins[stands]]
            for name, mark in marks.items():
                mark[stands] = np.asarray(whole(self.heads[name]))[mine]
        return moved | stands


def _given(function: Function, argument: pa.Array) -> pa.Array:
    """Return the input of a function, if the argument is text with a collation."""
    if isinstance(function, Extreme):
        return argument
    return collated.keys(argument) if isinstance(function, Distinct) else collated.values(argument)


def _until(rows: pa.Table, ends: Ints) -> pa.Table:
    return rows.set_column(rows.column_names.index(DUE), DUE, pa.array(ends))


def _led(heads: pa.Array | None, column: pa.Array, count: int) -> pa.Array:
    """Put the parts of heads before those of rows; calls that never need a head get nulls."""
    if heads is None:
        heads = pa.nulls(count, column.type)
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            heads = pa.array(np.zeros(count)).cast(column.type)
    return pa.concat_arrays([heads.cast(column.type), column])


def _latest(
    heads: pa.Table, kept: pa.Table | None, fresh: pa.Table, codes: Ints
) -> tuple[pa.Table, pa.Table | None, Ints]:
    """Return the last head of each key, and the kept rows that it does not represent."""
    mine, upto = codes[: heads.num_rows], np.asarray(whole(heads[POSITION]))
    newest = np.lexsort((upto, mine))
    newest = newest[np.append(mine[newest][1:] != mine[newest][:-1], True)] if len(newest) else newest
    parts = [mine[newest]]
    if kept is not None:
        reach = np.full(int(codes.max()) + 1, -1, np.int64)
        reach[mine[newest]] = upto[newest]
        theirs = codes[heads.num_rows : heads.num_rows + kept.num_rows]
        loose = np.asarray(whole(kept[POSITION])) > reach[theirs]
        kept = kept.filter(pa.array(loose))
        parts.append(theirs[loose])
    return heads.take(pa.array(newest)), kept, np.concatenate([*parts, codes[len(codes) - fresh.num_rows :]])


def ranks(keys: Sequence[Sequence[pa.ChunkedArray]], count: int) -> Ints:
    """Return a number for each key, the same for equal ones; NULL equals NULL, as in GROUP BY."""
    if not count:
        return np.zeros(0, np.int64)
    columns = (pa.concat_arrays([chunk for part in parts for chunk in part.chunks]) for parts in keys)
    return together([np.zeros(count, np.int64), *map(numbered, columns)])


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def takes(function: Function, kind: str) -> bool:
    """Return True if a function's kernel supports a Spark type, by its simple name."""
    if isinstance(function, Sum | Avg | Spread | Decayed):
        return kind.startswith("decimal") or kind in _NUMBERS
    if isinstance(function, Extreme):
        return not kind.startswith(("struct", "array", "map", "variant"))
    return not (isinstance(function, Distinct) and kind.startswith(("map", "variant")))
