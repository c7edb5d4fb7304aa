"""Binding of JOIN: ranges, names, refusals."""

from __future__ import annotations

import pytest

from rowtime.operators.joins.join import EVER, Join
from rowtime.operators.joins.table_join import TableJoin
from rowtime.plan.explain import as_text, explain
from rowtime.plan.program import compile_script
from rowtime.sql.generate import to_rowtime

S = 1_000_000
TWO = "CREATE STREAM a (k INT, x INT); CREATE STREAM b (k INT, y INT); CREATE STREAM c (k INT, z INT); "
TWO += "CREATE TABLE t (k INT, w STRING) USING csv OPTIONS (path 'x.csv');\n"
SECOND = "OVER (RANGE INTERVAL '1' SECOND PRECEDING)"

RANGES = [
    (f"a {SECOND} JOIN b ON a.k = b.k", 0, S, (None, None)),
    (f"a JOIN b {SECOND} ON a.k = b.k", -S, 0, (None, None)),
    (f"a {SECOND} LEFT JOIN b {SECOND} ON a.k = b.k", -S, S, (S, None)),
    ("a JOIN b ON a.k = b.k", 0, 0, (None, None)),
    ("a FULL JOIN b USING (k)", 0, 0, (0, 0)),
    (f"a {SECOND} JOIN b ON a.ROWTIME > b.ROWTIME - INTERVAL '0.5' SECOND", 0, S // 2 - 1, (None, None)),
    ("a JOIN b ON a.k = b.k AND a.ROWTIME = b.ROWTIME - INTERVAL '1' SECOND", S, S, (None, None)),
    ("a LEFT JOIN b ON b.ROWTIME BETWEEN a.ROWTIME - INTERVAL '3' SECOND AND a.ROWTIME - INTERVAL '1' SECOND",
     -3 * S, -S, (0, None)),
    ("a RIGHT JOIN b ON b.ROWTIME BETWEEN a.ROWTIME - INTERVAL '3' SECOND AND a.ROWTIME + INTERVAL '1' SECOND",
     -3 * S, S, (None, 3 * S)),
    ("a JOIN b ON a.ROWTIME - b.ROWTIME < INTERVAL '1' SECOND AND b.ROWTIME <= INTERVAL '2' SECOND + a.ROWTIME",
     1 - S, 2 * S, (None, None)),
    ("a CROSS JOIN b WHERE a.k = b.k AND b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '1' MINUTE",
     0, 60 * S, (None, None)),
    ("a, b WHERE a.k = b.k AND b.ROWTIME >= a.ROWTIME AND b.ROWTIME <= a.ROWTIME", 0, 0, (None, None)),
]  # fmt: skip


def joins(sql: str) -> list[Join]:
    program = compile_script(TWO + sql)
    assert program.problems == ()
    return [node for node in program.operators if isinstance(node, Join)]


@pytest.mark.parametrize(("source", "low", "high", "stamps"), RANGES, ids=[source for source, *_ in RANGES])
def test_windows_and_conditions_give_the_range(
    source: str, low: int, high: int, stamps: tuple[int | None, int | None]
) -> None:
    [node] = joins(f"SELECT STREAM a.x, b.y FROM {source}")
    assert (node.low, node.high) == (low, high)
    assert tuple(side.stamp for side in node.sides) == stamps


def test_conditions_in_the_range_are_not_evaluated_again() -> None:
    [node] = joins("SELECT STREAM x, y FROM a JOIN b ON a.k = b.k AND a.ROWTIME = b.ROWTIME AND x < y")
    assert node.on is not None
    assert to_rowtime(node.on) == "`a_k` = `b_k` AND `a_x` < `b_y`"


def test_unused_columns_are_not_kept() -> None:
    [node] = joins(f"SELECT STREAM x FROM a {SECOND} JOIN b ON a.k = b.k")
    assert [name for side in node.sides for _, name in side.columns] == ["a_k", "a_x", "b_k"]


def test_a_third_input_is_inside_all_windows() -> None:
    first, second = joins(
        f"SELECT STREAM a.x FROM a {SECOND} JOIN b OVER (RANGE INTERVAL '2' SECOND PRECEDING) ON a.k = b.k JOIN c "
        f"OVER (RANGE INTERVAL '5' SECOND PRECEDING) ON c.k = a.k"
    )
    assert (first.low, first.high) == (-2 * S, S)
    assert (second.low, second.high) == (-5 * S, S)
    assert second.on is not None
    assert "`a_rowtime` + INTERVAL '1000000' MICROSECOND" in to_rowtime(second.on)


def test_a_later_interval_is_counted_from_the_input_that_it_names() -> None:
    _, second = joins(
        f"SELECT STREAM a.x FROM a {SECOND} JOIN b ON a.k = b.k "
        "JOIN c ON c.k = a.k AND c.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '3' SECOND"
    )
    assert (second.low, second.high) == (-S, 3 * S)  # a may lie a second behind the joined row
    assert second.on is not None
    assert "`a_rowtime` + INTERVAL '3' SECOND" in to_rowtime(second.on)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT STREAM * FROM a JOIN b USING (k)", ("k", "x", "y")),
        ("SELECT STREAM * FROM a NATURAL JOIN b", ("k", "x", "y")),
        ("SELECT STREAM b.*, x FROM a JOIN b ON a.k = b.k", ("k", "y", "x")),
        ("SELECT STREAM k, y FROM a FULL JOIN b USING (k)", ("k", "y")),
    ],
)
def test_names_are_those_of_the_inputs(sql: str, names: tuple[str, ...]) -> None:
    assert compile_script(TWO + sql).sinks[0].input.emits().names == names


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT STREAM COUNT(*) AS c FROM a {SECOND} JOIN b ON a.k = b.k GROUP BY FLOOR(ROWTIME TO HOUR)",
        f"SELECT STREAM COUNT(*) AS c FROM a {SECOND} JOIN b ON a.k = b.k GROUP BY FLOOR(b.ROWTIME TO HOUR)",
        "SELECT STREAM COUNT(*) AS c FROM a LEFT JOIN b ON a.k = b.k GROUP BY FLOOR(a.ROWTIME TO HOUR)",
    ],
)
def test_groups_close_by_the_rowtime_of_the_joined_row(sql: str) -> None:
    assert compile_script(TWO + sql).problems == ()


