# ruff: noqa: E501 - a query a line
"""The column of ``rowtime.column`` is the rowtime: always if it is NOT NULL, else where a condition needs it."""

from __future__ import annotations

import pytest

from rowtime.operators.groups.group_by import GroupBy
from rowtime.operators.joins.join import Join
from rowtime.plan.program import Program, compile_script

HOUR = 3_600_000_000
RANGE = "b.at BETWEEN a.at AND a.at + INTERVAL '1' HOUR"
KAFKA = "kafka.bootstrap.servers 'h:1', subscribe '{}'"
FORMATS = dict.fromkeys(("json", "csv", "parquet", "delta"), "path '{}'") | {"kafka": KAFKA}


def compiled(query: str, form: str = "json", null: str = "", column: str = "at") -> Program:
    streams = "".join(
        f"CREATE STREAM {name} (id INT, {column} TIMESTAMP{null}, n INT) USING {form} OPTIONS ({FORMATS[form].format(name)}, rowtime.column '{column}');\n"
        for name in "ab"
    )
    return compile_script(streams + query)


def range_of(program: Program) -> tuple[int, int]:
    assert program.problems == program.warnings == ()
    (found,) = (node for node in program.operators if isinstance(node, Join))
    return found.low, found.high


JOINS = {
    "JOIN": f"FROM a JOIN b ON a.id = b.id AND {RANGE}",
    "LEFT JOIN": f"FROM a LEFT JOIN b ON a.id = b.id AND {RANGE}",
    "FULL JOIN": f"FROM a FULL JOIN b ON a.id = b.id AND {RANGE}",
    "a comma": f"FROM a, b WHERE a.id = b.id AND {RANGE}",
    "views": f"FROM (SELECT STREAM id, at FROM a) AS a JOIN (SELECT STREAM id, at FROM b WHERE n > 0) AS b ON {RANGE}",
    "a union": f"FROM (SELECT STREAM id, at FROM a UNION ALL SELECT STREAM id, at FROM b) AS a JOIN b ON {RANGE}",
    "one ROWTIME": "FROM a JOIN b ON b.ROWTIME BETWEEN a.at AND a.at + INTERVAL '1' HOUR",
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("null", ["", " NOT NULL"])
@pytest.mark.parametrize("join", JOINS)
def test_a_range_over_the_column_is_one_of_rowtimes(form: str, null: str, join: str) -> None:
    assert range_of(compiled(f"SELECT STREAM a.id {JOINS[join]}", form, null)) == (0, HOUR)


@pytest.mark.parametrize("null", ["", " NOT NULL"])
@pytest.mark.parametrize("on", ["ON a.id = b.id AND a.at = b.at", "USING (id, at)"])
def test_equal_times_are_equal_rowtimes(on: str, null: str) -> None:
    assert range_of(compiled(f"SELECT STREAM a.id FROM a JOIN b {on}", null=null)) == (0, 0)


def test_a_range_of_an_earlier_input_counts_too() -> None:
    third = "JOIN b AS c ON c.at BETWEEN a.at AND a.at + INTERVAL '2' HOUR"
    program = compiled(f"SELECT STREAM a.id FROM a JOIN b ON {RANGE} {third}")
    assert program.problems == program.warnings == ()
    assert [(n.low, n.high) for n in program.operators if isinstance(n, Join)] == [(0, HOUR), (-HOUR, 2 * HOUR)]


@pytest.mark.parametrize(
    "on", [f"a.n > 0 OR {RANGE}", "COALESCE(b.at, TIMESTAMP '2026-01-01 00:00:00') = a.at", "b.at IS NULL"]
)
def test_what_may_be_true_for_a_row_without_the_column_says_nothing_about_rowtimes(on: str) -> None:
    (warning,) = compiled(f"SELECT STREAM a.id FROM a JOIN b ON {on}").warnings
    assert warning.code == "R158"


@pytest.mark.parametrize(
    ("column", "kind"), [("at", "BIGINT"), ("at", "STRING"), ("at", "DATE"), ("other", "TIMESTAMP")]
)
def test_another_column_or_type_is_not_the_rowtime(column: str, kind: str) -> None:
    program = compile_script(
        f"CREATE STREAM a (id INT, {column} {kind} NOT NULL) USING json OPTIONS (path 'a', rowtime.column 'at'); "
        f"SELECT STREAM COUNT(*) AS c FROM a GROUP BY {column}"
    )
    assert [problem.code for problem in program.problems] == ["R104"]


QUERIES = {
    "hours": "SELECT STREAM COUNT(*) AS c FROM a GROUP BY FLOOR(at TO HOUR)",
    "TUMBLE": "SELECT STREAM COUNT(*) AS c FROM a GROUP BY TUMBLE(at, INTERVAL '1' HOUR)",
    "HOP": "SELECT STREAM COUNT(*) AS c FROM a GROUP BY HOP(at, INTERVAL '1' HOUR, INTERVAL '2' HOUR)",
    "window": "SELECT STREAM window.start, COUNT(*) AS c FROM a GROUP BY window(at, '1 hour')",
    "SESSION": "SELECT STREAM COUNT(*) AS c FROM a GROUP BY SESSION(at, INTERVAL '1' HOUR)",
    "DISTINCT": "SELECT STREAM DISTINCT FLOOR(at TO HOUR) AS h, id FROM a",
    "ORDER BY": "SELECT STREAM * FROM a ORDER BY FLOOR(at TO HOUR), n",
    "RANGE": "SELECT STREAM SUM(n) OVER (ORDER BY at RANGE INTERVAL '1' HOUR PRECEDING) AS c FROM a",
    "LAG": "SELECT STREAM LAG(n) OVER (PARTITION BY id ORDER BY at) AS c FROM a",
    "union": "SELECT STREAM COUNT(*) AS c FROM (SELECT STREAM at FROM a UNION ALL SELECT STREAM at FROM b) AS u GROUP BY FLOOR(at TO HOUR)",
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_a_column_without_null_is_the_rowtime(name: str) -> None:
    program = compiled(QUERIES[name], null=" NOT NULL")
    assert program.problems == program.warnings == ()


@pytest.mark.parametrize("name", QUERIES)
def test_the_hint_declares_the_column_not_null_or_leaves_rows_out(name: str) -> None:
    (problem,) = compiled(QUERIES[name]).problems
    assert "Declare at NOT NULL" in problem.hint
    tested = problem.hint.split("leave these rows out: ")[1].rstrip(".")
    by = " GROUP" if " GROUP" in QUERIES[name] else " ORDER BY FLOOR" if name == "ORDER BY" else ""
    followed = QUERIES[name].replace(by, f" {tested}{by}") if by else f"{QUERIES[name]} {tested}"
    program = compiled(followed)
    assert program.problems == program.warnings == ()


@pytest.mark.parametrize("test", ["at IS NOT NULL AND n > 0", "at >= TIMESTAMP '2026-01-01 00:00:00'"])
def test_rows_with_the_column_may_be_chosen_below(test: str) -> None:
    program = compiled(f"SELECT STREAM COUNT(*) AS c FROM (SELECT STREAM at AS t FROM a WHERE {test}) AS v GROUP BY t")
    assert program.problems == ()
    assert any(isinstance(node, GroupBy) for node in program.operators)


def test_other_conditions_choose_no_rows_with_the_column() -> None:
    for test in ("at IS NOT NULL OR n > 0", "n > 0", "at IS NULL"):
        program = compiled(f"SELECT STREAM COUNT(*) AS c FROM a WHERE {test} GROUP BY FLOOR(at TO HOUR)")
        assert [problem.code for problem in program.problems] == ["R104"]


MEETS = {
    "AS OF": "SELECT STREAM b.n FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.at ON a.id = b.id",
    "ASOF": "SELECT STREAM b.n FROM a ASOF JOIN b MATCH_CONDITION (a.at >= b.at) ON a.id = b.id",
    "ASOF, other way": "SELECT STREAM b.n FROM a ASOF JOIN b MATCH_CONDITION (b.at <= a.at) ON a.id = b.id",
    "a pattern": "SELECT STREAM * FROM a MATCH_RECOGNIZE (ORDER BY at MEASURES x.n AS n PATTERN (x y) WITHIN INTERVAL '1' HOUR DEFINE y AS y.n > x.n)",
}  # fmt: skip


@pytest.mark.parametrize("name", MEETS)
def test_it_may_be_named_where_rowtime_is_wanted(name: str) -> None:
    program = compiled(MEETS[name], null=" NOT NULL")
    assert program.problems == program.warnings == ()
    assert {problem.code for problem in compiled(MEETS[name]).problems} <= {"R156", "R177"} != set()
