"""Binding of windows: what closes their groups, refusals, EXPLAIN."""

from __future__ import annotations

import pytest

from rowtime.operators.groups.group_by import GroupBy
from rowtime.operators.windows.hop import Hop
from rowtime.plan.explain import as_text, explain_query
from rowtime.plan.program import compile_script
from rowtime.sql.generate import to_rowtime

A = "CREATE STREAM a (v INT, t TIMESTAMP, w STRING); CREATE STREAM o (v INT, t TIMESTAMP ASCENDING);\n"
HOUR, THREE = "INTERVAL '1' HOUR", "INTERVAL '3' HOUR"
HOP = f"TABLE(HOP(TABLE a, DESCRIPTOR(ROWTIME), {HOUR}, {THREE}))"

ACCEPTED = [
    f"SELECT STREAM COUNT(*) AS c FROM a GROUP BY HOP(a.ROWTIME, {HOUR}, {THREE})",
    (
        f"SELECT STREAM HOP_ROWTIME(s.ROWTIME, {HOUR}, {THREE}) AS ROWTIME, w FROM a AS s "
        f"GROUP BY w, HOP(s.ROWTIME, {HOUR}, {THREE})"
    ),
    f"SELECT STREAM TUMBLE_ROWTIME(a.ROWTIME, {HOUR}) AS ROWTIME, w FROM a GROUP BY TUMBLE(a.ROWTIME, {HOUR}), w",
    f"SELECT STREAM window_end, COUNT(*) AS c FROM {HOP} AS h GROUP BY h.window_start, window_end",
    f"SELECT STREAM s, COUNT(*) AS c FROM (SELECT STREAM window_start AS s, v FROM {HOP} WHERE v > 0) AS x GROUP BY s",
    f"SELECT STREAM s, COUNT(*) AS c FROM {HOP} AS h(v, t, w, s, e) GROUP BY s, e",
    "SELECT STREAM COUNT(*) AS c FROM TUMBLE(TABLE a, DESCRIPTOR(ROWTIME), INTERVAL '1' MONTH) GROUP BY window_start",
    (
        f"SELECT STREAM COUNT(*) AS c FROM TABLE(HOP(DATA => TABLE a, TIMECOL => DESCRIPTOR(rowtime), SLIDE => {HOUR}, "
        f"SIZE => {THREE})) GROUP BY window_end"
    ),
    (
        f"SELECT STREAM COUNT(*) AS c FROM TABLE(CUMULATE((SELECT STREAM v FROM a), DESCRIPTOR(ROWTIME), {HOUR}, "
        f"{THREE})) GROUP BY window_start, window_end"
    ),
    f"SELECT STREAM COUNT(*) AS c FROM TABLE(HOP(TABLE o, DESCRIPTOR(t), {HOUR}, {THREE})) GROUP BY window_end",
    f"SELECT STREAM * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), {HOUR}, TIME '00:12:00'))",
    f"SELECT STREAM * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), {HOUR}, TIME '0:12'))",
]

GAP = "INTERVAL '20' MINUTE"
SESSION = f"SESSION(a.ROWTIME, {GAP})"
ACCEPTED += [
    (
        f"SELECT STREAM w, SESSION_START(a.ROWTIME, {GAP}) AS s, COUNT(*) AS c FROM a GROUP BY w, {SESSION} "
        f"HAVING SESSION_END(a.ROWTIME, {GAP}) > TIMESTAMP '2024-01-01 00:00:00'"
    ),
    f"SELECT STREAM SESSION_ROWTIME(a.ROWTIME, {GAP}) AS ROWTIME, COUNT(*) AS c FROM a GROUP BY {SESSION}",
    (
        f"SELECT STREAM FLOOR(e TO HOUR) AS h, SUM(c) AS s FROM (SELECT STREAM SESSION_END(a.ROWTIME, {GAP}) AS e, "
        f"COUNT(*) AS c FROM a GROUP BY w, {SESSION}) AS x GROUP BY FLOOR(e TO HOUR)"
    ),
]

