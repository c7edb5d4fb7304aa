"""``rowtime warm``: lets later starts of Spark take less time."""

from __future__ import annotations

import time

import typer

from rowtime.cli.options import AsJson
from rowtime.cli.outcome import write_json


def warm(as_json: AsJson = False) -> None:
    """Store the classes that Spark loads in an archive, so that later starts take about a third less time.

    It takes about a minute, and needs 180 MB in the user's folder for caches. Call it again after an upgrade of Java,
    Spark or its jars.
    """
    from rowtime.runtime.class_archive import write  # noqa: PLC0415 - pyspark takes its time

    began = time.monotonic()
    path = write()
    size = path.stat().st_size
    if as_json:
        write_json({"archive": str(path), "bytes": size})
        return
    typer.echo(f"{path}: {size / 1e6:.0f} MB, written in {time.monotonic() - began:.0f} s")
    typer.echo("rowtime uses it whenever it starts Spark")
