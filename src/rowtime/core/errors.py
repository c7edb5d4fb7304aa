"""Problems and errors: what is wrong, where, and how to fix it.

A *problem* is one finding about the user's input; it has a stable code. An error carries one or more problems.
``Refused`` means that the input is wrong (exit status 1), ``Failure`` that something failed at run time (exit status
3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rowtime.core import markup

_SHOWN = 200  # characters of a line; a generated script may be one line


@dataclass(frozen=True)
class Place:
    """A place in a text: line and column count from 1; ``text`` is the whole line."""

    line: int
    column: int
    text: str = ""
    length: int = 1

    def __str__(self) -> str:
        label, text, column = f"{self.line:>3} | ", self.text, self.column - 1
        if len(text) > _SHOWN:  # only a part of it, with the error in its second quarter
            first = max(0, min(column - _SHOWN // 4, len(text) - _SHOWN))
            before, after = "…" if first else "", "…" if first + _SHOWN < len(text) else ""
            text, column = f"{before}{text[first : first + _SHOWN]}{after}", column - first + len(before)
        length = max(1, min(self.length, len(text) - column))
        caret = " " * (len(label) - 2) + "| " + " " * column + "^" * length
        return f"{label}{text}\n{caret}"


@dataclass(frozen=True)
class Problem:
    """Describes one problem: a stable code, what is wrong, where, and how to fix it.

    ``warns``: the script still runs.
    """

    code: str
    message: str
    place: Place | None = None
    hint: str = ""
    note: str = ""
    warns: bool = False

    @property
    def severity(self) -> str:
        """Return ``error``, or ``warning`` if the script still runs."""
        return "warning" if self.warns else "error"

    def __str__(self) -> str:
        lines = [f"{self.code} {'warning: ' * self.warns}{self.message}"]
        if self.place is not None and self.place.text:
            lines.append(f"{self.place} {self.note}".rstrip())
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return markup.preformatted(self)

    def as_json(self) -> dict[str, object]:
        """Return the problem as plain values, for ``--json``."""
        place = self.place
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "hint": self.hint,
        }


class Problems(list[Problem]):
    """All problems of a script."""

    def _repr_html_(self) -> str:
        return "".join(problem._repr_html_() for problem in self) or markup.heading("no problems")


class RowtimeError(Exception):
    """Base of every error that rowtime raises on purpose; ``problems`` is never empty."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n\n".join(str(p) for p in problems))
        self.problems = problems


class Refused(RowtimeError):
    """The user's input is refused: SQL, a name, a value, a checkpoint that does not fit."""


class Failure(RowtimeError):
    """Something failed while running: a source or a sink that cannot be reached, a broken file."""


def refuse(code: str, message: str, hint: str = "", place: Place | None = None) -> Refused:
    """Return a ``Refused`` with one problem, ready to raise."""
    return Refused(Problem(code, message, place, hint))


def causes(error: BaseException | None, *, implied: bool = False) -> Iterator[BaseException]:
    """Yield an error and its causes, each once, even if an error is among its own causes."""
    seen: set[int] = set()  # without this, ``raise error from error`` would loop forever
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (error.__context__ if implied else None)


def headline(error: BaseException) -> str:
    """Return the first line of an error's message; for errors that are not rowtime's, the type."""
    first = str(error).strip().split("\n", 1)[0]
    if isinstance(error, RowtimeError):
        return first
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