_COUNTED = f"w, COUNT(*) AS c FROM a GROUP BY w, {SESSION}"
ACCEPTED += [
    f"SELECT STREAM {_COUNTED} ORDER BY ROWTIME, c DESC",
    f"SELECT STREAM {_COUNTED} ORDER BY SESSION_END(a.ROWTIME, {GAP}), w",
    f"SELECT STREAM {_COUNTED} ORDER BY FLOOR(SESSION_END(a.ROWTIME, {GAP}) TO HOUR), c DESC LIMIT 3",
    f"SELECT STREAM SESSION_ROWTIME(a.ROWTIME, {GAP}) AS ROWTIME, {_COUNTED} ORDER BY ROWTIME, c",
    f"SELECT STREAM DISTINCT SESSION_END(a.ROWTIME, {GAP}) AS e, {_COUNTED}",
    f"SELECT STREAM DISTINCT SESSION_START(a.ROWTIME, {GAP}) AS s, {_COUNTED}",
    f"SELECT STREAM DISTINCT FLOOR(SESSION_END(a.ROWTIME, {GAP}) TO DAY) AS d, COUNT(*) AS c FROM a GROUP BY {SESSION}",
    f"SELECT STREAM w, COUNT(*) AS c FROM a WINDOWED BY STAGGER (PARTITION BY w RANGE {GAP}) ORDER BY ROWTIME, c DESC",
    f"SELECT STREAM w, window_end FROM TABLE(SESSION(TABLE a PARTITION BY w, v, DESCRIPTOR(ROWTIME), {GAP}))",
    (
        f"SELECT STREAM w, SUM(v) FROM SESSION(DATA => TABLE a PARTITION BY (w, v), TIMECOL => DESCRIPTOR(rowtime), "
        f"GAP => {GAP}) GROUP BY window_start, window_end, w"
    ),
    f"SELECT STREAM v FROM TABLE(SESSION(TABLE a, DESCRIPTOR(ROWTIME), {GAP}))",
    f"SELECT STREAM w, COUNT(*) AS c FROM a WHERE v > 0 WINDOWED BY STAGGER (PARTITION BY w RANGE {GAP})",
]


@pytest.mark.parametrize("sql", ACCEPTED)
def test_windows_are_accepted(sql: str) -> None:
    assert compile_script(A + sql).problems == ()


REFUSED = [
    (f"SELECT STREAM COUNT(*) AS c FROM a GROUP BY HOP(t, {HOUR}, {THREE})", "R104", "HOP(t, …)"),
    (f"SELECT STREAM COUNT(*) AS c FROM TABLE(HOP(TABLE a, DESCRIPTOR(t), {HOUR}, {THREE})) GROUP BY window_end",
     "R104", "window_end: the column has no known order"),
    ((f"SELECT STREAM HOP_START(a.ROWTIME, INTERVAL '2' HOUR, {THREE}) AS s FROM a GROUP BY "
     f"HOP(a.ROWTIME, {HOUR}, {THREE})"), "R106", "HOP(ROWTIME, …) is neither"),
    (f"SELECT STREAM HOP_END(a.ROWTIME, {HOUR}, {THREE}) AS e FROM a", "R139", "HOP_END"),
    (f"SELECT STREAM v FROM a WHERE TUMBLE(a.ROWTIME, {HOUR}) > t", "R139", "TUMBLE"),
    (f"SELECT STREAM COUNT(*) AS c FROM a GROUP BY HOP(a.ROWTIME, {HOUR})", "R113", "a slide, a size"),
    ("SELECT STREAM COUNT(*) AS c FROM a GROUP BY HOP(a.ROWTIME, INTERVAL '1' MONTH, INTERVAL '3' MONTH)", "R113", ""),
    ("SELECT STREAM COUNT(*) AS c FROM a GROUP BY TUMBLE(a.ROWTIME, INTERVAL '0' HOUR)", "R113", "TUMBLE takes"),
    *((f"SELECT STREAM COUNT(*) AS c FROM a GROUP BY TUMBLE(a.ROWTIME, {HOUR}, {offset})", "R113", "TUMBLE takes")
      for offset in ("TIME 'x'", "TIME '12'", "TIME '24:00'", "TIME '00:12:00''00:12'", "TIME '00:00:1e400'",
                     "TIME '00:00:nan'", "DATE '2024-01-01'", "CAST(3 AS INT)")),
    (f"SELECT STREAM v FROM TABLE(CUMULATE(TABLE a, DESCRIPTOR(ROWTIME), INTERVAL '2' HOUR, {THREE}))", "R113",
     "multiple of the step"),
    (f"SELECT STREAM v FROM TABLE(TUMBLE(TABLE a, t, {HOUR}))", "R113", "DESCRIPTOR(ROWTIME)"),
    (f"SELECT STREAM v FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(z), {HOUR}))", "R103", "no column z"),
    (f"SELECT STREAM v FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), WIDTH => {HOUR}))", "R113", "no argument WIDTH"),
    (f"SELECT STREAM v FROM TABLE(TUMBLE({HOUR}))", "R141", "needs a query or a stream"),
    (f"SELECT STREAM v FROM TABLE(TUMBLE((SELECT STREAM v, t AS window_end FROM a), DESCRIPTOR(ROWTIME), {HOUR}))",
     "R119", "window_end already"),
    (f"SELECT STREAM v FROM {HOP} ORDER BY window_end, v", "R138", "several windows"),
    ("SELECT STREAM COUNT(*) AS c FROM a GROUP BY STAGGER(a.ROWTIME, INTERVAL '1' MINUTE)", "R190", "STAGGER"),
]  # fmt: skip

