"""Evaluates the conditions of DEFINE over the rows of many partitions, as the matcher needs them.

A condition over a row and its neighbours is computed for all rows at once. A condition over the match is computed in
each step, for all paths at a row of that variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import TESTED
from rowtime.frames.kinds import arrow_of
from rowtime.frames.local import FEW, LocalFrame
from rowtime.frames.queries import Uncomputed
from rowtime.kernels.frames import Frames, Ints, Known
from rowtime.kernels.matching.rows import NOTHING, Asked, Conditions, Picked, Rows, Running
from rowtime.kernels.window_functions import Function, Table
from rowtime.operators.patterns.slots import FIRST, Condition, Fold, Pick
from rowtime.operators.rows.collected import collected
from rowtime.sql.generate import quoted, to_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Values:
    """The values computed for each row, by the text of the expression; ``types``: Spark's types of slots, by name."""

    rows: Rows
    columns: Mapping[str, pa.Array]
    types: Mapping[str, str]

    def at(self, value: str, places: Ints, move: int = 0) -> pa.Array:
        """Return a value at some rows (`NOTHING`: no row), ``move`` rows further in the partition; NULL beyond it."""
        there = places != NOTHING
        if move:
            known = np.where(there, places, 0)
            part = self.rows.partition[known]
            places = known + move
            there = there & (places >= self.rows.begins[part]) & (places < self.rows.ends[part])
        return self.columns[value].take(pa.array(np.where(there, places, 0), mask=~there))


@dataclass(frozen=True)
class Folded:
    """An aggregate over the rows that a path has taken (`Running`)."""

    function: Function
    parts: Table
    variables: frozenset[int]

    @classmethod
    def of(cls, fold: Fold, values: Values, variables: frozenset[int]) -> Folded:
        """Return the aggregate of a call in a condition."""
        argument = values.columns[to_spark(fold.value)]
        return cls(fold.function, fold.function.seeds(argument, values.rows.times), variables)

    def begin(self, count: int) -> Table:
        """Return the parts for no rows: those of a NULL."""
        kinds = {name: part.type for name, part in self.parts.items()}
        return {name: pa.nulls(count, kind) if name == "v" else _zeros(count, kind) for name, kind in kinds.items()}

    def take(self, parts: Table, rows: Ints) -> Table:
        """Return the parts with one more row each."""
        count = len(rows)
        pairs = pa.array(np.column_stack((np.arange(count), count + np.arange(count))).ravel())
        both = {
            name: pa.concat_arrays([parts[name], mine.take(pa.array(rows))]).take(pairs)
            for name, mine in self.parts.items()
        }
        lows = np.arange(count) * 2
        found = self.function.fold(both, Frames(lows, lows + 2))
        return {name: whole_array(found[name]).cast(part.type) for name, part in self.parts.items()}


def _zeros(count: int, kind: pa.DataType) -> pa.Array:
    return pa.array(np.zeros(count, np.int64)).cast(kind)


def whole_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


@dataclass(frozen=True)
class Tester:
    """Evaluates conditions over columns, with Spark's semantics."""

    session: SparkSession

    def holds(
        self, condition: Condition, columns: Mapping[str, pa.Array], types: Mapping[str, str], count: int
    ) -> Known:
        """Return which rows of some columns satisfy a condition."""
        if not count:
            return np.zeros(0, np.bool_)
        text = to_spark(condition.test)
        alone = next((name for name in columns if text == quoted(name)), None)
        if alone is not None:
            return _true(columns[alone])
        if not columns:
            columns, types = {TESTED: pa.array(np.ones(count, np.bool_))}, {TESTED: "boolean"}
        table = pa.table(dict(columns))
        found = [self._computed(table.slice(at, FEW), text, types) for at in range(0, count, FEW)]
        return np.concatenate(found)

    def _computed(self, table: pa.Table, text: str, types: Mapping[str, str]) -> Known:
        fields = [(name, types[name]) for name in table.column_names]
        frame = LocalFrame.of(self.session, table, fields)
        rows = self.session.createDataFrame(table) if frame is None else frame
        wanted = f"{text} AS {TESTED}"
        try:
            found = collected(rows.selectExpr(wanted))
        except Uncomputed:  # Spark reports the reason, or can compute it
            assert frame is not None
            found = collected(frame.spark().selectExpr(wanted))
        return _true(whole_array(found[TESTED].combine_chunks()))


