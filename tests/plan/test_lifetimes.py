"""Binding of events with lifetimes: accepted forms, and refusals."""

from __future__ import annotations

import pytest

from rowtime.core.shapes import EventShape
from rowtime.operators.events.emit_lifetimes import EmitLifetimes
from rowtime.operators.events.event_stream import EventStream
from rowtime.plan.bind.stream_defs import stream_of
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
        ("EVENT SHAPE POINT (a) BOUND EVERY 1 ROW STRICT", EventShape("POINT", "a", rows=1, delay=-1)),
        (
            "EVENT SHAPE POINT (a) BOUND EVERY 2 ROWS DELAY INTERVAL '1' SECOND BOUND FROM q STRICT",
            EventShape("POINT", "a", rows=2, delay=1_000_000, imports="q", import_delay=-1),
        ),
        ("EVENT SHAPE POINT (a) BOUND FROM q STRICT", EventShape("POINT", "a", delay=-1, imports="q")),
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


def test_times_of_the_shape_are_not_payload() -> None:
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
        ("SELECT STREAM COUNT(*) AS c FROM s GROUP BY TUMBLE(INTERVAL '1' HOUR, 'unchanged')", "R196", "'clip end'"),
        ("SELECT STREAM COUNT(*) AS c FROM s GROUP BY TUMBLE(INTERVAL '1' HOUR, 'clip', 'clip end')", "R196", "'clip'"),
        ("SELECT STREAM MAX(LIFETIME_END(s)) AS c FROM s GROUP BY SNAPSHOT()", "R198", "TUMBLE or HOP"),
        ("SELECT STREAM MAX(LIFETIME_END(t)) AS c FROM s GROUP BY TUMBLE(INTERVAL '1' HOUR)", "R198", "in FROM"),
        ("SELECT STREAM LIFETIME_START(s) AS c FROM s GROUP BY TUMBLE(INTERVAL '1' HOUR)", "R106", ""),
        ("SELECT STREAM LIFETIME_START(s) AS c FROM s", "R198", "TUMBLE or HOP"),
        ("SELECT STREAM FIRST(k) AS c FROM s GROUP BY SNAPSHOT()", "R193", "MIN"),
        ("SELECT STREAM LAST(k) AS c FROM s GROUP BY TUMBLE(INTERVAL '1' HOUR)", "R193", "MIN"),
        ("SELECT STREAM SUM(k) OVER (ROWS 2 PRECEDING) AS c FROM s", "R193", "SNAPSHOT"),
        ("SELECT STREAM s.k FROM s JOIN p ON s.k = p.k", "R197", "EVENT SHAPE"),
        ("SELECT STREAM s.k FROM s JOIN s AS t ON s.k = t.k AND ROWTIME > DATE '2024-01-01'", "R197", "is s.ROWTIME"),
        ("SELECT STREAM s.ROWTIME FROM s JOIN s AS t ON s.k = t.k", "R193", "Write s.ROWTIME AS s_start."),
        ("SELECT STREAM s.k FROM s RIGHT ANTI JOIN s AS t ON s.k = t.k", "R190", "LEFT JOIN"),
        ("SELECT STREAM k FROM s UNION ALL SELECT STREAM k FROM p", "R197", "EMIT"),
        ("CREATE STREAM t (a TIMESTAMP) EVENT SHAPE POINT (c); SELECT STREAM * FROM t", "R103", "a"),
        ("CREATE STREAM t (a TIMESTAMP ASCENDING) EVENT SHAPE POINT (a); SELECT STREAM * FROM t", "R190", "Leave"),
        ("CREATE STREAM t (a BIGINT) EVENT SHAPE POINT (a); SELECT STREAM * FROM t", "R170", "RESOLUTION MILLISECONDS"),
        ("CREATE STREAM t (a DOUBLE) EVENT SHAPE POINT (a); SELECT STREAM * FROM t", "R170", "TIMESTAMP"),
        (
            "CREATE STREAM t (a TIMESTAMP) EVENT SHAPE POINT (a) RESOLUTION SECONDS; SELECT STREAM * FROM t",
            "R170",
            "out",
        ),
        ("CREATE STREAM t (a BIGINT, k INT) EVENT TIME (a); SELECT STREAM * FROM t", "R170", "RESOLUTION MILLISECONDS"),
        (
            "CREATE STREAM t (a TIMESTAMP) EVENT SHAPE POINT (a) EARLY BEYOND INTERVAL '1' HOUR RESYNC AFTER 3 ROWS",
            "R190",
            "Leave",
        ),
        (
            "CREATE PUMP q AS INSERT INTO s SELECT STREAM p.ROWTIME, p.ROWTIME AS u, k FROM p; SELECT STREAM k FROM s",
            "R190",
            "a script of its own",
        ),
        ("SELECT STREAM k FROM s EMIT EDGES (x, y, z) FULLY ORDERED", "R192", "EMIT INTERVALS … FULLY ORDERED"),
        ("SELECT STREAM k FROM s EMIT EDGES CHAIN ORDERED", "R192", "Leave the order out"),
        ("SELECT STREAM MIN_BY(k, k) AS m FROM s GROUP BY SNAPSHOT()", "R193", "MIN(STRUCT(y, x)).x"),
        (
            "SELECT STREAM k FROM s WHERE k > 1 OR EXISTS (SELECT STREAM * FROM s AS t WHERE t.k = s.k)",
            "R190",
            "LEFT ANTI JOIN",
        ),
    ],
)
def test_clauses_that_events_do_not_support_are_refused_with_a_hint(sql: str, code: str, hint: str) -> None:
    problems = program(sql).problems
    assert code in {problem.code for problem in problems}, problems
    assert any(hint in problem.hint for problem in problems if problem.code == code)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT STREAM MIN(STRUCT(k, k + 1 AS x)).x AS m FROM s GROUP BY SNAPSHOT()",
        "SELECT STREAM ARRAY_SORT(COLLECT_SET(k)) AS m FROM s GROUP BY SNAPSHOT()",
        "SELECT STREAM a.k FROM s AS a LEFT ANTI JOIN s AS b ON a.k = b.k",
        "SELECT STREAM k FROM s EMIT INTERVALS FULLY ORDERED",
        "SELECT STREAM k FROM s EMIT EDGES",
    ],
)
def test_offers_of_hints_are_accepted(sql: str) -> None:
    assert program(sql).problems == ()


