"""Starts a program on a checkpoint, new or not, after all checks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowtime.core.errors import Problem, Refused
from rowtime.core.small_ticks import SmallTicks
from rowtime.plan.program import Program
from rowtime.plan.upgrade import upgrade_of
from rowtime.runtime.claims import let_leave
from rowtime.runtime.engine import Engine
from rowtime.runtime.executors.tasks import Tasks
from rowtime.runtime.faults import naming_disks
from rowtime.runtime.first_start import FirstStart
from rowtime.runtime.function_pins import check, keep
from rowtime.runtime.late_session import again_with_spark
from rowtime.runtime.schema_checks import schema_problems
from rowtime.runtime.session import active, page_of
from rowtime.runtime.sources.contract import Limits
from rowtime.runtime.upgrades import check_delivered, holding
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.api.pipeline import Pipeline


@dataclass(frozen=True)
class Start:
    """A program to start on a checkpoint; ``ends`` and ``available_now`` as in `Engine`, ``take_over`` as given."""

    program: Program
    place: Checkpoint
    limits: Limits
    ends: bool
    available_now: bool
    take_over: Collection[str]


def started(pipeline: Pipeline, start: Start, renewed: Collection[str] = ()) -> Engine:
    """Return an engine that has opened the checkpoint; ``renewed``: functions that are meant to have changed."""
    program, place = start.program, start.place
    check_plan(place, program)  # first of all: where it is refused, nothing is written
    spark = pipeline.session(_with_all_pumps(pipeline, start), place.folder)
    with active(spark), naming_disks(place.folder, "Then start again."):

        def begun() -> Engine:
            return _acquired(pipeline, spark, start, check_with_spark(pipeline, program, place, spark, renewed))

        return again_with_spark(spark, begun)


def check_plan(place: Checkpoint, program: Program, *, delivered: bool = False) -> None:
    """Raise ``Refused`` (R401) if a checkpoint cannot go on with a program.

    ``delivered``: also (R408) if a sink that is gone then lacks rows, which the program cannot bring.
    """
    if (old := place.plan) is not None and (last := place.journal.last()) is not None:
        upgrade = upgrade_of(old, program, holding(last))
        if delivered and upgrade is not None:
            check_delivered(place, last, upgrade)


def check_with_spark(
    pipeline: Pipeline, program: Program, place: Checkpoint, spark: SparkSession, renewed: Collection[str] = ()
) -> Mapping[str, Any] | None:
    """Return what to store of the functions of a program; raises ``Refused`` for problems that only Spark finds."""
    if problems := pipeline.check_types(program, spark) or _check_schemas(pipeline, program, place, spark):
        raise Refused(*problems)
    return check(place, pipeline.prints(program, spark), renewed)


def _check_schemas(pipeline: Pipeline, program: Program, place: Checkpoint, spark: SparkSession) -> list[Problem]:
    """Return the mismatches with registry schemas at a first start; later schemas may have other fields."""
    has_begun = place.journal.last() is not None
    return [] if has_begun else schema_problems(program, pipeline.home.path, spark)


def _with_all_pumps(pipeline: Pipeline, start: Start) -> Program:
    """Return the program with its stopped pumps, for the session: what they need cannot be added while it runs."""
    program = start.program
    if not program.stopped:
        return program
    try:
        orders = program.orders.with_all(program.stopped)
        return pipeline.compile(start.place.folder, orders=orders, imports=True)
    except Refused:
        return program


def _acquired(pipeline: Pipeline, spark: SparkSession, start: Start, pinned: Mapping[str, Any] | None) -> Engine:
    place, engine = start.place, None
    place.acquire()
    place.announce(page_of(spark))
    try:
        keep(place, pinned)
        with FirstStart(start.program, pipeline.home, place) as first:
            engine = _begun(pipeline, spark, start)
            first.perform()
    except BaseException:
        if engine is not None:
            engine.stop()
        place.release()
        raise
    engine.settle = first.settle
    return engine


def _begun(pipeline: Pipeline, spark: SparkSession, start: Start) -> Engine:
    """Return an engine that has opened the checkpoint."""
    program, place = start.program, start.place
    sources, stages = pipeline.sources(program, place), pipeline.stages(program, place)
    engine = Engine(spark, program, place, sources, stages, start.limits, start.ends, start.available_now)
    engine.tables = pipeline.given_tables(program)
    engine.tasks = Tasks().over(sources.values()) if pipeline.small_ticks is SmallTicks.SPARK else None
    engine.take_over = {*(name.lower() for name in start.take_over), *program.take_over}
    engine.start()
    try:
        let_leave(place, pipeline.home, engine.clock())
    except BaseException:
        engine.stop()
        raise
    return engine
