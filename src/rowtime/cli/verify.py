"""``rowtime verify``: compares the output with one batch over the recorded input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
from rowtime.cli.outcome import REFUSED, write_json
from rowtime.core.counts import counted

if TYPE_CHECKING:
    from rowtime.audit.verify import Verified


def verify(
    checkpoint: CheckpointFolder,
    home: HomeFolder = None,
    settings: Settings = None,
    conf: Conf = None,
    jars: Jars = None,
    packages: Packages = None,
    as_json: AsJson = False,
) -> None:
    """Run the recorded input again as one batch and compare it with what was written; status 1 if it differs."""
    from rowtime.api.verification import verify as compare  # noqa: PLC0415 - most commands need no Spark

    asked = spark_conf(conf, jars, packages)
    found = compare(checkpoint, home=home, variables=variables(settings), conf=asked)
    if as_json:
        write_json({"checkpoint": str(checkpoint), **found.as_json()})
    else:
        typer.echo("\n".join([str(checkpoint), *as_lines(found)]))
    if not found.equal:
        raise typer.Exit(REFUSED)


def as_lines(found: Verified) -> Iterator[str]:
    """Yield the comparison as text."""
    times = "batch" if found.batches == 1 else "batches"
    yield f"  up to tick {found.tick}, run again as {found.batches} {times}"
    for output in found.outputs:
        outcome = f"{output.differences:,} differ" if output.differences else "equal"
        yield f"  {output.name} ({output.kind}): {counted(output.rows, 'rows')} {output.how}, {outcome}"
        yield from (f"    {difference}" for difference in output.first)
        if output.differences > len(output.first):
            yield f"    and {output.differences - len(output.first):,} more"