@pytest.mark.parametrize("clause", ["INTERVAL '-5' SECOND", "INTERVAL '1' MONTH"])
def test_a_negative_delay_was_a_statement_that_ends_too_early(clause: str) -> None:
    sql = f"CREATE STREAM t (a TIMESTAMP) EVENT SHAPE POINT (a) BOUND EVERY 5 ROWS DELAY {clause}"
    (problem,) = compile_script(sql).problems
    assert "too early" not in problem.message
    assert problem.place is not None
    assert sql[problem.place.column - 1 :].startswith("INTERVAL")


def test_events_without_payload_have_nothing_to_select() -> None:
    (problem,) = compile_script("CREATE STREAM r (a TIMESTAMP) EVENT SHAPE POINT (a); SELECT STREAM * FROM r").problems
    assert (problem.code, "besides the lifetime" in problem.message) == ("R103", True)


def test_bounds_of_another_stream_are_among_the_rows() -> None:
    declared = f"{DECLARE}CREATE STREAM r (a TIMESTAMP, n INT) EVENT SHAPE POINT (a) BOUND FROM s; "
    script = declared + "SELECT STREAM * FROM r"
    made = compile_script(script)
    assert made.problems == ()
    kinds = [node.kind for node in made.operators]
    assert kinds[:6] == [
        "stream", "event stream", "imported bounds", "union all", "merge", "events under imported bounds",
    ]  # fmt: skip


def test_changes_of_derived_events_belong_to_numbered_items() -> None:
    made = compile_script(DECLARE + "SELECT STREAM COUNT(*) AS c FROM s GROUP BY SNAPSHOT() EMIT CHANGES")
    assert made.problems == ()
    kinds = [node.kind for node in made.operators]
    assert kinds[:-1] == ["event stream", "emit changes", "merge", "versions", "speculative groups", "emit changes"]


