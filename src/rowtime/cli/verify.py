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

    settings_of_spark = spark_conf(conf, jars, packages)
    verified = compare(checkpoint, home=home, variables=variables(settings), conf=settings_of_spark)
    if as_json:
        write_json({"checkpoint": str(checkpoint), **verified.as_json()})
    else:
        typer.echo("\n".join([str(checkpoint), *as_lines(verified)]))
    if not verified.equal:
        raise typer.Exit(REFUSED)


def as_lines(verified: Verified) -> Iterator[str]:
    """Yield the comparison as text."""
    times = "batch" if verified.batches == 1 else "batches"
    yield f"  up to tick {verified.tick}, run again as {verified.batches} {times}"
    yield from (f"  {line}" for line in verified.sparks)
    for output in verified.outputs:
        outcome = f"{output.differences:,} differ" if output.differences else "equal"
        yield f"  {output.name} ({output.kind}): {counted(output.rows, 'rows')} {output.how}, {outcome}"
        yield from (f"    {difference}" for difference in output.first)
        if output.differences > len(output.first):
            yield f"    and {output.differences - len(output.first):,} more"
