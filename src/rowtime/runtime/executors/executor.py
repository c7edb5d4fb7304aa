"""Where the work of a tick is computed: in tasks of Spark, as one job, or in this process, as tasks would."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from rowtime.core.columns import WRITER
from rowtime.core.threads import processors
from rowtime.frames.answers import Answers
from rowtime.frames.queries import SETTINGS
from rowtime.runtime.executors.catalyst_steps import GroupRows, Questions, groups_wanted, together
from rowtime.runtime.executors.levels import (
    PIECE,
    computed_keys,
    computed_part,
    computed_whole,
    in_pieces,
    put_together,
    tried_part,
    tried_whole,
)
from rowtime.runtime.executors.places import places
from rowtime.runtime.executors.scans import FEW, Form, Read, StreamScan, apart, in_one_task, read_here, united
from rowtime.runtime.executors.steps import AllWanted
from rowtime.runtime.executors.work import computed, tried
from rowtime.runtime.route_rows import BLOCK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL: Final = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:,.*)?\]|-cluster\[\s*\d+\s*,\s*(?P<of_each>\d+).*\])?")


@dataclass(frozen=True)
class Job:
    """A tick in levels: ``packed`` work for ``many`` tasks of level 0, then ``keyed`` ones by keys, if any, and one.

    ``alone``: there is only level 0, so the process of the driver folds what its tasks report. ``scans``: what Spark
    reads for them; ``first``, ``last``: what the first and the last level ask Spark.
    """

    packed: bytes
    many: int
    keyed: int
    alone: bool
    scans: Sequence[StreamScan]
    first: Questions
    last: Questions


_PIECES: Final = "place int, to int, part int, piece int, body binary"


class Executor(Protocol):
    """Computes packed work, and returns the packed report.

    ``few``: rows of a tick that one task computes; ``few_bytes``: so much of level 0 goes to one task; ``few_written``:
    one task writes the rows of a sink, if each task of level 0 would write less than this number, and these are more
    than ``few_files``.
    """

    few: int
    few_bytes: int
    few_written: int
    few_files: int

    def tasks(self, spark: SparkSession) -> int:
        """Return how many tasks run at once."""
        ...

    def by_keys(self, spark: SparkSession) -> int:
        """Return how many tasks of keys a tick may have."""
        ...

    def whole(self, spark: SparkSession, packed: bytes, scans: Sequence[StreamScan], questions: Questions) -> bytes:
        """Compute work in one task, over what Spark reads for it, and with the questions to Spark."""
        ...

    def divided(self, spark: SparkSession, job: Job) -> bytes:
        """Compute work in several tasks (`levels`)."""
        ...


@dataclass(frozen=True)
class SparkJob:
    """One job of Spark."""

    few: int = FEW
    few_bytes: int = PIECE
    few_written: int = BLOCK
    few_files: int = 4

    def tasks(self, spark: SparkSession) -> int:
        """Return the number of cores of all executors."""
        return int(spark.sparkContext.defaultParallelism)

    def by_keys(self, spark: SparkSession) -> int:
        """Return the number of tasks; none if one executor has all cores, because one task uses all of them."""
        master = _LOCAL.fullmatch(_master(spark))
        many, alone = self.tasks(spark), master is not None and not master["of_each"]
        return 0 if alone or many <= cores_of(spark) else many

    def whole(self, spark: SparkSession, packed: bytes, scans: Sequence[StreamScan], questions: Questions) -> bytes:
        """Compute work in one task."""
        streams, cores = {one.stream: one.form for one in scans}, cores_of(spark)

        def last_step(step: Callable[..., Iterator[pa.RecordBatch]], questions: Questions) -> bytes:
            rows = questions.chained(spark, in_one_task(spark, scans), partial(_trial, packed, streams, cores))
            reports = rows.mapInArrow(partial(step, packed, streams, cores, questions), "report binary")
            report: bytes = reports.toArrow()["report"][0].as_py()
            return report

        def last_trial(questions: Questions) -> GroupRows:
            wanted: GroupRows = pickle.loads(last_step(_last_trial, questions))  # noqa: S301 - our own
            return wanted

        return last_step(_task, questions.trying_groups(spark, last_trial))

    def divided(self, spark: SparkSession, job: Job) -> bytes:
        """Compute work in one to three stages, with a shuffle between them."""
        packed, streams, cores, last = (
            job.packed,
            {one.stream: one.form for one in job.scans},
            cores_of(spark),
            job.last,
        )
        rows = united(spark, job.scans).coalesce(job.many) if job.scans else spark.range(0, job.many, 1, job.many)
        rows = job.first.chained(spark, rows, partial(_part_trial, packed, streams))
        parts = rows.mapInArrow(partial(_part, packed, streams, job.first, job.keyed), _PIECES)
        if job.alone:
            return computed_whole(packed, _given(parts.toArrow().to_batches())[0], last.answers({}), last=0)
        if job.keyed:
            parts = parts.repartition(job.keyed, "place").mapInArrow(partial(_keys, packed, last), _PIECES)
        given = last.chained(spark, parts.repartition(1), partial(_rest_trial, packed, cores))
        reports = given.mapInArrow(partial(_rest, packed, cores, last), "report binary")
        report: bytes = reports.toArrow()["report"][0].as_py()
        return report


@dataclass(frozen=True)
class InProcess:
    """The driver's process; ``parts``: of a tick, which are computed one after the other."""

    parts: int = 1
    few: int = 0
    few_bytes: int = 0
    few_written: int = 0
    few_files: int = 0

    def tasks(self, spark: SparkSession) -> int:  # noqa: ARG002 - the contract's
        """Return the number of parts."""
        return self.parts

    def by_keys(self, spark: SparkSession) -> int:
        """Return the same."""
        return self.tasks(spark)

    def whole(self, spark: SparkSession, packed: bytes, scans: Sequence[StreamScan], questions: Questions) -> bytes:
        """Compute work as one task."""
        read = partial(read_here, scans)
        values = questions.values_here(spark, partial(tried, packed, read))
        return computed(packed, read, questions.answers(values))

    def divided(self, spark: SparkSession, job: Job) -> bytes:
        """Compute the parts, the last one first, then those of keys in the same way, and then the rest."""
        packed, keyed, first, last = job.packed, job.keyed, job.first, job.last
        scanned, rows = read_here(job.scans), list[tuple[int, int, int, bytes]]()
        for n in reversed(range(job.many)):
            read = partial(_of_some_writers, scanned, n, job.many)
            values = first.values_here(spark, partial(tried_part, packed, n, read))
            for to, body in enumerate(computed_part(packed, n, read, first.answers(values), keyed)):
                rows += in_pieces(to, n, body)
        if keyed:
            by_task, rows = put_together(rows), []
            for n in reversed(range(keyed)):
                rows += in_pieces(0, n, computed_keys(packed, n, by_task[n], last.answers({})))
        given = put_together(rows)[0]
        values = {} if job.alone else last.values_here(spark, partial(tried_whole, packed, given))
        return computed_whole(packed, given, last.answers(values), last=int(not job.alone))


