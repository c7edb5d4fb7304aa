"""Binding of windows: frames, names, state, and refusals with a hint."""

from __future__ import annotations

import pytest

from rowtime.operators.over.over import Over
from rowtime.plan.program import Program, compile_script

A = "CREATE STREAM a (v INT, t TIMESTAMP, w STRING, n BIGINT ASCENDING);\n"

REFUSED = [
    ("SUM(v) OVER (ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)", "R162", "CURRENT ROW or PRECEDING"),
    ("SUM(v) OVER (ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)", "R162", "LAG"),
    ("LEAD(v) OVER ()", "R162", "LAG"),
    ("SUM(v) OVER (ROWS BETWEEN 0 PRECEDING AND 4 PRECEDING)", "R161", "earlier end first"),
    ("SUM(v) OVER (ROWS BETWEEN -4 PRECEDING AND CURRENT ROW)", "R161", "ROWS 3 PRECEDING"),
    ("SUM(v) OVER (ROWS v PRECEDING)", "R161", "ROWS 3 PRECEDING"),
    ("SUM(v) OVER (ROWS 2)", "R161", "ROWS 3 PRECEDING"),
    ("SUM(v) OVER (RANGE BETWEEN AND CURRENT ROW)", "R161", "ROWS 3 PRECEDING"),
    ("SUM(v) OVER (RANGE INTERVAL '1' MONTH PRECEDING)", "R161", "days"),
    ("SUM(v) OVER (RANGE 3 PRECEDING)", "R161", "RANGE INTERVAL"),
    ("SUM(v) OVER (ORDER BY n RANGE INTERVAL '1' DAY PRECEDING)", "R164", "ROWTIME"),
    ("SUM(v) OVER (ORDER BY v)", "R164", "ORDER BY a.ROWTIME"),
    ("SUM(v) OVER (ORDER BY a.ROWTIME DESC)", "R164", "ORDER BY a.ROWTIME"),
    ("SUM(v) OVER (ORDER BY a.ROWTIME, v)", "R164", "ORDER BY a.ROWTIME"),
    ("ROW_NUMBER() OVER (PARTITION BY w ORDER BY v DESC)", "R164", "PARTITION BY window_start, window_end"),
    ("ROW_NUMBER() OVER (PARTITION BY w ORDER BY a.ROWTIME DESC)", "R164", "LAST(v)"),
    ("RANK() OVER (PARTITION BY w ORDER BY v)", "R164", "Number the rows"),
    ("COUNT(DISTINCT v) OVER ()", "R163", "RANGE INTERVAL '1' HOUR PRECEDING"),
    ("SUM(DISTINCT v) OVER (ROWS 3 PRECEDING)", "R163", "COUNT(DISTINCT value)"),
    ("COUNT(DISTINCT v, v) OVER (ROWS 3 PRECEDING)", "R163", "CONCAT_WS"),
    ("DENSE_RANK() OVER ()", "R163", "DENSE_RANK() OVER (ORDER BY"),
    ("COLLECT_LIST(v) OVER ()", "R163", "GROUP BY"),
    ("NTILE(4) OVER ()", "R163", "ROW_NUMBER"),
    ("LAG(v, 2) IGNORE NULLS OVER ()", "R163", "ROWS 100 PRECEDING"),
    ("LAG(v, -1) OVER ()", "R163", "LEAD"),
    ("RANK() OVER ()", "R163", "ORDER BY"),
    ("EXP_AVG(v, 3) OVER ()", "R163", "INTERVAL"),
    ("LAG(v) FILTER (WHERE v > 0) OVER ()", "R163", "WHERE"),
    ("SUM(v) OVER x", "R165", "WINDOW w"),
    ("SUM(v) OVER (ROWS 3 PRECEDING EXCLUDE TIES)", "R190", "ROWS"),
]


