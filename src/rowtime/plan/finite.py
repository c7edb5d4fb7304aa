"""Finite sources: directories of files and lake tables, whose streams end only if somebody says so (semantics 2.6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rowtime.core.errors import Place, refuse

FINITE: Final = frozenset({"parquet", "csv", "json", "delta", "iceberg"})
ENDS: Final = "ends"
"""The option that declares a source finite: its stream ends once all present files have been read."""


def is_finite(kind: str) -> bool:
    """Return True if streams of a format may be ended: their files can all have been read."""
    return kind in FINITE


def declared_to_end(options: Iterable[tuple[str, str]]) -> bool:
    """Return True if OPTIONS have ``ends 'true'``."""
    return any(name.lower() == ENDS and value.lower() == "true" for name, value in options)


def check_ends(kind: str, options: Iterable[tuple[str, str]], place: Place) -> None:
    """Refuse (R213) an option ``ends`` with another value, or of a format that has no end."""
    given = {name.lower(): value for name, value in options}
    if ENDS not in given:
        return
    if not is_finite(kind):
        hint = (
            "To end a stream log, use ALTER STREAM … END. To end a Kafka partition, send a record with the header "
            "rowtime-bound: end."
        )
        raise refuse("R213", f"the option ends is for files and lake tables, not for {kind}", hint, place)
    if given[ENDS].lower() not in ("true", "false"):
        hint = "Write ends 'true' if no more files will arrive; otherwise leave it out."
        raise refuse("R213", f"the option ends is 'true' or 'false', not {given[ENDS]!r}", hint, place)
