"""``rowtime optimize``: small files of lake tables become large ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rowtime.cli.options import AsJson, CheckpointFolder, HomeFolder, Settings, variables
from rowtime.cli.outcome import write_json

PumpName = Annotated[str, typer.Argument(metavar="PUMP", help="Only the table of this pump.")]


def optimize(
    checkpoint: CheckpointFolder,
    pump: PumpName = "",
    home: HomeFolder = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Write the small files of lake tables into large ones. The pipeline and others may write meanwhile."""
    from rowtime.runtime.compaction import optimize as compacted  # noqa: PLC0415 - pyarrow takes its time

    found = compacted(checkpoint, pump, home=home, variables=variables(settings))
    if as_json:
        write_json([asdict(one) for one in found])
        return
    for one in found:
        typer.echo(f"{one.table}: {one.files:,} files are parts of larger ones now")
