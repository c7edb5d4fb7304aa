"""What a script may say about events with lifetimes, and what it is told where it may not."""

from __future__ import annotations

import pytest

from rowtime.core.shapes import EventShape
from rowtime.operators.emit_lifetimes import EmitLifetimes
from rowtime.operators.event_stream import EventStream
from rowtime.plan.catalog import stream_of
from rowtime.plan.program import Program, compile_script
from rowtime.sql.script import parse_script

DECLARE = (
    "CREATE STREAM s (a TIMESTAMP, b TIMESTAMP, k INT) EVENT SHAPE INTERVAL (A, b); CREATE STREAM p (k INT, x INT); "
)


def shape(text: str) -> EventShape | None:
    (statement,) = parse_script(f"CREATE STREAM s (kind STRING, a TIMESTAMP, b TIMESTAMP, k INT) {text}").statements
    return stream_of(statement).shape  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EVENT SHAPE POINT (a)", EventShape("POINT", "a")),
        ("EVENT SHAPE INTERVAL (A, B) ON LATE ADJUST", EventShape("INTERVAL", "a", "b", adjusts=True)),
        ("EVENT SHAPE EDGE (a, b) BOUND EVERY 3 ROWS", EventShape("EDGE", "a", "b", rows=3)),
        (
            "EVENT SHAPE BY kind (a, b) BOUND EVERY INTERVAL '2' SECOND DELAY INTERVAL '1' SECOND ON LATE DROP",
            EventShape("BY", "a", "b", "kind", every=2_000_000, delay=1_000_000),
        ),
    ],
)
def test_a_shape_says_what_a_row_is_what_is_late_and_where_bounds_come_from(text: str, expected: EventShape) -> None:
    assert shape(text) == expected
    assert EventShape.stored(expected.as_json()) == expected


def program(sql: str) -> Program:
    return compile_script(DECLARE + sql)


def test_a_query_over_events_emits_intervals_unless_it_says_otherwise() -> None:
    bound = program("SELECT STREAM * FROM s")
    assert bound.problems == ()
    (made,) = (node for node in bound.operators if isinstance(node, EmitLifetimes))
    assert [column.name for column in made.emits().columns] == ["start", "stop", "k"]


def test_times_of_the_shape_are_no_payload() -> None:
    (source,) = (node for node in program("SELECT STREAM * FROM s").operators if isinstance(node, EventStream))
    assert source.emits().names == ("k",)


@pytest.mark.parametrize(
    ("sql", "code", "hint"),
    [
        ("SELECT STREAM a FROM s", "R103", "k"),
        ("SELECT STREAM k FROM p EMIT CHANGES", "R191", "panes"),
        ("SELECT STREAM k FROM p EMIT POINTS", "R191", "EVENT SHAPE"),
        ("SELECT STREAM k FROM s EMIT EDGES (a, b)", "R192", ""),
        ("SELECT STREAM k AS start FROM s", "R119", "EMIT"),
        ("SELECT STREAM k FROM s ORDER BY k", "R193", "EMIT"),
        ("SELECT STREAM k, MAKE_DATE(2024, 1, k) AS ROWTIME FROM s", "R193", "SHIFT"),
        ("SELECT STREAM DISTINCT k FROM s", "R193", ""),
        ("SELECT STREAM k FROM s LIMIT 3", "R193", "EMIT"),
        ("SELECT STREAM k FROM EXTEND(s, 5)", "R194", "EXTEND(s, INTERVAL"),
        ("SELECT STREAM k FROM SHIFT(p, INTERVAL '1' SECOND)", "R194", "SHIFT(s"),
        ("SELECT STREAM k FROM QUANTIZE(s, INTERVAL '0' SECOND)", "R194", "QUANTIZE(s"),
        ("SELECT STREAM k FROM CLIP(s)", "R194", "CLIP(s, t"),
        ("SELECT STREAM k FROM CHOP(s, INTERVAL '-1' SECOND)", "R194", "CHOP(s"),
        ("SELECT STREAM k FROM STITCH(s, k)", "R194", "STITCH(s)"),
        ("SELECT STREAM COUNT(*) AS c FROM s GROUP BY COUNT_WINDOW(0)", "R196", "COUNT_WINDOW(10)"),
        ("SELECT STREAM k FROM CLIP(s, s, nope)", "R194", "a column of both"),
        ("SELECT STREAM k FROM POINT_TO_SIGNAL(s, s.k)", "R194", "POINT_TO_SIGNAL(s, key)"),
        ("SELECT STREAM COUNT(*) AS c FROM s GROUP BY k", "R196", "SNAPSHOT()"),
        ("SELECT STREAM COUNT(*) AS c FROM s GROUP BY HOP(INTERVAL '1' HOUR)", "R196", "HOP(INTERVAL"),
        ("SELECT STREAM MAX(k) AS c FROM s GROUP BY SNAPSHOT()", "R190", "TUMBLE"),
        ("SELECT STREAM LAST(k) AS c FROM s GROUP BY TUMBLE(INTERVAL '1' HOUR)", "R193", "MIN"),
        ("SELECT STREAM SUM(k) OVER (ROWS 2 PRECEDING) AS c FROM s", "R193", "SNAPSHOT"),
        ("SELECT STREAM s.k FROM s JOIN p ON s.k = p.k", "R197", "EVENT SHAPE"),
        ("SELECT STREAM s.k FROM s JOIN s AS t ON s.ROWTIME = t.ROWTIME", "R197", "SHIFT"),
        ("SELECT STREAM s.k FROM s FULL JOIN s AS t ON s.k = t.k", "R190", "LEFT JOIN"),
        ("SELECT STREAM k FROM s UNION ALL SELECT STREAM k FROM p", "R197", "EMIT"),
        ("CREATE STREAM t (a TIMESTAMP) EVENT SHAPE POINT (c); SELECT STREAM * FROM t", "R103", "a"),
        ("CREATE STREAM t (a TIMESTAMP ASCENDING) EVENT SHAPE POINT (a); SELECT STREAM * FROM t", "R190", "Leave"),
        ("CREATE PUMP q AS INSERT INTO s SELECT STREAM k FROM p; SELECT STREAM k FROM s", "R190", ""),
    ],
)
def test_what_does_not_go_with_events_is_refused_with_a_hint(sql: str, code: str, hint: str) -> None:
    problems = program(sql).problems
    assert code in {problem.code for problem in problems}, problems
    assert any(hint in problem.hint for problem in problems if problem.code == code)


def test_collections_of_events_are_sorted() -> None:
    sql = "SELECT STREAM {} AS x FROM s GROUP BY TUMBLE(INTERVAL '1' HOUR)"
    made = compile_script(DECLARE + sql.format("SORT_ARRAY(COLLECT_LIST(k))"))
    assert made.problems == ()
    assert [p.code for p in compile_script(DECLARE + sql.format("COLLECT_LIST(k)")).problems] == ["R193"]
