"""``rowtime``: the list of commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rowtime import __version__
from rowtime.cli.alter import alter
from rowtime.cli.bound import bound
from rowtime.cli.check import check
from rowtime.cli.doctor import doctor
from rowtime.cli.explain import explain
from rowtime.cli.init import init
from rowtime.cli.insert import insert
from rowtime.cli.migrate import migrate
from rowtime.cli.outcome import guarded
from rowtime.cli.run import run
from rowtime.cli.status import status
from rowtime.cli.streams import streams
from rowtime.cli.top import top
from rowtime.cli.trace import trace
from rowtime.cli.transcripts import test
from rowtime.cli.ui import ui
from rowtime.cli.upkeep import optimize, readmit, skip
from rowtime.cli.verify import verify
from rowtime.cli.warm import warm
from rowtime.core.store_settings import CONFIG, FILE, configured

COMMANDS = (
    run,
    check,
    explain,
    status,
    insert,
    bound,
    alter,
    readmit,
    skip,
    optimize,
    trace,
    verify,
    migrate,
    ui,
    top,
    streams,
    test,
    init,
    doctor,
    warm,
)

app = typer.Typer(
    name="rowtime",
    help="Event-time streaming SQL on Apache Spark.",
    epilog="Exit status: 0 success, 1 input refused, 2 wrong usage, 3 failure while running.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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


for _command in COMMANDS:
    app.command()(guarded(_command))


def main() -> None:
    """The console entry point."""
    app()
