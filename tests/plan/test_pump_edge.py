"""The edge from a pump to its target, without Spark: plans and refusals."""

from __future__ import annotations

import pytest

import rowtime as rt
from rowtime.operators.gates.pump_gate import PumpGate
from rowtime.operators.gates.tsort import TSort
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.rows.select import Select
from rowtime.plan.program import Program, compile_script

A = "CREATE STREAM a (n BIGINT, k STRING, t TIMESTAMP);\n"


def compiled(columns: str, query: str, listed: str = "") -> Program:
    program = compile_script(f"{A}CREATE STREAM o ({columns});\nCREATE PUMP p AS INSERT INTO o {listed} {query};")
    assert not program.problems, program.problems
    return program


def kinds(program: Program) -> list[str]:
    """The operators between the query and the sink."""
    (edge,) = program.edges
    return [node.kind for node in edge.operators]


def test_no_operator_is_planned_if_the_types_agree() -> None:
    assert kinds(compiled("n BIGINT, k STRING", "SELECT STREAM n, k FROM a")) == []
    assert kinds(compiled("id BIGINT, name STRING", "SELECT STREAM n, k FROM a")) == ["select"], "names alone"
    assert kinds(compiled("id DECIMAL(20, 0)", "SELECT STREAM n FROM a")) == ["select"], "a cast that never fails"


def test_values_that_may_not_fit_have_a_gate() -> None:
    assert kinds(compiled("n INT", "SELECT STREAM n FROM a")) == ["pump gate", "select"]
    assert kinds(compiled("n BIGINT NOT NULL", "SELECT STREAM n FROM a")) == ["pump gate"]
    assert kinds(compiled("n BIGINT CHECK (n > 0)", "SELECT STREAM n FROM a")) == ["pump gate"]
    assert kinds(compiled("k CHAR(3)", "SELECT STREAM k FROM a")) == ["pump gate", "select"]


def test_a_declared_order_is_checked_over_the_rows_of_the_pump() -> None:
    program = compiled("n BIGINT ASCENDING", "SELECT STREAM n FROM a")
    assert kinds(program) == ["merge", "order check"]
    assert [node.name for node in program.operators if isinstance(node, Ordered)] == ["p.n"]


def test_a_list_of_columns_assigns_by_the_list() -> None:
    program = compiled("x BIGINT, y STRING, z INT", "SELECT STREAM k, n FROM a", "(y, x)")
    (arranged,) = (node for node in program.operators if isinstance(node, Select) and node.name == "p.arranged")
    assert [item.sql for item in arranged.items] == ["`n` AS `x`", "`k` AS `y`", "CAST(NULL AS INT) AS `z`"]


def test_a_gate_has_another_name_where_its_own_is_taken() -> None:
    query = "SELECT STREAM t AS ROWTIME, n FROM a ORDER BY t WITHIN INTERVAL '1' SECOND"
    gates = [node.name for node in compiled("n INT", query).operators if isinstance(node, PumpGate)]
    assert gates == ["p.gate"], "the T-sort is p"


@pytest.mark.parametrize(
    ("columns", "query", "given"),
    [
        ("x BIGINT, y BIGINT", "SELECT STREAM n, n FROM a", ["x", "y"]),
        ("x BIGINT, y STRING, z BIGINT", "SELECT STREAM n, k, N FROM a", ["x", "k", "z"]),
        ("k BIGINT, x BIGINT, y STRING", "SELECT STREAM n, n, k FROM a", ["k_2", "x", "k"]),
        ("x BIGINT, y BIGINT", "SELECT STREAM n AS m, n + 1 AS m FROM a", ["x", "y"]),
        ("x BIGINT, y BIGINT", "SELECT STREAM n, n FROM a UNION ALL SELECT STREAM n, n FROM a", ["x", "y"]),
        ("x TIMESTAMP, y TIMESTAMP", "SELECT STREAM ROWTIME, a.ROWTIME FROM a", ["x", "y"]),
        ("x TIMESTAMP, y BIGINT", "SELECT STREAM ROWTIME, n FROM a UNION ALL SELECT STREAM t, n FROM a", ["x", "n"]),
        ("x BIGINT, y BIGINT", "SELECT STREAM COUNT(*) AS m, SUM(n) AS m FROM a GROUP BY a.ROWTIME", ["x", "y"]),
    ],
)
def test_items_are_assigned_by_position_so_their_names_may_be_equal(columns: str, query: str, given: list[str]) -> None:
    (edge,) = compiled(columns, query).edges
    assert [column.source for column in edge.assigned] == given
    assert [column.name for column in edge.assigned] == [column.split()[0] for column in columns.split(", ")]


