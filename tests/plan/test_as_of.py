"""Binding of joins as of a time: operators, names, refusals."""

from __future__ import annotations

import pytest

from rowtime.operators.over.over import Over
from rowtime.plan.explain import as_text, explain
from rowtime.plan.program import compile_script

STREAMS = "CREATE STREAM a (k INT, x INT); CREATE STREAM b (k INT, y STRING); CREATE STREAM c (k BIGINT, z INT); "
STREAMS += "CREATE TABLE t (k INT, w STRING) USING csv OPTIONS (path 'x.csv');\n"
EVENTS = "CREATE STREAM e (at TIMESTAMP, k INT) EVENT SHAPE POINT (at); "
AS_OF = "FOR SYSTEM_TIME AS OF a.ROWTIME"


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        (f"SELECT STREAM * FROM a JOIN b {AS_OF} USING (k)", ("k", "x", "y")),
        (f"SELECT STREAM r.*, a.ROWTIME AS ROWTIME FROM a LEFT JOIN b {AS_OF} AS r ON r.k = a.k", ("k", "y")),
        (f"SELECT STREAM x, r.ROWTIME AS at FROM a NATURAL JOIN c {AS_OF} r", ("x", "at")),
        (f"SELECT STREAM x, w FROM a JOIN b {AS_OF} ON TRUE JOIN t ON t.k = a.k", ("x", "w")),
        (f"SELECT STREAM x, z FROM a JOIN b ON a.k = b.k JOIN c {AS_OF} ON c.k = b.k", ("x", "z")),
        ("SELECT STREAM x FROM a JOIN b TIMESTAMP AS OF a.ROWTIME ON a.k = CAST(b.y AS INT)", ("x",)),
        ("SELECT STREAM x, y FROM a ASOF JOIN b MATCH_CONDITION (a.ROWTIME >= b.ROWTIME) ON a.k = b.k", ("x", "y")),
        (
            "SELECT STREAM x, z FROM a LEFT ASOF JOIN c AS r MATCH_CONDITION r.ROWTIME <= a.ROWTIME USING (k)",
            ("x", "z"),
        ),
    ],
)
def test_names_are_those_of_the_inputs(sql: str, names: tuple[str, ...]) -> None:
    program = compile_script(STREAMS + sql)
    assert program.problems == ()
    assert program.sinks[0].input.emits().names == names


def test_groups_close_by_the_rowtime_of_the_left() -> None:
    query = f"SELECT STREAM COUNT(*) AS c FROM a JOIN b {AS_OF} ON a.k = b.k GROUP BY FLOOR(%s.ROWTIME TO HOUR)"
    assert compile_script(STREAMS + query % "a").problems == ()
    assert compile_script(STREAMS + query % "b").problems != ()


def test_unused_columns_are_not_kept() -> None:
    program = compile_script(STREAMS + f"SELECT STREAM x FROM a JOIN b {AS_OF} ON a.k = b.k")
    [node] = [node for node in program.operators if isinstance(node, Over)]
    assert node.calls[0].column.type == "STRUCT<f0: INT, f1: TIMESTAMP>"  # the key and the rowtime


def test_groups_say_their_types_by_casts() -> None:
    view = "CREATE VIEW g AS SELECT STREAM CAST(k AS INT) AS k, CAST(COUNT(*) AS BIGINT) AS n FROM b "
    view += "GROUP BY k, FLOOR(b.ROWTIME TO HOUR); "
    query = f"SELECT STREAM x, n FROM a LEFT JOIN g {AS_OF} USING (k)"
    assert compile_script(STREAMS + view + query).problems == ()


def test_explain_says_what_is_kept() -> None:
    text = as_text(explain(compile_script(STREAMS + f"SELECT STREAM x, y FROM a JOIN b {AS_OF} ON a.k = b.k")))
    assert "1 row per key, until the stream ends (bounded by keys)" in text
    assert "calls latest = LAST(row) IGNORE NULLS" in text


