"""Columns of a stream may have a collation; the text that a group shows does not depend on the order of rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

START = datetime(2024, 1, 1, tzinfo=UTC)
COLUMNS = "k STRING COLLATE UNICODE_CI, l ARRAY<STRING COLLATE UTF8_LCASE>, v INT, n BIGINT ASCENDING"
GROUPS = {
    "partial": "SELECT STREAM k, SUM(v) AS v FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR), k",
    "kept": "SELECT STREAM k, COLLECT_LIST(v) AS v FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR), k",
    "inside": "SELECT STREAM l, SUM(v) AS v FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR), l",
    "made": "SELECT STREAM b, COUNT(*) AS v FROM t GROUP BY FLOOR(t.ROWTIME TO HOUR), b",
    "distinct": "SELECT STREAM DISTINCT k, FLOOR(s.ROWTIME TO HOUR) AS h FROM s",
    "value": "SELECT STREAM k, SUM(v) AS v FROM s GROUP BY n, k",
    "extremes": "SELECT STREAM MIN(k) AS k, MAX(k) AS m FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR), k IS NULL",
    "extremes_of_kept": "SELECT STREAM MIN(k) AS k, MAX(k) FILTER (WHERE v < 9) AS m, COLLECT_LIST(v) AS vs FROM s "
    "GROUP BY FLOOR(s.ROWTIME TO HOUR), k IS NULL",
    "session": "SELECT STREAM k, SUM(v) AS v FROM s GROUP BY k, SESSION(s.ROWTIME, INTERVAL '5' MINUTE)",
}
ROWS: list[dict[str, Any]] = [
    {"k": k, "l": None if k is None else [k], "v": v, "n": n // 3, "rowtime": START + timedelta(minutes=2 * n)}
    for n, (k, v) in enumerate([("ab", 1), ("c", 2), ("AB", 4), (None, 5), ("Ab", 8), ("C", 16), ("é", 32), ("É", 64)])
]


def results(spark: SparkSession, folder: Path, cuts: list[int]) -> dict[str, list[Any]]:
    """The rows of each query, with ticks that end at the cuts."""
    sql = f"CREATE STREAM s ({COLUMNS}); CREATE VIEW t AS SELECT STREAM k || '!' AS b FROM s;"
    sql += "".join(f"CREATE PUMP p_{name} AS INSERT INTO o_{name} {query};" for name, query in GROUPS.items())
    got: dict[str, list[Any]] = {name: [] for name in GROUPS}
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    for name, into in got.items():
        pipeline.sink(f"o_{name}", lambda b, into=into: into.extend(b.table().to_pylist() if b.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    for start, end in zip([0, *cuts], [*cuts, len(ROWS)], strict=True):
        with rt.writer("s", home=folder / "home") as log:
            log.insert(ROWS[start:end])
            if end == len(ROWS):
                log.end()
        pipeline.run_available(folder / "check")
    return got


@pytest.mark.slow
def test_the_text_that_a_group_shows_depended_on_which_row_spark_met_first(spark: SparkSession, tmp_path: Path) -> None:
    once = results(spark, tmp_path / "once", [])
    shown = {name: [row.get("k", row.get("l", row.get("b"))) for row in rows] for name, rows in once.items()}
    assert sorted(shown["partial"], key=str) == ["AB", "C", None, "É"]
    assert sorted(shown["kept"], key=str) == ["AB", "C", None, "É"]
    assert sorted(shown["made"], key=str) == ["AB!", "C!", None, "É!"]
    assert sorted([row["l"] for row in once["inside"]], key=str) == [None, ["AB"], ["C"], ["É"]]
    assert sorted(shown["session"], key=str) == ["AB", "C", None, "c", "É"]
    assert [(row["k"], row["m"]) for row in once["extremes"]] == [("AB", "é"), (None, None)]
    assert [(row["k"], row["m"]) for row in once["extremes_of_kept"]] == [("AB", "c"), (None, None)]
    assert results(spark, tmp_path / "cut", [1, 4, 7]) == once


@pytest.mark.slow
def test_texts_of_a_column_with_a_collation_are_compared_by_it(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for text in ("ab", "c"):
        (tmp_path / "in" / f"{text}.json").write_text(json.dumps({"k": text, "t": "2024-01-01T00:00:00Z"}))
    sql = f"""
        CREATE STREAM f (k STRING COLLATE UTF8_LCASE, t TIMESTAMP) USING json OPTIONS (path '{tmp_path / "in"}');
        CREATE STREAM s (k STRING COLLATE UNICODE_CI);
        CREATE PUMP p AS INSERT INTO s SELECT STREAM k FROM f WHERE k = 'AB';
        CREATE PUMP q AS INSERT INTO o SELECT STREAM k, typeof(k) AS t, k = 'AB' AS same,
          typeof(CAST(k AS STRING COLLATE UTF8_LCASE)) AS lower FROM s"""
    got: list[Any] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    pipeline.sink("o", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    for _ in range(2):
        pipeline.run_available(tmp_path / "check")
    [row] = got
    assert (row["k"], row["same"]) == ("ab", True)
    assert (row["t"], row["lower"]) == ("string collate UNICODE_CI", "string collate UTF8_LCASE")


def test_an_unknown_collation_is_reported_before_the_first_tick(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = rt.Pipeline(spark, home=tmp_path / "home")
    pipeline.sql("CREATE STREAM s (k STRING COLLATE UNICODE_XY); SELECT STREAM k FROM s WHERE k > 'a'")
    with pytest.raises(Refused, match=r"R107 .*s\.k STRING COLLATE UNICODE_XY.*UNICODE_XY"):
        pipeline.run_available(tmp_path / "check")