@pytest.mark.parametrize(("call", "code", "hint"), REFUSED, ids=[call for call, _, _ in REFUSED])
def test_a_window_is_refused_with_a_hint_that_teaches(call: str, code: str, hint: str) -> None:
    [problem] = compile_script(f"{A}SELECT STREAM {call} AS x FROM a").problems
    assert problem.code == code
    assert hint in problem.hint
    assert problem.place is not None
    assert problem.place.line == 2


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT STREAM v FROM a WHERE MAX(v) OVER () > 3", "R160"),
        ("SELECT STREAM COUNT(*) OVER () AS c FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)", "R160"),
        ("SELECT STREAM v FROM a WINDOW w AS (ROWS 3 FOLLOWING)", "R162"),
        ("SELECT STREAM v FROM a WINDOW w AS (x), x AS (w)", "R165"),
        ("SELECT STREAM SUM(v) OVER (w PARTITION BY v) AS s FROM a WINDOW w AS (PARTITION BY t)", "R165"),
        ("SELECT STREAM SUM(v) OVER (PARTITION BY nobody) AS s FROM a", "R103"),
        ("SELECT STREAM SUM(v) OVER () AS s FROM a KEYS EXPIRE AFTER INTERVAL '1' DAY", "R190"),
        ("SELECT STREAM SUM(v) OVER (PARTITION BY w) AS s FROM a KEYS EXPIRE AFTER INTERVAL '1' MONTH", "R122"),
    ],
)
def test_a_window_is_possible_where_it_can_be_computed(sql: str, code: str) -> None:
    assert code in {problem.code for problem in compile_script(A + sql).problems}


def overs(sql: str) -> list[Over]:
    program: Program = compile_script(A + sql)
    assert program.problems == ()
    return [node for node in program.operators if isinstance(node, Over)]


@pytest.mark.parametrize(
    ("window", "kept"),
    [
        ("PARTITION BY w RANGE INTERVAL '1' HOUR PRECEDING", ["rows, until the bound is 1:00:00 past them"]),
        ("PARTITION BY w ROWS 3 PRECEDING", ["3 rows per key, until the stream ends"]),
        ("ROWS 1 PRECEDING", ["1 row, until the stream ends"]),
        ("ROWS CURRENT ROW", []),
        ("PARTITION BY w", ["one accumulator per call and key, until the stream ends"]),
        (
            "PARTITION BY FLOOR(a.ROWTIME TO DAY)",
            ["one accumulator per call and key, until time leaves the period of the key"],
        ),
        (
            "ROWS BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING",
            ["2 rows, until the stream ends", "one accumulator per call, until the stream ends"],
        ),
    ],
)
def test_explain_says_what_bounds_the_state(window: str, kept: list[str]) -> None:
    [over] = overs(f"SELECT STREAM SUM(v) OVER ({window}) AS s FROM a")
    assert [f"{one.what}, until {one.until}" for one in over.keeps()] == kept


HOURS = "TABLE(TUMBLE(TABLE a, DESCRIPTOR(ROWTIME), INTERVAL '1' HOUR))"
COUNTED = f"SELECT STREAM window_start, window_end, w, COUNT(*) AS c FROM {HOURS} AS h GROUP BY 1, 2, 3"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT STREAM v, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC) AS i FROM {HOURS}",
        f"SELECT STREAM *, ROW_NUMBER() OVER (PARTITION BY w, window_end ORDER BY c DESC) AS i FROM ({COUNTED}) AS x",
        "SELECT STREAM ROW_NUMBER() OVER x AS i FROM a WINDOW x AS (PARTITION BY FLOOR(a.ROWTIME TO DAY) ORDER BY v)",
    ],
)
def test_rows_of_windows_that_end_are_numbered_in_any_order(sql: str) -> None:
    [over] = overs(f"SELECT STREAM * FROM ({sql}) AS numbered WHERE i <= 3")
    assert [kept.until for kept in over.keeps()] == ["time leaves the period of the key"]


