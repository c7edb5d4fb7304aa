"""Evaluates the conditions of DEFINE over the rows of many partitions, as the matcher needs them.

A condition over a row and its neighbours is computed for all rows at once. A condition over the match is computed in
each step, for all paths at a row of that variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import BROKEN, TESTED
from rowtime.core.errors import RowtimeError, refuse
from rowtime.frames.answers import ANSWERS
from rowtime.frames.catalyst import answered, part_of
from rowtime.frames.failures import of_a_value
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of, holds, named
from rowtime.frames.queries import Uncomputed
from rowtime.frames.words import Untranslated
from rowtime.kernels.exact import Overflow
from rowtime.kernels.frames import Flags, Ints
from rowtime.kernels.matching.rows import NOTHING, Conditions, PathCondition, Picked, Rows, Running
from rowtime.kernels.matching.running import BEYOND, running, whole_array
from rowtime.kernels.window_functions import Table
from rowtime.operators.patterns.slots import FIRST, Condition, Fold, MatchFunction, Pick
from rowtime.operators.rows.attempt import judged
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
class Reason:
    """Why a condition could not be computed: its ``text``, as a user writes it, and the first ``error``."""

    text: str
    error: BaseException


@dataclass(frozen=True)
class Tester:
    """Evaluates conditions over columns, with Spark's semantics."""

    session: SparkSession

    def tried(
        self, text: str, columns: Mapping[str, pa.Array], types: Mapping[str, str], count: int, beyond: Flags | None
    ) -> tuple[Flags, Flags, BaseException | None]:
        """Return which rows satisfy a condition, for which it cannot be computed, and an error of these.

        ``beyond``: rows in which a sum that the condition may read is beyond its type, and `BEYOND` is true.
        """
        error: BaseException | None = None if beyond is None else Overflow("a sum is beyond its type", beyond)
        if error is None:
            try:
                return self.holds(text, columns, types, count), np.zeros(count, np.bool_), None
            except RowtimeError:
                raise
            except Exception as wrong:
                if type(wrong) is not Uncomputed and not of_a_value(wrong):
                    raise
                error = wrong
        rows = self._frame(pa.table(dict(columns)), types)
        answer = judged(rows, [], {TESTED: text}, [(text, text)], []).toArrow()
        fails = np.asarray(pc.is_valid(answer[BROKEN]))
        if isinstance(error, Uncomputed) and fails.any() and ANSWERS.get() is None:
            error = self._reason(self._frame(pa.table(dict(columns)).filter(pa.array(fails)), types), text) or error
        return _true(whole_array(answer[TESTED].combine_chunks())), fails, error

    def _reason(self, rows: Any, text: str) -> BaseException | None:
        """Return what Spark says of a condition that it cannot compute for some rows, where there is a session."""
        try:
            answered(self.session, {part_of(self.session, f"{text} AS {TESTED}", rows.fields)[1]: rows.limit(1)})
        except (Uncomputed, Untranslated) as wrong:
            return wrong.__cause__
        return None

    def holds(self, text: str, columns: Mapping[str, pa.Array], types: Mapping[str, str], count: int) -> Flags:
        """Return which rows of some columns satisfy a condition."""
        if not count:
            return np.zeros(0, np.bool_)
        alone = next((name for name in columns if text == quoted(name)), None)
        if alone is not None:
            return _true(columns[alone])
        if not columns:
            columns, types = {TESTED: pa.array(np.ones(count, np.bool_))}, {TESTED: "boolean"}
        return self._computed(pa.table(dict(columns)), text, types)

    def _computed(self, table: pa.Table, text: str, types: Mapping[str, str]) -> Flags:
        answer = self._frame(table, types).selectExpr(f"{text} AS {TESTED}").toArrow()
        return _true(whole_array(answer[TESTED].combine_chunks()))

    def _frame(self, table: pa.Table, types: Mapping[str, str]) -> Frame:
        kinds = ((name, types[name]) for name in table.column_names)
        fields = [(name, kind if holds(kind) else named(kind)) for name, kind in kinds]
        return Frame.of(self.session, table, fields)


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
    reasons: list[Reason] = field(default_factory=list)
    """Why conditions could not be computed; their numbers are from 1 on."""

    @cached_property
    def for_matcher(self) -> Conditions:
        """Return the conditions in the matcher's form."""
        of_rows: dict[int, Flags] = {}
        broken: dict[int, Ints] = {}
        of_paths: dict[int, list[Condition]] = {}
        for condition in self.conditions:
            number = self.numbers[condition.variable]
            if condition.of_row:
                mine, reason = self._of_rows(condition)
                before = of_rows.get(number, np.ones(len(mine), np.bool_))
                of_rows[number] = mine & before
                if reason.any():
                    known = broken.get(number, np.zeros(len(mine), np.int64))
                    broken[number] = np.where((known == 0) & before, reason, known)
            else:
                of_paths.setdefault(number, []).append(condition)
        paths = {n: self._path_condition(some) for n, some in of_paths.items()}
        return Conditions(of_rows, paths, self._running, broken)

    def _of_rows(self, condition: Condition) -> tuple[Flags, Ints]:
        every = np.arange(len(self.values.rows.times))
        picks = [slot for slot in condition.slots if isinstance(slot, Pick)]
        columns = {slot.column.name: self.values.at(to_spark(slot.value), every, slot.move) for slot in picks}
        return self._tried(condition, columns, len(every))

    def _tried(
        self, condition: Condition, columns: Mapping[str, pa.Array], count: int, beyond: Mapping[str, Flags] = {}
    ) -> tuple[Flags, Ints]:
        """Return which rows satisfy a condition, and the reason for which it cannot be computed.

        ``beyond``: by the name of a sum, the rows in which it is beyond its type.
        """
        text, columns, types = self._test(condition, columns)
        for name, which in beyond.items():
            if which.any():
                flag, sums = f"{name}{BEYOND}", quoted(name)
                failing = f"IF({quoted(flag)}, CAST(raise_error('beyond') AS {types[name]}), {sums})"
                text, columns, types = (
                    text.replace(sums, failing),
                    {**columns, flag: pa.array(which)},
                    {**types, flag: "boolean"},
                )
        some = [which for which in beyond.values() if which.any()]
        any_of = np.logical_or.reduce(some) if some else None
        fits, fails, error = self.tester.tried(text, columns, types, count, any_of)
        if error is None or not fails.any():
            return fits, np.zeros(count, np.int64)
        self.reasons.append(Reason(condition.shown, error))
        return fits & ~fails, np.where(fails, len(self.reasons), 0)

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

        def test(rows: Ints, places: Sequence[Ints], sums: Sequence[Table]) -> tuple[Flags, Ints]:
            fits, broken = np.ones(len(rows), np.bool_), np.zeros(len(rows), np.int64)
            for condition in conditions:
                left = np.flatnonzero(fits)
                columns: dict[str, pa.Array] = {}
                beyond: dict[str, Flags] = {}
                for slot in condition.slots:
                    name = slot.column.name
                    if isinstance(slot, Fold):
                        at = folds.index(self._folds.index(slot))
                        parts = {name: part.take(pa.array(left)) for name, part in sums[at].items()}
                        columns |= self._folded(slot, parts)
                        if BEYOND in parts:
                            beyond[name] = np.asarray(parts[BEYOND])
                    elif isinstance(slot, MatchFunction):
                        columns[name] = self._named(
                            slot, [places[picked.index(pick)][left] for pick in self._read(slot)]
                        )
                    else:
                        at_rows = rows if slot.of_row else places[picked.index(self._read(slot)[0])]
                        columns[name] = self.values.at(to_spark(slot.value), at_rows[left], slot.move)
                fits[left], broken[left] = self._tried(condition, columns, len(left), beyond)
            return fits, broken

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
