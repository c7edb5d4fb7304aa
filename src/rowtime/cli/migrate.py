"""``rowtime migrate``: other SQL goes on with a checkpoint, with the history computed again."""

from __future__ import annotations

from pathlib import Path

import typer

from rowtime.cli.options import (
    AsJson,
    Conf,
    HomeFolder,
    Jars,
    Packages,
    Script,
    Settings,
    script_text,
    spark_conf,
    variables,
)
from rowtime.cli.outcome import write_json
from rowtime.cli.run import Folder, TakeOver
from rowtime.client.home_users import CHECKPOINTS
from rowtime.core.counts import counted


def migrate(
    file: Script,
    checkpoint: Folder = None,
    home: HomeFolder = None,
    settings: Settings = None,
    take_over: TakeOver = None,
    conf: Conf = None,
    jars: Jars = None,
    packages: Packages = None,
    as_json: AsJson = False,
) -> None:
    """Let a changed script continue from a checkpoint: read the same input again and replace the old state."""
    from rowtime.api.migrating import migrate as migrated  # noqa: PLC0415 - most commands need no Spark
    from rowtime.api.pipeline import Pipeline  # noqa: PLC0415

    pipeline = Pipeline(home=home, conf=spark_conf(conf, jars, packages)).sql(script_text(file), variables(settings))
    folder = checkpoint or str(pipeline.home.path / CHECKPOINTS / Path(file).stem)
    result = migrated(folder, pipeline, take_over=take_over or ())
    if as_json:
        write_json({"checkpoint": folder, **result.as_json()})
        return
    batches = counted(result.batches, "batches") if result.batches != 1 else "1 batch"
    typer.echo(f"{folder}: computed again in {batches}, as tick {result.tick}")
    for pump, what in result.sinks.items():
        typer.echo(f"  {pump} {what}")
