"""``rowtime trace``: what made a row of an output, or where a row of a stream went, operator by operator."""

from __future__ import annotations

from typing import Annotated

import typer

from rowtime.cli.options import (
    AsJson,
    CheckpointFolder,
    Conf,
    HomeFolder,
    Jars,
    Packages,
    Settings,
    spark_conf,
    variables,
)
from rowtime.cli.outcome import write_json
from rowtime.core.errors import refuse
from rowtime.core.stores import place_of
from rowtime.state.checkpoint import Checkpoint

Number = Annotated[int | None, typer.Option("--number", min=0, help="The sequence number of the row; the first is 0.")]
Condition = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="CONDITION", help="Trace the first row that meets this condition on the output's columns."
    ),
]
SinkName = Annotated[
    str | None, typer.Option("--sink", metavar="NAME", help="The output (a pump or query), if there are several.")
]

StreamName = Annotated[
    str | None,
    typer.Option("--from", metavar="STREAM", help="Show where the row of this stream that meets --where went."),
]


def trace(
    checkpoint: CheckpointFolder,
    number: Number = None,
    where: Condition = None,
    sink: SinkName = None,
    stream: StreamName = None,
    home: HomeFolder = None,
    settings: Settings = None,
    conf: Conf = None,
    jars: Jars = None,
    packages: Packages = None,
    as_json: AsJson = False,
) -> None:
    """Show the inserts, retractions and bounds that made an output row; reads the recorded input again.

    With --from: the rows that a row of a stream contributed to, up to the outputs.
    """
    from rowtime.api.pipeline import Pipeline  # noqa: PLC0415 - it runs the pipeline, which needs Spark
    from rowtime.audit.forward import forward  # noqa: PLC0415 - the same
    from rowtime.audit.trace import trace as trace_of  # noqa: PLC0415 - the same

    if stream is not None and (where is None or sink is not None):
        raise typer.BadParameter("it requires --where, and cannot be combined with --sink", param_hint="--from")
    if (number is None) == (where is None):
        raise typer.BadParameter("give one of the two", param_hint="--number, --where")
    plan = Checkpoint(place_of(checkpoint)).plan
    if plan is None:
        raise refuse(
            "R405",
            f"{checkpoint} is not a checkpoint: it has no plan.json",
            "Give the checkpoint folder of a pipeline.",
        )
    pipeline = Pipeline(home=home, conf=spark_conf(conf, jars, packages)).sql(plan.sql, variables(settings))
    if stream is not None:
        assert where is not None
        result = forward(pipeline, checkpoint, stream, where)
    else:
        result = trace_of(pipeline, checkpoint, where, number=number, sink=sink)
    if not as_json:
        typer.echo(str(result))
        return
    for item in result:
        write_json(item.as_json(), indent=None)
