"""Names and texts in DuckDB's SQL, and what is said of Spark SQL that has no translation."""

from __future__ import annotations


class Untranslated(Exception):
    """An expression is not known to mean the same in both."""


def quoted(name: str) -> str:
    """A name as DuckDB reads it, and most databases."""
    return '"' + name.replace('"', '""') + '"'


def in_text(text: str) -> str:
    """A text as DuckDB reads it."""
    return "'" + text.replace("'", "''") + "'"