SESSION_START = f"SESSION_START(a.ROWTIME, {GAP})"
STAGGER = f"WINDOWED BY STAGGER (PARTITION BY w RANGE {GAP})"
REFUSED += [
    (f"SELECT STREAM w FROM TABLE(SESSION(TABLE a PARTITION BY w, DESCRIPTOR(t), {GAP}))", "R104", "t AS ROWTIME"),
    ("SELECT STREAM w FROM TABLE(SESSION(TABLE a, DESCRIPTOR(ROWTIME)))", "R113", "a gap"),
    (f"SELECT STREAM w FROM TABLE(SESSION(TABLE a PARTITION BY z, DESCRIPTOR(ROWTIME), {GAP}))", "R103", "no column z"),
    ("SELECT STREAM w FROM TABLE(SESSION())", "R141", "needs a query or a stream"),
    (f"SELECT STREAM w, COUNT(*) AS c FROM a GROUP BY v {STAGGER}", "R113", "PARTITION BY"),
    (f"SELECT STREAM v, COUNT(*) AS c FROM a {STAGGER}", "R106", "v is neither"),
    (f"SELECT STREAM w AS ROWTIME, COUNT(*) AS c FROM a {STAGGER}", "R126", "ascend"),
    (f"SELECT STREAM w, SESSION_END(a.ROWTIME, {GAP}) AS e FROM a", "R139", "SESSION_END"),
    (f"SELECT STREAM SESSION_START(a.ROWTIME, {GAP}) AS ROWTIME, w FROM a GROUP BY w, {SESSION}", "R126", "ascend"),
    (f"SELECT STREAM w FROM a GROUP BY w, SESSION(t, {GAP})", "R104", "SELECT STREAM t AS ROWTIME"),
    ("SELECT STREAM w FROM a GROUP BY w, SESSION(a.ROWTIME)", "R113", "a gap"),
    (
        f"SELECT STREAM SESSION_END(a.ROWTIME, INTERVAL '5' MINUTE) AS e FROM a GROUP BY {SESSION}",
        "R106",
        "a different gap",
    ),
    (f"SELECT STREAM SESSION_END(a.ROWTIME, {GAP}) AS e FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)", "R106", "SESSION("),
    (f"SELECT STREAM MAX(SESSION_END(a.ROWTIME, {GAP})) AS e FROM a GROUP BY {SESSION}", "R130", "edge"),
    (f"SELECT STREAM w FROM a GROUP BY w, {SESSION} WITHIN {GAP}", "R128", "session, which uses ROWTIME"),
    (f"SELECT STREAM w, COUNT(*) AS c FROM a GROUP BY w, {SESSION} ORDER BY c", "R138", "ORDER BY SESSION("),
    (f"SELECT STREAM w, {SESSION_START} AS s FROM a GROUP BY w, {SESSION} ORDER BY s", "R138", "ORDER BY"),
    (f"SELECT STREAM w, COUNT(*) AS c FROM a {STAGGER} ORDER BY c DESC", "R138", "ORDER BY ROWTIME, c DESC"),
    (
        f"SELECT STREAM DISTINCT COUNT(*) AS c FROM a GROUP BY w, {SESSION}",
        "R184",
        "select the expression that closes the groups",
    ),
    (f"SELECT STREAM DISTINCT w, COUNT(*) AS c FROM a {STAGGER}", "R184", "into a sub-query w"),
]


@pytest.mark.parametrize(("sql", "code", "says"), REFUSED, ids=[sql[:70] for sql, _, _ in REFUSED])
def test_windows_are_refused_with_a_code_and_a_reason(sql: str, code: str, says: str) -> None:
    [problem] = compile_script(A + sql).problems
    assert problem.code == code
    assert says in problem.message + problem.hint + problem.note
    assert problem.place is not None


def _closers(sql: str) -> list[str]:
    group = compile_script(A + sql).sinks[-1].input
    while not isinstance(group, GroupBy):
        (group,) = group.inputs
    return [to_rowtime(closer.expression).replace("`__t`", "ROWTIME") for closer in group.closers]


