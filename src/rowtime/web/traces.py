"""Traces: what made a row of an output, or where a row of a stream went.

A trace runs the recorded input again, so it needs Spark and a process of its own.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from rowtime.plan.bind.python_code import modules_of
from rowtime.web.commands import run_rowtime
from rowtime.web.watched import Pipeline, Watched

KEPT: Final = 32  # results
PATIENCE: Final = 900  # seconds


@dataclass(frozen=True)
class Result:
    """The result of a trace (``items``, as in ``rowtime trace --json``), or why there is none."""

    items: Sequence[Mapping[str, Any]] = ()
    problem: str = ""


@dataclass(frozen=True)
class Wanted:
    """A row of a pipeline: of a sink, by its number, or if rows have no order by a condition ``where``.

    ``stream``: instead, the first row of this stream that matches the condition, with a forward trace.
    """

    key: str
    sink: str = ""
    number: int = 0
    where: str = ""
    stream: str = ""

    @property
    def query(self) -> str:
        """Return the row in the form for an address."""
        fields = (
            {"from": self.stream, "where": self.where} if self.stream else {"sink": self.sink, "number": self.number}
        )
        return urlencode(fields)

    @property
    def options(self) -> list[str]:
        """Return the options of ``rowtime trace``."""
        which = ["--where", self.where] if self.where else ["--number", str(self.number)]
        return [*which, *(["--from", self.stream] if self.stream else ["--sink", self.sink]), "--json"]


class Traces:
    """The requested traces; one runs at a time, because each needs a Spark session."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._pool = ThreadPoolExecutor(1, "rowtime-trace")
        self._turn = threading.Lock()
        self._requests: OrderedDict[Wanted, Future[Result]] = OrderedDict()

    def ask(self, pipeline: Pipeline, wanted: Wanted) -> None:
        """Begin a trace, unless it is running or known; one that found nothing is tried again."""
        with self._turn:
            begun = self._requests.get(wanted)
            if begun is not None and not (begun.done() and begun.result().problem):
                return
            self._requests[wanted] = self._pool.submit(self._run, pipeline, wanted)
            while len(self._requests) > KEPT:
                self._requests.popitem(last=False)[1].cancel()

    def state_of(self, wanted: Wanted) -> tuple[bool, Result | None]:
        """Return whether it was requested, and its result; ``None`` while it runs."""
        with self._turn:
            future = self._requests.get(wanted)
        return future is not None, future.result() if future is not None and future.done() else None

    def _run(self, pipeline: Pipeline, wanted: Wanted) -> Result:
        plan = pipeline.records.plan
        modules = [] if plan is None or self._watched.imports else modules_of(plan.sql)
        if modules:
            what = f"A trace runs the recorded input again, and the script has functions of {', '.join(modules)}."
            return Result(problem=f"{what} To let the console run their code, start it with --import.")
        settings = [part for name, value in self._watched.variables.items() for part in ("--set", f"{name}={value}")]
        home = ["--home", str(self._watched.home.path)]
        ran = run_rowtime(["trace", str(pipeline.place), *wanted.options, *home, *settings], PATIENCE)
        return _result(ran.stdout) if ran.returncode == 0 else Result(problem=_why(ran.stdout, ran.stderr))


def _result(text: str) -> Result:
    return Result([json.loads(line) for line in text.splitlines() if line.startswith("{")])


def _why(out: str, err: str) -> str:
    """Return the problem that the command printed as JSON, or the last lines of its output."""
    try:
        answer = json.loads(out)
        problems = answer.get("problems") or [{"code": "", "message": answer.get("failure", ""), "hint": ""}]
        return " ".join(part for part in (problems[0][name] for name in ("code", "message", "hint")) if part)
    except (ValueError, KeyError, AttributeError):
        return (err or out).strip()[-500:] or "The command printed nothing."
