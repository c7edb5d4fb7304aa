"""``rowtime alter``: starts and stops pumps of a pipeline that another script defines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rowtime.cli.options import AsJson, HomeFolder, Settings, script_text, variables
from rowtime.cli.outcome import write_json
from rowtime.client.home import Home
from rowtime.runtime.pump_ordering import Ordered, give_order

OrderFile = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", exists=True, dir_okay=False, readable=True, help="A file of ALTER PUMP statements."),
]
Statements = Annotated[
    str | None, typer.Option("-e", "--execute", metavar="SQL", help="The statements themselves, instead of a file.")
]
CheckpointFolder = Annotated[
    str, typer.Option("--checkpoint", metavar="DIR", help="The checkpoint of the pipeline that has the pumps.")
]


def alter(
    checkpoint: CheckpointFolder,
    file: OrderFile = None,
    statements: Statements = None,
    home: HomeFolder = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Start or stop pumps of a pipeline, running or not, by ALTER PUMP … START | STOP.

    A running pipeline carries out the order between two ticks, a stopped one at its next start.
    """
    if (file is None) == (statements is None):
        raise typer.BadParameter("give a file or -e, one of the two", param_hint="FILE, -e")
    text = script_text(file) if file is not None else statements or ""
    given = give_order(checkpoint, text, variables(settings), Home(home))
    if as_json:
        write_json({"checkpoint": checkpoint, **given.as_json()})
        return
    for line in _lines(given):
        typer.echo(line)


def _lines(given: Ordered) -> list[str]:
    already = dict.fromkeys(given.unchanged, "already ")
    pumps = [f"{pump}: {already.get(pump, '')}{_state(start)}" for pump, start in given.pumps.items()]
    when = {True: "between two ticks", False: "at its next start", None: "between two ticks, or at its next start"}
    changes = [f"  {line}" for line in given.changes or ()]
    final = [f"note: the opposite order will be refused: {given.final}"] if given.final else []
    return [*pumps, *changes, *final, f"the pipeline carries this out {when[given.running]}"]


def _state(start: bool) -> str:
    return "started" if start else "stopped"
