"""A row whose argument of an aggregate fails is refused when it comes, however long its group stays open.

Most aggregates keep partial results, so an argument is computed in the tick of its row. Others keep the rows, and
would compute it when the group is complete: the other rows of the group must not depend on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND
from tests.laws.test_failing_laws import refused_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARE = "CREATE STREAM a (n INT, v INT, i INT, b STRING, ev TIMESTAMP) EVENT TIME (ev);"
CALENDAR = "calendar"
GROUPS = {
    CALENDAR: "FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE)",
    "hop": "FROM a GROUP BY HOP(a.ROWTIME, INTERVAL '20' SECOND, INTERVAL '40' SECOND)",
    "session": "FROM a GROUP BY SESSION(a.ROWTIME, INTERVAL '15' SECOND)",
    "within": "FROM a GROUP BY FLOOR(ev TO MINUTE) WITHIN INTERVAL '20' SECOND",
    "stagger": "FROM a WINDOWED BY STAGGER (PARTITION BY b RANGE INTERVAL '30' SECOND)",
    "panes": "FROM a GROUP BY PANES(ev, DURATION INTERVAL '40' SECOND)",
    "unbounded": "FROM a GROUP BY v WITH UNBOUNDED STATE",
    "t-sort": "FROM (SELECT STREAM ev AS ROWTIME, n, v, i, b FROM a ORDER BY ev WITHIN INTERVAL '20' SECOND) AS t "
    "GROUP BY FLOOR(t.ROWTIME TO MINUTE)",
    "view": "FROM (SELECT STREAM 10 DIV n AS n, v, i, b FROM a) AS x GROUP BY FLOOR(x.ROWTIME TO MINUTE)",
    "having": "FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE) HAVING COUNT(*) > 0",
}
CALLS = (
    "COUNT(DISTINCT 10 DIV n)",
    "SIZE(COLLECT_LIST(10 DIV n))",
    "SIZE(COLLECT_SET(10 DIV n))",
    "LISTAGG(CAST(10 DIV n AS STRING), ',')",
    "ROUND(STDDEV(10 DIV n), 6)",
    "ROUND(VAR_POP(10 DIV n), 6)",
    "ROUND(SKEWNESS(10 DIV n), 6)",
    "ROUND(COVAR_POP(v, 10 DIV n), 6)",
    "REGR_COUNT(v, 10 DIV n)",
    "PERCENTILE(10 DIV n, 0.5)",
    "PERCENTILE_APPROX(10 DIV n, 0.5)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY 10 DIV n)",
    "MEDIAN(10 DIV n)",
    "MODE(10 DIV n)",
    "APPROX_COUNT_DISTINCT(10 DIV n)",
    "BITMAP_COUNT(BITMAP_CONSTRUCT_AGG(10 DIV n))",
    "MAX_BY(v, 10 DIV n, 2)[0]",
    "SUM(DISTINCT 10 DIV n)",
    "TRY_SUM(10 DIV n)",
    "COUNT(DISTINCT 10 DIV n) FILTER (WHERE v > 0)",
    "COUNT(DISTINCT v) FILTER (WHERE 10 DIV n > 0)",
    "COUNT(DISTINCT v, 10 DIV n)",
    "COUNT(DISTINCT b) + SUM(i + 1)",
    "MEDIAN(v) + MAX(10 DIV n)",
    # These have partial results, but skip an argument where another one is NULL.
    "COUNT(v, 10 DIV n)",
    "MAX_BY(10 DIV n, v)",
    "MIN_BY(10 DIV n, v) FILTER (WHERE v > 0)",
    "SUM(10 DIV n)",
)
OFTEN = (
    (CALENDAR, "COUNT(DISTINCT 10 DIV n)"),
    ("session", "MEDIAN(10 DIV n)"),
    ("panes", "SUM(10 DIV n)"),
    ("view", "COUNT(v, n)"),
)
"""The cases of the default run."""
FEW = ("COUNT(DISTINCT 10 DIV n)", "MEDIAN(10 DIV n)", "COUNT(DISTINCT b) + SUM(i + 1)", "COUNT(v, 10 DIV n)")
"""What groups of other kinds are tried with: what keeps rows, of two kinds, and what skips arguments."""
OF_A_VIEW = ("COUNT(v, n)", "MAX_BY(n, v)", "MIN_BY(v, n)", "COUNT(DISTINCT n)", "COUNT(DISTINCT v, n)", "SUM(n)")
"""What the column of a view that fails is tried with."""
OF = {CALENDAR: CALLS, "view": OF_A_VIEW}
CASES = ((name, call) for name in GROUPS for call in OF.get(name, (*FEW, CALLS[-1])))
ROWS = (  # seconds, n, v, i, b
    (0, 1, 1, 1, "x"),
    (10, 0, None, 5, "y"),
    (20, 0, 2, 7, "x"),
    (20, 2, 2, 2**31 - 1, None),
    (50, 5, 1, 3, "z"),
    (70, 3, 2, 4, "x"),
    (75, 0, 1, 2**31 - 1, "x"),
    (110, 4, None, 1, "x"),
    (140, 1, 1, 1, "y"),
)


def items() -> list[ScriptItem]:
    made = [
        ScriptItem(number, "a", "w", {"rowtime": at, "ev": at, **dict(zip("nvib", values, strict=True))}, None)
        for number, (second, *values) in enumerate(ROWS, 1)
        for at in [ORIGIN + second * SECOND]
    ]
    return [*made, ScriptItem(len(made) + 1, "a", "w", None, END)]


def check(spark: SparkSession, groups: str, call: str) -> int:
    """The same rows and refusals from one tick, from several, and from a tick for each row; the number of refusals."""
    made = items()
    sql = f"{DECLARE} SELECT STREAM {call} AS x, COUNT(*) AS c {groups}"
    case = Transcript("kept", "kept", sql, tuple(made), (), "exact", frozenset(), {"a": ["w"]}, {})
    session, end = derive(spark), len(made)
    whole, *others = [play(session, case, cut) for cut in ([end], [*range(1, end + 1)], [3, 5, end])]
    assert rows_of(whole)
    for other in others:
        assert refused_of(other) == refused_of(whole)
        assert rows_of(other) == rows_of(whole)
    assert {row["reason"] for row in whole.refused} <= {"MALFORMED"}
    return len(whole.refused)


@pytest.mark.parametrize(
    ("name", "call"),
    [pytest.param(*case, marks=[] if case in OFTEN else [pytest.mark.slow]) for case in CASES],
)
def test_a_row_is_refused_when_it_comes(spark: SparkSession, name: str, call: str) -> None:
    assert check(spark, GROUPS[name], call), "nothing has failed"
