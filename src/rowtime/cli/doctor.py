"""``rowtime doctor``: checks what rowtime needs of this machine, and says what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rowtime.cli.options import AsJson, HomeFolder
from rowtime.cli.outcome import FAILED, write_json
from rowtime.cli.ui import PORT
from rowtime.client.home import Home

StartSpark = Annotated[
    bool, typer.Option("--spark/--no-spark", help="Start Spark and run a small job; takes some seconds.")
]


def doctor(home: HomeFolder = None, spark: StartSpark = True, as_json: AsJson = False) -> None:
    """Check Python, Java, Spark, connectors, disks and ports, and say what to do."""
    from rowtime.runtime.health import findings  # noqa: PLC0415 - it asks pyspark which version it is

    found = []
    for one in findings(Home(home).path, PORT, start=spark):
        found.append(one)
        if not as_json:
            typer.echo(f"{one.state:<8} {one.name}: {one.found}")
            if one.todo:
                typer.echo(f"         {one.todo}")
    if as_json:
        write_json([asdict(one) for one in found])
    failed = [one.name for one in found if one.state == "failed"]
    if failed:
        if not as_json:
            typer.echo(f"Not ready: {', '.join(failed)}.", err=True)
        raise typer.Exit(FAILED)
    if not as_json:
        typer.echo("Ready.")
