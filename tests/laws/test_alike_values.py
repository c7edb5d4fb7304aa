"""What Spark chooses by the rows it meets first follows from the input: signs of zeros, sketches, refused groups."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import END
from rowtime.plan.program import compile_script
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND
from tests.laws.test_failing_laws import rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

DECLARE = (
    "CREATE STREAM a (d DOUBLE, f FLOAT, v INT, k STRING, ad ARRAY<DOUBLE>, "
    "st STRUCT<x: FLOAT>, aa ARRAY<STRUCT<p: ARRAY<DOUBLE>>>);"
)
MINUTES = "FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE)"
ZEROS = "MIN(d) AS a, MAX(d) AS b, MIN(f) AS c, MAX(f) AS e, CAST(MIN(ARRAY(d)) AS STRING) AS g"
SKETCHES = (
    "PERCENTILE_APPROX(v, 0.5, 4)",
    "PERCENTILE_APPROX(d, ARRAY(0.2, 0.9), 4)",
    "APPROX_PERCENTILE(v, 0.9, 3) FILTER (WHERE v % 3 <> 0)",
    "HISTOGRAM_NUMERIC(v, 4)",
    "HLL_SKETCH_ESTIMATE(HLL_SKETCH_AGG(v, 4))",
    "THETA_SKETCH_ESTIMATE(THETA_SKETCH_AGG(v, 4))",
)
REFUSED = (
    "CREATE VIEW j AS SELECT STREAM k, 10 DIV SUM(v * 0) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE), k;"
    "SELECT STREAM k, reason FROM j.rejected"
)


def answers(spark: SparkSession, sql: str, rows: Sequence[dict[str, Any]], cuts: Sequence[Sequence[int]]) -> list[str]:
    """The rows of a query for each cut."""
    made = [
        ScriptItem(number, "a", "w", {"rowtime": ORIGIN + number * SECOND // 8, **row}, None)
        for number, row in enumerate(rows, 1)
    ]
    made.append(ScriptItem(len(made) + 1, "a", "w", None, END))
    declared = DECLARE.replace("k STRING,", "k STRING, ck STRING COLLATE UNICODE_CI,") if "ck" in sql else DECLARE
    case = Transcript("alike", "alike", declared + sql, tuple(made), (), "exact", frozenset(), {"a": ["w"]}, {})
    session = derive(spark)
    return [repr(rows_of(play(session, case, [*cut, len(made)]))) for cut in cuts]


@pytest.mark.parametrize("call", [ZEROS, pytest.param(f"{ZEROS}, COUNT(DISTINCT v) AS n", marks=pytest.mark.slow)])
def test_the_negative_zero_is_less_than_the_positive_one(spark: SparkSession, call: str) -> None:
    rows = [{"d": zero, "f": zero, "v": 1} for zero in (0.0, -0.0, -0.0, 0.0)]
    found = answers(spark, f"SELECT STREAM {call} {MINUTES}", rows, ([], [1], [2], [1, 2, 3]))
    assert len(set(found)) == 1
    assert found[0].count("-0.0") == 3
    only = answers(spark, f"SELECT STREAM MAX(d) AS b {MINUTES}", rows[1:3], ([], [1]))
    assert all("-0.0" in one for one in only)
    odd = [{"d": value, "f": value, "v": 1} for value in (math.nan, -0.0, None, -math.inf)]
    assert len(set(answers(spark, f"SELECT STREAM {call} {MINUTES}", odd, ([], [1], [2, 3])))) == 1


MIDDLES = (
    "MEDIAN(d)",
    "MEDIAN(f) FILTER (WHERE v < 9)",
    "PERCENTILE(d, 0.5)",
    "PERCENTILE(d, ARRAY(0.0, 0.25, 0.5))",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY d)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY f DESC)",
    "MODE(d)",
    "MODE(ARRAY(f))",
)


@pytest.mark.usefixtures("both_ways")
def test_a_zero_in_the_middle_is_the_positive_one(spark: SparkSession) -> None:
    groups = [(0.0, -0.0), (-0.0, 0.0), (-0.0,), (-0.0, -0.0, 0.0), (1.0, None, -0.0, 0.0, -1.0)]
    rows = [
        {"d": values[n], "f": values[n], "v": 1, "k": str(of)}
        for n in range(5)
        for of, values in enumerate(groups)
        if n < len(values)
    ]
    shown = ", ".join(f"CAST({call} AS STRING) AS c{n}" for n, call in enumerate(MIDDLES))
    sql = f"SELECT STREAM k, {shown}, MEDIAN(v) AS m {MINUTES}, k"
    found = answers(spark, sql, rows, ([], [1], [5, 9], range(1, len(rows))))
    assert len(set(found)) == 1
    assert found[0].count("'0.0'") > len(groups)
    assert "-0.0" not in found[0]


SUMS = ("SUM(d)", "AVG(d)", "STDDEV_POP(d)", "SUM(f)", "EXP_AVG(d, INTERVAL '1' SECOND)", "MIN(d)", "MAX(f)")
FRAMES = ("ROWS 1 PRECEDING", "RANGE INTERVAL '1' SECOND PRECEDING", "ROWS UNBOUNDED PRECEDING")


@pytest.mark.parametrize("frame", [pytest.param(f, marks=[] if f == FRAMES[0] else pytest.mark.slow) for f in FRAMES])
@pytest.mark.usefixtures("both_ways")
def test_a_zero_of_a_frame_is_the_positive_one(spark: SparkSession, frame: str) -> None:
    rows = [{"d": zero, "f": zero, "k": key} for zero in (-0.0, 0.0, -0.0, -0.0, None) for key in "xy"]
    shown = ", ".join(f"CAST({call} OVER w AS STRING) AS c{n}" for n, call in enumerate(SUMS))
    sql = f"SELECT STREAM k, {shown} FROM a WINDOW w AS (PARTITION BY k {frame})"
    found = answers(spark, sql, rows, ([], [1], [3, 5], range(1, len(rows))))
    assert len(set(found)) == 1
    assert "-0.0" not in found[0]


COLLATED = "CAST(k AS STRING COLLATE UNICODE_CI)"
COLLATED_KEYS = {
    "text": COLLATED,
    "part of a struct": f"NAMED_STRUCT('b', {COLLATED})",
    "part of an array": f"ARRAY({COLLATED}, 'z')",
    "cast of a struct": "CAST(NAMED_STRUCT('b', k) AS STRUCT<b: STRING COLLATE UNICODE_CI>)",
    "choice": f"CASE WHEN v > 0 THEN {COLLATED} END",
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "choice" else [pytest.mark.slow]) for n in COLLATED_KEYS]
)
@pytest.mark.usefixtures("both_ways")
def test_a_collation_that_the_query_gives_to_a_key_counts_in_any_cut(spark: SparkSession, name: str) -> None:
    key = COLLATED_KEYS[name]
    rows = [{"k": text, "v": n} for n, text in enumerate(["x", "y", "X", "Y", "x", "X"], 1)]
    clauses = ["GROUP BY FLOOR(a.ROWTIME TO MINUTE)", "GROUP BY SESSION(a.ROWTIME, INTERVAL '10' SECOND)"]
    for clause in clauses:
        sql = f"SELECT STREAM CAST({key} AS STRING) AS k, SUM(v) AS s FROM a {clause}, {key}"
        found = answers(spark, sql, rows, ([], [1], [2, 4], [*range(1, 6)]))
        assert len(set(found)) == 1
        assert sorted(part[:2] for part in found[0].split("'s': ")[1:]) == ["15", "6}"], found[0]
    pairs = "BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '9' SECOND"
    sides = f"{key.replace('(k', '(a.k').replace(' k)', ' a.k)')} = {key.replace('(k', '(b.k').replace(' k)', ' b.k)')}"
    sides = sides.replace("WHEN v", "WHEN a.v", 1).replace("WHEN v", "WHEN b.v", 1)
    sql = f"SELECT STREAM a.v AS v, b.v AS w FROM a JOIN a AS b ON {sides} AND b.ROWTIME {pairs}"
    found = answers(spark, sql, rows, ([], [1], [2, 4]))
    assert len(set(found)) == 1
    assert found[0].count("'w'") == 10 + 3


KEYS = {
    "arrays": "ad",
    "structs": "st",
    "structs made in the query": "NAMED_STRUCT('a', d, 'b', f)",
    "parts of parts": "aa",
    "structs with a collation": "NAMED_STRUCT('a', d, 'b', ck)",
    "arrays with a collation": "ARRAY(NAMED_STRUCT('a', d, 'b', ad, 'c', ck))",
}
ALONE, KEEPS = "COUNT(*) AS c", "COUNT(DISTINCT v) AS c"


@pytest.mark.parametrize("call", [ALONE, pytest.param(KEEPS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in [*KEYS][3:] else []) for n in KEYS])
def test_both_zeros_in_a_part_of_a_key_are_the_positive_one(spark: SparkSession, name: str, call: str) -> None:
    rows = [
        {"d": zero, "f": zero, "v": 1, "ad": [zero], "st": {"x": zero}, "aa": [None, {"p": [zero, None]}], "ck": "x"}
        for zero in (-0.0, 0.0, -0.0, -0.0)
    ]
    sql = f"SELECT STREAM {KEYS[name]} AS key, {call} {MINUTES}, {KEYS[name]}"
    found = answers(spark, sql, rows, ([], [1], [2], [1, 2, 3]))
    assert len(set(found)) == 1
    assert "0.0" in found[0]
    assert "-0.0" not in found[0]


@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=[] if call == SKETCHES[0] else [pytest.mark.slow]) for call in SKETCHES]
)
def test_an_approximate_aggregate_meets_rows_in_stream_order(spark: SparkSession, call: str) -> None:
    chance = random.Random(5)
    rows = [{"d": chance.random(), "v": chance.randrange(1000)} for _ in range(240)]
    found = answers(spark, f"SELECT STREAM {call} AS x {MINUTES}", rows, ([], [70, 100], [1, 2, 200]))
    assert len(set(found)) == 1


def test_many_groups_of_an_approximate_aggregate_are_the_same_in_any_cut(spark: SparkSession) -> None:
    """Spark sorts the rows of more than 128 groups."""
    chance = random.Random(7)
    rows = [{"k": str(chance.randrange(150)), "v": chance.randrange(1000)} for _ in range(3000)]
    sql = "SELECT STREAM k, PERCENTILE_APPROX(v, 0.5, 2) AS x FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR), k"
    found = answers(spark, sql, rows, ([], [1000, 1200]))
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    "call",
    [f"KLL_SKETCH_AGG_{kind}(v, 8)" for kind in ("BIGINT", "DOUBLE", "FLOAT")]
    + [f"KLL_MERGE_AGG_{kind}(CAST(k AS BINARY))" for kind in ("BIGINT", "DOUBLE", "FLOAT")]
    + [f"KLL_SKETCH_MERGE_{kind}(FIRST(CAST(k AS BINARY)), X'00')" for kind in ("BIGINT", "DOUBLE", "FLOAT")],
)
def test_a_sketch_that_drops_values_at_random_is_refused(call: str) -> None:
    program = compile_script(f"{DECLARE} SELECT STREAM {call} AS x {MINUTES}")
    assert [problem.code for problem in program.problems] == ["R111"]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["ARRAY(v, 1)", "ARRAY(-v)", "CAST(k AS BINARY)", "NAMED_STRUCT('a', k, 'b', v)"])
def test_refused_groups_with_other_keys_are_in_one_order(spark: SparkSession, key: str) -> None:
    sql = (
        f"CREATE VIEW j AS SELECT STREAM {key} AS k, 10 DIV SUM(v * 0) AS c FROM a "
        f"GROUP BY FLOOR(a.ROWTIME TO MINUTE), {key}; SELECT STREAM k, reason FROM j.rejected"
    )
    rows = [{"k": key, "v": n} for key, n in (("y", 3), (None, None), ("x", 10), ("z", 2), ("y", 3), ("w", 1))]
    assert len(set(answers(spark, sql, rows, ([], [1], [2, 4])))) == 1


def test_refused_groups_are_in_one_order(spark: SparkSession) -> None:
    rows = [{"k": key, "v": 1} for key in ("y", None, "x", "z", "y")]
    found = answers(spark, REFUSED, rows, ([], [1], [2, 4]))
    assert len(set(found)) == 1
    assert found[0].index("None") < found[0].index("'x'") < found[0].index("'y'") < found[0].index("'z'")
