"""Names and texts in DuckDB's SQL, and the error for Spark SQL without a translation."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

LEFT: Final[ContextVar[frozenset[str]]] = ContextVar("LEFT", default=frozenset())
"""The marks (`values.mark_of`) of expressions that have met a value for which only Spark knows the result.

From then on they have no translation. A run has its own.
"""


class Untranslated(Exception):
    """An expression is not known to mean the same in both systems."""


def quoted(name: str) -> str:
    """Return a name, quoted for DuckDB and most databases."""
    return '"' + name.replace('"', '""') + '"'


def in_text(text: str) -> str:
    """Return a text, quoted for DuckDB."""
    return "'" + text.replace("'", "''") + "'"
