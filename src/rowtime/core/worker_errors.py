"""Reads which error a user's Python function has raised in a worker of Spark, from the traceback in Spark's message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rowtime.core.imported import LeftError

_BEGINS: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'\s+File "([^"]+)", line (\d+), in (.+)')
_FOLLOWS: Final = ("During handling of the above exception", "The above exception was the direct cause")
_OF_SPARK: Final = re.compile(r"[/\\]pyspark(?:\.zip)?[/\\]")
_OF_ROWTIME: Final = re.compile(r"[/\\]rowtime[/\\](\w+)[/\\](\w+)\.py$")
_CALLS: Final = (("core", "imported"), ("api", "python_functions"))
"""The modules of rowtime that call users' functions in a worker."""
_LEFT: Final = f"{LeftError.__module__}.{LeftError.__name__}: "


@dataclass(frozen=True)
class Raised:
    """An ``error`` of a Python function: its type and the first line of its message; ``at``: where, or empty."""

    error: str
    at: str

    def __str__(self) -> str:
        return f"{self.error} ({self.at})" if self.at else self.error


def raised_by_function(text: str) -> Raised | None:
    """Return the error of a user's function from the text of Spark's; ``None`` for any other error.

    An error of rowtime's own code in a worker is not one.
    """
    frames, error = _last_traceback(text.splitlines())
    frames = [frame for frame in frames if not _OF_SPARK.search(frame[0])]
    if not error or (frames and (ours := _OF_ROWTIME.search(frames[0][0])) and ours.groups() not in _CALLS):
        return None
    error = error.removeprefix(_LEFT)
    users = [frame for frame in frames if not _OF_ROWTIME.search(frame[0])]
    if not users:
        return Raised(error, "")
    file, line, function = users[-1]
    return Raised(error, f"{function}, line {line} of {file}")


def _last_traceback(lines: list[str]) -> tuple[list[tuple[str, str, str]], str]:
    """Return the frames and the error of the first traceback, or of the last one in its chain; empty for none.

    Java's stack trace, which may follow, repeats the text of the traceback.
    """
    frames, error = list[tuple[str, str, str]](), ""
    at = next((n for n, line in enumerate(lines) if line.endswith(_BEGINS)), len(lines))
    while at < len(lines):
        frames, at = [], at + 1
        while at < len(lines) and (not lines[at] or lines[at][0].isspace()):
            if frame := _FRAME.fullmatch(lines[at]):
                frames.append((frame[1], frame[2], frame[3]))
            at += 1
        error = lines[at].strip() if at < len(lines) else ""
        following = next((n for n in range(at + 1, len(lines)) if lines[n].startswith(_FOLLOWS)), len(lines))
        again = next((n for n in range(following, len(lines)) if lines[n].endswith(_BEGINS)), len(lines))
        repeated = any(_BEGINS in line for line in lines[at:following])
        at = len(lines) if repeated else again
    return frames, error
