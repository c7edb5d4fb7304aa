"""``rowtime skip``: rows that a target will never take are set aside, and the pipeline can go on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rowtime.cli.options import AsJson, CheckpointFolder, HomeFolder, Settings, variables
from rowtime.cli.outcome import write_json

PumpName = Annotated[str, typer.Argument(metavar="PUMP", help="The pump whose target refuses the rows.")]
TickNumber = Annotated[int, typer.Argument(metavar="TICK", help="The tick, as the error names it.")]


def skip(
    checkpoint: CheckpointFolder,
    pump: PumpName,
    tick: TickNumber,
    home: HomeFolder = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Set committed rows aside that a target refuses: they go to `rejected` of the pump. It cannot be undone."""
    from rowtime.runtime.skipping import skip as set_aside  # noqa: PLC0415 - pyarrow takes its time

    found = set_aside(checkpoint, pump, tick, home=home, variables=variables(settings))
    if as_json:
        write_json({**asdict(found), "file": str(found.file)})
        return
    typer.echo(f"{found.rows:,} rows of tick {tick} of {pump} are set aside in {found.file}")
    typer.echo("start the pipeline again: it goes on behind them")
