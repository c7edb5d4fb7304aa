"""Statements that once ended with a Python exception: each is explained or refused with a code."""

from __future__ import annotations

import time

import pytest

from rowtime.plan.check import check
from rowtime.plan.explain import as_text, explain
from rowtime.plan.program import compile_script

SALES = "CREATE STREAM sales (item INT, oid INT, qty INT);"
HOP_END = """SELECT STREAM HOP_END(s.ROWTIME, INTERVAL '1' HOUR, INTERVAL '3' HOUR) AS ROWTIME, COUNT(*) AS c
FROM sales AS s"""


def test_explain_shows_what_starts_anew_with_each_period() -> None:
    query = "SELECT STREAM oid, SUM(qty) OVER (PARTITION BY item, FLOOR(s.ROWTIME TO HOUR)) AS so_far FROM sales AS s;"
    program = compile_script(SALES + query)
    assert program.problems == ()
    groups = next(entry["groups"] for entry in explain(program) if entry["kind"] == "over")
    assert [group["closes"] for group in groups] == [False, True]
    assert "FLOOR" in as_text(explain(program))


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE STREAM l (at TIMESTAMP) EVENT TIME (at, LAG INTERVAL at MINUTE)", "R122"),
        ("CREATE STREAM l (at TIMESTAMP) EVENT TIME (at, MINIMUM GAP INTERVAL '1' MONTH)", "R122"),
        ("CREATE STREAM l (at TIMESTAMP) IDLE AFTER INTERVAL at MINUTE", "R208"),
        ("CREATE STREAM l (at TIMESTAMP) EARLY BEYOND INTERVAL at MINUTE", "R208"),
        ("CREATE STREAM l (at TIMESTAMP ASCENDING WITHIN INTERVAL at MINUTE)", "R140"),
        (f"{SALES} {HOP_END}", "R104"),
        (f"{SALES} SELECT STREAM * FROM DELAY(TABLE sales, INTERVAL item MINUTE)", "R141"),
    ],
)
def test_arguments_that_are_not_literals_are_refused_with_a_code(statement: str, code: str) -> None:
    assert code in [problem.code for problem in check(statement)]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT STREAM item LATERAL VIEW EXPLODE(SPLIT(item, ',')) i AS x", "R117"),
        ("SELECT STREAM item FROM sales AS s WHERE s.'home' IS NULL", "R103"),
        ("SELECT STREAM COUNT() OVER (ROWS 3 PRECEDING) AS n FROM sales", "R107"),
        ("SELECT STREAM MEAN() OVER (ROWS 3 PRECEDING) AS n FROM sales", "R163"),
        ("SELECT STREAM MEAN() FILTER (WHERE item > 1) OVER (ROWS 3 PRECEDING) AS n FROM sales", "R163"),
    ],
)
def test_incomplete_statements_are_refused_with_a_code(query: str, code: str) -> None:
    assert [problem.code for problem in check(SALES + query)] == [code]


LONG = {
    "conditions": "SELECT STREAM item FROM sales WHERE " + " AND ".join(f"item <> {n}" for n in range(70_000)),
    "alternatives": "SELECT STREAM item FROM sales WHERE "
    + " OR ".join(f"(oid = {n} AND qty = {n})" for n in range(5000)),
    "a list": f"SELECT STREAM item FROM sales WHERE item IN ({', '.join(map(str, range(150_000)))})",
    "a text": f"SELECT STREAM '{'x' * 1_000_000}' AS x FROM sales",
    "a comment": f"SELECT STREAM item /* {'x ' * 500_000} */ FROM sales",
    "statements": ";".join(f"CREATE VIEW v{n} AS SELECT STREAM item FROM sales WHERE oid = {n}" for n in range(2000)),
    "frames of columns": "SELECT STREAM " + ", ".join(f"SUM(qty + {n}) OVER w AS s{n}" for n in range(1000))
    + " FROM sales WINDOW w AS (ORDER BY ROWTIME RANGE INTERVAL '1' MINUTE PRECEDING)",
    "sums of columns": "SELECT STREAM FLOOR(sales.ROWTIME TO MINUTE) AS m, "
    + ", ".join(f"SUM(qty + {n}) AS s{n}" for n in range(1000)) + " FROM sales GROUP BY FLOOR(sales.ROWTIME TO MINUTE)",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("statement", LONG.values(), ids=LONG.keys())
def test_long_scripts_are_accepted(statement: str) -> None:
    assert [str(problem)[:500] for problem in check(SALES + statement)] == []


DEEP = {
    "a sum": f"SELECT STREAM qty{' + qty' * 3000} AS x FROM sales",
    "calls": f"SELECT STREAM {'ABS(' * 3000}qty{')' * 3000} AS x FROM sales",
    "brackets": "(" * 200_000,
    "queries": f"SELECT STREAM item FROM {'(SELECT STREAM item FROM ' * 500}sales{')' * 500}",
    "views": "CREATE VIEW v0 AS SELECT STREAM item FROM sales;"
    + "".join(f"CREATE VIEW v{n} AS SELECT STREAM item FROM v{n - 1};" for n in range(1, 200))
    + "SELECT STREAM item FROM v199",
}


@pytest.mark.slow
@pytest.mark.parametrize("statement", DEEP.values(), ids=DEEP.keys())
def test_too_deeply_nested_expressions_are_refused_with_a_short_place(statement: str) -> None:
    problems = check(SALES + statement)
    assert {problem.code for problem in problems} == {"R101"}
    assert all("nested too deeply" in str(problem) and len(str(problem)) < 1000 for problem in problems)


@pytest.mark.parametrize("word", ["STRUCT", "ARRAY", "MAP", "OBJECT", "UNION", "NAMED_STRUCT", "COALESCE"])
@pytest.mark.parametrize("closed", [True, False])
def test_calls_with_the_names_of_types_are_parsed_quickly(word: str, *, closed: bool) -> None:
    """Each level doubled the time: twenty levels took twenty seconds."""
    nested = f"{f'{word}(' * 60}qty{')' * 60 if closed else ''}"
    began = time.process_time()
    check(f"{SALES} SELECT STREAM {nested} AS x FROM sales")
    assert time.process_time() - began < 10


def test_a_long_line_is_shown_around_the_problem() -> None:
    listed = [f"qty + {n} AS c{n}" for n in range(500)]
    (problem,) = check(f"{SALES} SELECT STREAM {', '.join([*listed[:250], 'wrong', *listed[250:]])} FROM sales")
    line, caret = str(problem.place).splitlines()
    assert len(line) < 220
    assert line[caret.index("^") :].startswith("wrong, qty + 250")
