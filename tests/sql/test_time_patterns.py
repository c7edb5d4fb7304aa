"""Patterns of dates and times are read as Spark reads them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import duckdb
import pytest
from sqlglot import exp

import rowtime as rt
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


CONSTANT = (
    "date_format(t, 'yyyy' || '-YYYY')", "date_format(t, concat('yyyy', '-MM'))",
    "to_json(struct(t), map('timestampNTZFormat', 'YYYY'))", "date_format(t, CAST('YY' AS STRING))",
    "to_date(s, replace('yyyy', 'y', 'Y'))", "date_format(t, s || 'YYYY')", "rlike(s, '(' || 'a')",
    "from_utc_timestamp(t, 'Mars' || '/X')", "encode(s, 'utf' || '99')", "format_string('%' || 'q', s)",
    "to_json(struct(t), map('timestampFormat', 'YY' || 'YY'))", "to_json(struct(t), map('dateFormat', 'yyyy'))",
    "to_json(struct(t), map('dateFormat', 'YYYY'))", "to_csv(struct(t), map('TIMESTAMPFORMAT', 'YYYY'))",
    "from_json(j, 'a TIMESTAMP', map('timestampFormat', 'YYYY'))", "from_json(j, 'a DATE', map('dateFormat', 'YYYY'))",
    "from_json(j, 'a DATE', map('timestampFormat', 'YYYY'))", "from_json(j, 'a TIMESTAMP', map('dateFormat', 'YYYY'))",
    "from_json(j, 'a STRING', map('timestampFormat', 'YYYY'))", "from_csv(c, 'a DATE', map('dateFormat', 'E' || 'E'))",
    "from_json(j, 'a TIMESTAMP_NTZ', map('timestampNTZFormat', 'YYYY'))",
    "from_json(j, 'a TIMESTAMP_NTZ', map('timestampFormat', 'YYYY'))",
    "from_csv(c, 'a TIMESTAMP', map('timestampFormat', 'yyyy-MM-dd'))", "from_csv(c, 'a INT', map('dateFormat', 'YY'))",
)  # fmt: skip
"""Patterns that are no literals, or options. The one with a column is computed for each row."""


def test_constant_patterns_are_refused_by_check_if_spark_refuses_them(spark: SparkSession) -> None:
    session = derive(spark)
    row = f"TIMESTAMP '{AT}' AS t, 'a' AS s, '{{\"a\": \"2024-01-02\"}}' AS j, '2024-01-02' AS c"
    rows = session.sql(f"SELECT {row}").cache()
    values = [attempted(session, [call]).alias(f"v{n}") for n, call in enumerate(CONSTANT)]
    [computed] = session.createDataFrame(rows.collect()).select(*values).collect()
    failing = {call for call, value in zip(CONSTANT, computed, strict=True) if value is None and "s ||" not in call}
    stream = "CREATE STREAM x (t TIMESTAMP, s STRING, j STRING, c STRING);"
    problems = {call: rt.check(f"{stream} SELECT STREAM {call} AS y FROM x") for call in CONSTANT}
    assert {call for call, found in problems.items() if found} == failing
    assert {problem.code for found in problems.values() for problem in found} == {"R107"}


def _on_the_driver(pattern: str) -> str | None:
    call = exp.Anonymous(this="date_format", expressions=[exp.column("a"), exp.Literal.string(pattern)])
    try:
        sql = scope_of({"a": Value("a", "timestamp")}).value(call).sql
    except Untranslated:
        return None
    [(text,)] = duckdb.sql(f"SELECT {sql} FROM (SELECT TIMESTAMP '{AT}' AS a)").fetchall()
    return str(text)
