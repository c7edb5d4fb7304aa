"""Evaluates the conditions of DEFINE over the rows of many partitions, as the matcher needs them.

A condition over a row and its neighbours is computed for all rows at once. A condition over the match is computed in
each step, for all paths at a row of that variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import TESTED
from rowtime.core.errors import refuse
from rowtime.frames.as_dataframe import FEW
from rowtime.frames.kinds import arrow_of
from rowtime.frames.local import LocalFrame
from rowtime.frames.queries import Uncomputed
from rowtime.kernels.frames import Flags, Ints
from rowtime.kernels.matching.rows import NOTHING, Conditions, PathCondition, Picked, Rows, Running
from rowtime.kernels.matching.running import running, whole_array
from rowtime.kernels.window_functions import Table
from rowtime.operators.patterns.slots import FIRST, Condition, Fold, MatchFunction, Pick
from rowtime.operators.rows.collected import collected
from rowtime.operators.rows.exact_sums import average
from rowtime.sql.generate import quoted, to_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


COUNT: Final = ":n"
"""Behind the name of a sum: how many values it is of (`Avg`)."""


@dataclass(frozen=True)
class Values:
    """The values computed for each row, by the text of the expression; ``types``: Spark's types of slots, by name."""

    rows: Rows
    columns: Mapping[str, pa.Array]
    types: Mapping[str, str]

    def at(self, value: str, places: Ints, move: int = 0) -> pa.Array:
        """Return a value at some rows (`NOTHING`: no row), ``move`` rows further in the partition; NULL beyond it."""
        exists = places != NOTHING
        if move:
            indices = np.where(exists, places, 0)
            part = self.rows.partition[indices]
            places = indices + move
            exists = exists & (places >= self.rows.begins[part]) & (places < self.rows.ends[part])
        return self.columns[value].take(pa.array(np.where(exists, places, 0), mask=~exists))


@dataclass(frozen=True)
class Tester:
    """Evaluates conditions over columns, with Spark's semantics."""

    session: SparkSession

    def holds(self, text: str, columns: Mapping[str, pa.Array], types: Mapping[str, str], count: int) -> Flags:
        """Return which rows of some columns satisfy a condition."""
        if not count:
            return np.zeros(0, np.bool_)
        alone = next((name for name in columns if text == quoted(name)), None)
        if alone is not None:
            return _true(columns[alone])
        if not columns:
            columns, types = {TESTED: pa.array(np.ones(count, np.bool_))}, {TESTED: "boolean"}
        table = pa.table(dict(columns))
        parts = [self._computed(table.slice(at, FEW), text, types) for at in range(0, count, FEW)]
        return np.concatenate(parts)

    def _computed(self, table: pa.Table, text: str, types: Mapping[str, str]) -> Flags:
        fields = [(name, types[name]) for name in table.column_names]
        frame = LocalFrame.of(self.session, table, fields)
        rows = self.session.createDataFrame(table) if frame is None else frame
        wanted = f"{text} AS {TESTED}"
        try:
            answer = collected(rows.selectExpr(wanted))
        except Uncomputed:  # Spark reports the reason, or can compute it
            assert frame is not None
            answer = collected(frame.spark().selectExpr(wanted))
        return _true(whole_array(answer[TESTED].combine_chunks()))


def _true(column: pa.Array) -> Flags:
    if not pa.types.is_boolean(column.type):
        what = f"a condition in DEFINE is not BOOLEAN: its values have the type {column.type}"
        raise refuse("R174", what, "Compare it with a value, for example by > 0.")
    return np.asarray(pc.fill_null(column, fill_value=False), dtype=np.bool_)


