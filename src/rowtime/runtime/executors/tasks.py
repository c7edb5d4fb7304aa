"""Ticks whose operators step in a task of Spark: the driver sends the work, and receives the report."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowtime.core.log import LOG
from rowtime.core.threads import processors
from rowtime.frames.answers import Answers, Part
from rowtime.frames.queries import SETTINGS, Uncomputed
from rowtime.operators.contract import Delta
from rowtime.operators.streams.computed_once import loaded
from rowtime.runtime.close_look import fails_for_a_value
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
_LOCAL: Final = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:,.*)?\]|-cluster\[\s*\d+\s*,\s*(?P<of_each>\d+).*\])?")
TRIES: Final = 3  # ticks in a row that a task could not compute, until no further one is sent


class LeftToDriver(Exception):
    """A task could not compute a tick; its files are removed, and the driver computes it."""


class ValueFails(Uncomputed):
    """A value of a tick may have failed in a task; its files are removed."""


class MoreQuestions(LeftToDriver):
    """A task wants Spark to say more of some expressions; its files are removed, and the tick is sent again."""


def in_a_task(spark: SparkSession, packed: bytes, scans: Sequence[StreamScan], questions: Questions) -> bytes:
    """Compute packed work in one task, as one job; other tasks of the job read for it."""
    streams, cores = {one.stream: one.form for one in scans}, cores_of(spark)
    rows = questions.chained(spark, in_one_task(spark, scans), partial(_trial, packed, streams, cores))
    reports = rows.mapInArrow(partial(_task, packed, streams, cores, questions), "report binary")
    report: bytes = reports.toArrow()["report"][0].as_py()
    return report


def in_process(spark: SparkSession, packed: bytes, scans: Sequence[StreamScan], questions: Questions) -> bytes:
    """Compute packed work in this process, as a task would."""
    read = partial(read_here, scans)
    values = questions.values_here(spark, partial(tried, packed, read))
    return computed(packed, read, questions.answers(values))


def _trial(
    packed: bytes, streams: Mapping[str, Form], cores: int, batches: Iterable[pa.RecordBatch], answers: Answers
) -> AllWanted | None:
    _settle(cores)
    return tried(packed, partial(apart, streams, batches), answers)


def _task(
    packed: bytes, streams: Mapping[str, Form], cores: int, questions: Questions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    _settle(cores)
    read, values = questions.apart([*batches], questions.rounds)
    report = computed(packed, partial(apart, streams, read), questions.answers(values))
    yield pa.record_batch([pa.array([report], pa.binary())], names=["report"])


def cores_of(spark: SparkSession) -> int:
    """Return how many cores an executor has; 0 for all of its machine."""
    master = _LOCAL.fullmatch(spark.conf.get("spark.master", "") or "")
    if master is None:
        return int(spark.conf.get("spark.executor.cores", "0") or "0")
    return int(master["of_each"] or (master["cores"] or "1").replace("*", "0"))


def _settle(cores: int) -> None:
    """Let DuckDB use the cores of the executor: the only task of a tick has no other beside it."""
    SETTINGS["threads"] = min(cores or processors(), processors())


class Tasks:
    """Sends ticks to Spark's tasks, as ``run`` does; ``needs``: why the driver computes those of this plan."""

    def __init__(self, run: Run = in_a_task) -> None:
        self.run = run
        self._failed = 0
        self._left = -1  # the tick that the driver computes
        self.needs = ""
        self._questions, self._rehearsed = Questions(), False
        self._looking: tuple[int, Questions] = -1, self._questions  # those of a tick that is examined row by row

    def over(self, sources: Iterable[Source]) -> Tasks:
        """Return these; tasks make the copies of plain text, too."""
        for source in sources:
            if isinstance(source, FilesSource):
                source.copied.late = True
        return self

    def done(  # noqa: PLR0913 - a tick
        self,
        running: RunningTick,
        steps: Steps,
        entry: Mapping[str, Any],
        taken: Mapping[str, Taken],
        stages: Mapping[str, Stage],
        looks: bool,  # noqa: FBT001 - as above
    ) -> tuple[dict[str, Delta], dict[str, int]] | None:
        """Return the clocks after each operator, and counted rows; ``None`` if the driver has to compute the tick.

        ``looks``: it is examined row by row. Raises ``LeftToDriver`` if a task has begun to compute it, and
        ``ValueFails`` if that has failed for a value.
        """
        tick = None if self.needs or running.number == self._left else running.begun(entry)
        if tick is None:
            return None
        if loaded(running, steps.operators):
            tick = running.begun({**entry, **running.entry()})
            assert tick is not None
        try:
            scans = scans_of(running.spark, taken)
        except NeedsSparkError as needs:
            self._note(str(needs), always=True)
            return None
        self._questions = self._questions.of(running.spark)
        types = {node.name: running.types(node) for node in steps.operators}
        portable = {name: stage.portable() for name, stage in stages.items()}
        work = Work(tick, steps, taken, portable, types, looks)
        try:
            self._rehearse(running.spark, work)
            questions = self._questions_of(running, looks=looks)
            report = self._report(running, work, scans, questions)
        except NeedsSparkError as needs:
            self._note(str(needs), always=True)
            return None
        except Exception as error:  # of an aggregate: nothing around one prevents that
            if not fails_for_a_value(error) or not any(part.groups for part in questions.parts):
                raise
            raise (
                self._leave(running, str(error), looks=True, always=False) if looks else ValueFails(str(error))
            ) from error
        if report.wanted:
            more = questions.more(running.spark, report.wanted, report.rounds)
            if not report.by_value:
                raise self._ask(running, questions, more, report.wanted, looks=looks)
            self._looking = running.number, more
        if report.by_value:
            raise ValueFails(report.failed)
        if report.outcome is None:
            raise self._leave(running, report.failed, looks=looks, always=report.always)
        self._failed = 0
        running.take(report.outcome)
        return {name: Delta(None, clocks) for name, clocks in report.clocks.items()}, dict(report.given)

    def _rehearse(self, spark: SparkSession, work: Work) -> None:
        """Find out what the ticks of this plan ask Spark, by a tick without rows in this process."""
        if self._rehearsed or work.looks:
            return
        tick = replace(work.tick, entry={**work.tick.entry, "segments": {}, "sums": {}})
        empty = replace(work, tick=tick, taken=without_rows(spark, work.taken)).packed()
        self._questions = self._questions.rehearsed(spark, partial(tried, empty, dict))
        self._rehearsed = True
        if self._questions.rounds > MOST_ROUNDS:
            raise NeedsSparkError(f"{self._questions.rounds} values of Spark that depend on each other")

    def _report(self, running: RunningTick, work: Work, scans: Sequence[StreamScan], questions: Questions) -> Report:
        """Send work; if Spark has to decode some rows, send it again, with all rows decoded."""
        packed = replace(work, taken=without_sources(work.taken, scans)).packed()
        describe_jobs(running.spark, f"tick {running.number} · all operators")
        report: Report = pickle.loads(self.run(running.spark, packed, scans, questions))  # noqa: S301 - our own task's
        if not report.undecoded:
            return report
        return self._report(running, work, by_spark(running.spark, work.taken), questions)

    def _questions_of(self, running: RunningTick, *, looks: bool) -> Questions:
        """Return what Spark is asked in a tick: that of the plan, and what its failing values need."""
        number, questions = self._looking
        return questions if looks and number == running.number else self._questions

    def _ask(
        self, running: RunningTick, before: Questions, questions: Questions, parts: Collection[Part], *, looks: bool
    ) -> LeftToDriver:
        """Ask Spark more, from this tick on or, if it ``looks``, only in it; return what the tick ends with."""
        why = f"values that only Spark computes: {', '.join(part.sql for part in parts)}"
        if questions == before or questions.rounds > MOST_ROUNDS:
            return self._leave(running, why, looks=looks, always=True)
        if looks:
            self._looking = running.number, questions
        else:
            self._questions = questions
        return MoreQuestions(why)

    def _leave(self, running: RunningTick, why: str, *, looks: bool, always: bool) -> LeftToDriver:
        """Leave a tick to the driver; return what it ends with."""
        self._left = running.number
        if not looks:  # others may have no value that fails
            self._note(why, always=always)
        return LeftToDriver(why)

    def _note(self, why: str, *, always: bool) -> None:
        self._failed += 1
        if always or self._failed >= TRIES:
            self.needs = why
        LOG.info("the driver computes a tick: %s", why, extra={"event": "driver"})
