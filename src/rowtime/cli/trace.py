"""``rowtime trace``: what made a row of an output, operator by operator."""

from __future__ import annotations

from typing import Annotated

import typer

from rowtime.cli.options import AsJson, CheckpointFolder, HomeFolder, Settings, variables
from rowtime.cli.outcome import write_json
from rowtime.core.errors import refuse
from rowtime.core.stores import place_of
from rowtime.state.checkpoint import Checkpoint

Number = Annotated[int | None, typer.Option("--number", min=0, help="The sequence number of the row; the first is 0.")]
Condition = Annotated[
    str | None, typer.Option("--where", metavar="CONDITION", help="The first row that fits, over the output's columns.")
]
SinkName = Annotated[
    str | None, typer.Option("--sink", metavar="NAME", help="The output, a pump or query; where there are several.")
]


def trace(
    checkpoint: CheckpointFolder,
    number: Number = None,
    where: Condition = None,
    sink: SinkName = None,
    home: HomeFolder = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Show the inserts, retractions and bounds that made an output row; reads the recorded input again."""
    from rowtime.api.pipeline import Pipeline  # noqa: PLC0415 - it runs the pipeline, which needs Spark
    from rowtime.audit.trace import trace as trace_of  # noqa: PLC0415

    if (number is None) == (where is None):
        raise typer.BadParameter("give one of the two", param_hint="--number, --where")
    plan = Checkpoint(place_of(checkpoint)).plan
    if plan is None:
        raise refuse("R405", f"{checkpoint} is no checkpoint: it has no plan.json", "Give the folder of a pipeline.")
    pipeline = Pipeline(home=home).sql(plan.sql, variables(settings))
    found = trace_of(pipeline, checkpoint, where, number=number, sink=sink)
    if not as_json:
        typer.echo(str(found))
        return
    for item in found:
        write_json(item.as_json(), indent=None)