REFUSED = [
    ("SELECT STREAM k FROM a JOIN b ON a.k = b.k", "R150", "a.k or b.k"),
    ("SELECT STREAM x FROM a JOIN b ON a.k = b.k AND k > 1", "R150", "a.k or b.k"),
    ("SELECT STREAM x FROM a JOIN b ON a.k = b.k AND ROWTIME = b.ROWTIME", "R150", "a.ROWTIME or b.ROWTIME"),
    ("SELECT STREAM x FROM a JOIN a ON a.k = a.k", "R151", "AS"),
    ("SELECT STREAM x FROM a NATURAL JOIN (SELECT STREAM y FROM b) AS d", "R151", "ON"),
    ("SELECT STREAM x FROM a, b", "R152", "BETWEEN a.ROWTIME"),
    ("SELECT STREAM x FROM a JOIN b ON b.ROWTIME >= a.ROWTIME", "R152", "AND b.ROWTIME <= a.ROWTIME + INTERVAL"),
    ("SELECT STREAM x FROM a JOIN b ON b.ROWTIME <= a.ROWTIME + INTERVAL '1' MONTH", "R152", "BETWEEN"),
    ("SELECT STREAM x FROM a JOIN b ON b.ROWTIME > a.ROWTIME AND b.ROWTIME < a.ROWTIME", "R152", "BETWEEN"),
    ("SELECT STREAM x FROM a LEFT JOIN b ON a.k = b.k WHERE b.ROWTIME = a.ROWTIME", "R152", "WHERE sees"),
    ("SELECT STREAM x FROM a OVER (PARTITION BY k RANGE CURRENT ROW) JOIN b ON a.k = b.k", "R153", "Leave it out"),
    ("SELECT STREAM x FROM a OVER (ROWS 5 PRECEDING) JOIN b ON a.k = b.k", "R153", "RANGE INTERVAL"),
    ("SELECT STREAM x FROM a OVER (RANGE UNBOUNDED PRECEDING) JOIN b ON a.k = b.k", "R153", "RANGE INTERVAL"),
    ("SELECT STREAM x FROM a OVER (RANGE INTERVAL '1' MONTH PRECEDING) JOIN b ON a.k = b.k", "R122", "MINUTE"),
    (f"SELECT STREAM x FROM a {SECOND}", "R153", "aggregate"),
    ("SELECT STREAM x FROM a JOIN b ON SUM(y) > x", "R116", "sub-query"),
    ("SELECT STREAM x FROM a RIGHT JOIN t ON a.k = t.k", "R154", "LEFT JOIN"),
    ("SELECT STREAM x FROM t LEFT JOIN a ON a.k = t.k", "R154", "LEFT JOIN"),
    ("SELECT STREAM t.w FROM t JOIN t AS u ON t.k = u.k", "R155", "stream"),
    ("SELECT STREAM x FROM a JOIN t OVER (RANGE CURRENT ROW) ON a.k = t.k", "R153", "OVER"),
    ("SELECT STREAM t.ROWTIME AS r FROM a JOIN t ON a.k = t.k", "R103", ""),
    ("SELECT STREAM w FROM t", "R124", ""),
    ("SELECT STREAM t.k FROM t LEFT SEMI JOIN a ON a.k = t.k", "R154", "a LEFT SEMI JOIN t"),
    ("SELECT STREAM t.k FROM t LEFT ANTI JOIN a ON a.k = t.k", "R154", "a LEFT ANTI JOIN t"),
    ("SELECT STREAM x, w FROM a LEFT SEMI JOIN t ON a.k = t.k", "R103", ""),
    ("SELECT STREAM x FROM a RIGHT ANTI JOIN b ON a.k = b.k", "R190", "LEFT JOIN"),
    ("SELECT STREAM x, y FROM a LEFT SEMI JOIN b ON a.k = b.k", "R103", ""),
    ("SELECT STREAM x FROM a LEFT ANTI JOIN b ON a.k = b.k AND b.ROWTIME > a.ROWTIME", "R152", "b.ROWTIME <= "),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "code", "hint"), REFUSED, ids=[sql[16:80] for sql, *_ in REFUSED])
