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

    results = []
    for finding in findings(Home(home).path, PORT, start=spark):
        results.append(finding)
        if not as_json:
            typer.echo(f"{finding.state:<8} {finding.name}: {finding.found}")
            if finding.todo:
                typer.echo(f"         {finding.todo}")
    if as_json:
        write_json([asdict(finding) for finding in results])
    failed = [finding.name for finding in results if finding.state == "failed"]
    if failed:
        if not as_json:
            typer.echo(f"Not ready: {', '.join(failed)}.", err=True)
        raise typer.Exit(FAILED)
    if not as_json:
        typer.echo("Ready.")
