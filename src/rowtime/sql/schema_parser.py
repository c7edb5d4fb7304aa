"""Parses statements about schemas: CREATE, DROP and SET SCHEMA, and SET PATH."""

from __future__ import annotations

import re
from typing import Any, Final

from sqlglot import TokenType

from rowtime.sql import statements as st
from rowtime.sql.column_parser import CATALOG
from rowtime.sql.shape_parser import ShapeParser

_PART: Final = r'(?:"(?:[^"]|"")+"|\w+)'
_SCHEMA: Final = re.compile(rf"{_PART}(?:\.{_PART})*")
_LIST: Final = re.compile(rf"\s*{_SCHEMA.pattern}\s*(?:,\s*{_SCHEMA.pattern}\s*)*")


class SchemaParser(ShapeParser):
    """Parses the parts of statements that concern schemas."""

    def _set(self, facts: dict[str, Any]) -> st.SetSchema | st.SetPath:
        if self._match_text_seq("PATH"):
            return st.SetPath(path=self._schemas(), **facts)
        if not self._match_text_seq("SCHEMA"):
            self.raise_error("SET takes SCHEMA or PATH", hint="Write SET SCHEMA 'app', or leave the statement out.")
        return self._one_schema(facts)

    def _use(self, facts: dict[str, Any]) -> st.SetSchema:
        """Parse ``USE [SCHEMA | DATABASE | NAMESPACE] app``, as in Spark."""
        if self._match_text_seq("CATALOG", advance=False):
            self.raise_error("catalogs are not supported", hint="Leave USE CATALOG out, or write SET SCHEMA 'app'.")
        self._match_texts(("SCHEMA", "DATABASE", "NAMESPACE"))
        return self._one_schema(facts)

    def _one_schema(self, facts: dict[str, Any]) -> st.SetSchema:
        first, schemas = self._curr, self._schemas()
        if len(schemas) > 1:
            self.raise_error("one schema is expected", first, hint="Write the others into SET PATH 'app, other'.")
        return st.SetSchema(schema="".join(schemas), **facts)

    def _schemas(self) -> tuple[str, ...]:
        """Return the schemas in a text, ``'app, "Other"'``, or one name without quotes; ``''`` means none."""
        if not self._match(TokenType.STRING):
            return (self._name().text,)
        text = self._prev.text
        if not text.strip():
            return ()
        if not _LIST.fullmatch(text):
            self.raise_error("this is not the name of a schema", self._prev, hint="Write it as in 'app' or '\"app\"'.")
        schemas = tuple(_unquoted(match[0]) for match in _SCHEMA.finditer(text))
        if any(schema.upper().startswith(f"{CATALOG}.") for schema in schemas):
            self.raise_error(
                "catalogs are not supported", self._prev, hint=f"Leave {CATALOG} out, and the dot after it."
            )
        return schemas

    def _create_schema(self, facts: dict[str, Any]) -> st.CreateSchema:
        self._match_text_seq("IF", "NOT", "EXISTS")
        facts = {key: value for key, value in facts.items() if key in ("place", "text")}
        return st.CreateSchema(name=self._name(), comment=self._comment(), **facts)

    def _drop_schema(self, facts: dict[str, Any]) -> st.DropSchema:
        if_exists = self._match_text_seq("IF", "EXISTS") is True
        return st.DropSchema(name=self._name(), if_exists=if_exists, cascade=self._cascade(), **facts)

    def _cascade(self) -> bool:
        return self._match_texts(("CASCADE", "RESTRICT")) is True and self._prev.text.upper() == "CASCADE"

    def _comment(self) -> str:
        """Parse ``COMMENT 'text'``, as in Spark, or ``DESCRIPTION 'text'``, as in SQLstream; else an empty text."""
        return self._text("a comment") if self._match_texts(("COMMENT", "DESCRIPTION")) else ""


def _unquoted(schema: str) -> str:
    parts = re.findall(_PART, schema)
    return ".".join(part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts)