def test_asof_join_is_the_join_as_of_the_rowtime_of_the_left() -> None:
    ways = (f"LEFT JOIN b {AS_OF}", "ASOF LEFT JOIN b MATCH_CONDITION (a.ROWTIME >= b.ROWTIME)")
    programs = [compile_script(STREAMS + f"SELECT STREAM x, y FROM a {way} ON a.k = b.k") for way in ways]
    assert as_text(explain(programs[0])) == as_text(explain(programs[1]))


def test_asof_and_match_condition_are_not_reserved_words() -> None:
    text = "CREATE STREAM s (asof INT, match_condition INT); SELECT STREAM asof, match_condition FROM s AS asof"
    assert compile_script(text).problems == ()


REFUSED = [
    ("x FROM a ASOF JOIN b ON a.k = b.k", "R156", "MATCH_CONDITION (a.ROWTIME >= b.ROWTIME)"),
    ("x FROM a ASOF JOIN b MATCH_CONDITION (a.ROWTIME > b.ROWTIME) ON a.k = b.k", "R156", "b.ROWTIME"),
    ("x FROM a ASOF JOIN b MATCH_CONDITION (a.ROWTIME <= b.ROWTIME) ON a.k = b.k", "R156", "b.ROWTIME"),
    ("x FROM a JOIN b MATCH_CONDITION (a.ROWTIME >= b.ROWTIME) ON a.k = b.k", "R156", "ASOF JOIN"),
    ("x FROM a MATCH_CONDITION (x > 1)", "R156", "JOIN"),
    ("x FROM a JOIN b FOR SYSTEM_TIME AS OF b.ROWTIME ON a.k = b.k", "R156", "AS OF a.ROWTIME"),
    ("x FROM a JOIN b FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00' ON a.k = b.k", "R156", "AS OF a.ROWTIME"),
    ("x FROM a JOIN b VERSION AS OF a.ROWTIME ON a.k = b.k", "R156", "AS OF a.ROWTIME"),
    ("x FROM a FOR SYSTEM_TIME AS OF a.ROWTIME", "R156", "JOIN b"),
    (f"x FROM a JOIN b {AS_OF} ON a.k < b.k", "R156", "sub-query"),
    (f"x FROM a JOIN b {AS_OF} ON a.k = b.k AND b.y = 'u'", "R156", "WHERE"),
    (f"x FROM a JOIN b {AS_OF} ON a.k = b.k OR a.x = b.k", "R156", "sub-query"),
    (f"x FROM a, b {AS_OF} WHERE a.k = b.k", "R156", "ON TRUE"),
    (f"x FROM a RIGHT JOIN b {AS_OF} ON a.k = b.k", "R156", "LEFT JOIN"),
    (f"x FROM a FULL JOIN b {AS_OF} ON a.k = b.k", "R156", "LEFT JOIN"),
    (f"x FROM a OVER (RANGE INTERVAL '1' SECOND PRECEDING) JOIN b {AS_OF} ON a.k = b.k", "R156", "Leave OVER out"),
    (f"x FROM a JOIN t {AS_OF} ON a.k = t.k", "R156", "Leave FOR SYSTEM_TIME out"),
    (f"x FROM a JOIN b {AS_OF} ON a.k = b.y", "R156", "CAST(… AS INT)"),
    (f"x FROM a JOIN b {AS_OF} ON UPPER(a.k) = b.y", "R156", "CAST"),
    (f"x FROM (SELECT STREAM k, x + 1 AS x FROM a) AS a JOIN b {AS_OF} USING (k)", "R156", "CAST"),
    (f"x FROM a JOIN b {AS_OF} ON a.k = b.k JOIN c ON a.k = c.k", "R190", "sub-query"),
    (f"e.k FROM e AS a JOIN e {AS_OF} ON a.k = e.k", "R156", "Leave FOR SYSTEM_TIME out"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "hint"), REFUSED, ids=[query for query, *_ in REFUSED])
def test_a_join_as_of_a_time_is_refused_with_a_code_and_a_hint(query: str, code: str, hint: str) -> None:
    [problem] = compile_script(STREAMS + EVENTS + f"SELECT STREAM {query}").problems
    assert problem.code == code
    assert problem.place is not None
    assert hint in problem.hint
