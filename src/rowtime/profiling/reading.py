"""Reads the rows of a target in Spark's tasks, once, and counts them there.

Files that any process can read are read by the tasks themselves, one column of them; other sources by a scan of Spark.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from rowtime.api.pipeline import Pipeline
from rowtime.core.columns import ARRIVAL, BOUND, CLOCK_NAME, IS_BAD, KEY_HASH, MALFORMED, POSITION, ROWTIME, WRITER
from rowtime.core.errors import refuse
from rowtime.core.stores import place_of
from rowtime.operators.contract import quoted
from rowtime.plan.formats.lake import LAKES
from rowtime.profiling.clocks import FREE
from rowtime.profiling.stretches import Counted, Reading, counted
from rowtime.profiling.targets import Target
from rowtime.runtime.executors.scans import reads_itself, waiting
from rowtime.runtime.late_session import again_with_spark
from rowtime.runtime.quiet import hiding
from rowtime.runtime.session import active
from rowtime.runtime.sources.contract import Limits, Slice, Source
from rowtime.runtime.sources.partition_values import ROWS_BITS
from rowtime.sql.generate import to_spark
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES: Final = ("parquet", "csv", "json", *LAKES)
_NAMING: Final = ("STRING", "INT", "BIGINT")
"""Types of values that have the same text for Arrow and Spark."""
_REPORT: Final = "report binary"


@dataclass(frozen=True)
class Input:
    """What is read beside the times: ``writer``, the column that names a clock, and the columns ``key`` of a key."""

    writer: str | None = None
    key: tuple[str, ...] = ()


class Reader:
    """Reads a target; a context manager, because it has a scratch folder."""

    def __init__(self, pipeline: Pipeline, target: Target, also: Input) -> None:
        self.target, self.also = target, also
        self._folder = tempfile.TemporaryDirectory(prefix="rowtime-profile-")
        place = Checkpoint(place_of(self._folder.name))
        self.spark: SparkSession = pipeline.session(target.program, place.folder)
        self.source: Source = pipeline.sources(target.program, place)[target.stream.name]
        self.parts: list[Slice] = []
        self._check()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()
        self._folder.cleanup()

    @property
    def files(self) -> dict[str, str]:
        """Return the paths of the files by their numbers, as texts."""
        return {str(n): path for part in self.parts for n, path, *_ in part.detail.get("files", ())}

    @property
    def reading(self) -> Reading:
        """Return how rows are read by Spark."""
        of_files = self.target.stream.source[0] in _FILES
        writer = next(iter(self.parts[0].end), "") if self.parts and self.target.stream.single else ""
        return Reading(writer, ROWS_BITS if of_files else 0, free=FREE)

    def read(self, *, ordered: bool = False, early: int | None = None) -> list[Counted]:
        """Return what each task has counted; ``ordered``: all rows of a writer in one task, behind a guard ``early``.

        Raises ``Failure`` (R501) if the source cannot be read.
        """
        with hiding(self.target.program.secrets), active(self.spark):
            return again_with_spark(self.spark, partial(self._read, ordered=ordered, early=early))

    def _read(self, *, ordered: bool, early: int | None) -> list[Counted]:
        if not self.parts:
            self.parts = self._ranges()
        if not self.parts:
            return []
        reading = replace(self.reading, ordered=ordered, early=early)
        column = self._plain_time()
        shares = None if column is None else self._shares(1 if ordered else self._tasks)
        if column is not None and shares is not None:
            gapless = replace(reading, gapless=True)
            task = partial(_shares_task, pickle.dumps(shares), column, self.also.writer, gapless)
            jobs = self.spark.range(0, len(shares), 1, len(shares)).mapInArrow(task, _REPORT)
        else:
            jobs = by_spark(self._rows(), reading, self._tasks)
        return [pickle.loads(report) for report in jobs.toArrow()["report"].to_pylist()]  # noqa: S301 - our own

    @property
    def _tasks(self) -> int:
        return int(self.spark.sparkContext.defaultParallelism)

    def _ranges(self) -> list[Slice]:
        """Return what the source has now; what comes meanwhile is not read."""
        parts: list[Slice] = []
        at: Mapping[str, int] = {}
        state: Mapping[str, Any] = {}
        while True:
            part, state = self.source.discover(at, Limits(), state)
            if part.empty:
                return parts
            parts.append(part)
            if self.target.stream.source[0] not in LAKES:  # one range has everything
                return parts
            at = part.end

    def _check(self) -> None:
        """Refuse (R103) columns that the stream does not have."""
        names = {column.name.lower() for column in self.target.stream.columns}
        for name in filter(None, (self.also.writer, *self.also.key)):
            if name.lower() not in names:
                have = ", ".join(column.name for column in self.target.stream.columns)
                raise refuse("R103", f"{self.target.stream.name} has no column {name}", f"Its columns are {have}.")

    def _plain_time(self) -> str | None:
        """Return the column of the times, if rows need nothing else that Spark computes."""
        stream = self.target.stream
        kinds = {column.name.lower(): column.type.upper() for column in stream.columns}
        if not self.target.column or self.also.key or stream.demands:
            return None
        if self.also.writer and kinds[self.also.writer.lower()] not in _NAMING:
            return None
        return self.target.column if kinds[self.target.column.lower()] == "TIMESTAMP" else None

    def _shares(self, many: int) -> list[tuple[Source, Slice]] | None:
        """Return parts of the range that tasks read themselves, each of which goes on where the one before ends."""
        if len(self.parts) != 1 or not reads_itself(self.source, self.parts[0]) or waiting(self.source) is not None:
            return None
        division = self.source.divided(self.parts[0], many)
        return None if division is None else [*division.parts]

    def _rows(self) -> DataFrame:
        """Return the columns to count, of all rows, by a scan of Spark."""
        frames = [self._columns(self._scanned(part)) for part in self.parts]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return whole

    def _scanned(self, part: Slice) -> DataFrame:
        if (copies := waiting(self.source)) is not None:
            copies.leave()
        return self.source.scan(self.spark, part).by_spark.rows

    def _columns(self, rows: DataFrame) -> DataFrame:
        target, passed = self.target, [WRITER, POSITION, ARRIVAL]
        if BOUND in rows.columns:
            rows = rows.where(f"{BOUND} IS NULL")
        extra = [f"{_refused(rows, target)} AS {IS_BAD}"]
        if self.also.writer:
            extra.append(f"CAST({quoted(self.also.writer)} AS STRING) AS {CLOCK_NAME}")
        if self.also.key:
            extra.append(f"xxhash64({', '.join(map(quoted, self.also.key))}) AS {KEY_HASH}")
        rows = rows.selectExpr("*", *extra)
        names = [CLOCK_NAME] * bool(self.also.writer) + [KEY_HASH] * bool(self.also.key)
        for step in target.steps:
            if step.where is not None:
                rows = rows.where(f"CASE WHEN {to_spark(step.where)} THEN true ELSE false END")
            items = [item.sql for item in (*step.items, *step.hidden)]
            rows = rows.selectExpr(*items, *(name for name in (ROWTIME, *passed, IS_BAD, *names)))
        return rows.selectExpr(*_counted_columns(target, self.also, single=target.stream.single))


def _refused(rows: DataFrame, target: Target) -> str:
    """Return Spark SQL: whether the stream refuses a row that does not decode or breaks a rule."""
    conditions = [f"{MALFORMED} IS NOT NULL"] if MALFORMED in rows.columns else []
    conditions += [f"NOT coalesce({demand}, true)" for _, demand in target.stream.demands]
    return " OR ".join(conditions) or "false"


def _counted_columns(target: Target, also: Input, *, single: bool) -> list[str]:
    columns = [f"{POSITION} AS p", f"unix_micros(CAST({target.time} AS TIMESTAMP)) AS t"]
    columns += [f"unix_micros({ARRIVAL}) AS a"]
    columns += (
        [f"{IS_BAD} AS bad"] if target.stream.demands or target.stream.source[0] not in ("parquet", "log") else []
    )
    columns += [] if single else [f"{WRITER} AS w"]
    columns += [f"unix_micros({target.judged}) AS j"] if target.judged is not None else []
    columns += [f"{CLOCK_NAME} AS k"] if also.writer else []
    if also.key:
        columns.append(f"xxhash64({WRITER}, unix_micros(CAST({target.time} AS TIMESTAMP)), {KEY_HASH}) AS h")
    return columns


def by_spark(rows: DataFrame, reading: Reading, tasks: int) -> DataFrame:
    """Return the reports of tasks over rows that Spark reads; in order, each writer's in one task."""
    if reading.ordered:
        by_writer = ["w"] if "w" in rows.columns else []
        many = tasks if by_writer else 1
        rows = rows.repartition(many, *by_writer) if by_writer else rows.repartition(1)
        rows = rows.sortWithinPartitions(*by_writer, "p")
    return rows.mapInArrow(partial(_rows_task, reading), _REPORT)


def _reported(result: Counted) -> pa.RecordBatch:
    return pa.record_batch([pa.array([pickle.dumps(result)], pa.binary())], names=["report"])


def _rows_task(reading: Reading, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield _reported(counted(batches, reading))


def _shares_task(
    packed: bytes, column: str, writer: str | None, reading: Reading, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    shares: Sequence[tuple[Source, Slice]] = pickle.loads(packed)  # noqa: S301 - our own
    for batch in batches:
        for number in batch.columns[0].to_pylist():
            source, part = shares[number]
            yield _reported(counted(_tables(source, part, column, writer), reading))


def _tables(source: Source, part: Slice, column: str, writer: str | None) -> Iterator[pa.Table]:
    """Yield the columns to count of the rows of a part."""
    given = source.given(part, {column, *([writer] if writer else [])})
    assert given is not None
    for table in given[1]:
        columns = {"w": table[WRITER], "p": table[POSITION], "t": _micros(table[column]), "a": _micros(table[ARRIVAL])}
        if writer:
            columns["k"] = table[writer].cast(pa.string())
        yield pa.table(columns)


def _micros(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
