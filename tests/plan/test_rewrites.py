"""Refusals of expressions without an order show a rewrite, and each shown rewrite is accepted."""

from __future__ import annotations

import pytest

from rowtime.plan.program import compile_script

A = (
    "CREATE STREAM a (v BIGINT, w STRING, t TIMESTAMP, k BIGINT); "
    "CREATE STREAM b (x BIGINT, k BIGINT); "
    "CREATE VIEW years AS SELECT STREAM UNIX_SECONDS(a.ROWTIME) AS y FROM a GROUP BY 1; "
)
HOURS = "GROUP BY FLOOR(a.ROWTIME TO HOUR)"
BETWEEN = "b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '1' MINUTE"
LATER = "b.ROWTIME <= a.ROWTIME + INTERVAL '1' MINUTE"

# The refused query, its code, the hint, and the query after the hint is followed.
REFUSED = [
    ("SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY v", "R104",
     "Group by time as well: GROUP BY FLOOR(a.ROWTIME TO HOUR), v.",
     "SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR), v"),
    ("SELECT STREAM COUNT(*) AS c FROM a GROUP BY w, FLOOR(t TO HOUR)", "R104",
     "Say how far t may go back: GROUP BY w, FLOOR(t TO HOUR) WITHIN INTERVAL '1' MINUTE.",
     "SELECT STREAM COUNT(*) AS c FROM a GROUP BY w, FLOOR(t TO HOUR) WITHIN INTERVAL '1' MINUTE"),
    ("SELECT STREAM COUNT(*) AS c FROM a GROUP BY EXTRACT(HOUR FROM a.ROWTIME)", "R104",
     "Group by time as well: GROUP BY FLOOR(a.ROWTIME TO HOUR), EXTRACT(HOUR FROM a.ROWTIME).",
     "SELECT STREAM COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR), EXTRACT(HOUR FROM a.ROWTIME)"),
    ("SELECT STREAM COUNT(*) AS c FROM a", "R104", "Group by time as well: GROUP BY FLOOR(a.ROWTIME TO HOUR).",
     "SELECT STREAM COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)"),
    ("SELECT STREAM DISTINCT v FROM a", "R104", "SELECT STREAM DISTINCT FLOOR(a.ROWTIME TO HOUR) AS hour, …",
     "SELECT STREAM DISTINCT FLOOR(a.ROWTIME TO HOUR) AS hour, v FROM a"),
    ("SELECT STREAM v FROM a ORDER BY v, w", "R138",
     "Start with the ascending expression: ORDER BY FLOOR(a.ROWTIME TO HOUR), v, w.",
     "SELECT STREAM v FROM a ORDER BY FLOOR(a.ROWTIME TO HOUR), v, w"),
    ("SELECT STREAM v FROM a ORDER BY t", "R138",
     "Sort it within a tolerance: SELECT STREAM t AS ROWTIME, … ORDER BY t WITHIN INTERVAL '1' MINUTE.",
     "SELECT STREAM t AS ROWTIME, v FROM a ORDER BY t WITHIN INTERVAL '1' MINUTE"),
    ("SELECT STREAM v FROM a ORDER BY FLOOR(a.ROWTIME TO HOUR) DESC, v", "R138",
     "Leave out DESC: ORDER BY FLOOR(a.ROWTIME TO HOUR), v.",
     "SELECT STREAM v FROM a ORDER BY FLOOR(a.ROWTIME TO HOUR), v"),
    ("SELECT STREAM v FROM a UNION ALL SELECT STREAM v FROM a ORDER BY v", "R138",
     "Start with the ascending expression: ORDER BY FLOOR(ROWTIME TO HOUR), v.",
     "SELECT STREAM v FROM a UNION ALL SELECT STREAM v FROM a ORDER BY FLOOR(ROWTIME TO HOUR), v"),
    (f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w ORDER BY c DESC", "R138",
     "Start with the ascending expression: ORDER BY FLOOR(a.ROWTIME TO HOUR), c DESC.",
     f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w ORDER BY FLOOR(a.ROWTIME TO HOUR), c DESC"),
    (f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w ORDER BY ROWTIME DESC", "R138",
     "Leave out DESC: ORDER BY ROWTIME.", f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w ORDER BY ROWTIME"),
    ("SELECT STREAM y FROM years ORDER BY y", "R180",
     "Give it a clock: ORDER BY MONOTONIC(y), which is checked row by row.",
     "SELECT STREAM y FROM years ORDER BY MONOTONIC(y)"),
    ("SELECT STREAM t AS ROWTIME, v FROM a ORDER BY FLOOR(a.ROWTIME TO HOUR), v", "R126",
     "Select FLOOR(a.ROWTIME TO HOUR) AS ROWTIME.",
     "SELECT STREAM FLOOR(a.ROWTIME TO HOUR) AS ROWTIME, v FROM a ORDER BY FLOOR(a.ROWTIME TO HOUR), v"),
    (f"SELECT STREAM MAX(t) AS ROWTIME, COUNT(*) AS c FROM a {HOURS}", "R126",
     "Select FLOOR(a.ROWTIME TO HOUR) AS ROWTIME.",
     f"SELECT STREAM FLOOR(a.ROWTIME TO HOUR) AS ROWTIME, COUNT(*) AS c FROM a {HOURS}"),
    (f"SELECT STREAM DISTINCT COUNT(*) AS c FROM a {HOURS}, v", "R184",
     "Also select the expression that closes the groups: FLOOR(a.ROWTIME TO HOUR).",
     f"SELECT STREAM DISTINCT FLOOR(a.ROWTIME TO HOUR), COUNT(*) AS c FROM a {HOURS}, v"),
    ("SELECT STREAM v FROM a ORDER BY t WITHIN INTERVAL '1' MINUTE", "R121", "Select t AS ROWTIME.",
     "SELECT STREAM t AS ROWTIME, v FROM a ORDER BY t WITHIN INTERVAL '1' MINUTE"),
    ("SELECT STREAM SUM(v) OVER (ORDER BY v) AS s FROM a", "R164", "Write ORDER BY a.ROWTIME.",
     "SELECT STREAM SUM(v) OVER (ORDER BY a.ROWTIME) AS s FROM a"),
    ("SELECT STREAM SUM(v) OVER w AS s FROM a WINDOW w AS (ORDER BY a.ROWTIME DESC ROWS 10 PRECEDING)", "R164",
     "Write ORDER BY a.ROWTIME.",
     "SELECT STREAM SUM(v) OVER w AS s FROM a WINDOW w AS (ORDER BY a.ROWTIME ROWS 10 PRECEDING)"),
    ("SELECT STREAM x FROM a, b", "R152", f"ON {BETWEEN}.", f"SELECT STREAM x FROM a JOIN b ON {BETWEEN}"),
    ("SELECT STREAM x FROM a JOIN b ON b.ROWTIME >= a.ROWTIME AND a.k = b.k", "R152", f"a.k = b.k AND {LATER}.",
     f"SELECT STREAM x FROM a JOIN b ON b.ROWTIME >= a.ROWTIME AND a.k = b.k AND {LATER}"),
    ("SELECT STREAM x FROM a JOIN b ON b.ROWTIME > a.ROWTIME AND b.ROWTIME < a.ROWTIME", "R152", f"ON {BETWEEN}.",
     f"SELECT STREAM x FROM a JOIN b ON {BETWEEN}"),
]  # fmt: skip
OTHERS = [
    ("SELECT STREAM nope, COUNT(*) AS c FROM a GROUP BY v", "R104", "Fix the other problems"),
    ("SELECT STREAM nope FROM a ORDER BY v", "R138", "Fix the other problems"),
    ("SELECT STREAM nope, x FROM a JOIN b ON b.ROWTIME >= a.ROWTIME", "R152", "Compare the rowtimes in ON"),
]


@pytest.mark.parametrize(("sql", "code", "hint", "rewritten"), REFUSED)
def test_a_rewrite_that_is_shown_is_accepted(sql: str, code: str, hint: str, rewritten: str) -> None:
    [problem] = compile_script(A + sql).problems
    assert problem.code == code
    assert problem.hint.endswith(hint)
    assert compile_script(A + rewritten).problems == ()


@pytest.mark.parametrize(("sql", "code", "hint"), OTHERS)
def test_no_rewrite_is_shown_that_would_not_be_accepted(sql: str, code: str, hint: str) -> None:
    found = {problem.code: problem.hint for problem in compile_script(A + sql).problems}
    assert hint in found[code]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("v, COUNT(*) AS c FROM a GROUP BY v", "v: the column has no known order"),
        ("COUNT(*) AS c FROM a GROUP BY w, FLOOR(t TO HOUR)", "FLOOR(t TO HOUR): t: the column has no known order"),
        ("COUNT(*) AS c FROM a GROUP BY EXTRACT(HOUR FROM a.ROWTIME)", "HOUR repeats"),
        ("DISTINCT v FROM a", "v: the column has no known order"),
        ("v FROM a ORDER BY FLOOR(t TO HOUR)", "t: the column has no known order"),
        ("v FROM a ORDER BY FLOOR(a.ROWTIME TO HOUR) DESC", "DESC makes it decrease"),
    ],
)
def test_a_refusal_says_which_rule_failed_on_which_part(sql: str, why: str) -> None:
    [problem] = compile_script(f"{A}SELECT STREAM {sql}").problems
    assert why in problem.note
