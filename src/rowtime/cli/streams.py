"""``rowtime streams``: the streams that a home directory defines."""

from __future__ import annotations

from typing import Any

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
    for name, definition in defined.items():
        typer.echo(f"{name} ({_columns(definition)}){_using(definition)}")
    if not defined:
        typer.echo(f"{place.path} defines no streams yet.", err=True)


def _columns(definition: dict[str, Any]) -> str:
    return ", ".join(f"{column['name']} {column['type']}" for column in definition.get("columns", ()))


def _using(definition: dict[str, Any]) -> str:
    return f" USING {definition['format']}" if definition.get("format") else ""
