"""Values of every type as keys and arguments, and text with a collation; row by row, tick by tick."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.answers import answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(3)

BIG = 1_700_000_000_000_000_000
MINUTE = "GROUP BY FLOOR(a.ROWTIME TO MINUTE)"
LAST = "OVER (ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)"


def column(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["r"] for row in rows]


@pytest.mark.slow
def test_a_group_or_a_tick_of_nothing_but_nulls_ends_no_run(spark: SparkSession, tmp_path: Path) -> None:
    calls = ("MAX_BY(k, v)", "MIN_BY(k, v)", "FIRST(k) IGNORE NULLS", "LAST_VALUE(k) IGNORE NULLS", "MAX(v)")
    queries = {f"q{n}": f"SELECT STREAM {call} AS r FROM a {MINUTE}" for n, call in enumerate(calls)}
    queries["session"] = "SELECT STREAM MAX_BY(k, v) AS r FROM a GROUP BY SESSION(a.ROWTIME, INTERVAL '30' SECOND)"
    queries["struct"] = "SELECT STREAM CASE WHEN v > 0 THEN named_struct('x', 1, 'k', 'y') END AS r FROM a"
    rows = [
        [{"k": "x", "v": 1, "rowtime": "2024-01-01 10:00:00"}],
        [{"k": None, "v": None, "rowtime": "2024-01-01 10:01:10"}],
        [{"k": "z", "v": 3, "rowtime": "2024-01-01 10:02:10"}],
    ]
    got = answers(spark, tmp_path, "CREATE STREAM a (k STRING, v INT);", queries, rows, ticks=True)
    assert [column(got[f"q{n}"]) for n in range(4)] == [["x", None, "z"]] * 4
    assert column(got["q4"]) == [1, None, 3]
    assert column(got["session"]) == ["x", None, "z"]
    assert column(got["struct"]) == [{"x": 1, "k": "y"}, None, {"x": 1, "k": "y"}]


def test_over_takes_every_type_as_key_and_bigints_beyond_2_to_the_53(spark: SparkSession, tmp_path: Path) -> None:
    queries = {
        "struct": "SELECT STREAM COUNT(*) OVER (PARTITION BY s) AS r FROM a",
        "array": "SELECT STREAM COUNT(*) OVER (PARTITION BY l, v > 0) AS r FROM a",
        "lag": "SELECT STREAM LAG(s) OVER (PARTITION BY v > 0) AS r FROM a",
        "avg": "SELECT STREAM AVG(v) OVER (ROWS 1 PRECEDING) AS r FROM a",
        "running": "SELECT STREAM AVG(v) OVER (ROWS UNBOUNDED PRECEDING) AS r FROM a",
        "spread": "SELECT STREAM STDDEV_POP(v) OVER (ROWS 1 PRECEDING) AS r FROM a",
        "distinct": f"SELECT STREAM COUNT(DISTINCT s) {LAST} AS r FROM a",
        "longest": f"SELECT STREAM MAX(CAST(v - {BIG} AS INT) * INTERVAL '1' SECOND) {LAST} AS r FROM a",
    }
    one, other = {"x": 1, "y": ["p"]}, {"x": 1, "y": ["p", None]}
    rows = [{"s": one, "l": [1], "v": BIG}, {"s": other, "l": [2], "v": BIG + 4}, {"s": one, "l": [2], "v": BIG + 2}]
    defined = "CREATE STREAM a (s STRUCT<x: INT, y: ARRAY<STRING>>, l ARRAY<INT>, v BIGINT);"
    found = answers(spark, tmp_path, defined, queries, [rows[:2], rows[2:]], ticks=True)
    got = {name: column(rows) for name, rows in found.items()}
    assert got["struct"] == [1, 1, 2]
    assert got["array"] == [1, 1, 2]
    assert got["lag"] == [None, one, other]
    assert got["avg"] == [float(BIG), float(BIG + 2), float(BIG + 3)]
    assert got["running"] == [float(BIG), float(BIG + 2), float(BIG + 2)]
    assert got["spread"] == [0.0, 0.0, 0.0]
    assert got["distinct"] == [1, 2, 2]
    assert [span.total_seconds() for span in got["longest"]] == [0, 4, 4]


@pytest.mark.slow  # many ticks
def test_over_groups_and_joins_obey_collations_alike_in_every_tick(spark: SparkSession, tmp_path: Path) -> None:
    below = "(SELECT STREAM k COLLATE UTF8_LCASE AS k, v FROM a)"
    near = "BETWEEN l.ROWTIME AND l.ROWTIME + INTERVAL '1' MINUTE"
    queries = {
        "keys": f"SELECT STREAM COUNT(*) OVER (PARTITION BY k) AS r FROM {below} AS x",
        "passed": f"SELECT STREAM k AS r, COUNT(*) OVER (PARTITION BY k) AS n FROM {below} AS x",
        "distinct": f"SELECT STREAM COUNT(DISTINCT k) {LAST} AS r FROM {below} AS x",
        "least": f"SELECT STREAM MIN(k) {LAST} AS r FROM {below} AS x",
        "most": f"SELECT STREAM MAX(k) OVER (ROWS UNBOUNDED PRECEDING) AS r FROM {below} AS x",
        "first": f"SELECT STREAM FIRST_VALUE(k) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS r FROM {below} AS x",
        "accents": "SELECT STREAM COUNT(*) OVER (PARTITION BY k COLLATE UNICODE_CI) AS r FROM a",
        "grouped": f"SELECT STREAM COUNT(*) AS r FROM {below} AS x GROUP BY FLOOR(x.ROWTIME TO MINUTE), k",
        "joined": f"SELECT STREAM l.v * 10 + r.v AS r FROM {below} AS l JOIN {below} AS r"
        f" ON l.k = r.k AND r.ROWTIME {near} AND l.v <> r.v",
    }
    texts = ["b", "A", "B", "a", None]
    rows = [{"k": k, "v": v} for v, k in enumerate(texts)]
    defined = "CREATE STREAM a (k STRING, v INT);"
    found = answers(spark, tmp_path, defined, queries, [rows[:2], rows[2:]], ticks=True)
    got = {name: column(rows) for name, rows in found.items()}
    assert got["keys"] == [1, 1, 2, 2, 1]
    assert got["passed"] == texts
    assert got["distinct"] == [1, 2, 2, 2, 2]
    assert got["least"] == ["b", "A", "A", "A", "A"]
    assert got["most"] == ["b", "b", "b", "b", "b"]
    assert got["first"] == ["b", "A", "b", "A", None]
    assert got["accents"] == [1, 1, 2, 2, 1]
    assert sorted(got["grouped"]) == [1, 2, 2]
    assert got["joined"] == [2, 13]
