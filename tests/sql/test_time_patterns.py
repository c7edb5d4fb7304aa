"""Patterns of dates and times are read as Spark reads them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import duckdb
import pytest
from sqlglot import exp

from rowtime.core.time_patterns import PatternFault, parts_of
from rowtime.frames.attempted import attempted
from rowtime.frames.translated import scope_of
from rowtime.frames.values import Value
from rowtime.frames.words import Untranslated
from rowtime.runtime.session import derive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
FIELDS = [*(letter * n for letter in "yMdHhmsSaEDGkKQqLzVOXxZ" for n in (1, 2, 3, 4)),
          *("yyyy", "MM", "dd", "HH", "mm", "ss") * 6]  # fmt: skip
SIGNS = ("-", "/", ":", " ", ".", "_", ",", "'T'", "''", "'", "[", "]", "{", "}", "#", "%", "é", "'a''b'", "'Y'", "+",
         "(", "😀")  # fmt: skip
AT = "2024-12-30 10:05:07.123456"


def _patterns(count: int) -> list[str]:
    """Return each letter up to twenty times, and random patterns."""
    chance, found = Random(3), {"", *(letter * n for letter in LETTERS for n in range(1, 21))}
    found |= {f"{era}{'y' * n}" for era in ("G", "'G'") for n in range(1, 13)}
    for _ in range(count):
        parts = (chance.choice(FIELDS if chance.random() < 0.6 else SIGNS) for _ in range(chance.randint(1, 6)))
        found.add("".join(parts))
    return sorted(found)


def _accepted(pattern: str, *, reading: bool) -> bool:
    try:
        parts_of(pattern, reading=reading)
    except PatternFault:
        return False
    return True


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_patterns_are_refused_and_formatted_as_in_spark(spark: SparkSession, count: int) -> None:
    patterns, session = _patterns(count), derive(spark)
    written, read = (
        attempted(session, [text]) for text in (f"date_format(TIMESTAMP '{AT}', p)", "try_to_timestamp('qqq', p)")
    )
    rows = session.createDataFrame([(pattern,) for pattern in patterns], "p string")
    found = {row.p: row for row in rows.select("p", written.alias("w"), read.alias("r")).collect()}
    assert {p for p in patterns if _accepted(p, reading=False) != (found[p].w is not None)} == set()
    odd = {p for p in patterns if "S" in p and p.count("'") % 2}  # Spark closes the quote, and may refuse the rest
    assert {p for p in patterns if _accepted(p, reading=True) != (found[p].r is not None)} <= odd
    assert {p for p in odd if not _accepted(p, reading=True) and found[p].r is not None} == set()
    texts = {p: text for p in patterns if (text := _on_the_driver(p)) is not None}
    assert len(texts) > 20
    assert texts == {p: found[p].w["c0"] for p in texts}


def _on_the_driver(pattern: str) -> str | None:
    call = exp.Anonymous(this="date_format", expressions=[exp.column("a"), exp.Literal.string(pattern)])
    try:
        sql = scope_of({"a": Value("a", "timestamp")}).value(call).sql
    except Untranslated:
        return None
    [(text,)] = duckdb.sql(f"SELECT {sql} FROM (SELECT TIMESTAMP '{AT}' AS a)").fetchall()
    return str(text)
