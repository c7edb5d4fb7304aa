"""AVG of decimals has the same digits as in Spark; only the final sum has to fit, not the intermediate ones."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.runner import Outcome, play
from rowtime.testing.transcripts import ScriptItem, Transcript
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


TRIED = (
    "TRY_SUM(w) AS s, TRY_SUM(DISTINCT w) AS t, TRY_SUM(w) FILTER (WHERE w <> 5) AS f, TRY_AVG(w) AS m, "
    "TRY_SUM(w * CAST(100000000000000000 AS DECIMAL(18, 0))) AS d, TRY_AVG(w * CAST(1 AS DECIMAL(18, 0))) AS e"
)
LEAST = -(2**63)
SUMS = {
    "groups": f"SELECT STREAM k, {TRIED} FROM b GROUP BY FLOOR(b.ROWTIME TO HOUR), k",
    "sessions": f"SELECT STREAM k, {TRIED} FROM b GROUP BY k, SESSION(b.ROWTIME, INTERVAL '1' MINUTE)",
    "windows of events": f"SELECT STREAM k, {TRIED} FROM e GROUP BY TUMBLE(INTERVAL '1' HOUR), k",
    "beside a group that fails": f"SELECT STREAM k, {TRIED}, 10 DIV (MAX(n)) AS x FROM b "
    "GROUP BY FLOOR(b.ROWTIME TO HOUR), k",
}
WHOLE = {
    "a": ((5, LEAST, 2**63 - 1), (4, 4, -1, 4 / 3, 4, Decimal(4) / 3)),
    "b": ((1, 2**63 - 1, -5, -(2**63 - 1)), (-4, -4, -4, -1.0, -4, Decimal(-1))),
    "c": ((5, -1, LEAST, 5, -20, 3), (None, None, None, -(2.0**63) / 6, LEAST - 8, Decimal(LEAST - 8) / 6)),
    "d": ((None,), (None,) * 6),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n == "groups" else [pytest.mark.slow]) for n in SUMS])
def test_what_try_sum_gives_depends_on_the_whole_sum_only(spark: SparkSession, name: str) -> None:
    declared = (
        "CREATE STREAM b (w BIGINT, k STRING, n INT);"
        "CREATE STREAM e (since TIMESTAMP, until TIMESTAMP, w BIGINT, k STRING) EVENT SHAPE INTERVAL (since, until);"
    )
    rows = [{"w": w, "k": key, "n": 1} for key, (values, _) in WHOLE.items() for w in values]
    rows += [{"w": 1, "k": "e", "n": 0}] if "fails" in name else []
    stream, times = "e" if "events" in name else "b", {"since": ORIGIN, "until": ORIGIN + SECOND}
    made = [ScriptItem(n, stream, "x", {"rowtime": ORIGIN + n, **times, **row}, None) for n, row in enumerate(rows, 1)]
    end = len(made) + 1
    made.append(ScriptItem(end, stream, "x", None, END))
    case = Transcript("tried", "tried", declared + SUMS[name], tuple(made), (), "exact", frozenset(), {}, {})
    for cut in ([end], [1, 4, 10, end], [2, 5, 9, 11, end]):
        found = play(derive(spark), case, cut)
        assert len(found.refused) == ("fails" in name)
        given = {row["k"]: [row[column] for column in "stfmde"] for _, row in found.rows}
        assert given.keys() == WHOLE.keys()
        for key, (_, (total, distinct, filtered, mean, wide, wide_mean)) in WHOLE.items():
            *others, last = given[key]
            assert others == [total, distinct, filtered, mean, None if wide is None else wide * 10**17], (key, cut)
            assert last is None if wide_mean is None else abs(last - wide_mean) < Decimal("0.0001")
