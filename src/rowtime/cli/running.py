"""What ``rowtime run`` does with a script: shows its warnings and plans, runs it, and stops it at a signal."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import typer
from pyspark.logger import PySparkLogger

from rowtime.api.pipeline import Pipeline
from rowtime.cli.display import Display
from rowtime.cli.explain import explained_as_json, explained_as_text
from rowtime.cli.figures import UNREADABLE, Figures
from rowtime.cli.logs import LogTo
from rowtime.cli.outcome import write_json
from rowtime.cli.ui import beside
from rowtime.client.home_users import CHECKPOINTS
from rowtime.core.counts import counted
from rowtime.core.errors import Failure, Problem, Refused, RowtimeError
from rowtime.core.stores import place_of
from rowtime.plan.formats.files import MODE_OF_RECORDS
from rowtime.plan.lateness import late_rows
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.files import make_private
from rowtime.state.pump_orders import waiting

if TYPE_CHECKING:
    from rowtime.api.query import Query
    from rowtime.plan.program import Program

_START = "rowtime alter --checkpoint {} -e 'ALTER PUMP * START'"
POLL = 0.2  # seconds between two checks whether the run has ended or should


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PySpark's log off standard error while the command runs.

    It also logs errors that it raises, and warns of pandas, which rowtime does not use for rows. For callers from
    Python, the logger is restored.
    """
    spark = PySparkLogger.getLogger("SQLQueryContextLogger")
    level = spark.level
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    spark.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        spark.setLevel(level)


@_quiet()
def run_script(
    script: str,
    checkpoint: str | None,
    name: str,
    home: str | None,
    settings: dict[str, str],
    conf: Mapping[str, str],
    how: dict[str, Any],
    log: LogTo,
    *,
    console: bool,
    as_json: bool,
) -> None:
    """Run a script with a checkpoint that is named after it, unless another is given; ``how``: as for `start`."""
    pipeline = Pipeline(home=home, conf=conf, small_ticks=how.pop("small_ticks"))
    pipeline.sql(script, settings).renewed(*how.pop("renewed"))
    most_refused = how.pop("most_refused")
    folder = checkpoint or str(pipeline.home.path / CHECKPOINTS / name)
    program = pipeline.compile(folder, imports=True)
    log.secrets = program.secrets
    _warn(program.warnings, as_json)
    _explain(program, as_json)
    if program.explains and not program.sinks:
        return
    if stray := pipeline.home.stray(stream.name for stream in program.defines):
        _warn([stray], as_json)
    defines = {stream.name: stream.as_json() for stream in program.defines}
    _warn(pipeline.home.replaced(defines, program.drops, folder), as_json)
    with _traceback_kept(folder):
        idle = not program.sinks and not program.stopped
        if idle and (program.defines or program.actions or program.drops or program.dropped_schemas):
            _define(program, pipeline, folder, as_json)
            return
        follow = _run_as_json if as_json else _run_with_display
        with beside(folder, pipeline.home, settings) if console else nullcontext():
            figures = follow(pipeline, program, folder, how)
    if how["available_now"]:
        _check_read(program, figures)
    if most_refused is not None:
        _check_refused(figures, most_refused)


def _check_read(program: Program, figures: Figures) -> None:
    """Raise ``Failure`` (R526) if this run and those before have only set files aside, unless ``mode`` permits that."""
    modes = {stream.name: dict(stream.source[1]) for stream in program.streams}
    given = {name: {key.lower() for key in options} for name, options in modes.items()}
    unread = {name: many for name, many in figures.unread.items() if MODE_OF_RECORDS not in given.get(name, ())}
    if unread and not figures.rows_in:
        files = ", ".join(f"{counted(many, 'files')} of {name}" for name, many in unread.items())
        raise Failure(Problem("R526", f"no row was read, because files were set aside (R520): {files}", hint=_ASIDE))


def _check_refused(figures: Figures, most: float) -> None:
    """Raise ``Failure`` (R527) if a gate has refused more than a share of the rows of the run."""
    shares = {gate: (sum(figures.refused[gate].values()), figures.ledger[gate]["in"]) for gate in figures.refused}
    over = [f"{refused:,} of {rows:,} at {gate}" for gate, (refused, rows) in shares.items() if refused > most * rows]
    if over:
        what = f"more rows were refused than --fail-on-refused {most:g} permits: {', '.join(over)}"
        raise Failure(Problem("R527", what, hint=_REFUSED))


_REFUSED: Final = (
    "They are in the rejected stream of the gate, with the reason. `rowtime status` says which WITHIN would have kept "
    "late rows, `rowtime profile` what each one keeps and costs."
)
_ASIDE: Final = (
    "The lines with R520 say why. Correct the files, or declare the columns with the types that the files have, and "
    "run again. If this is no failure, add mode 'PERMISSIVE' to the OPTIONS of the stream."
)