def _true(column: pa.Array) -> Known:
    return np.asarray(pc.fill_null(column, fill_value=False), dtype=np.bool_)


@dataclass(frozen=True)
class Built:
    """The conditions of a pattern over the values of rows; ``numbers``: its variables by name."""

    conditions: Sequence[Condition]
    numbers: Mapping[str, int]
    values: Values
    tester: Tester

    @cached_property
    def made(self) -> Conditions:
        """Return the conditions in the matcher's form."""
        of_rows: dict[int, Known] = {}
        of_paths: dict[int, list[Condition]] = {}
        for condition in self.conditions:
            number = self.numbers[condition.variable]
            if condition.of_row:
                mine = self._of_rows(condition)
                of_rows[number] = mine & of_rows.get(number, mine)
            else:
                of_paths.setdefault(number, []).append(condition)
        return Conditions(of_rows, {n: self._asked(some) for n, some in of_paths.items()}, self._running)

    def _of_rows(self, condition: Condition) -> Known:
        every = np.arange(len(self.values.rows.times))
        picks = [slot for slot in condition.slots if isinstance(slot, Pick)]
        columns = {slot.column.name: self.values.at(to_spark(slot.value), every, slot.move) for slot in picks}
        return self.tester.holds(condition, columns, self._types(condition), len(every))

    def _types(self, condition: Condition) -> dict[str, str]:
        return {slot.column.name: self.values.types[slot.column.name] for slot in condition.slots}

    @cached_property
    def _folds(self) -> list[Fold]:
        return [slot for one in self.conditions for slot in one.slots if isinstance(slot, Fold)]

    @cached_property
    def _running(self) -> list[Running]:
        return [Folded.of(fold, self.values, self._of(fold.variables)) for fold in self._folds]

    def _of(self, variables: Iterable[str]) -> frozenset[int]:
        return frozenset(self.numbers[name] for name in variables)

    def _asked(self, conditions: Sequence[Condition]) -> Asked:
        """Return the conditions of a variable: one after the other, each for the paths that the others leave."""
        slots = [slot for one in conditions for slot in one.slots]
        picks = [slot for slot in slots if isinstance(slot, Pick) and not slot.of_row]
        picked = tuple(dict.fromkeys(map(self._picked, picks)))
        folds = [self._folds.index(slot) for slot in slots if isinstance(slot, Fold)]

        def test(rows: Ints, places: Sequence[Ints], sums: Sequence[Table]) -> Known:
            fits = np.ones(len(rows), np.bool_)
            for condition in conditions:
                left = np.flatnonzero(fits)
                columns: dict[str, pa.Array] = {}
                for slot in condition.slots:
                    if isinstance(slot, Fold):
                        at = folds.index(self._folds.index(slot))
                        mine = {name: part.take(pa.array(left)) for name, part in sums[at].items()}
                        columns[slot.column.name] = self._folded(slot, mine)
                    else:
                        at_rows = rows if slot.of_row else places[picked.index(self._picked(slot))]
                        columns[slot.column.name] = self.values.at(to_spark(slot.value), at_rows[left], slot.move)
                fits[left] = self.tester.holds(condition, columns, self._types(condition), len(left))
            return fits

        return Asked(picked, tuple(folds), test)

    def _picked(self, slot: Pick) -> Picked:
        return Picked(self._of(slot.variables), slot.which != FIRST, slot.offset)

    def _folded(self, slot: Fold, parts: Table) -> pa.Array:
        wanted = arrow_of(self.values.types[slot.column.name])
        return whole_array(slot.function.value(parts)[""]).cast(wanted)
