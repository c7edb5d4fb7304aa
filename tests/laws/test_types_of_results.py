"""The type and the digits of a result are Spark's for the whole expression, whatever else fails in its tick."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from rowtime.core.time import END
from rowtime.operators.rows.exact_sums import ExactSum
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = "SUM(m) / COUNT(m) AS a, AVG(m) * 2 AS b, SUM(m) * 3 AS c, SUM(i) + COUNT(*) AS d, MAX(i) - MIN(n) AS e"
SQL = (
    f"CREATE STREAM s (m DECIMAL(10, 2), i INT, n INT); SELECT STREAM {VALUES} FROM s "
    "GROUP BY FLOOR(s.ROWTIME TO MINUTE)"
)
GREAT = 2**31 - 1  # in the third minute MAX(i) - MIN(n) is beyond INT
ROWS = [
    (minute, Decimal("-100.01") + minute + at, GREAT if minute == 2 else 5, -4 * minute - at)
    for minute in range(4)
    for at in range(3)
]


def played(spark: SparkSession, cut: list[int]) -> list[list[str]]:
    given = ({"rowtime": ORIGIN + (60 * minute + n) * SECOND, "m": m, "i": i, "n": low} for n, (minute, m, i, low) in
             enumerate(ROWS))  # fmt: skip
    made = [ScriptItem(n, "s", "x", values, None) for n, values in enumerate(given, 1)]
    made.append(ScriptItem(len(made) + 1, "s", "x", None, END))
    case = Transcript("types", "types", SQL, tuple(made), (), "exact", frozenset(), {"s": ["x"]}, {})
    found = play(derive(spark), case, cut)
    assert [row["raw_record"] for row in found.refused] == ["MAX(`i`) - MIN(`n`)"]
    return [[str(row[name]) for name in "abcde"] for _, row in found.rows]


def expected(spark: SparkSession) -> list[list[str]]:
    rows = spark.createDataFrame(ROWS, "g INT, m DECIMAL(38, 18), i INT, n INT")
    rows.selectExpr("g", "CAST(m AS DECIMAL(10, 2)) AS m", "i", "n").createOrReplaceTempView("rows_of_results")
    groups = spark.sql(f"SELECT {VALUES} FROM rows_of_results WHERE g <> 2 GROUP BY g ORDER BY g").toArrow()
    return [[str(row[name]) for name in "abcde"] for row in groups.to_pylist()]


@pytest.mark.parametrize("cut", [[13], [4, 8, 13], pytest.param(range(1, 14), marks=pytest.mark.slow)])
def test_a_group_that_fails_changes_no_type_and_no_digit_of_the_others(spark: SparkSession, cut: list[int]) -> None:
    assert played(spark, list(cut)) == expected(spark)


@pytest.mark.parametrize("both_ways", ["on the driver"], indirect=True)
@pytest.mark.usefixtures("both_ways")
def test_the_law_of_schemas_sees_a_sum_with_more_digits(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExactSum, "total", property(lambda one: f"{one.name}w"))
    with pytest.raises(AssertionError, match="compiled as"):
        played(spark, [4, 8, 13])
