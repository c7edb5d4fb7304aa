"""The end of a command: its exit status, and its report of a refusal or a failure.

0: good. 1: the user's input is refused. 2: usage, which typer handles. 3: a failure while running. With ``--json`` the
report is one object on standard output.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import typer

from rowtime.core.errors import Failure, Problem, Refused, RowtimeError, causes, headline
from rowtime.core.imported import ended
from rowtime.core.machine import limit_of
from rowtime.core.secrets import Secrets

REFUSED = 1
FAILED = 3
SHOWN_CAUSES = 3

_OFFERED = re.compile(r"(rowtime (?:run|migrate)) FILE(?: --checkpoint DIR)?")
_CAUSED_BY = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
Command = TypeVar("Command", bound=Callable[..., None])


def guarded(command: Command) -> Command:
    """Wrap a command so that errors become an exit status; the only place that decides it."""

    @functools.wraps(command)
    def run(*args: object, **options: object) -> None:
        as_json, hide = bool(options.get("as_json")), _secrets(options).hide
        try:
            command(*args, **options)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except Refused as refused:
            problems = [_exactly(problem, options) for problem in refused.problems]
            say_refused([replace(p, message=hide(p.message), hint=hide(p.hint)) for p in problems], as_json)
            raise typer.Exit(REFUSED) from None
        except SystemExit as left:  # by code of the user's, since ours raises typer.Exit
            _say_failed(ended(left), as_json, hide)
            raise typer.Exit(FAILED) from None
        except Exception as error:  # noqa: BLE001 - the last stop before the shell
            limit = _limit(error) if isinstance(error, OSError) else None
            _say_failed(error if limit is None else Failure(limit), as_json, hide)
            raise typer.Exit(FAILED) from None

    return run  # type: ignore[return-value]


def _secrets(options: Mapping[str, object]) -> Secrets:
    """Return the values of ``--set`` whose names say that they are secret."""
    settings = options.get("settings")
    pairs = (str(one).partition("=") for one in settings) if isinstance(settings, list) else ()
    return Secrets.of((), {name: value for name, _, value in pairs}, lambda _: False)


def _limit(error: OSError) -> Problem | None:
    """Return R422 for a full disk, a file that the user may not read, and the like."""
    return limit_of(error, "a file cannot be opened or written")


def _exactly(problem: Problem, options: Mapping[str, object]) -> Problem:
    """Return a problem whose hint names the command's script and checkpoint, so that it can be copied."""
    if (file := options.get("file")) in (None, "-"):
        return problem
    given = [(f"--{name}", options.get(name)) for name in ("checkpoint", "home")]
    words = [str(file), *(word for name, value in given if value is not None for word in (name, str(value)))]
    return replace(problem, hint=_OFFERED.sub(lambda match: f"{match[1]} {shlex.join(words)}", problem.hint))


def write_json(value: object, indent: int | None = 2) -> None:
    """Write one JSON value to standard output; ``indent=None``: on one line."""
    typer.echo(json.dumps(value, indent=indent, ensure_ascii=False, default=str))


def say_refused(problems: Sequence[Problem], as_json: bool) -> None:
    """Report what is wrong, on standard error; as JSON on standard output."""
    if as_json:
        write_json({"problems": [problem.as_json() for problem in problems]})
    else:
        typer.echo("\n\n".join(map(str, problems)), err=True)


def _say_failed(error: Exception, as_json: bool, hide: Callable[[str], str]) -> None:
    message, notes = hide(_message(error)), [*map(hide, getattr(error, "__notes__", []))]
    causes = [*map(hide, _causes(error))][-SHOWN_CAUSES:]
    if as_json:
        write_json({"failure": message, "causes": causes, "notes": notes})
        return
    lines = [f"Failed: {message}", *(f"  caused by {cause}" for cause in causes), *notes]
    typer.echo("\n".join(lines), err=True)


def _causes(error: BaseException) -> Iterator[str]:
    """Yield the causes of an error, the innermost last: Java's causes are in the text of Spark's errors.

    A headline that only announces a traceback, as Spark's of a Python worker, says nothing.
    """
    seen: dict[str, Any] = {}
    for inner in causes(error):
        seen |= {message: None} if inner is not error and not (message := _message(inner)).endswith(":") else {}
        seen |= dict.fromkeys(cause.strip() for cause in _CAUSED_BY.findall(str(inner)))
    return iter(seen)


def _message(error: BaseException) -> str:
    """Return a rowtime error completely, with its hint; the first line of any other."""
    return str(error) if isinstance(error, RowtimeError) else headline(error)