@dataclass(frozen=True)
class Built:
    """The conditions of a pattern over the values of rows; ``numbers``: of its variables; ``shown``: their names."""

    conditions: Sequence[Condition]
    numbers: Mapping[str, int]
    shown: Sequence[str]
    values: Values
    tester: Tester

    @cached_property
    def for_matcher(self) -> Conditions:
        """Return the conditions in the matcher's form."""
        of_rows: dict[int, Flags] = {}
        of_paths: dict[int, list[Condition]] = {}
        for condition in self.conditions:
            number = self.numbers[condition.variable]
            if condition.of_row:
                mine = self._of_rows(condition)
                of_rows[number] = mine & of_rows.get(number, mine)
            else:
                of_paths.setdefault(number, []).append(condition)
        return Conditions(of_rows, {n: self._path_condition(some) for n, some in of_paths.items()}, self._running)

    def _of_rows(self, condition: Condition) -> Flags:
        every = np.arange(len(self.values.rows.times))
        picks = [slot for slot in condition.slots if isinstance(slot, Pick)]
        columns = {slot.column.name: self.values.at(to_spark(slot.value), every, slot.move) for slot in picks}
        return self.tester.holds(*self._test(condition, columns), len(every))

    def _test(
        self, condition: Condition, columns: Mapping[str, pa.Array]
    ) -> tuple[str, Mapping[str, pa.Array], Mapping[str, str]]:
        """A condition as text, and its columns with their types; a mean of decimals is a sum and a count (`Avg`)."""
        text = to_spark(condition.test)
        types = {slot.column.name: self.values.types[slot.column.name] for slot in condition.slots}
        for name in [name for name in types if f"{name}{COUNT}" in columns]:
            count, of = f"{name}{COUNT}", f"decimal(38,{columns[name].type.scale})"
            text = text.replace(quoted(name), average(quoted(name), quoted(count), of, types[name]))
            types |= {name: of, count: "bigint"}
        return text, columns, types

    @cached_property
    def _folds(self) -> list[Fold]:
        return [slot for condition in self.conditions for slot in condition.slots if isinstance(slot, Fold)]

    @cached_property
    def _running(self) -> list[Running]:
        rows, columns = self.values.rows, self.values.columns
        return [
            running(fold.function, columns[to_spark(fold.value)], rows.times, self._of(fold.variables))
            for fold in self._folds
        ]

    def _of(self, variables: Iterable[str]) -> frozenset[int]:
        return frozenset(self.numbers[name] for name in variables)

    def _path_condition(self, conditions: Sequence[Condition]) -> PathCondition:
        """Return the conditions of a variable: one after the other, each for the paths that the others leave."""
        slots = [slot for one in conditions for slot in one.slots]
        picks = [slot for slot in slots if isinstance(slot, Pick | MatchFunction) and not slot.of_row]
        picked = tuple(dict.fromkeys(one for slot in picks for one in self._read(slot)))
        folds = [self._folds.index(slot) for slot in slots if isinstance(slot, Fold)]

        def test(rows: Ints, places: Sequence[Ints], sums: Sequence[Table]) -> Flags:
            fits = np.ones(len(rows), np.bool_)
            for condition in conditions:
                left = np.flatnonzero(fits)
                columns: dict[str, pa.Array] = {}
                for slot in condition.slots:
                    name = slot.column.name
                    if isinstance(slot, Fold):
                        at = folds.index(self._folds.index(slot))
                        columns |= self._folded(
                            slot, {name: part.take(pa.array(left)) for name, part in sums[at].items()}
                        )
                    elif isinstance(slot, MatchFunction):
                        columns[name] = self._named(
                            slot, [places[picked.index(pick)][left] for pick in self._read(slot)]
                        )
                    else:
                        at_rows = rows if slot.of_row else places[picked.index(self._read(slot)[0])]
                        columns[name] = self.values.at(to_spark(slot.value), at_rows[left], slot.move)
                fits[left] = self.tester.holds(*self._test(condition, columns), len(left))
            return fits

        return PathCondition(picked, tuple(folds), test)

    def _read(self, slot: Pick | MatchFunction) -> list[Picked]:
        """The row that a slot means; to tell its variable, also those of each variable that it may be."""
        which, offset = slot.place
        mine = Picked(self._of(slot.variables), which != FIRST, offset)
        if isinstance(slot, Pick):
            return [mine]
        named = ((name, n) for name in slot.variables for n in range(offset + 1))
        return [mine, *(Picked(self._of([name]), which != FIRST, n) for name, n in named)]

    def _named(self, slot: MatchFunction, places: Sequence[Ints]) -> pa.Array:
        """The names of the variables as which rows were taken: of those whose own rows are the same."""
        mine, *others = places
        numbers = np.full(len(mine), NOTHING)
        for number, other in enumerate(others):
            numbers[(other == mine) & (mine != NOTHING)] = number // (slot.place[1] + 1)
        names = pa.array([self.shown[self.numbers[name]] for name in slot.variables], pa.string())
        return names.take(pa.array(numbers, mask=numbers == NOTHING))

    def _folded(self, slot: Fold, parts: Table) -> dict[str, pa.Array]:
        value = self._running[self._folds.index(slot)].value(parts)
        columns = {f"{slot.column.name}{more}": whole_array(part) for more, part in value.items()}
        if len(columns) == 1:
            columns[slot.column.name] = columns[slot.column.name].cast(arrow_of(self.values.types[slot.column.name]))
        return columns
