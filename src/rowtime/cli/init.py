"""``rowtime init``: a small project to start from: a pipeline, data, a transcript, a Makefile and a CI workflow."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

import typer

from rowtime.core.errors import refuse
from rowtime.core.shared_paths import usable

STARTER: Final = {
    "pipeline.sql": "pipeline.sql",
    "data/clicks-1.csv": "data/clicks-1.csv",
    "tests/a_minute_of_clicks.yaml": "tests/a_minute_of_clicks.yaml",
    "Makefile": "Makefile",
    "README.md": "README.md",
    ".gitignore": "gitignore",
    ".github/workflows/test.yml": "workflow.yml",
}
"""Each file of the new project, and the package file that is copied."""

Target = Annotated[
    Path, typer.Argument(metavar="[DIR]", file_okay=False, help="A folder; created if it does not exist.")
]


def init(folder: Target = Path()) -> None:
    """Create a small project for `rowtime run` and `rowtime test`; existing files stay."""
    existing = [name for name in STARTER if (folder / name).exists()]
    if existing:
        raise refuse("R215", f"{folder.absolute()} already has {', '.join(existing)}", "Name an empty folder.")
    source = files("rowtime.cli") / "starter"
    for name, kept in STARTER.items():
        target = folder / name
        with usable(folder, "Name another folder, in which you can write."):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((source / kept).read_text(encoding="utf-8"), encoding="utf-8")
        typer.echo(f"wrote {target}")
    where = "" if folder == Path() else f"cd {quote(str(folder))}; "
    typer.echo(f"Next: {where}rowtime run pipeline.sql --available-now; rowtime test tests")