def _warn(problems: Iterable[Problem], as_json: bool) -> None:
    for problem in problems:
        if as_json:
            write_json({"warning": problem.as_json()}, indent=None)
        else:
            typer.echo(f"{problem}\n", err=True)


def _explain(program: Program, as_json: bool) -> None:
    if as_json:
        for entry in explained_as_json(program):
            write_json(entry, indent=None)
        return
    for text in explained_as_text(program):
        typer.echo(text + "\n")


def _define(program: Program, pipeline: Pipeline, folder: str | Path, as_json: bool) -> None:
    """Run a script that only defines streams and inserts rows, without Spark."""
    from rowtime.runtime.first_start import FirstStart  # noqa: PLC0415

    place = Checkpoint(place_of(folder))
    if program.actions or program.drops or program.dropped_schemas:
        place.acquire()
    try:
        with FirstStart(program, pipeline.home, place) as first:
            first.perform()
    finally:
        place.release()
    names = [stream.name for stream in program.defines]
    if as_json:
        summary = {"defined": names, "dropped": list(program.drops), "statements": len(program.actions)}
        write_json({"summary": summary}, indent=None)
    else:
        dropped = f"{_count(program.drops, 'stream')} dropped, " if program.drops else ""
        defined = f"{_count(names, 'stream')} defined"
        typer.echo(f"done: {dropped}{defined}, {_count(program.actions, 'statement')} carried out")


def _count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _run_with_display(pipeline: Pipeline, program: Program, folder: str | Path, how: Mapping[str, Any]) -> Figures:
    # Standard output is for results only, and a terminal that shows them cannot redraw figures.
    console = any(sink.format == "console" for sink in program.sinks)
    with Display(plain=True if console else None, file=sys.stderr) as display:
        query = display.query = pipeline.start(folder, **how, listener=display.listener)
        if query.changes:
            display.note(f"the script has changed: {'; '.join(query.changes)}")
        if not query.engine.program.sinks and not waiting(query.checkpoint, query.engine.plan.orders):
            display.note(f"every pump is stopped; start them: {_START.format(quote(str(folder)))}")
        _await(query)
        display.figures.unread = _unread(query)
    return display.figures


def _run_as_json(pipeline: Pipeline, program: Program, folder: str | Path, how: Mapping[str, Any]) -> Figures:  # noqa: ARG001
    figures = Figures(time.monotonic())

    def listener(progress: dict[str, Any]) -> None:
        figures.take(progress, time.monotonic())
        write_json(progress, indent=None)

    query = pipeline.start(folder, **how, listener=listener)
    if query.changes:
        write_json({"changed": query.changes}, indent=None)
    _await(query)
    figures.unread = _unread(query)
    waits = [wait.as_json() for wait in query.waiting()]
    late = [late.as_json() for late in late_rows(query.engine.plan, query.engine.entry)]
    write_json({"summary": {**figures.summary(time.monotonic()), "late": late, "waiting": waits}}, indent=None)
    return figures


def _unread(query: Query) -> dict[str, int]:
    """Return the streams of which no row has ever been read, with the number of their files that were set aside."""
    entry = query.engine.entry
    states = {name: source.get("state", {}) for name, source in entry.get("sources", {}).items()}
    aside = {name: state.get("counts", {}).get(UNREADABLE, 0) for name, state in states.items()}
    totals = entry.get("totals", {})
    return {name: many for name, many in aside.items() if many and not totals.get(name, {}).get("in")}


def _await(query: Query) -> None:
    """Wait for the end of the query, or stop it when asked to."""
    with _interruptible() as stop:
        while not stop.is_set():
            if query.awaitTermination(POLL):
                return
        query.stop()
        if query.exception is not None:  # Ctrl-C also reaches Spark's Python workers
            sys.stderr.write("the current tick was interrupted; the next start repeats it\n")
        elif query.failing is not None:  # it was being retried, so it has not ended well
            raise query.failing


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C or SIGTERM sets; a second one ends the process as usual.

    Enter it once Spark runs: Spark's own handler would cancel the jobs of the current tick.
    """
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        sys.stderr.write("\nstopping after the current tick; a second signal stops at once, and nothing is lost\n")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _traceback_kept(folder: str | Path) -> Iterator[None]:
    """Store the whole traceback of a failure in the checkpoint; the terminal gets one line."""
    try:
        yield
    except (Refused, typer.Exit):
        raise
    except Exception as error:
        # The disk may be full, and the folder may be somebody's data: the first error is to be shown, not another one.
        with suppress(OSError, RowtimeError):
            place = place_of(folder)
            path = place / "last-error.txt"
            Checkpoint(place).check_place()
            make_private(place)
            path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
            error.add_note(f"The full traceback is in {path}.")
        raise
