"""Arguments and options that several commands share, and the parsing of their values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rowtime.core.errors import refuse

Script = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, readable=True, help="A file of SQL statements.")
]
HomeFolder = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="The home of named streams: a folder or s3://bucket/folder; default ROWTIME_HOME, else .rowtime.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="The value of ${NAME} in the script; may be repeated."),
]
CheckpointFolder = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint of a pipeline, a folder or a URL.")
]
Checkpoints = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CHECKPOINT]...", help="Folders or URLs. Default: all pipelines below the home directory."),
]
StreamName = Annotated[str, typer.Argument(metavar="STREAM", help="A stream of the home directory.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark, as in spark-submit; may be repeated."),
]
Jars = Annotated[
    list[str] | None,
    typer.Option("--jars", metavar="JAR,…", help="Jars for Spark, separated by commas; may be repeated."),
]
Packages = Annotated[
    list[str] | None,
    typer.Option("--packages", metavar="G:A:V,…", help="Maven packages that Spark fetches; may be repeated."),
]


Imports = Annotated[
    bool,
    typer.Option(
        "--import",
        help="Import the Python modules that the script names, which runs their code; default: only read them.",
    ),
]


def variables(settings: Sequence[str] | None) -> dict[str, str]:
    """Return the variables that ``--set`` gives; a usage error if a name or ``=`` is missing."""
    return pairs(settings, "NAME=VALUE", "--set")


def spark_conf(
    conf: Sequence[str] | None, jars: Sequence[str] | None, packages: Sequence[str] | None
) -> dict[str, str]:
    """Return the session settings from ``--conf``, ``--jars`` and ``--packages``.

    Jars and packages are added to those of ``--conf``. A usage error for anything that is not a Spark setting.
    """
    settings = pairs(conf, "KEY=VALUE", "--conf")
    for name in settings:
        if not name.startswith("spark."):
            raise typer.BadParameter(
                f"{name} is not a Spark setting: the name of a Spark setting begins with spark.", param_hint="--conf"
            )
    for name, given in (("spark.jars", jars), ("spark.jars.packages", packages)):
        if given:
            settings[name] = ",".join([*filter(None, [settings.get(name)]), *given])
    return settings


def pairs(given: Sequence[str] | None, form: str, option: str) -> dict[str, str]:
    """Return the values of an option that may be repeated, by name; a usage error if a name or ``=`` is missing."""
    split = [setting.partition("=") for setting in given or ()]
    for name, equals, _ in split:
        if not (name and equals):
            raise typer.BadParameter(f"{name or '='} is not of the form {form}", param_hint=option)
    return {name: value for name, _, value in split}


def script_text(file: Path) -> str:
    """Return the text of a script; raises ``Refused`` (R101) if it is not UTF-8."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse("R101", f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from None