def cores_of(spark: SparkSession) -> int:
    """Return how many cores an executor has; 0 for all of its machine."""
    master = _LOCAL.fullmatch(_master(spark))
    if master is None:
        return int(spark.conf.get("spark.executor.cores", "0") or "0")
    return int(master["of_each"] or (master["cores"] or "1").replace("*", "0"))


def _master(spark: SparkSession) -> str:
    return spark.conf.get("spark.master", "") or ""


def _of_some_writers(read: Read, number: int, many: int) -> Read:
    """Return the rows of each ``many``-th writer."""

    def some(table: pa.Table) -> pa.Table:
        writers = sorted(table[WRITER].unique().to_pylist())[number::many]
        return table.filter(pc.is_in(table[WRITER], pa.array(writers, table[WRITER].type)))

    return {name: [*map(some, tables)] for name, tables in read.items()}


# -- in tasks of Spark ------------------------------------------------------------------------


def _trial(
    packed: bytes, streams: Mapping[str, Form], cores: int, batches: Iterable[pa.RecordBatch], answers: Answers
) -> AllWanted | None:
    _settle(cores)
    return tried(packed, partial(apart, streams, batches), answers)


def _last_trial(
    packed: bytes, streams: Mapping[str, Form], cores: int, questions: Questions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    read, values = questions.apart([*batches], questions.rounds)
    more = _trial(packed, streams, cores, read, questions.answers(values))
    yield _reported(pickle.dumps(groups_wanted(more)))


def _task(
    packed: bytes, streams: Mapping[str, Form], cores: int, questions: Questions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    _settle(cores)
    read, values = questions.apart([*together(batches)], questions.rounds)
    yield _reported(computed(packed, partial(apart, streams, read), questions.answers(values)))


def _part_trial(
    packed: bytes, streams: Mapping[str, Form], batches: Iterable[pa.RecordBatch], answers: Answers
) -> AllWanted | None:
    _settle(1)
    return tried_part(packed, _number(), partial(apart, streams, batches), answers)


def _part(
    packed: bytes, streams: Mapping[str, Form], questions: Questions, keyed: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    _settle(1)
    read, values = questions.apart([*together(batches)], questions.rounds)
    answers = questions.answers(values)
    bodies = computed_part(packed, _number(), partial(apart, streams, read), answers, keyed)
    for to, (place, body) in enumerate(zip(places(len(bodies)), bodies, strict=True)):
        yield from _sent(place, to, _number(), body)


def _keys(packed: bytes, questions: Questions, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do the work of the tasks of keys whose rows are in this partition."""
    _settle(1)
    for number, given in _given(batches).items():
        yield from _sent(0, 0, number, computed_keys(packed, number, given, questions.answers({})))


def _sent(place: int, to: int, number: int, body: bytes) -> Iterator[pa.RecordBatch]:
    for *numbers, piece in in_pieces(to, number, body):
        columns = [*(pa.array([n], pa.int32()) for n in (place, *numbers)), pa.array([piece], pa.binary())]
        yield pa.record_batch(columns, names=["place", "to", "part", "piece", "body"])


def _rest_trial(packed: bytes, cores: int, batches: Iterable[pa.RecordBatch], answers: Answers) -> AllWanted | None:
    _settle(cores)
    return tried_whole(packed, _given(batches)[0], answers)


def _rest(
    packed: bytes, cores: int, questions: Questions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    _settle(cores)
    given, values = questions.apart([*together(batches)], questions.rounds)
    if given:
        yield _reported(computed_whole(packed, _given(given)[0], questions.answers(values)))


def _given(batches: Iterable[pa.RecordBatch]) -> dict[int, list[bytes]]:
    """Return what the tasks before gave to those of this partition."""
    rows = [
        row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns[1:5]), strict=True)
    ]
    return put_together(rows)


def _number() -> int:
    task = TaskContext.get()
    assert task is not None
    return task.partitionId()


def _reported(report: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([report], pa.binary())], names=["report"])


def _settle(cores: int) -> None:
    """Let DuckDB use so many cores: those of the executor, if the task has no other beside it."""
    SETTINGS["threads"] = min(cores or processors(), processors())
