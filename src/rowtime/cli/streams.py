"""``rowtime streams``: the streams that a home directory defines."""

from __future__ import annotations

import typer

from rowtime.cli.options import AsJson, HomeFolder
from rowtime.cli.outcome import write_json
from rowtime.client.home import Home


def streams(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """List the named streams with their columns."""
    place = Home(home)
    defined = {name: place.definition(name) or {} for name in place.names()}
    if as_json:
        write_json([{"name": name, **definition} for name, definition in defined.items()])
        return
    typer.echo(f"home: {place.path}", err=True)
    for name, definition in defined.items():
        columns = ", ".join(f"{column['name']} {column['type']}" for column in definition.get("columns", ()))
        using = f" USING {definition['format']}" if definition.get("format") else ""
        typer.echo(f"{name} ({columns}){using}")
    if not defined:
        typer.echo(f"It defines no streams yet. {place.elsewhere('')}".rstrip(), err=True)
