"""Aggregates of the rows that a path has taken so far, for all open paths of all keys together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.kernels.exact import Overflow
from rowtime.kernels.frames import Flags, Frames, Ints
from rowtime.kernels.identity import numbered
from rowtime.kernels.lists import Listed, listed
from rowtime.kernels.matching.rows import NOTHING, Running
from rowtime.kernels.window_functions import Distinct, Function, Table

BEYOND = "beyond"
"""The name of a part: whether a sum has been beyond its type, so that its value is unknown."""
_LONG_AGO = np.iinfo(np.int64).min // 2
"""A rowtime (µs) before every other one."""


def running(function: Function, argument: pa.Array, times: Ints, variables: frozenset[int]) -> Running:
    """Return a function of the values (by row) of the rows that a path takes as some variables."""
    if isinstance(function, Distinct):
        return Different(argument, variables)
    if isinstance(function, Listed):
        return Gathered(argument, variables)
    return Folded(function, argument, times, variables)


@dataclass(frozen=True)
class Folded:
    """A function whose parts do not grow with the number of rows; `BEYOND`: a sum has been beyond its type."""

    function: Function
    argument: pa.Array
    times: Ints
    variables: frozenset[int]

    @cached_property
    def parts(self) -> Table:
        """Return the parts of each row."""
        return self.function.seeds(self.argument, self.times)

    def begin(self, count: int) -> Table:
        """Return the parts for no rows: those of a NULL long ago."""
        nothing = self.function.seeds(pa.nulls(1, self.argument.type), np.array([_LONG_AGO]))
        parts = {name: part.take(pa.array(np.zeros(count, np.int64))) for name, part in nothing.items()}
        return {**parts, BEYOND: pa.array(np.zeros(count, np.bool_))}

    def take(self, parts: Table, rows: Ints) -> Table:
        """Return the parts with one more row each."""
        count = len(rows)
        pairs = pa.array(np.column_stack((np.arange(count), count + np.arange(count))).ravel())
        both = {
            name: pa.concat_arrays([parts[name], mine.take(pa.array(rows))]).take(pairs)
            for name, mine in self.parts.items()
        }
        lows = np.arange(count) * 2
        try:
            sums = self.function.fold(both, Frames(lows, lows + 2))
        except Overflow as wrong:
            return self.take(self._without(parts, wrong.beyond), rows)
        values = {name: whole_array(sums[name]).cast(part.type) for name, part in self.parts.items()}
        return {**values, BEYOND: parts[BEYOND]}

    def value(self, parts: Table) -> Table:
        """Return the value of each path."""
        return self.function.value({name: part for name, part in parts.items() if name != BEYOND})

    def _without(self, parts: Table, beyond: Flags) -> Table:
        """Return the parts with none in place of some, which are beyond their type from now on."""
        none, which = self.begin(len(beyond)), pa.array(beyond)
        values = {name: pc.if_else(which, none[name], parts[name]) for name in self.parts}
        return {**values, BEYOND: pc.or_(parts[BEYOND], which)}


@dataclass(frozen=True)
class Gathered:
    """COLLECT_LIST: a path keeps the numbers of its rows whose value is not NULL."""

    argument: pa.Array
    variables: frozenset[int]

    @cached_property
    def counted(self) -> Ints:
        """Return the number of each row; `NOTHING` for one that does not count."""
        return np.where(np.asarray(pc.is_valid(self.argument)), np.arange(len(self.argument)), NOTHING)

    def begin(self, count: int) -> Table:
        """Return empty lists."""
        return {"l": listed(pa.array([], pa.int64()), np.zeros(0, np.int64), np.zeros(count, np.int64))}

    def take(self, parts: Table, rows: Ints) -> Table:
        """Return the lists with one more row each, if it counts."""
        kept, counts = _kept(parts)
        mine = self.counted[rows]
        fresh = np.flatnonzero((mine != NOTHING) & ~self._known(kept, counts, mine))
        longer = np.insert(kept, np.cumsum(counts)[fresh], mine[fresh])
        counts[fresh] += 1
        return {"l": listed(pa.array(longer), np.arange(len(longer)), counts)}

    def _known(self, kept: Ints, counts: Ints, mine: Ints) -> Flags:  # noqa: ARG002 - each row is another one
        return np.zeros(len(mine), np.bool_)

    def value(self, parts: Table) -> Table:
        """Return the values of the rows of each path."""
        return {"": listed(self.argument, *_kept(parts))}


class Different(Gathered):
    """COUNT(DISTINCT x): a path keeps the different values that it has had, as numbers."""

    @cached_property
    def counted(self) -> Ints:
        """Return a number for the value of each row; `NOTHING` for NULL."""
        return np.where(np.asarray(pc.is_valid(self.argument)), numbered(self.argument), NOTHING)

    def _known(self, kept: Ints, counts: Ints, mine: Ints) -> Flags:
        same = kept == np.repeat(mine, counts)
        path = np.repeat(np.arange(len(counts)), counts)
        return np.bincount(path[same], minlength=len(counts)) > 0

    def value(self, parts: Table) -> Table:
        """Return how many they are."""
        return {"": pa.array(_kept(parts)[1])}


def _kept(parts: Table) -> tuple[Ints, Ints]:
    """Return the numbers that all paths keep, one path after the other, and how many each keeps."""
    lists = parts["l"]
    return np.array(lists.flatten()), np.array(pc.list_value_length(lists), np.int64)


def whole_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
