"""``s.x`` is a column of the input s; if there is no such input, a field of the struct column s, as in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

STREAMS = "CREATE STREAM t (s STRUCT<x: INT, y: STRUCT<z: INT>>, x INT, k STRING);"
QUERIES = {
    "SELECT STREAM s.x AS v FROM t WHERE s.x > 1": [2, 3],
    "SELECT STREAM s.x AS v FROM t AS s WHERE s.x > 10": [20, 30],
    "SELECT STREAM s.s.x + s.s.y.z AS v FROM t AS s WHERE k = 'a'": [101, 302],
    "SELECT STREAM t.s.y.z AS v FROM t WHERE S.Y.Z > 200": [202, 299],
    "SELECT STREAM SUM(s.x) AS v FROM t GROUP BY FLOOR(t.ROWTIME TO DAY), s.x > 1 HAVING MAX(s.y.z) > 250": [5],
    "SELECT STREAM SUM(s.x) OVER (PARTITION BY s.x > 1 ROWS 1 PRECEDING) AS v FROM t": [1, 2, 5],
    "SELECT STREAM s.x AS v FROM t JOIN (SELECT STREAM k AS q FROM t) AS s ON t.ROWTIME = s.ROWTIME AND t.k = s.q": [
        1,
        2,
        3,
    ],
    "SELECT STREAM transform(array(1), s -> s + 1)[0] + s.x AS v FROM t": [3, 4, 5],
}
ROWS = [
    {"s": {"x": n, "y": {"z": z}}, "x": 10 * n, "k": k, "rowtime": f"2024-01-01T0{n}:00:00Z"}
    for n, z, k in [(1, 100, "a"), (2, 202, "b"), (3, 299, "a")]
]


def test_a_field_of_a_struct_was_mistaken_for_a_column(spark: SparkSession, tmp_path: Path) -> None:
    got: list[list[Any]] = [[] for _ in QUERIES]
    sql = "".join(f"CREATE PUMP p{n} AS INSERT INTO o{n} {query};" for n, query in enumerate(QUERIES))
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(STREAMS + sql)
    for n, into in enumerate(got):
        pipeline.sink(f"o{n}", lambda b, into=into: into.extend(b.table()["v"].to_pylist() if b.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    with rt.writer("t", home=tmp_path / "home") as log:
        log.insert(ROWS)
        log.end()
    pipeline.run_available(tmp_path / "check")
    assert dict(zip(QUERIES, got, strict=True)) == QUERIES


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT STREAM u.x FROM t", "R103"),
        ("SELECT STREAM u.s.x FROM t", "R103"),
        ("SELECT STREAM t.y FROM t", "R103"),
        ("SELECT STREAM s.x AS v FROM t AS a JOIN t AS b ON a.k = b.k AND a.ROWTIME = b.ROWTIME", "R150"),
    ],
)
def test_unknown_columns_and_fields_are_refused(query: str, code: str) -> None:
    assert [problem.code for problem in rt.check(STREAMS + query) if not problem.warns] == [code]


def test_an_expression_over_a_field_reads_back_from_its_text() -> None:
    problems = rt.check(STREAMS + "CREATE VIEW v AS SELECT STREAM s.y AS y FROM t; SELECT STREAM y.z FROM v")
    assert problems == []
