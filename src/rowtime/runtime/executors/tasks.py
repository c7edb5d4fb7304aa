"""Ticks whose operators step in a task of Spark: the driver sends the work, and receives the report."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rowtime.core.log import LOG
from rowtime.frames.answers import Part
from rowtime.frames.frame import MOST
from rowtime.frames.queries import Uncomputed
from rowtime.operators.contract import Delta
from rowtime.operators.streams.computed_once import loaded
from rowtime.plan.levels import Levels
from rowtime.runtime.clock_pass.pieces import Marks
from rowtime.runtime.close_look import fails_for_a_value, note_left
from rowtime.runtime.executors.catalyst_steps import Questions
from rowtime.runtime.executors.executor import Executor, Job, SparkJob
from rowtime.runtime.executors.levels import Divided
from rowtime.runtime.executors.parts import Call
from rowtime.runtime.executors.scans import StreamScan, by_spark, scans_of, without_rows, without_sources
from rowtime.runtime.executors.steps import Steps
from rowtime.runtime.executors.work import Report, Work, tried
from rowtime.runtime.intake import Taken
from rowtime.runtime.late_session import NeedsSparkError, describe_jobs
from rowtime.runtime.sinks.staging import Stage
from rowtime.runtime.sources.attempts import Attempts
from rowtime.runtime.sources.contract import Source
from rowtime.runtime.sources.files import FilesSource
from rowtime.runtime.tick import RunningTick
from rowtime.state.shards import SHARDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Starts = Mapping[Call, Mapping[int, Marks]]
_RECEIVED: Final = 64 << 20  # bytes that a task gets from those before it, if the ticks are not to get smaller
_MOST_SHARES: Final = 8
TRIES: Final = 3  # ticks in a row that a task could not compute, until no further one is sent


class LeftToDriver(Exception):
    """A task could not compute a tick; its files are removed, and the driver computes it."""


class ValueFails(Uncomputed):
    """A value of a tick may have failed in a task; its files are removed."""


class MoreQuestions(LeftToDriver):
    """A task wants Spark to say more of some expressions; its files are removed, and the tick is sent again."""


class Undivided(LeftToDriver):
    """Several tasks could not compute a tick; their files are removed, and it is sent again."""


class Tasks:
    """Sends ticks to Spark's tasks; ``needs``: why the driver computes those of this plan."""

    def __init__(self, executor: Executor | None = None) -> None:
        self.executor = SparkJob() if executor is None else executor
        self._failed = 0
        self._left = -1  # the tick that the driver computes
        self.needs = ""
        self._questions, self._rehearsed = Questions(), False
        self._looking: tuple[int, Questions] = -1, self._questions  # those of a tick that is examined row by row
        self._whole = -1  # the tick that one task computes
        self._starts: tuple[int, Starts] = -1, {}  # the tick that is divided again
        self._divides = Attempts()
        self._leaves: frozenset[str] = frozenset()  # marks of expressions that are left to Spark
        self._wrote: Mapping[str, int] = {}  # by sink, the rows of the last tick that was divided
        self._exchanged: int | None = None  # bytes between levels in the last tick that was divided
        self._alone = False  # a tick could not be divided
        self.shares = 1
        """How many times as many rows the next tick may take as one task: twice as many after each divided tick."""

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
        work = Work(tick, steps, taken, portable, types, looks, left=self._leaves)
        try:
            self._rehearse(running.spark, work)
            questions = self._questions_of(running, looks=looks)
            report = None if looks else self._divided(running, work, scans)
            report = report or self._report(running, work, scans, questions)
        except NeedsSparkError as needs:
            self._note(str(needs), always=True)
            return None
        except Exception as error:  # of an aggregate: nothing around one prevents that
            if not fails_for_a_value(error) or not any(part.groups for part in questions.parts):
                raise
            raise (
                self._leave(running, str(error), looks=True, always=False) if looks else ValueFails(str(error))
            ) from error
        if report.left:
            raise self._leave_to_spark(report)
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
        running.meter.spread = report.spread
        return {name: Delta(None, clocks) for name, clocks in report.clocks.items()}, dict(report.given)

    def _rehearse(self, spark: SparkSession, work: Work) -> None:
        """Find out what the ticks of this plan ask Spark, by a tick without rows in this process."""
        if self._rehearsed or work.looks:
            return
        tick = replace(work.tick, entry={**work.tick.entry, "segments": {}, "sums": {}})
        empty = replace(work, tick=tick, taken=without_rows(spark, work.taken)).packed()
        self._questions = self._questions.rehearsed(spark, partial(tried, empty, dict))
        self._rehearsed = True

    def _divided(self, running: RunningTick, work: Work, scans: Sequence[StreamScan]) -> Report | None:
        """Send work to several tasks; return the report, ``None`` if one task has to compute it.

        Raises ``Undivided`` if some have begun to compute it.
        """
        number, spark, few, levels = running.number, running.spark, self.executor.few, work.steps.levels
        if _at_most(work.taken, few):
            return None
        sinks = [work.stages[node.name] for node in levels.first if node.name in work.stages]
        floors = [sink for sink in sinks if sink.floor is not None]  # they turn away rows that a table has had before
        again = self._starts[0] == number
        if number == self._whole or not levels.first or floors or not (again or self._divides.worth()):
            self.shares = 1
            return None
        taken = without_sources(work.taken, scans)
        rows = max((of.part.rows or 0 for of in taken.values()), default=0)
        many = max(self.executor.tasks(spark), -(-rows // MOST))
        divided = None if many == 1 else Divided.by_spark(taken) if scans else Divided.of(taken, many)
        if divided is None:
            self.shares = 2 if many > 1 and not self._alone else 1  # perhaps it has one file, and the next one has two
            self._alone = True
            return None
        many = len(divided.parts) or many
        levels = Levels.of(work.steps.operators, self._with_few(levels, many, work))
        work = replace(work, steps=replace(work.steps, levels=levels))
        keyed = self._keyed(levels, min(self.executor.by_keys(spark), SHARDS))
        divided = replace(divided, starts=self._starts[1] if again else {}, keyed=keyed)
        describe_jobs(spark, f"tick {number} · all operators")
        packed, (first, last) = replace(work, taken=taken, divided=divided).packed(), self._questions.in_levels(levels)
        job = Job(packed, many, keyed, levels.alone and not last.rounds, scans, first, last)
        report: Report = pickle.loads(self.executor.divided(spark, job))  # noqa: S301 - our own
        self._exchanged = report.exchanged or self._exchanged
        if report.left:
            return report
        if not report.starts and not report.undivided and not report.undecoded:
            self._note_written(report, work.stages)
            self.shares = _grown(self.shares, self.executor.tasks(spark), report.largest)
            return report  # it may want more of Spark
        if report.starts and not again:
            self._starts = number, report.starts
            raise Undivided("the marks before the rows of a task")
        self._whole, self.shares = number, 1
        self._divides.failed()
        why = report.undivided or ("records that only Spark decodes" if report.undecoded else "late rows")
        LOG.info("one task computes a tick: %s", why, extra={"event": "driver"})
        raise Undivided(why)

    def _with_few(self, levels: Levels, many: int, work: Work) -> list[str]:
        """Return the sinks of level 0 for which each of so many tasks would write a small file, if that makes many.

        They are judged by the last divided tick or, before there is one, by the rows that are read.
        """
        if many <= self.executor.few_files:
            return []
        read = [of.part.rows for of in work.taken.values()]
        most = sum(filter(None, read)) if None not in read else many * self.executor.few_written
        sinks = [node.name for node in levels.first if node.name in work.stages]
        return [name for name in sinks if self._wrote.get(name, most) < many * self.executor.few_written]

    def _note_written(self, report: Report, sinks: Iterable[str]) -> None:
        """Note how many rows each sink had."""
        if report.outcome is not None:
            staged = report.outcome[0]["outputs"]
            wrote = {name: of["count"] - of.get("gathered", 0) for name, of in staged.items()}
            self._wrote = {name: wrote.get(name, 0) for name in sinks}

    def _keyed(self, levels: Levels, many: int) -> int:
        """Return how many tasks of keys a tick has: none if the rows for them are few, or if they would ask Spark."""
        few = self._exchanged is not None and self._exchanged < self.executor.few_bytes
        nodes = (*levels.shared, *(reader for _, reader in levels.combining_handed()))
        asks = any(node.name in self._questions.asking for node in nodes)
        return 0 if few or asks or not levels.keyed else many

    def _report(self, running: RunningTick, work: Work, scans: Sequence[StreamScan], questions: Questions) -> Report:
        """Send work; if Spark has to decode some rows, send it again, with all rows decoded."""
        packed = replace(work, taken=without_sources(work.taken, scans)).packed()
        describe_jobs(running.spark, f"tick {running.number} · all operators")
        report: Report = pickle.loads(self.executor.whole(running.spark, packed, scans, questions))  # noqa: S301 - our own
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
        if questions == before:
            return self._leave(running, why, looks=looks, always=True)
        if looks:
            self._looking = running.number, questions
        else:
            self._questions = questions
        return MoreQuestions(why)

    def _leave_to_spark(self, report: Report) -> LeftToDriver:
        """Leave an expression to Spark from this tick on; return what the tick ends with."""
        self._leaves |= {report.left}
        self._rehearsed = False
        why = report.undivided or report.failed
        note_left(why)
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


def _grown(shares: int, tasks: int, largest: int) -> int:
    """Return the shares of the tick after a divided one: fewer if a task got so many bytes of it."""
    if largest > _RECEIVED:
        return max(shares // 2, 1)
    return min(2 * shares, tasks, _MOST_SHARES) if 2 * largest <= _RECEIVED else shares


def _at_most(taken: Mapping[str, Taken], few: int) -> bool:
    """Return True if a tick has at most so many rows, which one task computes sooner."""
    rows = [of.part.rows for of in taken.values()]
    return None not in rows and sum(rows) <= few  # type: ignore[arg-type]