@pytest.mark.parametrize(
    ("call", "kind"), [("SUM(k)", "snapshot"), ("MAX(k)", "snapshot sets"), ("COUNT(DISTINCT k)", "snapshot sets")]
)
def test_snapshots_keep_sums_or_their_events(call: str, kind: str) -> None:
    made = program(f"SELECT STREAM {call} AS c FROM s GROUP BY SNAPSHOT()")
    assert made.problems == ()
    assert kind in {node.kind for node in made.operators}


TWO = "CREATE STREAM t (a TIMESTAMP, b TIMESTAMP, k INT) EVENT SHAPE INTERVAL (a, b); "


@pytest.mark.parametrize(
    ("written", "joined"),
    [
        (
            "SELECT STREAM s.k FROM s WHERE NOT EXISTS (SELECT STREAM * FROM t WHERE t.k = s.k AND t.k > 1)",
            "SELECT STREAM s.k FROM s LEFT ANTI JOIN t ON t.k = s.k AND t.k > 1",
        ),
        (
            (
                "SELECT STREAM s.k FROM s WHERE s.k > 0 "
                "AND NOT EXISTS (SELECT STREAM 1 FROM TO_POINT(t) AS u WHERE u.k = s.k)"
            ),
            "SELECT STREAM s.k FROM s LEFT ANTI JOIN TO_POINT(t) AS u ON u.k = s.k WHERE s.k > 0",
        ),
        (
            "SELECT STREAM COUNT(*) AS c FROM s WHERE NOT EXISTS (SELECT STREAM * FROM t) GROUP BY SNAPSHOT()",
            "SELECT STREAM COUNT(*) AS c FROM s LEFT ANTI JOIN t GROUP BY SNAPSHOT()",
        ),
        (
            "SELECT STREAM k FROM s WHERE EXISTS (SELECT STREAM * FROM t AS u WHERE u.k = s.k) AND k > 1",
            "SELECT STREAM s.k FROM s LEFT SEMI JOIN t AS u ON u.k = s.k WHERE s.k > 1",
        ),
    ],
)
def test_exists_is_a_semi_join_and_not_exists_an_anti_join(written: str, joined: str) -> None:
    found, expected = program(TWO + written), program(TWO + joined)
    assert (found.problems, expected.problems) == ((), ())
    assert found.described().operators == expected.described().operators


@pytest.mark.parametrize(
    ("sql", "code", "hint"),
    [
        ("SELECT STREAM k FROM s WHERE NOT EXISTS (SELECT STREAM k FROM t GROUP BY k)", "R190", "into a view"),
        (
            "SELECT STREAM k FROM s WHERE k > 1 OR EXISTS (SELECT STREAM * FROM t WHERE t.k = s.k)",
            "R190",
            "LEFT SEMI JOIN",
        ),
        ("SELECT STREAM k FROM p WHERE NOT EXISTS (SELECT STREAM * FROM t WHERE t.k = p.k)", "R197", "EVENT SHAPE"),
    ],
)
def test_other_sub_queries_of_streams_are_refused(sql: str, code: str, hint: str) -> None:
    problems = program(TWO + sql).problems
    assert any(problem.code == code and hint in problem.hint for problem in problems), problems


@pytest.mark.parametrize(
    ("written", "joined"),
    [
        ("k IN (SELECT STREAM u.k FROM t AS u WHERE u.k > 1)", "s LEFT SEMI JOIN t AS u ON s.k = u.k AND u.k > 1"),
        ("k NOT IN (SELECT STREAM k FROM t)", "s LEFT ANTI JOIN t ON (s.k = t.k OR (s.k = t.k) IS NULL)"),
        (
            "LIFETIME(s) CONTAINS DATE '2024-01-01' AND s.k IN (SELECT STREAM k FROM t)",
            "(SELECT STREAM k FROM s WHERE LIFETIME(s) CONTAINS DATE '2024-01-01') AS s LEFT SEMI JOIN t ON s.k = t.k",
        ),
    ],
)
def test_in_is_a_semi_join_and_not_in_an_anti_join(written: str, joined: str) -> None:
    found = program(f"{TWO}SELECT STREAM k FROM s WHERE {written}")
    expected = program(f"{TWO}SELECT STREAM s.k FROM {joined}")
    assert (found.problems, expected.problems) == ((), ())
    joins = [
        [one.fields for one in made.described().operators.values() if "join" in one.kind] for made in (found, expected)
    ]
    assert joins[0] == joins[1] != []


