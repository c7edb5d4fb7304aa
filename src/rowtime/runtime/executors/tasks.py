"""Ticks whose operators step in a task of Spark: the driver sends the work, and receives the report."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowtime.core.log import LOG
from rowtime.frames.catalyst import Answers, Part
from rowtime.frames.queries import SETTINGS
from rowtime.operators.contract import Delta
from rowtime.operators.streams.table import tables_of
from rowtime.runtime.executors.catalyst_steps import MOST_ROUNDS, Questions
from rowtime.runtime.executors.scans import (
    Form,
    StreamScan,
    apart,
    by_spark,
    in_one_task,
    read_here,
    scans_of,
    without_rows,
    without_sources,
)
from rowtime.runtime.executors.steps import AllWanted, Steps
from rowtime.runtime.executors.work import Report, Work, computed, tried
from rowtime.runtime.intake import Taken
from rowtime.runtime.late_session import NeedsSparkError, describe_jobs
from rowtime.runtime.sinks.staging import Stage
from rowtime.runtime.sources.contract import Source
from rowtime.runtime.sources.files import FilesSource
from rowtime.runtime.tick import RunningTick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[["SparkSession", bytes, Sequence[StreamScan], Questions], bytes]
"""Computes packed work over what Spark reads for it, and with the questions to Spark; returns the packed report."""
TRIES: Final = 3  # ticks in a row that a task could not compute, until no further one is sent


class LeftToDriver(Exception):
    """A task could not compute a tick; its files are removed, and the driver computes it."""


class MoreQuestions(LeftToDriver):
    """A task wants Spark to say more of some expressions; its files are removed, and the tick is sent again."""


def in_a_task(spark: SparkSession, packed: bytes, scans: Sequence[StreamScan], questions: Questions) -> bytes:
    """Compute packed work in one task, as one job; other tasks of the job read for it."""
    streams = {one.stream: one.form for one in scans}
    rows = questions.chained(spark, in_one_task(spark, scans), partial(_trial, packed, streams))
    reports = rows.mapInArrow(partial(_task, packed, streams, questions), "report binary")
    report: bytes = reports.toArrow()["report"][0].as_py()
    return report


def in_process(spark: SparkSession, packed: bytes, scans: Sequence[StreamScan], questions: Questions) -> bytes:
    """Compute packed work in this process, as a task would."""
    read = partial(read_here, scans)
    values = questions.values_here(spark, partial(tried, packed, read))
    return computed(packed, read, questions.answers(values))


def _trial(
    packed: bytes, streams: Mapping[str, Form], batches: Iterable[pa.RecordBatch], answers: Answers
) -> AllWanted | None:
    _settle()
    return tried(packed, partial(apart, streams, batches), answers)


def _task(
    packed: bytes, streams: Mapping[str, Form], questions: Questions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    _settle()
    read, values = questions.apart([*batches], questions.rounds)
    report = computed(packed, partial(apart, streams, read), questions.answers(values))
    yield pa.record_batch([pa.array([report], pa.binary())], names=["report"])


def _settle() -> None:
    """Let DuckDB use the cores of the task."""
    from pyspark import TaskContext  # noqa: PLC0415 - runs on an executor

    context = TaskContext.get()
    SETTINGS["threads"] = context.cpus() if context is not None else 1


class Tasks:
    """Sends ticks to Spark's tasks, as ``run`` does; ``needs``: why the driver computes those of this plan."""

    def __init__(self, run: Run = in_a_task) -> None:
        self.run = run
        self._failed = 0
        self._left = -1  # the tick that the driver computes
        self.needs = ""
        self._questions, self._rehearsed = Questions(), False

    def over(self, sources: Iterable[Source]) -> Tasks:
        """Return these; tasks make the copies of plain text, too."""
        for source in sources:
            if isinstance(source, FilesSource):
                source.copied.late = True
        return self

    def done(
        self,
        running: RunningTick,
        steps: Steps,
        entry: Mapping[str, Any],
        taken: Mapping[str, Taken],
        stages: Mapping[str, Stage],
    ) -> tuple[dict[str, Delta], dict[str, int]] | None:
        """Return the clocks after each operator, and counted rows; ``None`` if the driver has to compute the tick.

        Raises ``LeftToDriver`` if a task has begun to compute it.
        """
        tick = None if self.needs or running.number == self._left else running.begun(entry)
        if tick is None or any(table.is_due(running) for table in tables_of(steps.operators)):
            return None
        try:
            scans = scans_of(running.spark, taken)
        except NeedsSparkError as needs:
            self._note(str(needs), always=True)
            return None
        self._questions = self._questions.of(running.spark)
        types = {node.name: running.types(node) for node in steps.operators}
        portable = {name: stage.portable() for name, stage in stages.items()}
        work = Work(tick, steps, taken, portable, types)
        try:
            self._rehearse(running.spark, work)
            report = self._report(running, work, scans)
        except NeedsSparkError as needs:
            self._note(str(needs), always=True)
            return None
        if report.wanted:
            raise self._ask(running, report.wanted, report.rounds)
        if report.outcome is None:
            self._left = running.number
            self._note(report.failed, always=report.always)
            raise LeftToDriver(report.failed)
        self._failed = 0
        running.take(report.outcome)
        return {name: Delta(None, clocks) for name, clocks in report.clocks.items()}, dict(report.given)

    def _rehearse(self, spark: SparkSession, work: Work) -> None:
        """Find out what the ticks of this plan ask Spark, by a tick without rows in this process."""
        if self._rehearsed:
            return
        tick = replace(work.tick, entry={**work.tick.entry, "segments": {}, "sums": {}})
        empty = replace(work, tick=tick, taken=without_rows(spark, work.taken)).packed()
        self._questions = self._questions.rehearsed(spark, partial(tried, empty, dict))
        self._rehearsed = True
        if self._questions.rounds > MOST_ROUNDS:
            raise NeedsSparkError(f"{self._questions.rounds} values of Spark that depend on each other")

    def _report(self, running: RunningTick, work: Work, scans: Sequence[StreamScan]) -> Report:
        """Send work; if Spark has to decode some rows, send it again, with all rows decoded."""
        packed = replace(work, taken=without_sources(work.taken, scans)).packed()
        describe_jobs(running.spark, f"tick {running.number} · all operators")
        report: Report = pickle.loads(self.run(running.spark, packed, scans, self._questions))  # noqa: S301 - our own task's
        return self._report(running, work, by_spark(running.spark, work.taken)) if report.undecoded else report

    def _ask(self, running: RunningTick, parts: Mapping[Part, bool], rounds: int) -> LeftToDriver:
        """Ask Spark more from this tick on; return what the tick ends with."""
        before, self._questions = self._questions, self._questions.more(running.spark, parts, rounds)
        why = f"values that only Spark computes: {', '.join(part.sql for part in parts)}"
        if before != self._questions and self._questions.rounds <= MOST_ROUNDS:
            return MoreQuestions(why)
        self._note(why, always=True)
        return LeftToDriver(why)

    def _note(self, why: str, *, always: bool) -> None:
        self._failed += 1
        if always or self._failed >= TRIES:
            self.needs = why
        LOG.info("the driver computes a tick: %s", why, extra={"event": "driver"})