def test_generators_are_above_groups_and_counted_by_their_rows() -> None:
    made = "SELECT STREAM EXPLODE(l) AS x FROM (SELECT STREAM {} AS l FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)) AS g"
    assert compile_script(A + made.format("COLLECT_LIST(v)")).problems == ()
    [problem] = compile_script(A + made.format("EXPLODE(COLLECT_LIST(v))")).problems
    assert (problem.code, problem.hint) == (
        "R102",
        "Put the groups into a sub-query, and make the rows in the query around it.",
    )


@pytest.mark.parametrize(
    ("condition", "code", "hint"),
    [
        ("v IN (SELECT v FROM a)", "R105", "SELECT STREAM"),
        ("v > ALL (SELECT v FROM a)", "R190", "x > (SELECT MAX(y) FROM t)"),
        ("EXISTS (SELECT 1)", "R190", "one table or stream"),
    ],
)
def test_a_sub_query_in_an_expression_is_refused_with_what_to_write(condition: str, code: str, hint: str) -> None:
    [problem] = compile_script(f"{A}SELECT STREAM v FROM a WHERE {condition}").problems
    assert (problem.code, hint in problem.hint) == (code, True)


def test_keys_may_expire() -> None:
    [over] = overs("SELECT STREAM LAG(v) OVER (PARTITION BY w) AS s FROM a KEYS EXPIRE AFTER INTERVAL '1' DAY")
    assert [one.until for one in over.keeps()] == ["the key has had no row for 1 day, 0:00:00"]


def test_calls_over_the_same_keys_are_computed_together_and_the_same_call_once() -> None:
    sql = """SELECT STREAM SUM(v) OVER w AS s, 1 + SUM(v) OVER w AS t, COUNT(*) OVER (w ROWS 3 PRECEDING) AS c,
      MAX(v) OVER (w RANGE INTERVAL '1' DAY PRECEDING) AS m, MIN(v) OVER () AS lo FROM a WINDOW w AS (PARTITION BY w)"""
    found = overs(sql)
    assert [len(over.calls) for over in found] == [2, 1, 1]


def test_only_used_columns_are_passed_through() -> None:
    [over] = overs("SELECT STREAM w, SUM(v) OVER (PARTITION BY t) AS s FROM a")
    assert over.emits().names == ("w", "__v0")


def test_a_running_maximum_ascends_and_a_partition_has_no_order() -> None:
    sql = """SELECT STREAM MAX(n) OVER () AS m, MIN(n) OVER () AS lo, ROW_NUMBER() OVER () AS i,
      MAX(n) OVER (PARTITION BY w) AS p FROM a"""
    program = compile_script(A + sql)
    orders = [column.order.value for column in program.sinks[0].input.emits().columns]
    assert orders == ["ascending", "descending", "strictly ascending", "none"]


V = "CREATE VIEW b AS SELECT STREAM v, {} AS x FROM a;\n"


@pytest.mark.parametrize(
    ("call", "condition", "lost"),
    [
        ("MAX(v) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)", "NOT (v < x)", True),
        ("v < MAX(v) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)", "NOT x", True),
        ("v < COALESCE(MAX(v) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), v)", "NOT x", False),
        ("LAG(v) OVER ()", "v > x", True),
        ("LAG(v, 1, 0) OVER ()", "v > x", False),
        ("LAG(v) OVER ()", "x IS NULL OR v > x", False),
        ("MAX(v) OVER ()", "v < x", False),
        ("COUNT(v) OVER (ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)", "x > 1", False),
    ],
)
def test_there_is_a_warning_for_a_condition_that_loses_the_first_row(call: str, condition: str, lost: bool) -> None:
    program = compile_script(f"{A}{V.format(call)}SELECT STREAM v FROM b WHERE {condition}")
    assert program.problems == ()
    assert [(w.code, w.warns) for w in program.warnings] == ([("R166", True)] if lost else [])
