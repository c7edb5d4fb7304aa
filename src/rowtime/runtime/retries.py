"""Decides which failures of a tick another try can overcome, and how long to wait before it.

A transient failure is outside of the pipeline: brokers that do not answer, a full disk, a worker that died. A permanent
one would occur in every try: a sink function that raises, a type error, a division by zero.
"""

from __future__ import annotations

import builtins
import re
import time
from dataclasses import dataclass, field
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import AnalysisException, PySparkException, PythonException

from rowtime.client.log_contract import LostItems
from rowtime.core.errors import RowtimeError, causes, headline
from rowtime.core.log import LOG

PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # seconds between tries of a failing tick

# These depend on another process, a server or a file system; the pipeline's operator can fix them.
_TRANSIENT: Final = frozenset({"R204", "R404", "R422", "R501", "R508", "R511", "R565", "R581", "R582", "R583"})

_OF_FUNCTIONS: Final = "R512"  # transient if the function says that a server or a file is at fault

# SQLSTATE classes about the query or its values: data exceptions, cardinality, keys, syntax, features, limits, raised.
_ABOUT_THE_QUERY: Final = ("0A", "21", "22", "23", "2B", "38", "39", "42", "54", "P0")
_SQLSTATE: Final = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")
_RAISED_IN_PYTHON: Final = re.compile(r"^(?:[\w.]*\.)?(\w+(?:Error|Exception|Interrupt|Exit))(?::|$)", re.MULTILINE)


def permanent(error: BaseException) -> bool:
    """Return True if no retry can overcome a failure of a tick."""
    if isinstance(error, RowtimeError) and error.problems[0].code == _OF_FUNCTIONS:
        return of_the_machine(str(error.__cause__)) is None
    chain = list(causes(error))
    if any(isinstance(cause, OSError | MemoryError | Py4JError) for cause in chain):
        return any(_about_the_query(cause) for cause in chain)
    if isinstance(error, RowtimeError):
        return isinstance(error, LostItems) or any(problem.code not in _TRANSIENT for problem in error.problems)
    if isinstance(error, PythonException):
        return of_the_machine(str(error)) is None
    if isinstance(error, PySparkException):
        return isinstance(error, AnalysisException) or _about_the_query(error)
    return True


def _about_the_query(error: BaseException) -> bool:
    """Return True for a Spark error whose SQLSTATE blames the query or its values."""
    states = _SQLSTATE.findall(str(error)) if isinstance(error, PySparkException | Py4JError) else []
    return any(state.startswith(_ABOUT_THE_QUERY) for state in states)


def of_the_machine(text: str) -> str | None:
    """Return a worker's error about its machine, if that is the last error in a traceback: no space, no file."""
    raised = list(_RAISED_IN_PYTHON.finditer(text))
    kind = getattr(builtins, raised[-1][1], None) if raised else None
    if isinstance(kind, type) and issubclass(kind, OSError | MemoryError):
        return text[raised[-1].start() :].split("\n", 1)[0]
    return None


@dataclass
class Retries:
    """The failures of a run since its last successful tick; ``due`` is when the next try begins (monotonic seconds)."""

    failures: int = 0
    error: BaseException | None = None
    due: float = field(default=0.0)

    @property
    def pause(self) -> float:
        """Seconds until the next try, from the failure on."""
        return PAUSES[min(self.failures, len(PAUSES)) - 1]

    def failed(self, error: BaseException) -> None:
        """Record a failure that will be tried again; its traceback goes to the log."""
        self.failures, self.error = self.failures + 1, error
        self.due = time.monotonic() + self.pause
        message = headline(error)
        text, extra = "the tick failed (attempt %d), next try in %g s: %s", {"event": "retry", "attempt": self.failures}
        extra |= {"pause": self.pause, "error": message}
        LOG.warning(text, self.failures, self.pause, message, exc_info=error, extra=extra)

    def succeeded(self) -> None:
        """Forget the failures: a tick succeeded."""
        if self.failures:
            extra = {"event": "recovered", "attempts": self.failures}
            LOG.info("the tick succeeded after %d failed attempts", self.failures, extra=extra)
        self.failures, self.error = 0, None

    def __str__(self) -> str:
        assert self.error is not None
        code = self.error.problems[0].code if isinstance(self.error, RowtimeError) else type(self.error).__name__
        left = max(0.0, self.due - time.monotonic())
        return f"Retrying after {code}, attempt {self.failures}, next in {left:.0f} s"
