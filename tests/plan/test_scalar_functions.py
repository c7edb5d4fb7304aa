"""Scalar functions of a script: a call of an SQL function is replaced by its body, in the plan and in proofs."""

from __future__ import annotations

import pytest

import rowtime as rt
from rowtime.plan.program import compile_script

STREAM = "CREATE STREAM s (a INT, b STRING, t TIMESTAMP, l ARRAY<INT>);\n"


def planned(sql: str) -> dict[str, object]:
    program = compile_script(STREAM + sql)
    assert program.problems == ()
    return dict(program.described().operators)


@pytest.mark.parametrize(
    ("functions", "query", "written"),
    [
        (
            "CREATE FUNCTION f(x INT, y INT) RETURNS BIGINT RETURN x + y * F.x;",
            "SELECT STREAM f(a, 2) AS q FROM s WHERE F(a, a) > 3",
            (
                "SELECT STREAM CAST(CAST(a AS INT) + CAST(2 AS INT) * CAST(a AS INT) AS BIGINT) AS q FROM s"
                " WHERE CAST(CAST(a AS INT) + CAST(a AS INT) * CAST(a AS INT) AS BIGINT) > 3"
            ),
        ),
        (  # in any order, and functions may call each other
            (
                "CREATE FUNCTION g(x INT) RETURNS INT RETURN f(x) + f(1);"
                "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN -x;"
            ),
            "SELECT STREAM g(f(a)) AS q FROM s",
            (
                "SELECT STREAM CAST(CAST(-CAST(CAST(CAST(-CAST(a AS INT) AS INT) AS INT) AS INT) AS INT)"
                " + CAST(-CAST(1 AS INT) AS INT) AS INT) AS q FROM s"
            ),
        ),
        (
            "CREATE FUNCTION h(t TIMESTAMP) RETURNS TIMESTAMP RETURN FLOOR(t TO HOUR);",
            "SELECT STREAM h(s.ROWTIME) AS h, COUNT(*) AS n FROM s GROUP BY h(s.ROWTIME)",
            (
                "SELECT STREAM CAST(FLOOR(CAST(s.ROWTIME AS TIMESTAMP) TO HOUR) AS TIMESTAMP) AS h, COUNT(*) AS n"
                " FROM s GROUP BY CAST(FLOOR(CAST(s.ROWTIME AS TIMESTAMP) TO HOUR) AS TIMESTAMP)"
            ),
        ),
        (  # a user-defined aggregate, whose state is its parts
            "CREATE FUNCTION spread(x INT) RETURNS INT RETURN MAX(x) - MIN(x);",
            "SELECT STREAM spread(a) AS h FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR) HAVING spread(a) > 1",
            (
                "SELECT STREAM CAST(MAX(CAST(a AS INT)) - MIN(CAST(a AS INT)) AS INT) AS h FROM s"
                " GROUP BY FLOOR(s.ROWTIME TO HOUR) HAVING CAST(MAX(CAST(a AS INT)) - MIN(CAST(a AS INT)) AS INT) > 1"
            ),
        ),
        (
            "CREATE FUNCTION more(x ARRAY<INT>) RETURNS ARRAY<INT> RETURN transform(x, y -> y + 1) COMMENT 'each';",
            "SELECT STREAM more(l) AS h FROM s",
            "SELECT STREAM CAST(transform(CAST(l AS ARRAY<INT>), y -> y + 1) AS ARRAY<INT>) AS h FROM s",
        ),
        (
            "CREATE FUNCTION four() RETURNS INT RETURN 4; CREATE VIEW v AS SELECT STREAM four() AS x FROM s;",
            "SELECT STREAM x FROM v",
            "SELECT STREAM x FROM (SELECT STREAM CAST(4 AS INT) AS x FROM s) AS v",
        ),
        (  # a Python function: its arguments get their types
            "CREATE FUNCTION neg(x BIGINT) RETURNS BIGINT AS 'operator:neg';",
            "SELECT STREAM neg(a) AS h FROM s",
            "SELECT STREAM neg(CAST(a AS BIGINT)) AS h FROM s",
        ),
    ],
)
def test_a_call_is_the_body_with_its_arguments(functions: str, query: str, written: str) -> None:
    made, other = (
        [str(one).partition(";")[2] for one in planned(sql).values()] for sql in (functions + query, written)
    )
    assert made == other


def test_pumps_and_explain_have_them_too() -> None:
    program = compile_script(
        STREAM + "CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1; CREATE STREAM o (a INT);"
        "INSERT INTO o SELECT STREAM f(a) AS a FROM s; EXPLAIN MONOTONICITY SELECT STREAM f(a) AS a FROM s"
    )
    assert program.problems == ()
    assert all("f(" not in str(one) for one in program.described().operators.values())
    assert [node.emits().columns[0].type for _, node in program.explains] == ["INT"]


@pytest.mark.parametrize(
    ("sql", "code", "at"),
    [
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN f(x); SELECT STREAM f(a) AS q FROM s", "R123", "f(x)"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN z + x; SELECT STREAM f(a) AS q FROM s", "R103", "z + x"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN x; SELECT STREAM f(a, 1) AS q FROM s", "R141", "f(a, 1)"),
        ("CREATE FUNCTION f(x INT, X INT) RETURNS INT RETURN x; SELECT STREAM a FROM s", "R141", "x INT, X"),
        ("CREATE FUNCTION f(x INT ASCENDING) RETURNS INT RETURN x; SELECT STREAM a FROM s", "R141", "x INT ASC"),
        ("CREATE FUNCTION f(x INT) RETURN x; SELECT STREAM a FROM s", "R101", "RETURN x"),
        ("CREATE FUNCTION f(x INT) RETURNS INT; SELECT STREAM a FROM s", "R101", "INT; SELECT"),
        ("CREATE FUNCTION f(x INT) RETURNS TABLE (a INT) RETURN SELECT 1; SELECT STREAM a FROM s", "R101", "TABLE"),
        ("CREATE FUNCTION f(x INT) RETURNS INT AS 'sys:path'; SELECT STREAM a FROM s", "R141", "CREATE"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN x; CREATE FUNCTION F AS 'a:b'", "R203", "F"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN rand() + x; SELECT STREAM f(a) AS q FROM s", "R111", "rand()"),
    ],
)
def test_problems_with_a_function_are_reported_with_their_place(sql: str, code: str, at: str) -> None:
    (problem,) = rt.check(STREAM + sql)
    assert problem.code == code
    assert problem.place is not None
    assert problem.place.text[problem.place.column - 1 :].startswith(at)


def test_a_dropped_function_is_unknown() -> None:
    defined = "CREATE FUNCTION f(x INT) RETURNS INT RETURN x; DROP FUNCTION f;"
    assert rt.check(STREAM + defined + "SELECT STREAM a FROM s") == []
    assert [problem.code for problem in rt.check(STREAM + defined + "DROP FUNCTION f")] == ["R103"]
    again = "CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN x + 1;"
    assert any("+ 1" in str(one) for one in planned(again + "SELECT STREAM f(a) AS q FROM s").values())
