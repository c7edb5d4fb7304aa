"""AVG of decimals has the same digits as in Spark; only the final sum has to fit, not the intermediate ones."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.runner import Outcome, play
from rowtime.testing.transcripts import ScriptItem
from tests.laws.failing_pipelines import LONG, SHOWN, STREAMS, WIDE, transcript
from tests.laws.pipelines import ORIGIN, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIGITS = "AVG(CAST(v AS DECIMAL(28, 10))) {} AS m, AVG(CAST(-v AS DECIMAL(38, 18))) {} AS o"
QUERIES = {
    "groups": f"SELECT STREAM {DIGITS.format('', '')} FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)",
    "groups of kept rows": f"SELECT STREAM {DIGITS.format('', '')}, COUNT(DISTINCT k) AS d FROM a "
    "GROUP BY FLOOR(a.ROWTIME TO HOUR)",
    "over": f"SELECT STREAM {DIGITS.format('OVER (ROWS 2 PRECEDING)', 'OVER (ROWS 2 PRECEDING)')} FROM a",
    "snapshots": f"SELECT STREAM {DIGITS.format('', '')} FROM e GROUP BY SNAPSHOT() {SHOWN}",
}


HOURS = "FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)"
ON_THE_WAY = {
    "intervals": f"SELECT STREAM SUM({LONG}) AS s, AVG({LONG}) AS m {HOURS}",
    "distinct values": f"SELECT STREAM SUM(DISTINCT {WIDE}) AS s, COUNT(DISTINCT k) AS d {HOURS}",
}
BEYOND = {
    "mean": f"SELECT STREAM AVG({WIDE}) AS s {HOURS}",
    "mean of kept rows": f"SELECT STREAM AVG({WIDE}) AS s, COUNT(DISTINCT k) AS d {HOURS}",
    "mean of snapshots": f"SELECT STREAM AVG({WIDE}) AS s FROM e GROUP BY SNAPSHOT() {SHOWN}",
}


def played(spark: SparkSession, sql: str, given: tuple[int, ...]) -> Outcome:
    values = {"rowtime": ORIGIN, "k": "x"}
    times = {"a": {"ev": ORIGIN}, "e": {"since": ORIGIN, "until": ORIGIN + SECOND}}
    made = [
        ScriptItem(number, stream, "x", {**values, **times[stream], "v": v}, None)
        for number, (stream, v) in enumerate(((stream, v) for stream in times for v in given), 1)
    ]
    made += [ScriptItem(len(made) + n, stream, "x", None, END) for n, stream in enumerate(STREAMS, 1)]
    return play(derive(spark), transcript(sql, made), [len(made)])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "groups" else [pytest.mark.slow]) for name in QUERIES]
)
def test_an_average_of_wide_decimals_keeps_its_digits(spark: SparkSession, name: str) -> None:
    row = played(spark, QUERIES[name], (1, 2, 2)).rows[-1][1]
    assert (row["m"], row["o"]) == (Decimal("1.66666666666667"), Decimal("-1.6666666666666666666667"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_THE_WAY)
def test_a_sum_that_comes_back_into_its_type_fits(spark: SparkSession, name: str) -> None:
    found = played(spark, ON_THE_WAY[name], (2, 1, -1))
    assert not found.refused
    [(_, row)] = found.rows
    [(_, same)] = played(spark, ON_THE_WAY[name], (0, 0, 2)).rows  # the same sum over the same number of rows
    assert row["s"] == same["s"] is not None
    beyond = played(spark, ON_THE_WAY[name], (2, 1, 2))
    assert len(beyond.refused) == 1
    assert not beyond.rows


@pytest.mark.slow
@pytest.mark.parametrize("name", BEYOND)
def test_an_average_beyond_its_type_is_refused(spark: SparkSession, name: str) -> None:
    found = played(spark, BEYOND[name], (2, 2))
    assert not found.rows
    assert ["AVG(" in row["raw_record"] for row in found.refused] == [True]
