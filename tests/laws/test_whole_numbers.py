"""AVG and deviations of whole numbers and decimals are functions of the values: exact sums, divided once."""

from __future__ import annotations

import math
import re
import statistics
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARE = (
    "CREATE STREAM a (v BIGINT, k STRING, at TIMESTAMP);"
    "CREATE VIEW p EVENT TIME (at, LAG INTERVAL '10' SECOND) AS SELECT STREAM * FROM a;"
    "CREATE STREAM e (since TIMESTAMP, until TIMESTAMP, v BIGINT, k STRING) EVENT SHAPE INTERVAL (since, until);"
)
HOURS = "FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)"
VALUES = [2**62, 1, -(2**62), 5, 2**53 + 1, 2**53 + 1, -(2**54), 2**63 - 1, -(2**63), 2, None]
"""Numbers whose sum as DOUBLE depends on the order."""
GIVEN = [value for value in VALUES if value is not None]
MEAN = float(sum(GIVEN)) / len(GIVEN)
AVERAGES = {
    "groups": f"SELECT STREAM AVG(v) AS m {HOURS}",
    "filtered": f"SELECT STREAM AVG(v) FILTER (WHERE k = 'x') AS m {HOURS}",
    "kept rows": f"SELECT STREAM AVG(v) AS m, COUNT(DISTINCT k) AS d {HOURS}",
    "another name": f"SELECT STREAM MEAN(v) AS m {HOURS}",
    "sessions": "SELECT STREAM AVG(v) AS m FROM a GROUP BY SESSION(a.ROWTIME, INTERVAL '1' MINUTE)",
    "panes": "SELECT STREAM AVG(v) AS m FROM p GROUP BY PANES(at, DURATION INTERVAL '1' HOUR)",
    "beside a group that fails": "SELECT STREAM k, AVG(v) AS m, 10 DIV MIN(LENGTH(k) - 3) AS x FROM a "
    "GROUP BY FLOOR(a.ROWTIME TO HOUR), k",
    "snapshots": "SELECT STREAM AVG(v) AS m FROM e GROUP BY SNAPSHOT()",
    "windows of events": "SELECT STREAM AVG(v) AS m FROM e GROUP BY TUMBLE(INTERVAL '1' HOUR)",
    "over": "SELECT STREAM AVG(v) OVER (ROWS UNBOUNDED PRECEDING) AS m FROM a",
    "matches": "SELECT STREAM m.m FROM a MATCH_RECOGNIZE (ORDER BY ROWTIME MEASURES AVG(r.v) AS m "
    "PATTERN (r+ s) WITHIN INTERVAL '1' HOUR DEFINE r AS r.k = 'x', s AS s.k = 'end') AS m",
}  # fmt: skip


def answers(spark: SparkSession, sql: str, values: list[Any], cuts: tuple[list[int], ...]) -> list[list[Any]]:
    """The column ``m`` of the rows of a query, for each cut."""
    stream = "e" if " e " in sql else "a"
    times = {"since": ORIGIN, "until": ORIGIN + SECOND} if stream == "e" else {"at": ORIGIN}
    keyed = [(value, "x") for value in values] + ([(0, "end")] if "'end'" in sql else [])
    keyed += [(1, "abc")] if "DIV" in sql else []
    made = [
        ScriptItem(n, stream, "w", {"rowtime": ORIGIN + n * 1000, **times, "v": value, "k": key}, None)
        for n, (value, key) in enumerate(keyed, 1)
    ]
    made.append(ScriptItem(len(made) + 1, stream, "w", None, END))
    case = Transcript("whole", "whole", DECLARE + sql, tuple(made), (), "exact", frozenset(), {}, {})
    session, end = derive(spark), len(made)
    return [[row["m"] for _, row in play(session, case, [*cut, end]).rows] for cut in cuts]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in ("groups", "kept rows", "over") else [pytest.mark.slow]) for n in AVERAGES],
)
@pytest.mark.usefixtures("both_ways")
def test_an_average_of_whole_numbers_divides_the_exact_sum(spark: SparkSession, name: str) -> None:
    assert sum(map(float, GIVEN)) / len(GIVEN) != MEAN
    for values in (VALUES, VALUES[::-1]):
        for found in answers(spark, AVERAGES[name], values, ([], [1, 4, 5], [*range(1, len(values))])):
            assert found[-1] == MEAN


