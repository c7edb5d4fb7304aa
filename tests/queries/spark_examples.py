"""The examples in Spark's documentation of its functions (``DESCRIBE FUNCTION EXTENDED``), as expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TEXT = re.compile(r"""r?'(?:[^'\\]|\\.|'')*'|(r?)"((?:[^"\\]|\\.)*)\"""")
_ROWS = re.compile(
    r"SELECT (.*?)\s+FROM\s+(VALUES\s.*\w\s*\([\w, ]+\)|\(SELECT\s.*\)(?:\s+t)?)\s*", re.DOTALL | re.IGNORECASE
)
_OF_ROWS = re.compile(r"\bOVER\s*\(|\bGROUP\s+BY\b|\*$", re.IGNORECASE)
_OF_TABLES = re.compile(r"\bFROM\s+(VALUES\b|\(|range\b|test_|\w+\()|\bGROUP BY\b|^SELECT \*", re.IGNORECASE)
_ONE = re.compile(r"SELECT (.*)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Example:
    """An expression of ``function``; with ``source``, what follows FROM, an aggregate of these rows."""

    function: str
    text: str
    source: str = ""


def examples(spark: SparkSession) -> list[Example]:
    """All examples of Spark's functions, except those of tables and of several expressions."""
    names = sorted(row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect())
    found = [made for name in names for text in _texts(spark, name) if (made := _example(name, text)) is not None]
    return list(dict.fromkeys(found))


def _texts(spark: SparkSession, name: str) -> Iterator[str]:
    described = "\n".join(row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect())
    part = re.search(r"Examples:\n(.*?)(?=\n  \n|\Z)", described, re.DOTALL)
    text, settings = "", False
    for line in (part[1] if part else "").split("\n"):
        if line.strip().startswith("> "):
            text = line.strip()[2:]
        elif text:
            text += "\n" + line.strip()
        if text.rstrip().endswith(";"):
            settings = settings or text.startswith("SET ")
            if not settings:  # the rest is about another setting
                yield text.rstrip().rstrip(";")
            text = ""


def _example(name: str, text: str) -> Example | None:
    text = _TEXT.sub(_single, text)
    rows = _ROWS.fullmatch(text)
    if rows is not None:
        return None if _OF_ROWS.search(text) else Example(name, rows[1], rows[2])
    one = _ONE.fullmatch(text)
    if one is None or _OF_TABLES.search(text):
        return None
    return Example(name, re.sub(r" AS result$", "", one[1]))


def _single(found: re.Match[str]) -> str:
    """Put a text in double quotes, which are for names here, into single quotes."""
    if found[2] is None:
        return found[0]
    return found[1] + "'" + found[2].replace('\\"', '"').replace("'", "\\'") + "'"
