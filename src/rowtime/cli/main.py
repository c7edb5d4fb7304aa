"""``rowtime``: the list of commands."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from rowtime import __version__
from rowtime.cli.outcome import guarded
from rowtime.core.store_settings import CONFIG, FILE, configured

COMMANDS: Final = (
    "run",
    "check",
    "explain",
    "profile",
    "audit-spark",
    "status",
    "insert",
    "bound",
    "alter",
    "readmit",
    "skip",
    "optimize",
    "trace",
    "verify",
    "migrate",
    "ui",
    "top",
    "streams",
    "test",
    "init",
    "doctor",
    "warm",
)
_MODULES: Final = {
    "readmit": "upkeep",
    "skip": "upkeep",
    "optimize": "upkeep",
    "test": "transcripts",
    "audit-spark": "audit_spark",
}
"""The modules of commands whose names differ."""
_STYLE: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class _OnDemand(Mapping[str, Any]):
    """The commands by name; the module of a command is imported when it is first used."""

    def __init__(self) -> None:
        self._commands: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        if name not in self._commands:
            module = importlib.import_module(f"rowtime.cli.{_MODULES.get(name, name)}")
            alone = typer.Typer(**_STYLE)
            alone.command(name)(guarded(getattr(module, name.replace("-", "_"))))
            self._commands[name] = typer.main.get_command(alone)
        return self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Commands(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _OnDemand()  # type: ignore[assignment]  # no command is added later


app = typer.Typer(
    name="rowtime",
    cls=_Commands,
    help="Event-time streaming SQL on Apache Spark.",
    epilog="Exit status: 0 success, 1 input refused, 2 wrong usage, 3 failure while running.",
    no_args_is_help=True,
    **_STYLE,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rowtime {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")] = False,  # noqa: ARG001
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help=f"The configuration of object stores; default {CONFIG}, else {FILE}."
        ),
    ] = None,
) -> None:
    if config is not None:
        context.with_resource(_named(config))
        guarded(_look)()


@contextmanager
def _named(config: Path) -> Iterator[None]:
    """Let a command, and its child processes, read this file."""
    before = os.environ.get(CONFIG)
    os.environ[CONFIG] = str(config.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[CONFIG]
        else:
            os.environ[CONFIG] = before


def _look() -> None:
    """Refuse an invalid file, also if the command needs no store."""
    configured()


def main() -> None:
    """The console entry point."""
    app()