def test_overlapping_windows_close_by_the_end_that_comes_next() -> None:
    assert _closers(f"SELECT STREAM COUNT(*) AS c FROM a GROUP BY HOP(a.ROWTIME, {HOUR}, INTERVAL '150' MINUTE)") == [
        "STEP(ROWTIME - INTERVAL '30' MINUTE BY INTERVAL '1' HOUR) + INTERVAL '90' MINUTE"
    ]


def test_groups_of_windows_are_functions_of_their_own_rowtime() -> None:
    below = f"SELECT STREAM window_start AS s, window_end AS e, v, COUNT(*) AS c FROM {HOP} AS h GROUP BY s, e, v"
    assert _closers(f"SELECT STREAM s, MAX(c) AS m FROM ({below}) AS x GROUP BY s, e") == [
        "ROWTIME - INTERVAL '3' HOUR",
        "ROWTIME",
    ]


TWICE = f"SELECT STREAM h.window_end AS b, k.window_end AS e FROM {HOP} AS h JOIN {HOP} AS k ON h.ROWTIME = k.ROWTIME"
SEVERAL_WINDOWS = {
    "windows of one slide and two sizes": (
        (f"SELECT STREAM HOP_END(s.ROWTIME, {HOUR}, {THREE}) AS b, HOP_END(s.ROWTIME, {HOUR}, INTERVAL '2' HOUR) AS e "
        f"FROM a AS s GROUP BY HOP(s.ROWTIME, {HOUR}, {THREE}), HOP(s.ROWTIME, {HOUR}, INTERVAL '2' HOUR)"), "",
    ),
    "a window and a step as wide as its slide": (
        (f"SELECT STREAM STEP(s.ROWTIME BY {HOUR}) AS b, HOP_END(s.ROWTIME, {HOUR}, {THREE}) AS e FROM a AS s "
        f"GROUP BY STEP(s.ROWTIME BY {HOUR}), HOP(s.ROWTIME, {HOUR}, {THREE})"), "b",
    ),
    "windows of two rows that a join made one": (f"SELECT STREAM b, e FROM ({TWICE}) AS x GROUP BY b, e", ""),
    "both edges of a window": (
        (f"SELECT STREAM HOP_START(s.ROWTIME, {HOUR}, {THREE}) AS b, HOP_END(s.ROWTIME, {HOUR}, {THREE}) AS e "
        f"FROM a AS s GROUP BY HOP(s.ROWTIME, {HOUR}, {THREE})"), "be",
    ),
    "both edges of a window through views and a union": (
        (f"SELECT STREAM b, e FROM (SELECT STREAM window_start AS b, window_end AS e FROM {HOP} AS h WHERE v > 1 "
        f"UNION ALL SELECT STREAM window_start, window_end FROM {HOP} AS h) AS x GROUP BY b, e"), "be",
    ),
    "both edges of the window of one row of a join": (
        (f"SELECT STREAM b, e FROM (SELECT STREAM h.window_start AS b, h.window_end AS e FROM {HOP} AS h JOIN a AS k "
        "ON h.ROWTIME = k.ROWTIME) AS x GROUP BY b, e"), "be",
    ),
}  # fmt: skip
"""Groups by more than one column of windows; the columns that close groups above them."""


@pytest.mark.parametrize("case", SEVERAL_WINDOWS)
def test_the_rowtime_of_a_group_tells_its_window_only_if_no_other_one_may_end_first(case: str) -> None:
    below, closing = SEVERAL_WINDOWS[case]
    for column in "be":
        program = compile_script(f"{A}SELECT STREAM {column}, COUNT(*) AS c FROM ({below}) AS g GROUP BY {column}")
        assert [problem.code for problem in program.problems] == ([] if column in closing else ["R104"]), column


def test_a_row_without_a_time_of_its_window_is_in_the_rejected_rows() -> None:
    view = f"CREATE VIEW x AS SELECT STREAM v FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), {HOUR})); "
    program = compile_script(A + view + "SELECT STREAM v, t, reason FROM x.rejected")
    assert program.problems == ()
    assert [node.gate for node in program.operators if isinstance(node, Hop)] == [True]
    ordered = f"SELECT STREAM v FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(t), {HOUR}))"
    assert [node.gate for node in compile_script(A + ordered).operators if isinstance(node, Hop)] == [False]


def test_explain_shows_the_windows_and_what_closes_their_groups() -> None:
    sql = f"SELECT STREAM COUNT(*) AS c FROM a GROUP BY HOP(a.ROWTIME, {HOUR}, {THREE})"
    text = as_text(explain_query(compile_script(A + sql).sinks[-1]))
    assert "windows" in text
    assert "slide 1:00:00; size 3:00:00" in text
    assert "closes groups" in text
