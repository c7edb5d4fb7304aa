"""Options of the data source ``rowtime``, for reading and writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rowtime.client.home import Home
from rowtime.core.errors import refuse

HOME: Final = "home"
LOGS: Final = (
    "Name a stream that a home defines without USING; `rowtime streams` lists them. A pump can fill one: "
    "INSERT INTO it SELECT STREAM …, also from the rejected rows of a gate."
)


def options_of(given: Mapping[str, str], known: Sequence[str], more: Sequence[str] = ()) -> dict[str, str]:
    """Return the options by their names in lower case; raises ``Refused`` (R540) for one that is not ``known``.

    ``more``: names of others that do not matter here.
    """
    options = {key.lower(): value for key, value in given.items()}
    for key in options:
        if key not in {name.lower() for name in (*known, *more)}:
            raise refuse("R540", f"the data source rowtime has no option {key}", f"It has: {', '.join(known)}.")
    return options


def stream_of(options: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the stream that the options name, and its definition; raises ``Refused`` (R103)."""
    stream, home = options.get("path", "").lower(), Home(options.get(HOME))
    definition = home.definition(stream) if stream else None
    if definition is None or definition.get("format"):
        raise refuse("R103", f"there is no stream log {stream or 'without a name'} in {home.path}", LOGS)
    return stream, definition


def one_of(options: Mapping[str, str], name: str, *values: str) -> str:
    """Return the value of an option, by default the first one; raises ``Refused`` (R541) for another one."""
    value = options.get(name.lower(), values[0]).lower()
    if value not in values:
        raise refuse("R541", f"{name} is {value}", f"Write {' or '.join(values)}.")
    return value


def number_of(options: Mapping[str, str], name: str) -> int | None:
    """Return a whole number from 1, ``None`` if it is not given; raises ``Refused`` (R541)."""
    text = options.get(name.lower())
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise refuse("R541", f"{name} is {text}", "Write a whole number from 1.")
    return int(text)