OF_WHOLE_NUMBERS = ("over", "matches")
"""Where intervals are refused."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n == "groups" else [pytest.mark.slow]) for n in AVERAGES if n not in OF_WHOLE_NUMBERS],
)
@pytest.mark.usefixtures("both_ways")
def test_an_average_of_intervals_is_one(spark: SparkSession, name: str) -> None:
    day, most = timedelta(days=1), timedelta(days=10**8)  # the sum of two overflows
    sql = AVERAGES[name].replace("(v)", "(v * INTERVAL '1' DAY)")
    for values, mean in (([1, 2, 5, None, 1], day * 2.25), ([-3, 2**26, -(2**26), 2], -day / 4), ([10**8], most)):
        for found in answers(spark, sql, values, ([], [1, 3])):
            assert found[-1] == mean
    for found in answers(spark, re.sub("AVG|MEAN", "SUM", sql), [7, None, -3], ([], [1])):
        assert found[-1] == 4 * day


@pytest.mark.usefixtures("both_ways")
def test_an_average_of_different_whole_numbers_divides_the_exact_sum(spark: SparkSession) -> None:
    sql = f"SELECT STREAM AVG(DISTINCT v) AS m {HOURS}"
    for found in answers(spark, sql, VALUES, ([], [1, 4, 5], [*range(1, len(VALUES))])):
        assert found == [float(sum({*GIVEN})) / len({*GIVEN})]


DEVIATIONS = {
    "STDDEV(v)": statistics.stdev,
    "STDDEV_POP(v)": statistics.pstdev,
    "VAR_POP(v)": statistics.pvariance,
    "VARIANCE(CAST(v % 1000 AS DECIMAL(10, 2)))": lambda values: statistics.variance(Decimal(v % 1000) for v in values),
}


@pytest.mark.parametrize("call", DEVIATIONS)
@pytest.mark.usefixtures("both_ways")
def test_deviations_of_numbers_far_from_zero_keep_their_digits(spark: SparkSession, call: str) -> None:
    values = [2**52 + (n * 7) % 11 for n in range(30)]
    found = answers(spark, f"SELECT STREAM {call} AS m {HOURS}", values, ([], [1, 4, 5], [*range(1, len(values))]))
    found += answers(spark, f"SELECT STREAM {call} AS m {HOURS}", values[::-1], ([],))
    assert len({*map(tuple, found)}) == 1
    assert math.isclose(found[0][0], DEVIATIONS[call](values), rel_tol=1e-12)


@pytest.mark.parametrize(
    "groups",
    [
        HOURS,
        "FROM a GROUP BY SESSION(a.ROWTIME, INTERVAL '1' MINUTE)",
        "FROM p GROUP BY PANES(at, DURATION INTERVAL '1' HOUR)",
    ],
    ids=["hours", "sessions", "panes"],
)
@pytest.mark.usefixtures("both_ways")
def test_spark_computes_the_arguments_for_which_only_duckdb_fails(spark: SparkSession, groups: str) -> None:
    sql = f"SELECT STREAM MAX(v % GREATEST(LEAST(v, -1), -1)) AS m {groups}"
    for found in answers(spark, sql, [-(2**63), -1, 5], ([], [1, 2])):
        assert found[-1] == 0


MOD = "v % GREATEST(LEAST(v, -1), -1)"
"""Is 0. DuckDB divides the least BIGINT by -1, and fails."""
KEPT = {
    f"SUM(DISTINCT {MOD})": 0,
    f"AVG(DISTINCT {MOD})": 0,
    f"TRY_SUM({MOD}) + 0 * COUNT(DISTINCT k)": 0,
    f"SUM(DISTINCT v) FILTER (WHERE {MOD} = 0)": 4 - 2**63,
    f"SUM(DISTINCT {MOD}) FILTER (WHERE v < 0)": 0,
    f"COUNT(DISTINCT {MOD})": 1,
    f"MAX({MOD}) + 0 * COUNT(DISTINCT k)": 0,
    f"MAX_BY({MOD}, v) + 0 * COUNT(DISTINCT k)": 0,
    f"COLLECT_LIST({MOD})[0]": 0,
    f"MEDIAN({MOD})": 0,
    "SUM(DISTINCT (-9223372036854775807 - 1) % -1)": 0,
}
KEEPING = {
    "hours": HOURS,
    "sessions": "FROM a GROUP BY SESSION(a.ROWTIME, INTERVAL '1' MINUTE)",
    "panes": "FROM p GROUP BY PANES(at, DURATION INTERVAL '1' HOUR)",
    "values": "FROM a GROUP BY FLOOR(at TO HOUR) WITHIN INTERVAL '1' MINUTE",
    "snapshots": "FROM e GROUP BY SNAPSHOT()",
    "windows of events": "FROM e GROUP BY TUMBLE(INTERVAL '1' HOUR)",
}


@pytest.mark.parametrize(
    ("groups", "call"),
    [
        pytest.param(groups, call, marks=[] if (groups, call) == ("hours", next(iter(KEPT))) else [pytest.mark.slow])
        for groups in KEEPING
        for call in (KEPT if groups == "hours" else [*KEPT][:1])
    ],
)
@pytest.mark.usefixtures("both_ways")
def test_spark_computes_the_arguments_of_kept_rows_for_which_only_duckdb_fails(
    spark: SparkSession, groups: str, call: str
) -> None:
    for found in answers(spark, f"SELECT STREAM {call} AS m {KEEPING[groups]}", [-(2**63), -1, 5], ([], [1, 2])):
        assert found[-1] == KEPT[call]


ROW_BY_ROW = {
    "sums of changes": f"SELECT STREAM SUM({MOD}) AS m FROM e GROUP BY SNAPSHOT()",
    "keys of snapshots": f"SELECT STREAM {MOD} AS m, COUNT(*) AS c FROM e GROUP BY {MOD}, SNAPSHOT()",
    "keys of other snapshots": f"SELECT STREAM {MOD} AS m, MAX(v) AS c FROM e GROUP BY {MOD}, SNAPSHOT()",
    "keys of windows": f"SELECT STREAM {MOD} AS m, COUNT(*) AS c FROM e GROUP BY {MOD}, TUMBLE(INTERVAL '1' HOUR)",
    "keys": f"SELECT STREAM {MOD} AS m, COUNT(*) AS c FROM a GROUP BY {MOD}, FLOOR(a.ROWTIME TO HOUR)",
    "over": f"SELECT STREAM SUM({MOD}) OVER (ROWS UNBOUNDED PRECEDING) AS m FROM a",
    "partitions": f"SELECT STREAM COUNT(*) OVER (PARTITION BY {MOD} ROWS UNBOUNDED PRECEDING) - 3 AS m FROM a",
    "matches": "SELECT STREAM m.m FROM a MATCH_RECOGNIZE (ORDER BY ROWTIME MEASURES SUM(r.v % -1) AS m "
    "PATTERN (r+ s) WITHIN INTERVAL '1' HOUR DEFINE r AS r.k = 'x', s AS s.k = 'end') AS m",
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n == "over" else [pytest.mark.slow]) for n in ROW_BY_ROW])
@pytest.mark.usefixtures("both_ways")
def test_spark_computes_the_keys_and_values_for_which_only_duckdb_fails(spark: SparkSession, name: str) -> None:
    for found in answers(spark, ROW_BY_ROW[name], [-(2**63), -1, 5], ([1, 2], [1, 2, 3])):
        assert found[-1] == 0


@pytest.mark.parametrize("call", ["MODE(7, true)", "PERCENTILE_APPROX(7, 0.5)", "MODE(7, true) + 0 * SUM(DISTINCT v)"])
@pytest.mark.usefixtures("both_ways")
def test_spark_computes_aggregates_of_constants(spark: SparkSession, call: str) -> None:
    for found in answers(spark, f"SELECT STREAM {call} AS m {HOURS}", [1, 2, 3], ([], [1, 2])):
        assert found == [7]
