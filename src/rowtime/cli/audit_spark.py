"""``rowtime audit-spark``: what an existing job of Structured Streaming loses, and how it depends on the batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from rowtime.cli.options import Conf, Jars, Packages, pairs, spark_conf
from rowtime.cli.outcome import REFUSED
from rowtime.core.errors import refuse

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB]",
        help="A function that returns the streaming DataFrame: FILE.py, FILE.py:function or module:function; "
        "default: job. It gets the session, and a DataFrame for each input.",
    ),
]
Table = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="SQL", help="Audit a query instead, or a file (.sql) that has one; inputs are its tables."
    ),
]
Places = Annotated[
    list[str],
    typer.Option(
        "--input",
        metavar="[NAME=]FILES",
        help="A folder, file or glob of Parquet, CSV or JSON; NAME is the parameter or table; may be repeated.",
    ),
]
Schemas = Annotated[
    list[str] | None,
    typer.Option("--schema", metavar="NAME=COLUMNS", help="The columns of an input, 'id INT, …'; default: inferred."),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="An option of Spark for reading the files; may be repeated."),
]
Watermarks = Annotated[
    list[str] | None,
    typer.Option(
        "--watermark",
        metavar="NAME.COLUMN=DELAY",
        help="A withWatermark of an input, for example orders.at='10 minutes'.",
    ),
]
Mode = Annotated[str, typer.Option("--mode", metavar="MODE", help="The output mode: append, update or complete.")]
Split = Annotated[
    int | None,
    typer.Option("--rows-per-file", metavar="N", min=1, help="Split the files, in order, into files of so many rows."),
]
Randoms = Annotated[int, typer.Option("--random", metavar="N", min=0, help="The number of random cuts.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The seed of the first random cut.")]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write all numbers as JSON.")]
Page = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write one page that can be sent.")]


def audit_spark(
    target: Target = None,
    table: Table = None,
    places: Places = [],  # noqa: B006 - typer copies it
    schemas: Schemas = None,
    options: Options = None,
    watermarks: Watermarks = None,
    mode: Mode = "append",
    rows_per_file: Split = None,
    randoms: Randoms = 1,
    seed: Seed = 1,
    json_file: Json = None,
    page: Page = None,
    conf: Conf = None,
    jars: Jars = None,
    packages: Packages = None,
) -> None:
    """Run a job of Spark Structured Streaming with several cuts of its input into batches, and compare the results.

    It shows which results differ, which rows Spark dropped, and what a batch over the same rows gives. The sinks of the
    job are not written. Status 1 if results differ or rows were dropped.
    """
    from rowtime.audit_spark.audited import audit  # noqa: PLC0415 - most commands need no Spark
    from rowtime.audit_spark.cuts import MODES, session_of  # noqa: PLC0415
    from rowtime.audit_spark.inputs import inputs_of  # noqa: PLC0415
    from rowtime.audit_spark.jobs import of_sql, of_target  # noqa: PLC0415
    from rowtime.audit_spark.texts import as_page, as_text  # noqa: PLC0415
    from rowtime.runtime.session import new_spark  # noqa: PLC0415

    if (target is None) == (table is None):
        raise typer.BadParameter("give a job, or --table with a query", param_hint="JOB")
    if mode not in MODES:
        raise typer.BadParameter(f"{mode} is none of {', '.join(MODES)}", param_hint="--mode")
    delays = pairs(watermarks, "NAME.COLUMN=DELAY", "--watermark")
    of_columns = {(name.partition(".")[0], name.partition(".")[2]): delay for name, delay in delays.items()}
    given = spark_conf(conf, jars, packages)
    typer.echo("starting Spark …", err=True)
    spark = session_of(new_spark(conf=given), given)
    job = of_sql(_query(table)) if table is not None else of_target(str(target))
    with TemporaryDirectory(prefix="rowtime-audit-") as scratch:
        named = pairs(schemas, "NAME=COLUMNS", "--schema")
        reading = pairs(options, "KEY=VALUE", "--option")
        inputs = inputs_of(spark, _named(places, job.inputs), named, reading, of_columns, rows_per_file, Path(scratch))
        audited = audit(spark, job, inputs, mode, randoms, seed, lambda text: typer.echo(f"{text} …", err=True))
    typer.echo(as_text(audited))
    if json_file is not None:
        json_file.write_text(json.dumps(audited.as_json(), indent=2, default=str) + "\n", encoding="utf-8")
    if page is not None:
        page.write_text(as_page(audited), encoding="utf-8")
    if not audited.agrees:
        raise typer.Exit(REFUSED)


def _query(table: str) -> str:
    file = Path(table)
    return file.read_text(encoding="utf-8-sig") if file.suffix == ".sql" and file.is_file() else table


def _named(places: list[str], parameters: Sequence[str] | None) -> dict[str, str]:
    """Return the inputs by name; the only one needs no name if the job says how it calls it."""
    only = parameters[0] if parameters is not None and len(parameters) == 1 else ""
    split = [place.partition("=") if "=" in place else (only, "=", place) for place in places]
    named = {name: place for name, _, place in split}
    if not named or "" in named or len(named) < len(places) or (parameters is not None and {*parameters} != {*named}):
        takes = "tables of any names" if parameters is None else ", ".join(parameters) or "no input"
        what = f"the job takes {takes}, and the inputs given are {', '.join(sorted(named)) or 'none'}"
        raise refuse(
            "R631", what, "Give each input by its name: --input orders=data/orders --input payments=data/payments."
        )
    return named
