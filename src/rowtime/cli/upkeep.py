"""``rowtime readmit``, ``skip`` and ``optimize``: maintenance of a pipeline's rows and tables, besides its runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rowtime.cli.options import AsJson, CheckpointFolder, HomeFolder, Settings, variables
from rowtime.cli.outcome import write_json
from rowtime.core.counts import counted

GateName = Annotated[str | None, typer.Argument(metavar="GATE", help="A T-sort with a guard; default: all.")]
FailingPump = Annotated[str, typer.Argument(metavar="PUMP", help="The pump whose target refuses the rows.")]
TickNumber = Annotated[int, typer.Argument(metavar="TICK", help="The number of the tick, from the error.")]
PumpName = Annotated[str, typer.Argument(metavar="PUMP", help="Only the table of this pump.")]


def readmit(
    checkpoint: CheckpointFolder, gate: GateName = None, home: HomeFolder = None, as_json: AsJson = False
) -> None:
    """Write early rows that are no longer early into their stream, as items of the writer `readmitted`."""
    from rowtime.audit.readmit import readmit as write  # noqa: PLC0415 - pyarrow's datasets take their time

    readmitted = write(checkpoint, gate, home=home)
    if as_json:
        write_json([asdict(result) for result in readmitted])
        return
    for result in readmitted:
        rest = f"{result.early:,} still early, {result.late:,} too late by now"
        typer.echo(
            f"{result.gate}: {counted(result.admitted, 'rows')} into {result.stream} (writer readmitted); {rest}"
        )
    if not readmitted:
        typer.echo("no gate has a guard, so no row is early")


def skip(
    checkpoint: CheckpointFolder,
    pump: FailingPump,
    tick: TickNumber,
    home: HomeFolder = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Set aside committed rows that a target refuses: they go to `rejected` of the pump. This cannot be undone."""
    from rowtime.runtime.skipping import skip as set_aside  # noqa: PLC0415 - pyarrow takes its time

    skipped = set_aside(checkpoint, pump, tick, home=home, variables=variables(settings))
    if as_json:
        write_json({**asdict(skipped), "file": str(skipped.file)})
        return
    are = "is" if skipped.rows == 1 else "are"
    typer.echo(f"{counted(skipped.rows, 'rows')} of tick {tick} of {pump} {are} set aside in {skipped.file}")
    typer.echo("start the pipeline again: it continues after them")


def optimize(
    checkpoint: CheckpointFolder,
    pump: PumpName = "",
    home: HomeFolder = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Merge the small files of lake tables into large ones. Pipelines may write meanwhile."""
    from rowtime.runtime.lake_targets import optimize as compacted  # noqa: PLC0415 - pyarrow takes its time

    tables = compacted(checkpoint, pump, home=home, variables=variables(settings))
    if as_json:
        write_json([asdict(optimized) for optimized in tables])
        return
    for optimized in tables:
        typer.echo(f"{optimized.table}: {counted(optimized.files, 'files')} merged into larger ones")
