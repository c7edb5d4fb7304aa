"""The trace of a match: the rows of its key and time, each with the variable that it matched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowtime.audit.forward import forward
from rowtime.audit.trace import trace
from tests.audit.test_trace import at, operators, pipeline, ran, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CLAUSES = """PARTITION BY k ORDER BY ROWTIME MEASURES {} PATTERN (A B+ C) WITHIN INTERVAL '40' SECOND
  DEFINE A AS v = 0, B AS v = 1, C AS v = 2"""
SQL = f"""
CREATE STREAM ticks (k STRING, v INT);
CREATE STREAM found (k STRING, n BIGINT) USING memory;
CREATE STREAM taken (k STRING, name STRING, v INT) USING memory;
CREATE PUMP one AS INSERT INTO found SELECT STREAM * FROM ticks MATCH_RECOGNIZE (
  {CLAUSES.format("COUNT(*) AS n")}) AS m;
CREATE PUMP each AS INSERT INTO taken SELECT STREAM * FROM ticks MATCH_RECOGNIZE (
  {CLAUSES.format("CLASSIFIER() AS name").replace(" PATTERN", " ALL ROWS PER MATCH PATTERN")}) AS m;
"""
TICKS = [[(0, "a", 5), (30, "a", 0), (35, "b", 0)], [(40, "a", 1), (50, "b", 1), (65, "a", 2), (90, "a", 7)]]


@pytest.fixture(scope="module")
def ticks(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint over rows after two ticks, and a bound that makes the matches certain."""
    folder = tmp_path_factory.mktemp("trace of matches")
    sent = [[{"k": key, "v": v, "rowtime": at(second)} for second, key, v in part] for part in TICKS]
    ran(pipeline(spark, folder, SQL), folder, "ticks", sent, [None, 140])
    return folder


def test_a_trace_of_a_match_lists_the_rows_of_its_key_in_its_time(spark: SparkSession, ticks: Path) -> None:
    found = trace(pipeline(spark, ticks, SQL), ticks / "check", "k = 'a'", sink="one")
    (match,) = operators(found)["match"]
    [row] = [item for item in found.of(match) if item.kind == "row"]
    assert row.columns["taken as"] == "A 2024-01-01 00:00:30, B 2024-01-01 00:00:40, C 2024-01-01 00:01:05"
    assert [row[:3] + row[4:] for row in rows(found, "ticks") if row[1] == "row"] == [
        (0, "row", 30, "a", 0), (1, "row", 40, "a", 1), (1, "row", 65, "a", 2)
    ]  # fmt: skip


@pytest.mark.slow
def test_a_trace_of_a_row_of_a_match_lists_its_variable(spark: SparkSession, ticks: Path) -> None:
    found = trace(pipeline(spark, ticks, SQL), ticks / "check", "k = 'a' AND v = 1", sink="each")
    assert [row[4:] for row in rows(found, found.sink) if row[1] == "row"] == [("a", "B", 1)]
    assert [row[2] for row in rows(found, "ticks") if row[1] == "row"] == [30, 40, 65]
    (match,) = operators(found)["match"]
    assert [item.columns["taken as"] for item in found.of(match) if item.kind == "row"] == ["B"]


@pytest.mark.slow
def test_where_a_row_went_says_as_what_it_was_taken(spark: SparkSession, ticks: Path) -> None:
    found = forward(pipeline(spark, ticks, SQL), ticks / "check", "ticks", "k = 'a' AND v = 2")
    taken = [
        item.columns["taken as"] for name in operators(found)["match"] for item in found.of(name) if item.kind == "row"
    ]
    assert taken[0].endswith("C 2024-01-01 00:01:05")
    assert "C" in taken
