"""Sub-queries over the rows of a stream have the same results as in Spark over the same rows as a batch, with any cut.

Spark computes WHERE and the select list over a table with the rows of the stream. Tables have NULLs, no rows, equal
rows; so have the rows of the stream.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(12)

TABLES = {
    "t": [(1, 10, "a"), (2, 20, "b"), (2, 25, "b"), (None, 30, "c"), (5, None, "d")],
    "whole": [(1, 10, "a"), (3, 30, "c")],
    "nothing": [],
}
A = [
    (n, k, x, s)
    for n, (k, x, s) in enumerate(
        [*itertools.product((None, 1, 2, 4), (None, 10, 25), ("a",)), (5, 30, "d"), (3, 31, None), (2, 20, "zz")]
    )
]

TESTS = [
    "k IN (SELECT k FROM t)",
    "k NOT IN (SELECT k FROM t)",
    "k NOT IN (SELECT k FROM t WHERE k IS NOT NULL)",
    "k NOT IN (SELECT k FROM whole)",
    "k IN (SELECT k FROM nothing)",
    "k NOT IN (SELECT k FROM nothing)",
    "NOT (k IN (SELECT k FROM whole WHERE v > 10))",
    "k + 1 IN (SELECT k FROM t) AND x > 5",
    "(k, x) IN (SELECT k, v FROM t)",
    "(k, x) NOT IN (SELECT k, v FROM t)",
    "k IN (SELECT k FROM t WHERE t.s = a.s)",
    "k NOT IN (SELECT k FROM t WHERE t.v > a.x)",
    "k IN (SELECT k FROM t GROUP BY k HAVING COUNT(*) > 1)",
    "EXISTS (SELECT 1 FROM t WHERE t.k = a.k)",
    "EXISTS (SELECT * FROM t WHERE t.k = a.k AND t.v > a.x)",
    "NOT EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND t.v = 25)",
    "EXISTS (SELECT 1 FROM nothing)",
    "NOT EXISTS (SELECT 1 FROM nothing WHERE nothing.k = a.k)",
    "EXISTS (SELECT MAX(k) FROM nothing)",
    "x > (SELECT MAX(v) FROM whole)",
    "x > (SELECT MAX(v) FROM nothing) OR k = 1",
    "x >= (SELECT AVG(v) FROM t WHERE t.k = a.k)",
    "(SELECT COUNT(*) FROM t WHERE t.k = a.k) = 0",
    "(SELECT COALESCE(SUM(v), -1) + COUNT(*) FROM t WHERE t.k = a.k) < 40",
    "x = (SELECT v FROM whole WHERE whole.k = a.k)",
    "k = (SELECT DISTINCT k FROM t WHERE s = 'b')",
    "k = 4 OR k IN (SELECT k FROM t)",
    "x = 10 OR k NOT IN (SELECT k FROM t)",
    "x = 10 OR k NOT IN (SELECT k FROM whole)",
    "(k NOT IN (SELECT k FROM nothing)) = (k IN (SELECT k FROM nothing)) OR k IS NULL",
    "x = 25 OR NOT EXISTS (SELECT 1 FROM t WHERE t.k = a.k)",
    "k IN (SELECT k FROM t WHERE k IN (SELECT k FROM whole))",
    "k NOT IN (SELECT k FROM whole WHERE v NOT IN (SELECT v FROM t WHERE v IS NOT NULL))",
    "EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND EXISTS (SELECT 1 FROM whole WHERE whole.v < t.v))",
    "NOT EXISTS (SELECT 1 FROM t WHERE t.v > a.x AND t.v > (SELECT AVG(v) FROM t AS u WHERE u.k = t.k))",
    "x = (SELECT MIN(v) FROM t WHERE v > (SELECT MIN(v) FROM whole))",
    "k = 1 OR k IN (SELECT t.k FROM t JOIN whole ON t.v < whole.v WHERE whole.k = 3)",
    "k IN (SELECT k FROM whole UNION SELECT k FROM t WHERE s = 'b')",
    "k IN (SELECT k FROM t ORDER BY v DESC LIMIT 1)",
    "k NOT IN (WITH w AS (SELECT k FROM whole) SELECT k FROM (SELECT k FROM w WHERE k > 1) AS v)",
    "k IN (SELECT k FROM t) AND x NOT IN (SELECT v FROM whole) AND EXISTS (SELECT 1 FROM whole)",
]
VALUES = [
    "COALESCE(k, 0) NOT IN (SELECT k FROM whole)",
    "k IN (SELECT k FROM nothing)",
    "(SELECT MAX(v) FROM t WHERE t.k = a.k) + x",
    "EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND t.v > 20)",
    "CASE WHEN k IN (SELECT k FROM whole) THEN (SELECT MIN(s) FROM whole) ELSE s END",
    "(SELECT s FROM whole WHERE whole.k = a.k)",
    "(SELECT MAX(v) FROM t WHERE t.k = a.k AND t.k IN (SELECT k FROM whole))",
]
LISTED = {
    "k IN (SELECT k FROM t)": "k IN (1, 2, 2, NULL, 5)",
    "k NOT IN (SELECT k FROM t)": "k NOT IN (1, 2, 2, NULL, 5)",
    "k IN (SELECT k FROM whole)": "k IN (1, 3)",
    "k NOT IN (SELECT k FROM whole)": "k NOT IN (1, 3)",
}
"""In a select list, Spark returns false, not NULL, for IN with a sub-query; for a list of values it returns NULL."""
QUERIES = [f"SELECT STREAM n FROM a WHERE {test}" for test in TESTS]
QUERIES += [f"SELECT STREAM n, {value} AS y FROM a" for value in VALUES]
QUERIES += [f"SELECT STREAM n, {value} AS y FROM a" for value in LISTED]
GIVEN = "CREATE STREAM a (n INT, k INT, x INT, s STRING); "
GIVEN += "".join(f"CREATE TABLE {name} (k INT, v INT, s STRING); " for name in TABLES)


def items() -> list[ScriptItem]:
    names = ("n", "k", "x", "s")
    made = [
        ScriptItem(at, "a", "x", {"rowtime": ORIGIN + at * SECOND, **dict(zip(names, row, strict=True))}, None)
        for at, row in enumerate(A, 1)
    ]
    return [*made, ScriptItem(len(made) + 1, "a", "x", None, END)]


def transcript(query: str) -> Transcript:
    tables = {name: [dict(zip("kvs", row, strict=True)) for row in rows] for name, rows in TABLES.items()}
    return Transcript("as spark", "", GIVEN + query, tuple(items()), (), "exact", frozenset(), tables=tables)


def answer(session: SparkSession, query: str) -> list[dict[str, Any]]:
    """Spark's results for all rows at once."""
    session.createDataFrame(A, "n INT, k INT, x INT, s STRING").createOrReplaceTempView("a")
    for name, rows in TABLES.items():
        session.createDataFrame(rows, "k INT, v INT, s STRING").createOrReplaceTempView(name)
    text = query.replace("SELECT STREAM", "SELECT")
    for value, listed in LISTED.items():
        text = text.replace(f"n, {value} AS y", f"n, {listed} AS y")
    found = session.sql(text).collect()
    return sorted((row.asDict() for row in found), key=lambda row: row["n"])


@pytest.mark.parametrize("query", QUERIES)
def test_rows_of_a_stream_and_of_a_table_give_the_same_with_a_sub_query(spark: SparkSession, query: str) -> None:
    session = derive(spark)
    expected = answer(session, query)
    count = len(items())
    for cut, restart in (([count], False), ([1, 6, 7, count], True)):
        found = play(session, transcript(query), cut, restart=restart)
        assert not found.refused
        shown = [{name: value for name, value in row.items() if name != "rowtime"} for _, row in found.rows]
        assert shown == expected