def test_a_join_is_refused_with_a_code_and_a_hint(sql: str, code: str, hint: str) -> None:
    [problem] = compile_script(TWO + sql).problems
    assert problem.code == code
    assert problem.place is not None
    assert hint in problem.hint


@pytest.mark.parametrize(
    "source", ["a JOIN t ON a.k = t.k", "t JOIN a USING (k)", "t RIGHT JOIN a ON a.k = t.k", "a, t"]
)
def test_a_table_may_be_on_either_side(source: str) -> None:
    query = f"SELECT STREAM FLOOR(a.ROWTIME TO HOUR) AS h, w, COUNT(*) AS c FROM {source} GROUP BY 1, 2"
    program = compile_script(TWO + query)
    assert program.problems == ()
    [node] = [node for node in program.operators if isinstance(node, TableJoin)]
    assert [child.kind for child in node.inputs] == ["stream", "table"]


def test_a_semi_join_with_a_table_is_a_filter() -> None:
    script = "CREATE STREAM up (x INT ASCENDING, k INT); CREATE TABLE t (k INT, w STRING);"
    grouped = "SELECT STREAM x, COUNT(*) AS c FROM v GROUP BY x; SELECT STREAM CURRENT_ROW_TIMESTAMP AS at FROM v"
    program = compile_script(
        f"{script} CREATE VIEW v AS SELECT STREAM up.* FROM up LEFT ANTI JOIN t USING (k); {grouped}"
    )
    assert program.problems == ()
    [node] = [node for node in program.operators if isinstance(node, TableJoin)]
    below = node.inputs[0].emits()
    kept = [(column.name.removeprefix("up_"), column.order) for column in node.emits().columns]
    assert kept == [(column.name, column.order) for column in below.columns]
    assert (node.emits().order, node.emits().placed, node.emits().extra) == (below.order, below.placed, below.extra)


def test_a_window_reaches_past_a_table() -> None:
    [node] = joins(f"SELECT STREAM x, y, w FROM a {SECOND} JOIN t ON a.k = t.k JOIN b ON a.k = b.k")
    assert (node.low, node.high) == (0, S)


def test_explain_says_what_bounds_the_state() -> None:
    text = as_text(explain(compile_script(TWO + f"SELECT STREAM x FROM a {SECOND} LEFT JOIN b ON a.k = b.k")))
    assert "rows of a, until the bound is 0:00:01 past their rowtime" in text
    assert "rows of b, until the bound is past their rowtime" in text
    assert "promises  the least bound of a, b" in text


def test_a_join_keeps_no_order_of_its_inputs() -> None:
    declared = "CREATE STREAM up (x INT ASCENDING, k INT); CREATE STREAM b (kk INT, y INT); "
    view = f"CREATE VIEW j AS SELECT STREAM * FROM up {SECOND} AS u JOIN b ON u.k = b.kk; "
    (problem,) = compile_script(declared + view + "SELECT STREAM x, COUNT(*) AS c FROM j GROUP BY x").problems
    assert (problem.code, "no known order" in problem.note) == ("R104", True)


@pytest.mark.parametrize(
    ("source", "low", "high", "kept"),
    [
        ("a JOIN b ON a.k = b.k AND b.ROWTIME >= a.ROWTIME", 0, EVER, "the rows of a"),
        ("a LEFT JOIN b ON a.k = b.k AND b.ROWTIME < a.ROWTIME", -EVER, -1, "the rows of b"),
        ("a OVER (RANGE UNBOUNDED PRECEDING) JOIN b USING (k)", 0, EVER, "the rows of a"),
        ("a, b WHERE a.k = b.k", -EVER, EVER, "the rows of a and the rows of b"),
    ],
)
def test_an_unbounded_join_says_what_it_keeps(source: str, low: int, high: int, kept: str) -> None:
    program = compile_script(f"{TWO}SELECT STREAM x FROM {source} WITH UNBOUNDED STATE")
    assert program.problems == ()
    [node] = [node for node in program.operators if isinstance(node, Join)]
    assert (node.low, node.high) == (low, high)
    [warning] = program.warnings
    assert warning.code == "R185"
    assert f"{kept} are kept until the stream ends" in warning.message
    assert "until the stream ends (bounded by nothing)" in as_text(explain(program))


def test_an_outer_row_that_could_match_any_later_row_is_refused() -> None:
    sql = "SELECT STREAM x FROM a LEFT JOIN b ON a.k = b.k AND b.ROWTIME > a.ROWTIME WITH UNBOUNDED STATE"
    [problem] = compile_script(TWO + sql).problems
    assert (problem.code, "only the end of the stream" in problem.message) == ("R152", True)
