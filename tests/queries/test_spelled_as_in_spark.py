# ruff: noqa: E501 - a query a line
"""What Spark's own spelling gives is what Spark computes over the same rows as a batch, however they are cut.

`window` and `session_window`, GROUP BY ALL, and names of the select list in the list and in HAVING.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import END, to_datetime
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)

GIVEN = "CREATE STREAM a (k INT, x INT); "
QUERIES = [
    "SELECT STREAM window.start, window.end, k, COUNT(*) AS c, SUM(x) AS s FROM a GROUP BY window(ROWTIME, '1 minute'), k",
    "SELECT STREAM window, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '90 seconds')",
    "SELECT STREAM window.start AS t, MAX(x) AS m FROM a GROUP BY window(ROWTIME, 'interval 2 minutes', '2 minutes', '30 seconds')",
    "SELECT STREAM window.start, window.end, k, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '2 minutes', '40 seconds'), k",
    "SELECT STREAM k, window.end, COUNT(*) AS c FROM a GROUP BY k, window(ROWTIME, '1 minute 30 seconds', '1 minute', '10 seconds')",
    "SELECT STREAM window(ROWTIME, '1 minute') AS w, COUNT(*) AS c FROM a GROUP BY w",
    "SELECT STREAM window(ROWTIME, '1 minute').start AS t, k, SUM(x) AS s FROM a GROUP BY window(ROWTIME, '1 minute'), k HAVING SUM(x) > 5",
    "SELECT STREAM window(ROWTIME, '1 minute').end AS e, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '1 minute')",
    "SELECT STREAM window(ROWTIME, '1 minute'), COUNT(*) AS c FROM a GROUP BY 1",
    "SELECT STREAM window.end, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '1 minute') HAVING HOUR(window.start) = 10",
    "SELECT STREAM window.end, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '1 minute') ORDER BY window, c",
    "SELECT STREAM session_window.start, session_window.end, k, COUNT(*) AS c FROM a GROUP BY session_window(ROWTIME, '20 seconds'), k",
    "SELECT STREAM session_window AS s, COUNT(*) AS c FROM a GROUP BY session_window(ROWTIME, '15 seconds')",
    "SELECT STREAM window(ROWTIME, '1 minute') AS w, window(ROWTIME, '1 minute').start AS b, x FROM a",
    "SELECT STREAM window(ROWTIME, '1 minute', '1 minute', '5 seconds'), x FROM a WHERE window(ROWTIME, '1 minute').end > TIMESTAMP '2024-01-01 10:03:00'",
]
NAMES = [
    "SELECT STREAM x * 2 AS d, d + 1 AS e, e * d AS f FROM a",
    "SELECT STREAM x + 2 AS d, d * 3 AS e FROM a WHERE x > 3",
    "SELECT STREAM x AS k, k + 1 AS e FROM a",
    "SELECT STREAM STRUCT(x AS f) AS q, q.f + 1 AS g FROM a",
    "SELECT STREAM ARRAY(x) AS z, TRANSFORM(ARRAY(k, x), z -> z + 1) AS y FROM a",
    "SELECT STREAM k, SUM(x) AS sx, sx / 2 AS half FROM a GROUP BY window(ROWTIME, '1 minute'), k HAVING half > 2 AND COUNT(*) > 1",
    "SELECT STREAM window.start AS w, MAX(x) AS x FROM a GROUP BY window(ROWTIME, '1 minute') HAVING x > 5 AND SUM(x) > 9",
    "SELECT STREAM k AS x, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '1 minute'), k HAVING x > 1",
    "SELECT STREAM k AS x, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '1 minute'), k, x HAVING x > 5",
    "SELECT STREAM date_trunc('MINUTE', ROWTIME) AS m, k, COUNT(*) AS c FROM a GROUP BY ALL HAVING c > 1",
    "SELECT STREAM window(ROWTIME, '1 minute') AS w, k, COUNT(*) AS c FROM a GROUP BY ALL",
]
OTHERWISE = [
    (
        "SELECT STREAM window_time(window) AS t, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '1 minute')",
        "SELECT window_time(w) AS t, c FROM (SELECT window(ROWTIME, '1 minute') AS w, COUNT(*) AS c FROM a GROUP BY w)",
    ),
    (
        "SELECT STREAM window_time(session_window) AS t, COUNT(*) AS c FROM a GROUP BY session_window(ROWTIME, '20 seconds')",
        "SELECT session_window.end - INTERVAL '0.000001' SECOND AS t, COUNT(*) AS c FROM a GROUP BY session_window(ROWTIME, '20 seconds')",
    ),
    (
        "SELECT STREAM window.start AS s, k, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '1 minute'), k QUALIFY ROW_NUMBER() OVER (PARTITION BY window.start ORDER BY COUNT(*) DESC, k) = 1",
        "SELECT s, k, c FROM (SELECT window.start AS s, k, COUNT(*) AS c FROM a GROUP BY window(ROWTIME, '1 minute'), k) QUALIFY ROW_NUMBER() OVER (PARTITION BY s ORDER BY c DESC, k) = 1",
    ),
]
"""Queries with what Spark has to be asked instead."""


def rows() -> list[tuple[int, int | None, int]]:
    """Times (µs) in ascending order, with gaps that end sessions, keys and values."""
    chance, at, made = random.Random(22), ORIGIN, []
    for _ in range(90):
        at += chance.choice((0, 1, SECOND, 4 * SECOND, 9 * SECOND, 14_999_999, 15 * SECOND, 20 * SECOND, 47 * SECOND))
        made.append((at, chance.choice((1, 2, None)), chance.randint(0, 9)))
    return made


def items() -> list[ScriptItem]:
    made = [ScriptItem(n, "a", "w", {"rowtime": at, "k": k, "x": x}, None) for n, (at, k, x) in enumerate(rows(), 1)]
    return [*made, ScriptItem(len(made) + 1, "a", "w", None, END)]


def plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return tuple((name, plain(of)) for name, of in value.items())
    if isinstance(value, list):
        return tuple(map(plain, value))
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


def expected(session: SparkSession, query: str) -> Counter[Any]:
    """What Spark says of all rows at once."""
    given = [(to_datetime(at).replace(tzinfo=None), k, x) for at, k, x in rows()]
    view = session.createDataFrame(given, "ROWTIME TIMESTAMP, k INT, x INT")
    view.createOrReplaceTempView("a")
    return Counter(map(plain, session.sql(query.replace("SELECT STREAM", "SELECT")).collect()))


@pytest.mark.parametrize(("query", "asked"), [*((query, query) for query in [*QUERIES, *NAMES]), *OTHERWISE])
def test_rows_of_a_stream_are_those_of_spark(spark: SparkSession, query: str, asked: str) -> None:
    session = derive(spark)
    wanted = expected(session, asked)
    assert wanted
    made = items()
    script = Transcript("as spark", "", GIVEN + query, tuple(made), (), "exact", frozenset())
    for cut, restart in (([len(made)], False), ([1, 17, 18, 60, len(made)], True)):
        found = play(session, script, cut, restart=restart)
        assert not found.refused
        shown = [{name: value for name, value in row.items() if name != "rowtime"} for _, row in found.rows]
        assert Counter(map(plain, shown)) == wanted
