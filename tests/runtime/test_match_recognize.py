"""MATCH_RECOGNIZE in runs: values of many types, functions that only Spark has, limits, and reasons for waiting."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
import rowtime.kernels.matching.paths as paths_module
from rowtime.operators.patterns import match_tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIVEN = """CREATE STREAM s (k STRING, v INT, d DECIMAL(10, 2), f DOUBLE, note STRING);
INSERT INTO s (ROWTIME, k, v, d, f, note) VALUES {};
"""
SELECT = """SELECT STREAM * FROM (SELECT STREAM *, named_struct('y', v) AS x FROM s) MATCH_RECOGNIZE (
PARTITION BY k ORDER BY ROWTIME {}) AS m"""


def _rows(*rows: tuple[str, int, str]) -> str:
    """Rows a minute apart: key, value and note."""
    made = (
        f"(TIMESTAMP '2024-01-01 10:{minute:02}:00', '{key}', {value}, {value}.25, {value}.5, '{note}')"
        for minute, (key, value, note) in enumerate(rows)
    )
    return GIVEN.format(", ".join(made))


def _given(spark: SparkSession, home: Path, script: str) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = []
    pipeline = rt.Pipeline(spark, home=home).sql(f"{script}; ALTER STREAM s END")
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    pipeline.run_available(home / "check")
    return [{name: value for name, value in row.items() if name != "rowtime"} for row in got]


FALL = _rows(("a", 5, "kitten"), ("a", 3, "sitting"), ("b", 9, "x"), ("a", 2, "mitten"), ("a", 8, "kitchen"))


def test_measures_have_the_types_and_values_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    measures = """MEASURES SUM(B.d) AS sd, AVG(B.d) AS ad, MAX(B.f) AS mf, LAST(B.x).y AS y, A.x.y AS ay,
      UPPER(A.note) || '-' || LAST(C.note) AS notes, COALESCE(PREV(FIRST(A.v)), -1) AS p, STDDEV_POP(v) AS sp,
      COUNT(DISTINCT B.note) AS nb, MIN(note) AS mn, CAST(SUM(v) AS STRING) AS sv
    PATTERN (A B+ C) WITHIN INTERVAL '1' HOUR
    DEFINE B AS B.v < PREV(B.v) AND B.d < A.d, C AS C.v > LAST(B.v)"""
    assert _given(spark, tmp_path, FALL + SELECT.format(measures)) == [
        {"k": "a", "sd": Decimal("5.50"), "ad": Decimal("2.750000"), "mf": 3.5, "y": 2, "ay": 5,
         "notes": "KITTEN-kitchen", "p": -1, "sp": pytest.approx(2.29128784747792), "nb": 2, "mn": "kitchen",
         "sv": "18"}
    ]  # fmt: skip


def test_a_condition_may_use_what_only_spark_computes(spark: SparkSession, tmp_path: Path) -> None:
    clauses = """MEASURES A.note AS a, LAST(B.note) AS b PATTERN (A B) WITHIN INTERVAL '1' HOUR
    DEFINE A AS soundex(A.note) = 'K350', B AS levenshtein(A.note, B.note) <= 3"""
    assert _given(spark, tmp_path, FALL + SELECT.format(clauses)) == [{"k": "a", "a": "kitten", "b": "sitting"}]


def test_a_condition_may_have_a_mean_of_decimals(spark: SparkSession, tmp_path: Path) -> None:
    """The average of 5.25 and 3.25 is 4.25; with 2.25 it would be 3.583333."""
    clauses = """MEASURES COUNT(*) AS n, AVG(A.d) AS mean PATTERN (A+) WITHIN INTERVAL '1' HOUR
    DEFINE A AS AVG(A.d) >= 4.250000 AND AVG(A.d) <> 5.375"""
    assert _given(spark, tmp_path, FALL + SELECT.format(clauses)) == [
        {"k": "a", "n": 2, "mean": Decimal("4.250000")},
        {"k": "b", "n": 1, "mean": Decimal("9.250000")},
        {"k": "a", "n": 1, "mean": Decimal("8.250000")},
    ]


def test_aggregates_of_users_are_functions_of_lists(spark: SparkSession, tmp_path: Path) -> None:
    """In MEASURES, FINAL and RUNNING, and in DEFINE; lists are without NULL. A function in SQL may be an aggregate."""
    functions = """CREATE FUNCTION middle(v ARRAY<INT>) RETURNS DOUBLE AS 'statistics:median';
    CREATE FUNCTION spread(v INT) RETURNS INT RETURN MAX(v) - MIN(v);"""
    clauses = """MEASURES middle(COLLECT_LIST(v)) AS m, FINAL COLLECT_LIST(NULLIF(v, 3)) AS l, spread(v) AS s,
      COLLECT_LIST(note) FILTER (WHERE v < 5) AS notes
    ALL ROWS PER MATCH PATTERN (A B+) WITHIN INTERVAL '1' HOUR
    DEFINE B AS middle(COLLECT_LIST(B.v)) < 4 AND spread(B.v) < 3"""
    rows = _given(spark, tmp_path, functions + FALL + SELECT.format(clauses))
    assert [(row["v"], row["m"], row["l"], row["s"], row["notes"]) for row in rows] == [
        (5, 5.0, [5, 2], 0, []),
        (3, 4.0, [5, 2], 2, ["sitting"]),
        (2, 3.0, [5, 2], 3, ["sitting", "mitten"]),
    ]


def test_conditions_may_count_different_values_and_fade(spark: SparkSession, tmp_path: Path) -> None:
    """NULL is no value; the average is faded by half in each minute, also before 1970."""
    rows = _rows(*(("a", v, note) for v, note in ((1, "x"), (2, "y"), (3, "x"), (4, "z"), (1, "z"))))
    rows = rows.replace("2024-01-01", "1960-01-01")
    different = """MEASURES COUNT(*) AS n, COUNT(DISTINCT f) AS f PATTERN (A+) WITHIN INTERVAL '1' HOUR
    DEFINE A AS COUNT(DISTINCT A.note) <= 2 AND COUNT(DISTINCT NULLIF(A.note, 'y')) < 3"""
    assert _given(spark, tmp_path, rows + SELECT.format(different)) == [
        {"k": "a", "n": 3, "f": 3},
        {"k": "a", "n": 2, "f": 2},
    ]
    fades = """MEASURES COUNT(*) AS n, EXP_AVG(v, INTERVAL '1' MINUTE) AS x PATTERN (A+) WITHIN INTERVAL '1' HOUR
    DEFINE A AS EXP_AVG(A.v, INTERVAL '1' MINUTE) < 2.4"""
    assert _given(spark, tmp_path / "fades", rows + SELECT.format(fades)) == [
        {"k": "a", "n": 2, "x": pytest.approx(5 / 3)}, {"k": "a", "n": 1, "x": 1.0}
    ]  # fmt: skip


def test_a_condition_is_evaluated_only_for_rows_that_are_reached(spark: SparkSession, tmp_path: Path) -> None:
    """From the second row on it would divide by zero, but the match from the first row includes that row."""
    clauses = """MEASURES COUNT(*) AS n PATTERN (A B) WITHIN INTERVAL '1' HOUR DEFINE B AS 10 / (A.v - B.v) > 3"""
    rows = _rows(("a", 1, ""), ("a", 0, ""), ("a", 0, ""))
    assert _given(spark, tmp_path, rows + SELECT.format(clauses)) == [{"k": "a", "n": 2}]
    rows = _rows(("a", 1, ""), ("a", 1, ""), ("a", 0, ""))
    assert _given(spark, tmp_path / "given up", rows + SELECT.format(clauses)) == [{"k": "a", "n": 2}]
    with pytest.raises(rt.Failure, match=r"in DEFINE cannot be computed: .*DIVIDE_BY_ZERO") as failed:
        _given(spark, tmp_path / "other", rows + SELECT.format(clauses) + " ON ERROR STOP")
    assert failed.value.problems[0].code == "R179"
    assert "NULLIF" in failed.value.problems[0].hint
    whole = clauses.replace("(A.v - B.v)", "NULLIF(A.v - B.v, 0)")
    assert _given(spark, tmp_path / "whole", rows + SELECT.format(whole)) == [{"k": "a", "n": 2}]


@pytest.mark.parametrize(
    ("clauses", "code", "message"),
    [
        ("MEASURES root(A.v) AS m PATTERN (A) DEFINE A AS A.v < 0", "R512", "raised ValueError: math domain error"),
        (
            "MEASURES middle(COLLECT_LIST(NULLIF(A.v, -1))) AS m PATTERN (A) DEFINE A AS A.v < 0",
            "R512",
            "raised statistics.StatisticsError: no median for empty data (median, line ",
        ),
        ("MEASURES A.v AS m PATTERN (A) DEFINE A AS root(FIRST(A.v)) > 1", "R179", "computed: ValueError: math domain"),
    ],
)
def test_a_python_function_that_raises_in_a_match_is_reported_with_its_error(
    spark: SparkSession, tmp_path: Path, clauses: str, code: str, message: str
) -> None:
    functions = """CREATE FUNCTION root(v INT) RETURNS DOUBLE AS 'math:sqrt';
    CREATE FUNCTION middle(v ARRAY<INT>) RETURNS DOUBLE AS 'statistics:median';"""
    with pytest.raises(rt.Failure) as failed:
        _given(spark, tmp_path, functions + _rows(("a", -1, "")) + SELECT.format(clauses))
    assert [problem.code for problem in failed.value.problems] == [code]
    assert message in failed.value.problems[0].message
    assert "Traceback" not in str(failed.value)


def test_a_condition_whose_type_only_spark_knows_has_to_be_boolean(spark: SparkSession, tmp_path: Path) -> None:
    clauses = "MEASURES COUNT(*) AS n PATTERN (A B) WITHIN INTERVAL '1' HOUR DEFINE B AS IF(B.v > A.v, 1, 0)"
    rows = _rows(("a", 1, ""), ("a", 2, ""))
    with pytest.raises(rt.Refused, match="is not BOOLEAN: its values have the type int32") as refused:
        _given(spark, tmp_path, rows + SELECT.format(clauses))
    assert refused.value.problems[0].hint == "Compare it with a value, for example by > 0."
    assert _given(spark, tmp_path / "other", rows + SELECT.format(f"{clauses} > 0")) == [{"k": "a", "n": 2}]


def test_a_row_whose_value_cannot_be_computed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """As in every clause: expressions over a single row are computed before any match is searched."""
    clauses = """MEASURES COUNT(*) AS n PATTERN (A B) WITHIN INTERVAL '1' HOUR DEFINE B AS 10 / A.v > B.v"""
    rows = _rows(("a", 1, ""), ("a", 0, ""), ("a", 7, ""))
    assert _given(spark, tmp_path, rows + SELECT.format(clauses)) == [{"k": "a", "n": 2}]


def test_a_pattern_with_too_many_paths_ends_the_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (paths_module, match_tick):
        monkeypatch.setattr(module, "MOST_PATHS", 3)
    rows = _rows(*((("a", n, "")) for n in range(8)))
    clauses = """MEASURES COUNT(*) AS n PATTERN ((A | B)+ C) WITHIN INTERVAL '1' HOUR
    DEFINE C AS C.v > 99 AND FIRST(A.v, 2) > 0 AND LAST(B.v, 2) > 0"""
    with pytest.raises(rt.Failure, match=r"PATTERN \(\(A \| B\)\+ C\) has more than 3 open paths") as failed:
        _given(spark, tmp_path, rows + SELECT.format(clauses))
    assert failed.value.problems[0].code == "R178"
    followed = clauses.replace("DEFINE", "DEFINE A AS A.v % 2 = 0, B AS B.v % 2 = 1,")
    assert _given(spark, tmp_path / "followed", rows + SELECT.format(followed)) == []


def test_a_match_whose_sum_is_beyond_its_type_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    measures = (
        "MEASURES SUM(CAST(9223372036854775807 AS BIGINT) + A.v * 0) AS n PATTERN (A{2}) WITHIN INTERVAL '1' HOUR"
    )
    rows = _rows(("a", 1, ""), ("a", 1, ""))
    assert _given(spark, tmp_path, rows + SELECT.format(measures)) == []
    assert _given(spark, tmp_path / "half", rows + SELECT.format(measures.replace("9223372036854775807", "1"))) != []


@pytest.mark.parametrize(
    ("clauses", "what", "hint"),
    [
        ("MEASURES SUM(A.note) AS n PATTERN (A)", "does not take STRING", "Cast the argument"),
    ],
)
def test_types_that_do_not_fit_are_refused_at_the_start(
    spark: SparkSession, tmp_path: Path, clauses: str, what: str, hint: str
) -> None:
    script = _rows(("a", 1, "7"), ("a", 2, "8")) + SELECT.format(clauses)
    with pytest.raises(rt.Refused, match=what) as refused:
        _given(spark, tmp_path, script)
    assert hint in refused.value.problems[0].hint
    followed = script.replace("A.note", "CAST(A.note AS DOUBLE)")
    assert _given(spark, tmp_path / "followed", followed)[0]["k"] == "a"


def test_text_with_a_collation_is_refused_at_the_start(spark: SparkSession, tmp_path: Path) -> None:
    clauses = "MEASURES LAST(note {}) AS n PATTERN (A) DEFINE A AS note COLLATE UNICODE_CI = '7'"
    script = _rows(("a", 1, "7")) + SELECT
    with pytest.raises(rt.Refused, match="does not support text with a collation") as refused:
        _given(spark, tmp_path, script.format(clauses.format("COLLATE UNICODE_CI")))
    [name] = refused.value.problems[0].hint.rstrip(".").split()[-1:]
    followed = _given(spark, tmp_path / "followed", script.format(clauses.format(f"COLLATE {name}")))
    assert followed == [{"k": "a", "n": "7"}]


def test_waiting_names_the_open_match_and_what_decides_it(spark: SparkSession, tmp_path: Path) -> None:
    clauses = "MEASURES A.v AS v PATTERN (A B+ C) WITHIN INTERVAL '1' HOUR DEFINE A AS A.v = 5, C AS C.v > 99"
    pipeline = rt.Pipeline(spark, home=tmp_path).sql(FALL + SELECT.format(clauses)).sink("result", lambda _: None)
    query = pipeline.run_available(tmp_path / "check")
    [wait] = [wait for wait in query.waiting() if wait.kind == "match"]
    assert wait.held == 5 - 1
    assert wait.release.startswith(
        "the match of PATTERN (A B+ C) that may begin with the row of a at 2024-01-01 10:00:00 is open: a further row "
        "of a, a bound of 2024-01-01 11:00:00 or the end of the stream decides it; "
    )
