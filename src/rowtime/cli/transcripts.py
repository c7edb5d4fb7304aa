"""``rowtime test``: runs transcripts, the project's own and those of users."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rowtime.cli.options import AsJson
from rowtime.cli.outcome import REFUSED, write_json

Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH", exists=True, readable=True, help="Transcripts, or folders of them.")
]


def test(paths: Paths, as_json: AsJson = False) -> None:  # noqa: PT028 - a command, not a test
    """Run transcripts (*.yaml): rows in, rows expected, however the input is cut."""
    from rowtime.testing.runner import run_paths  # noqa: PLC0415 - the other commands need no Spark

    lines: list[str] = []
    passed, failed = run_paths(paths, report=lines.append if as_json else typer.echo)
    if as_json:
        write_json({"passed": passed, "failed": failed, "report": lines})
    else:
        typer.echo(f"{passed} passed, {failed} failed")
    if failed:
        raise typer.Exit(REFUSED)