@pytest.mark.parametrize("query", ["SELECT STREAM t, n FROM a", "SELECT STREAM n, n FROM a", "SELECT STREAM k FROM b"])
def test_a_pump_that_does_not_run_is_checked_too(query: str) -> None:
    script = f"{A}CREATE STREAM o (x BIGINT);\nCREATE PUMP p{{}} AS INSERT INTO o {query};"
    running, stopped = (rt.check(script.format(how)) for how in ("", " STOPPED"))
    assert [p.code for p in stopped] == [p.code for p in running] != []


def test_a_union_promotes_in_each_of_its_queries() -> None:
    query = "SELECT STREAM t, n FROM a UNION ALL SELECT STREAM ROWTIME, n FROM a"
    sorts = [node for node in compiled("x BIGINT", query, "(ROWTIME, x)").operators if isinstance(node, TSort)]
    assert len(sorts) == 1, "the second has its own rowtime"


def test_the_caret_is_below_the_column_of_the_list() -> None:
    text = f"{A}CREATE STREAM o (x BIGINT, y BIGINT);\nINSERT INTO o (x, y, X) SELECT STREAM n, n, n FROM a;"
    (problem,) = rt.check(text)
    assert problem.place is not None
    assert (problem.code, problem.place.line, problem.place.column) == ("R119", 3, 22)


@pytest.mark.parametrize(
    ("columns", "query", "listed", "code", "where"),
    [
        ("x INT", "SELECT STREAM k FROM a", "", "R220", "k"),
        ("x BIGINT, y TIMESTAMP", "SELECT STREAM n, n AS seconds FROM a", "", "R220", "n AS seconds"),
        ("x INT", "SELECT STREAM CAST(n AS STRING) AS s FROM a", "", "R220", "CAST"),
        ("x BIGINT NOT NULL, y BIGINT", "SELECT STREAM n FROM a", "(y)", "R221", ""),
        ("x BIGINT ASCENDING, y BIGINT", "SELECT STREAM n FROM a", "(y)", "R221", ""),
        ("x BIGINT, y BIGINT", "SELECT STREAM n FROM a", "", "R132", ""),
        ("x BIGINT", "SELECT STREAM n, k FROM a", "(x)", "R132", ""),
        ("x BIGINT", "SELECT STREAM n, n FROM a", "(x, x)", "R119", ""),
        ("x BIGINT", "SELECT STREAM n FROM a", "(z)", "R103", ""),
        ("x BIGINT", "SELECT STREAM * FROM a", "(ROWTIME, x)", "R222", ""),
        ("x BIGINT", "SELECT STREAM t FROM a", "(ROWTIME, x)", "R132", ""),
    ],
)
def test_values_that_never_fit_are_refused(columns: str, query: str, listed: str, code: str, where: str) -> None:
    text = f"{A}CREATE STREAM o ({columns});\nCREATE PUMP p AS INSERT INTO o {listed} {query};"
    problem = next(p for p in rt.check(text) if p.code == code)
    assert problem.place is not None
    assert problem.place.line == 3
    assert problem.place.text[problem.place.column - 1 :].startswith(where)


def test_rowtime_in_the_list_promotes_the_value_at_its_position() -> None:
    program = compiled("x BIGINT", "SELECT STREAM n, t FROM a", "(x, ROWTIME)")
    assert [node.name for node in program.operators if isinstance(node, TSort)] == ["p"]
    again = compiled("x BIGINT", "SELECT STREAM t AS ROWTIME, n FROM a")
    assert program.described().operators == again.described().operators
    kept = compiled("x BIGINT", "SELECT STREAM ROWTIME, n FROM a", "(ROWTIME, x)")
    assert not [node for node in kept.operators if isinstance(node, TSort)], "ROWTIME itself goes along"


def test_rowtime_may_be_the_value_of_a_column_in_its_place() -> None:
    given = compiled("at TIMESTAMP, x BIGINT", "SELECT STREAM ROWTIME, n FROM a")
    named = compiled("at TIMESTAMP, x BIGINT", "SELECT STREAM a.ROWTIME AS at, n FROM a")
    assert given.described().operators == named.described().operators
    both = compiled("at TIMESTAMP, x BIGINT", "SELECT STREAM t AS ROWTIME, n FROM a")
    assert [node.name for node in both.operators if isinstance(node, TSort)] == ["p"], "promoted, and a column"
    alone = compiled("x BIGINT", "SELECT STREAM ROWTIME, n FROM a")
    assert alone.edges[0].node.emits().names == ("n",), "with one column for each it goes along"
    listed = compiled("at TIMESTAMP, x BIGINT", "SELECT STREAM t, ROWTIME, n FROM a", "(ROWTIME, at, x)")
    assert listed.edges[0].node.emits().names == ("at", "n")
    problems = rt.check(f"{A}CREATE STREAM o (at INT, x BIGINT); INSERT INTO o SELECT STREAM ROWTIME, n FROM a")
    assert [problem.code for problem in problems] == ["R220"], "a TIMESTAMP is no INT"
