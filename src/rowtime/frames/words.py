"""Names and texts in DuckDB's SQL, and the error for Spark SQL without a translation."""

from __future__ import annotations


class Untranslated(Exception):
    """An expression is not known to mean the same in both systems."""


def quoted(name: str) -> str:
    """Return a name, quoted for DuckDB and most databases."""
    return '"' + name.replace('"', '""') + '"'


def in_text(text: str) -> str:
    """Return a text, quoted for DuckDB."""
    return "'" + text.replace("'", "''") + "'"
