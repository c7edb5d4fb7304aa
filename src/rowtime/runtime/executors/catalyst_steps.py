"""Steps of Catalyst inside the job of a tick, for expressions without a translation (`frames.catalyst`).

The job is a chain in one partition: a *trial* computes the tick up to the first values that only Spark can compute, and
sends these on; Catalyst computes them; the next trial goes on from the beginning with the answers, up to the next such
values; the last step computes the tick. Trials write to a folder that is removed. A tick whose last step wants more is
computed again with one more trial, and so are all ticks after it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from rowtime.core.columns import ASKED_GROUP, ASKED_PASSED, ASKED_ROW
from rowtime.frames.answers import Answers, Call, Part
from rowtime.frames.attempted import TRIED_VALUE, attempted
from rowtime.frames.builtin import spark_functions
from rowtime.frames.catalyst import any_kind_of, computed_by
from rowtime.frames.collation_keys import key_column
from rowtime.frames.kinds import spark_type
from rowtime.frames.queries import Uncomputed
from rowtime.frames.words import Untranslated
from rowtime.operators.contract import functions
from rowtime.runtime.executors.steps import AllWanted
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from rowtime.plan.levels import Levels

_LONGEST: Final = 50  # rehearsals of one plan; more values that depend on each other are met in its first ticks
_ROUND, _OPERATOR, _TIMES, _PART = (f"__asked_{name}" for name in ("round", "operator", "times", "part"))
_OWN: Final = f"{_ROUND} int, {_OPERATOR} string, {_TIMES} int, {_PART} int, {ASKED_GROUP} bigint"
_NUMBER: Final = "monotonically_increasing_id()"
Trial = Callable[[Iterable[pa.RecordBatch], Answers], AllWanted | None]
"""Computes a tick over the rows that Spark reads for it, without results; returns what it wants."""
Values = Mapping[Call, Mapping[Part, pa.Array | None]]

GroupRows = Mapping[Call, Mapping[Part, pa.Table]]
"""The rows for which aggregates that are tried are wanted."""


def groups_wanted(more: AllWanted | None) -> GroupRows:
    """Return for which rows a trial wants aggregates that are tried."""
    rows_by_call: dict[Call, Mapping[Part, pa.Table]] = {}
    for one in more.wanted if more is not None else ():
        pairs = zip(one.parts, one.rows or (), strict=False)  # none if types are wanted
        tried = {part: rows for part, rows in pairs if part.tries_groups and rows.num_rows}
        rows_by_call |= {one.call: tried} if tried else {}
    return rows_by_call


@dataclass(frozen=True)
class Questions:
    """What Spark is asked in the ticks of a plan: types of expressions, and in rounds the values of ``parts``.

    ``asking``: by operator, in how many rounds, with those of the operators below it. ``given``: values that are known.
    ``when``: in which rounds a part is asked for, after those that it depends on.
    """

    functions: frozenset[str] = frozenset()
    kinds: Mapping[Part, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    asking: Mapping[str, int] = field(default_factory=dict)
    given: Values = field(default_factory=dict)
    when: Mapping[Part, frozenset[int]] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """Return the number of rounds."""
        return max(self.asking.values(), default=0)

    def of(self, spark: SparkSession) -> Questions:
        """Return it with the names of Spark's functions."""
        return self if self.functions else replace(self, functions=spark_functions(spark))

    def in_levels(self, levels: Levels) -> tuple[Questions, Questions]:
        """Return what the tasks of level 0 ask, and what that of level 1 does.

        Rows of level 0 are in several partitions, so no aggregate is asked for there.
        """
        first = {node.name for node in levels.first}
        readers = {reader.name for _, reader in levels.combining()}
        below = max((rounds for name, rounds in self.asking.items() if name in first), default=0)
        of_first = {name: rounds for name, rounds in self.asking.items() if name in first | readers}
        others = {name: max(rounds - below, 1) for name, rounds in self.asking.items() if name not in first}
        of_rows = tuple(part for part in self.parts if not part.groups)
        later = {part: frozenset(max(number - below, 0) for number in numbers) for part, numbers in self.when.items()}
        return replace(self, parts=of_rows, asking=of_first), replace(self, asking=others, when=later)

    def more(self, spark: SparkSession, parts: Mapping[Part, bool], rounds: Mapping[str, int]) -> Questions:
        """Return what is asked from now on, without a job: types of ``parts``, and values of those marked."""
        kinds = {**self.kinds, **{part: _kind(spark, part) for part in parts if part not in self.kinds}}
        valued = [part for part, wanted in parts.items() if wanted and kinds[part]]
        new = [part for part in valued if part not in self.parts]
        asking = {**self.asking}
        for name, number in rounds.items() if valued else ():
            asking[name] = max(number, asking.get(name, 0))
        now = {part: {number - 1 for number in rounds.values() if number} for part in valued}
        more = replace(self, kinds=kinds, parts=(*self.parts, *new), asking=asking)
        return more.timed(now)

    def timed(self, when: Mapping[Part, Collection[int]]) -> Questions:
        """Return it with more rounds in which parts are asked for."""
        return replace(self, when={**self.when, **{p: self.when.get(p, frozenset()) | {*of} for p, of in when.items()}})

    def rehearsed(self, spark: SparkSession, trial: Callable[[Answers], AllWanted | None]) -> Questions:
        """Return what a ``trial`` of a tick without rows asks, found without a job."""
        questions = self
        for _ in range(_LONGEST):
            answers, before = questions.answers({}), questions
            more = trial(answers)
            questions = questions if more is None else questions.more(spark, more.parts, more.rounds)
            questions = questions.timed(answers.rounds)
            if questions == before:
                break
        return questions

    def answers(self, values: Values) -> Answers:
        """Return the answers for a process without a session."""
        return Answers(self.functions, self.kinds, _merged(self.given, values))

    def trying_groups(self, spark: SparkSession, last_trial: Callable[[Questions], GroupRows]) -> Questions:
        """Return the questions of a tick's job, with the values of the aggregates that are tried.

        One that fails would end the job, so these take jobs of their own. ``last_trial``: a job that computes the tick,
        and returns the groups for which its last trial wants such aggregates.
        """
        questions = replace(self, parts=tuple(part for part in self.parts if not part.tries_groups))
        for _ in range(self.rounds if questions != self else 0):
            values: dict[Call, Mapping[Part, pa.Array | None]] = {}
            for call, tried in last_trial(questions).items():
                values[call] = dict(zip(tried, computed_by(spark, [*tried], [*tried.values()]), strict=True))
            if not values:
                break
            questions = replace(questions, given=_merged(questions.given, values))
        return questions

    def values_here(self, spark: SparkSession, trial: Callable[[Answers], AllWanted | None]) -> Values:
        """Return the values of all rounds, with jobs of their own."""
        values: dict[Call, Mapping[Part, pa.Array | None]] = {}
        for _ in range(self.rounds):
            more = trial(self.answers(values))
            for one in more.wanted if more is not None else ():
                needed = {part: rows for part, rows in zip(one.parts, one.rows or (), strict=False) if rows.num_rows}
                try:
                    computed = computed_by(spark, [*needed], [*needed.values()])
                    values[one.call] = dict(zip(needed, computed, strict=True))
                except Uncomputed:
                    values[one.call] = dict.fromkeys(needed)
        return values

    # -- the chain ------------------------------------------------------------------------------

    def chained(self, spark: SparkSession, rows: DataFrame, trial: Trial) -> DataFrame:
        """Return ``rows``, of one partition, and after them the values of all rounds."""
        others = [n for n, part in enumerate(self.parts) if not part.calls]
        for number in range(self.rounds):
            calling = [n for n, part in enumerate(self.parts) if part.calls and number in self.when.get(part, ())]
            rows = self._tried(rows, trial, number, calling[:1])
            for n in calling:
                if n != calling[0]:
                    rows = rows.mapInArrow(partial(alone, number, n), rows.schema)
                rows = self._with_values(spark, rows, number, n)
            if calling and others:
                rows = rows.mapInArrow(together, rows.schema)
            for n in others:
                rows = self._with_values(spark, rows, number, n)
        return rows

    def _with_values(self, spark: SparkSession, rows: DataFrame, number: int, n: int) -> DataFrame:
        part = self.parts[n]
        compute = self._aggregated if part.groups else partial(self._computed, spark)
        return compute(rows, f"{_ROUND} = {number} AND {_PART} = {n}", n, part)

    def _tried(self, rows: DataFrame, trial: Trial, number: int, only: Sequence[int]) -> DataFrame:
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - Spark
        from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - Spark

        schema = rows.schema
        if not number:
            own = StructType.fromDDL(_OWN)
            assert isinstance(own, StructType)
            schema = StructType([StructField(of.name, of.dataType) for of in (*schema.fields, *own.fields)])
            for n, part in enumerate(self.parts):
                schema = schema.add(_given(n), _struct(part))
                schema = schema.add(_value(n), StructType().add(TRIED_VALUE, spark_type(self.kinds[part])))
        wanted = partial(self._wanted, trial, number, to_arrow_schema(schema, timezone="UTC"), only)
        return rows.mapInArrow(wanted, schema)

    @staticmethod
    def _computed(spark: SparkSession, rows: DataFrame, mine: str, n: int, part: Part) -> DataFrame:
        """Return the rows with the values of a part where ``mine`` holds."""
        value, given = _value(n), functions.col(_given(n))
        named = rows.select("*", *(given[f"c{at}"].alias(name) for at, (name, _) in enumerate(part.columns)))
        if part.is_row:
            named = named.select("*", functions.expr(part.sql).alias(ASKED_ROW))
            computed = functions.struct(functions.col(ASKED_ROW).alias(TRIED_VALUE))
        elif part.key:
            computed = functions.struct(key_column(spark, part).alias(TRIED_VALUE))
        else:
            computed = attempted(spark, [part.sql])
        tried = functions.when(functions.expr(mine), computed).otherwise(functions.col(value))
        return named.select(*(tried.alias(value) if name == value else quoted(name) for name in rows.columns))

    @staticmethod
    def _aggregated(rows: DataFrame, mine: str, n: int, part: Part) -> DataFrame:
        """Return the rows, with one row for each group of those where ``mine`` holds, which has its aggregate.

        The rows of a group are in their order: they come group by group, and Spark does not change the order of equal
        rows when it sorts.
        """
        value, given = _value(n), functions.col(_given(n))
        apart = functions.when(functions.expr(f"NOT coalesce({mine}, false)"), functions.expr(_NUMBER)).alias(
            ASKED_PASSED
        )
        named = rows.select("*", apart, *(given[f"c{at}"].alias(name) for at, (name, _) in enumerate(part.columns)))
        by = (ASKED_PASSED, _ROUND, _OPERATOR, _TIMES, _PART, ASKED_GROUP)
        call = functions.struct(functions.expr(part.sql).alias(TRIED_VALUE))
        first = {name: functions.first(quoted(name)) for name in rows.columns if name not in by}
        first[value] = functions.when(functions.col(ASKED_PASSED).isNull(), call).otherwise(first[value])
        groups = named.groupBy(*by)
        return groups.agg(*(of.alias(name) for name, of in first.items())).select(*map(quoted, rows.columns))

    def _wanted(
        self, trial: Trial, number: int, schema: pa.Schema, only: Sequence[int], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Pass rows on, and after them those whose values a trial of the tick wants; runs on an executor.

        ``only``: the part that may be computed next for no other rows, if there is one.
        """
        rows = self._passed_and_wanted(trial, number, schema, [*together(batches)])
        yield from alone(number, only[0], rows) if only else rows

    def _passed_and_wanted(
        self, trial: Trial, number: int, schema: pa.Schema, passed: Sequence[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        read, values = self.apart(passed, number)
        more = trial(read, self.answers(values))
        for batch in filter(len, passed):
            yield from _as(schema, pa.Table.from_batches([batch])).to_batches()
        for one in more.wanted if more is not None else ():
            operator, times = one.call
            for part, rows in zip(one.parts, one.rows or (), strict=False):  # none if types are wanted
                if part not in self.parts or (part.calls and number not in self.when.get(part, ())):
                    continue  # a call that is not due yet is wanted again in its round
                n, count = self.parts.index(part), rows.num_rows
                columns = {ASKED_GROUP: rows[ASKED_GROUP] if part.groups else pa.array(range(count), pa.int64())}
                columns[_given(n)] = _structs(rows, schema.field(_given(n)).type)
                for name, value in {_ROUND: number, _OPERATOR: operator, _TIMES: times, _PART: n}.items():
                    columns[name] = pa.repeat(pa.scalar(value, schema.field(name).type), count)
                table = pa.table(columns)
                yield from _as(schema, table).to_batches(max_chunksize=10_000)

    def apart(self, batches: Sequence[pa.RecordBatch], rounds: int) -> tuple[list[pa.RecordBatch], Values]:
        """Return the rows that Spark has read, and the values of so many rounds."""
        if not rounds:
            return [*batches], {}
        whole = pa.Table.from_batches(batches)
        read = whole.filter(pc.is_null(whole[_ROUND]))
        values: defaultdict[Call, dict[Part, pa.Array | None]] = defaultdict(dict)
        for n, part in enumerate(self.parts):
            mine = whole.filter(pc.equal(whole[_PART], n))
            calls = dict.fromkeys(zip(mine[_OPERATOR].to_pylist(), mine[_TIMES].to_pylist(), strict=True))
            for operator, times in calls:
                rows = mine.filter(pc.and_(pc.equal(mine[_OPERATOR], operator), pc.equal(mine[_TIMES], times)))
                tried = rows.sort_by(ASKED_GROUP)[_value(n)]
                if part.tries:
                    values[operator, times][part] = part.values(tried, self.kinds[part])
                elif tried.null_count:
                    values[operator, times][part] = None
                else:
                    values[operator, times][part] = part.values(pc.struct_field(tried, 0), self.kinds[part])
        return read.select([name for name in read.column_names if not name.startswith("__asked")]).to_batches(), values


def _merged(values: Values, more: Values) -> Values:
    return {call: {**values.get(call, {}), **more.get(call, {})} for call in {**values, **more}}


def alone(number: int, part: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass on only the rows of a part in a round, because no function of the user may be called for others.

    The others are in a file until the next step of this task; Spark removes its folder. Runs on an executor.
    """
    given = [*together(batches)]
    file = _aside()
    with pa.OSFile(str(file), "wb") as sink:
        others: pa.RecordBatchWriter | None = None
        for batch in given:
            mine = pc.and_(pc.equal(batch[_ROUND], number), pc.equal(batch[_PART], part))
            mine = pc.fill_null(mine, fill_value=False)
            others = others or pa.ipc.new_stream(sink, batch.schema)
            others.write_batch(batch.filter(pc.invert(mine)))
            if any(mine.to_pylist()):
                yield batch.filter(mine)
        if others is not None:
            others.close()


def together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass on rows, and those that `alone` has kept aside before; runs on an executor."""
    yield from [*batches]
    file = _aside()
    if file.exists() and file.stat().st_size:
        with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as kept:
            yield from kept
    file.unlink(missing_ok=True)


def _aside() -> Path:
    task = TaskContext.get()
    assert task is not None
    return Path(os.environ["SPARK_LOCAL_DIRS"].partition(",")[0]) / f"rowtime-aside-{task.taskAttemptId()}.arrow"


def _as(schema: pa.Schema, table: pa.Table) -> pa.Table:
    """Return a table with the columns of a schema; a missing one is NULL."""
    columns = [
        table[of.name].cast(of.type) if of.name in table.column_names else pa.nulls(table.num_rows, of.type)
        for of in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema).combine_chunks()


def _structs(rows: pa.Table, kind: pa.StructType) -> pa.Array:
    fields = [kind.field(at) for at in range(kind.num_fields)]
    columns = [rows.column(at).cast(of.type).combine_chunks() for at, of in enumerate(fields)]
    return pa.StructArray.from_arrays(columns, fields=fields)


def _kind(spark: SparkSession, part: Part) -> str:
    try:
        return any_kind_of(spark, part)
    except Untranslated:
        return ""


def _struct(part: Part) -> StructType:
    from pyspark.sql.types import StructType  # noqa: PLC0415 - Spark

    struct = StructType()
    for at, (_, kind) in enumerate(part.columns):
        struct = struct.add(f"c{at}", spark_type(kind))
    return struct


def _given(n: int) -> str:
    return f"__asked_given{n}"


def _value(n: int) -> str:
    return f"__asked_value{n}"
