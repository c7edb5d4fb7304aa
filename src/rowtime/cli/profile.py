"""``rowtime profile``: how far out of order rows are, and which WITHIN, EARLY BEYOND and IDLE AFTER they need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rowtime.cli.options import (
    AsJson,
    Conf,
    HomeFolder,
    Jars,
    Packages,
    Settings,
    spark_conf,
    variables,
)
from rowtime.cli.outcome import write_json

if TYPE_CHECKING:
    from rowtime.profiling.result import Profile

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        help="A script (.sql), a folder, file or glob of Parquet, CSV or JSON, a Delta table, or a stream of the home.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time", metavar="COLUMN", help="The times. Default: what the script promotes, or the only TIMESTAMP column."
    ),
]
Writer = Annotated[
    str | None, typer.Option("--writer", metavar="COLUMN", help="A column of which each value has its own clock.")
]
Key = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="COLUMN", help="Count rows of equal writer, time and key; may be repeated."),
]
Keep = Annotated[
    float,
    typer.Option("--keep", metavar="SHARE", min=0.0, max=1.0, help="The share of rows that WITHIN should keep."),
]
Picture = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", help="Also write the curve as a picture, one for each gate.")
]


def profile(
    sources: Sources,
    time: Time = None,
    writer: Writer = None,
    key: Key = None,
    keep: Keep = 0.999,
    picture: Picture = None,
    home: HomeFolder = None,
    settings: Settings = None,
    conf: Conf = None,
    jars: Jars = None,
    packages: Packages = None,
    as_json: AsJson = False,
) -> None:
    """Show how late rows are, and recommend WITHIN, EARLY BEYOND and IDLE AFTER; nothing runs or is changed."""
    from rowtime.api.pipeline import Pipeline  # noqa: PLC0415 - most commands need no Spark
    from rowtime.profiling.profiled import profiles  # noqa: PLC0415

    settings_of_spark, values = spark_conf(conf, jars, packages), variables(settings)
    every: list[Profile] = []
    for source in sources:
        pipeline = Pipeline(home=home, conf=settings_of_spark)
        options = {"time": time, "writer": writer, "key": key or (), "keep": keep, "variables": values}
        for one in profiles(source, pipeline, **options):  # type: ignore[arg-type]
            if not as_json:
                typer.echo(f"{one}\n" if not every else f"\n{one}\n")
            every.append(one)
    if as_json:
        write_json([one.as_json() for one in every])
    for n, one in enumerate(every if picture is not None else ()):
        assert picture is not None
        file = picture if n == 0 else picture.with_stem(f"{picture.stem}-{one.name}")
        file.write_text(one.svg(), encoding="utf-8")
        typer.echo(f"picture: {file}", err=True)
