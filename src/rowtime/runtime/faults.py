"""Handles an error inside a tick: sets aside the files that cause it, and names disks and functions at fault."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException

from rowtime.core.errors import Failure, Problem, headline
from rowtime.core.machine import OPEN_FILES, REPEATED, ROOM, limit_of
from rowtime.core.stores import Place
from rowtime.core.worker_errors import raised_by_function
from rowtime.runtime.retries import of_the_machine
from rowtime.runtime.sources.contract import Source

_FULL: Final = re.compile(r"[^\n]*(?:No space left on device|Too many open files)[^\n]*")
_FIX: Final = (
    "Correct it, or let it return None for such values. Then start again with --renewed NAME, or "
    'pipeline.renewed("NAME"): the tick is repeated.'
)
_CAUSED_BY: Final = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_THROWN: Final = re.compile(r"^: (.+)$", re.MULTILINE)
_ENDED: Final = "Python worker exited unexpectedly"
_OF_WORKER: Final = (
    "The tick is not committed: start again, and the tick is repeated. If it ends again, the machine may have too "
    "little memory for it: see its log, give executors more (spark.executor.pyspark.memory), or take fewer rows a tick."
)
_UNSTARTED: Final = re.compile(r'Cannot run program "([^"]+)"[^\n]*')
_NAME_PYTHON: Final = (
    "Let PYSPARK_PYTHON (or spark.pyspark.python) name a Python that exists on each machine and that the user may run. "
    "Then start again: the tick is repeated."
)
_OF_JAVA: Final = (
    "The tick is not committed: start again, and the tick is repeated. If it fails again, change the query."
)
_UNCOMPUTED: Final = (
    "The tick is not committed: start again, and the tick is repeated. If it fails again, take fewer rows a tick."
)
_HINT: Final = (
    "Free some space, give the user that runs rowtime the right to write there, or raise the limit of open files."
)


def sets_aside(sources: Iterable[Source], error: Exception) -> bool:
    """Return True if a source sets aside the cause of a tick's failure, so that it can be tried again at once."""
    return any(source.blame(error) for source in sources)


def uncomputed(error: Exception) -> Failure:
    """Return the end of a run (R515) whose tick cannot be computed, for another reason than the value of a row."""
    return Failure(Problem("R515", f"the tick cannot be computed: {headline(error)}", hint=_UNCOMPUTED))


@contextmanager
def naming_disks(checkpoint: Place, then: str = REPEATED) -> Iterator[None]:
    """Raise ``Failure`` (R422) for a limit of the machine: a disk is full or read-only, or too many files are open.

    The disk is that of the checkpoint, or of Spark's own folders. ``then``: what happens next, in words.
    """
    try:
        yield
    except OSError as error:
        place = None if error.filename is None else Path(str(error.filename))
        in_checkpoint = place is None or checkpoint in (place, *place.parents)
        problem = limit_of(error, f"the checkpoint {checkpoint} cannot be written", then)
        if problem is None or not (in_checkpoint or error.errno in (*ROOM, *OPEN_FILES)):
            raise
        raise Failure(problem) from error
    except (PySparkException, Py4JError) as error:
        message = of_the_machine(str(error))
        full = _FULL.search(str(error))
        if message is None and full is None:
            raise
        what = f"a task of Spark cannot write: {full[0].strip() if full else message}"
        hint = f"{_HINT} {then} The folders are {checkpoint} and Spark's own (spark.local.dir)."
        raise Failure(Problem("R422", what, hint=hint)) from error


@contextmanager
def naming_functions() -> Iterator[None]:
    """Raise ``Failure`` (R512) for an error that a user's Python function raises in a worker."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raised = raised_by_function(str(error))
        if raised is None:
            raise
        raise Failure(Problem("R512", f"a Python function of the query raised {raised}", hint=_FIX)) from error


def innermost(error: BaseException) -> str:
    """Return the innermost cause that an error of Java names, or the first line of the error."""
    reasons: list[str] = [headline(error), *_THROWN.findall(str(error))[:1], *_CAUSED_BY.findall(str(error))]
    return reasons[-1].strip()


@contextmanager
def naming_java() -> Iterator[None]:
    """Raise ``Failure`` (R513) for an error of Java that Spark reports without a class of its own."""
    try:
        yield
    except Py4JError as error:
        if _ENDED in str(error):
            raise Failure(
                Problem("R513", "a Python worker of Spark has ended without an error", hint=_OF_WORKER)
            ) from error
        if unstarted := _UNSTARTED.search(str(error)):
            what = f"Spark cannot start its Python workers: {unstarted[0].strip()}"
            raise Failure(Problem("R513", what, hint=_NAME_PYTHON)) from error
        what = f"Spark fails with an error of Java: {innermost(error)}"
        raise Failure(Problem("R513", what, hint=_OF_JAVA)) from error