def test_collections_of_events_are_sorted() -> None:
    sql = "SELECT STREAM {} AS x FROM s GROUP BY TUMBLE(INTERVAL '1' HOUR)"
    made = compile_script(DECLARE + sql.format("SORT_ARRAY(COLLECT_LIST(k))"))
    assert made.problems == ()
    assert [p.code for p in compile_script(DECLARE + sql.format("COLLECT_LIST(k)")).problems] == ["R193"]


TIMES = "CREATE STREAM s (a TIMESTAMP, b TIMESTAMP, k INT, t TIMESTAMP) EVENT SHAPE INTERVAL (a, b); "
TIMES += TIMES.replace("STREAM s", "STREAM r") + "CREATE STREAM p (k INT, x TIMESTAMP, y TIMESTAMP); SELECT STREAM "


@pytest.mark.parametrize(
    ("sql", "waits"),
    [
        ("k FROM s WHERE LIFETIME(s) CONTAINS t", True),
        ("k FROM s WHERE k > 1 AND NOT (LIFETIME(s) PRECEDES PERIOD (t, t + INTERVAL '1' DAY) OR k = 3)", True),
        ("k FROM s WHERE LIFETIME(s) SUCCEEDS PERIOD (t - INTERVAL '1' DAY, t)", False),
        ("s.k FROM s JOIN r ON s.k = r.k AND LIFETIME(s) CONTAINS LIFETIME(r)", True),
        ("s.k FROM s JOIN r ON s.k = r.k WHERE LIFETIME(s) EQUALS LIFETIME(r) AND s.k > 1", True),
        ("s.k FROM s JOIN r ON s.k = r.k AND LIFETIME(s) OVERLAPS LIFETIME(r)", False),
        ("s.k FROM s LEFT JOIN r ON s.k = r.k AND LIFETIME(r) CONTAINS r.t", True),
        ("k FROM s WHERE LIFETIME(s) OVERLAPS PERIOD (t, t + INTERVAL '1' DAY) EMIT CHANGES", False),
        ("k FROM p WHERE PERIOD (x, y) CONTAINS ROWTIME", False),
    ],
)
def test_period_predicates_wait_if_they_use_ends(sql: str, waits: bool) -> None:
    made = compile_script(TIMES + sql)
    assert made.problems == ()
    assert ("period filter" in [node.kind for node in made.operators]) is waits


@pytest.mark.parametrize(
    ("sql", "code", "hint"),
    [
        ("s.k FROM s JOIN r ON LIFETIME(s) PRECEDES LIFETIME(r)", "R198", "POINT_AT_END(s), INTERVAL '1' HOUR) AS s"),
        ("s.k FROM s JOIN r ON LIFETIME(s) IMMEDIATELY SUCCEEDS LIFETIME(r)", "R198", "FROM POINT_AT_END(r) AS r JOIN"),
        ("s.k FROM s LEFT JOIN r ON LIFETIME(s) CONTAINS LIFETIME(r)", "R198", "Filter the events first"),
        ("s.k FROM s JOIN r ON LIFETIME(s) CONTAINS r.t", "R198", "LIFETIME of the other"),
        ("s.k FROM s JOIN r ON s.k = r.k JOIN r AS q ON LIFETIME(s) EQUALS LIFETIME(q)", "R198", "a view"),
        ("LIFETIME(s) CONTAINS t AS c FROM s", "R198", "PERIOD (a, b)"),
        ("k FROM s WHERE COALESCE(LIFETIME(s) CONTAINS t, TRUE)", "R198", "AND, OR and NOT"),
        ("k FROM p WHERE LIFETIME(p) CONTAINS x", "R198", "PERIOD (a, b)"),
        ("k FROM s WHERE LIFETIME(q) CONTAINS t", "R103", ""),
        ("k FROM s WHERE LIFETIME(s) OVERLAPS t", "R101", ""),
        ("k FROM s WHERE LIFETIME(s) = t", "R101", ""),
    ],
)
def test_invalid_period_predicates_are_refused_with_a_hint(sql: str, code: str, hint: str) -> None:
    (problem,) = compile_script(TIMES + sql).problems
    assert (problem.code, hint in problem.hint) == (code, True), problem
    assert problem.place is not None
