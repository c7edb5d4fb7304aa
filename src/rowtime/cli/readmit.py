"""``rowtime readmit``: rows that were too early go back into their stream."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rowtime.cli.options import AsJson, CheckpointFolder, HomeFolder
from rowtime.cli.outcome import write_json

GateName = Annotated[str | None, typer.Argument(metavar="GATE", help="A T-sort with a guard; default: all.")]


def readmit(
    checkpoint: CheckpointFolder, gate: GateName = None, home: HomeFolder = None, as_json: AsJson = False
) -> None:
    """Write early rows that are due by now into their stream, as items of the writer `readmitted`."""
    from rowtime.audit.readmit import readmit as write  # noqa: PLC0415 - pyarrow's datasets take their time

    found = write(checkpoint, gate, home=home)
    if as_json:
        write_json([asdict(one) for one in found])
        return
    for one in found:
        rest = f"{one.early:,} still early, {one.late:,} too late by now"
        typer.echo(f"{one.gate}: {one.admitted:,} rows into {one.stream} (writer readmitted); {rest}")
    if not found:
        typer.echo("no gate has a guard, so no row is early")
