"""Only a timestamp can be ROWTIME: an expression of another known type is refused when the script is checked."""

from __future__ import annotations

import pytest

import rowtime as rt

STREAM = (
    "CREATE STREAM s (qty INT, price DECIMAL(9, 2), day DATE, name STRING, ntz TIMESTAMP_NTZ, n BIGINT ASCENDING);\n"
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT STREAM s.qty AS ROWTIME, price FROM s ORDER BY s.qty WITHIN INTERVAL '5' MINUTE",
        "SELECT STREAM qty + 1 AS ROWTIME FROM s",
        "SELECT STREAM CAST(name AS BIGINT) AS ROWTIME FROM s",
        "SELECT STREAM price AS ROWTIME FROM s",
        "SELECT STREAM day AS ROWTIME FROM s",
        "SELECT STREAM name AS ROWTIME FROM s",
        "SELECT STREAM qty > 1 AS ROWTIME FROM s",
        "SELECT STREAM n AS ROWTIME, COUNT(*) AS c FROM s GROUP BY n",
        "SELECT STREAM UNIX_SECONDS(FLOOR(s.ROWTIME TO HOUR)) AS ROWTIME FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR)",
    ],
)
def test_a_number_a_date_or_a_text_cannot_be_the_rowtime(query: str) -> None:
    problems = rt.check(STREAM + query)
    assert [problem.code for problem in problems] == ["R188"], problems
    assert problems[0].place is not None
    assert problems[0].place.line == STREAM.count("\n") + 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT STREAM timestamp_millis(qty) AS ROWTIME FROM s ORDER BY ROWTIME WITHIN INTERVAL '5' MINUTE",
        "SELECT STREAM CAST(day AS TIMESTAMP) AS ROWTIME FROM s",
        "SELECT STREAM CAST(name AS TIMESTAMP) + INTERVAL '1' DAY AS ROWTIME FROM s",
        "SELECT STREAM ntz AS ROWTIME FROM s",
        "SELECT STREAM s.ROWTIME + INTERVAL '1' MINUTE AS ROWTIME FROM s",
        "SELECT STREAM to_timestamp(name, 'yyyy') AS ROWTIME FROM s",
        "SELECT STREAM CASE WHEN qty > 1 THEN ntz END AS ROWTIME FROM s",
    ],
)
def test_times_may_be_promoted(query: str) -> None:
    assert [problem for problem in rt.check(STREAM + query) if not problem.warns] == []
