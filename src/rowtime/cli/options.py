"""Arguments and options that several commands have, and how their values are read."""

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
        help="Where named streams live: a folder or s3://bucket/folder; default ROWTIME_HOME, else .rowtime.",
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


def variables(settings: Sequence[str] | None) -> dict[str, str]:
    """The variables that ``--set`` gives; a usage error where there is no name or no ``=``."""
    pairs = [setting.partition("=") for setting in settings or ()]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise typer.BadParameter(f"{name or '='} is not of the form NAME=VALUE", param_hint="--set")
    return {name: value for name, _, value in pairs}


def script_text(file: Path) -> str:
    """The text of a script; raises ``Refused`` (R101) where it is not UTF-8."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse("R101", f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from None
