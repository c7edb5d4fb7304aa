"""Feeds random inputs to the code that reads what others wrote, and keeps unexpected results.

An input passes if it is accepted or refused with coded errors within the time. Every input follows from the name of its
target and its number, so a finding can be reproduced.
"""

from __future__ import annotations

import random
import re
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from rowtime.core.errors import Problem, RowtimeError

SECONDS = 10.0  # of the processor: an input that takes longer hangs
PATIENCE = 12  # times as long may it take in all, on a machine with other work
_CODE = re.compile(r"R\d{3}")


@dataclass(frozen=True)
class Target:
    """A target of fuzzing: ``make`` draws an input, ``feed`` passes it on and returns the problems.

    ``share``: of a hundred inputs, how many are for this target.
    """

    name: str
    share: int
    make: Callable[[random.Random], Any]
    feed: Callable[[Any], Iterable[Problem]]


@dataclass(frozen=True)
class Finding:
    """An input that crashed, hung or was refused without a code."""

    target: str
    number: int
    what: str
    input: str


@dataclass
class Tally:
    """How many inputs a target got, how many of them were refused, and the slowest (seconds)."""

    inputs: int = 0
    refused: int = 0
    slowest: float = 0.0


class Hung(BaseException):
    """A timeout. No ``Exception``, so that no code on the way catches it."""


def drawn(target: Target, number: int) -> Any:
    """Return the input of that number."""
    return target.make(random.Random(f"{target.name}:{number}"))


def run(target: Target, numbers: Iterable[int], tally: Tally, seconds: float = SECONDS) -> Iterator[Finding]:
    """Feed the inputs of these numbers and yield the findings."""
    for number in numbers:
        made = drawn(target, number)
        began = time.perf_counter()
        what = _fed(target, made, tally, seconds)
        tally.inputs += 1
        tally.slowest = max(tally.slowest, time.perf_counter() - began)
        if what:
            yield Finding(target.name, number, what, repr(made)[:2000])


def _fed(target: Target, made: Any, tally: Tally, seconds: float) -> str:
    """Return what is wrong with how an input was received; empty if nothing is."""
    try:
        with _at_most(seconds):
            problems = list(target.feed(made))
            told = [str(problem) for problem in problems]
    except RowtimeError as error:
        problems, told = list(error.problems), [str(error)]
    except Hung:
        return f"it took more than {seconds:g} s\n{traceback.format_exc(limit=-6)}"
    except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
        return traceback.format_exc(limit=-6)
    tally.refused += any(not problem.warns for problem in problems)
    uncoded = [text for problem, text in zip(problems, told, strict=False) if not _CODE.fullmatch(problem.code)]
    return f"a problem without a code: {uncoded[0]}" if uncoded else ""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Hung

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, PATIENCE * seconds)}
    before = {number: signal.signal(number, stop) for number in timers}
    for timer, after in timers.values():
        signal.setitimer(timer, after)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
