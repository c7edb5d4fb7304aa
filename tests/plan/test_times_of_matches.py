"""Which columns of MATCH_RECOGNIZE are functions of the rowtime, so that they close groups."""

from __future__ import annotations

import pytest

from rowtime.plan.program import compile_script

SQL = """CREATE STREAM s (v INT);
CREATE VIEW m AS SELECT STREAM t FROM s MATCH_RECOGNIZE (ORDER BY ROWTIME MEASURES {measure} AS t {rows}
  PATTERN ({pattern}) WITHIN INTERVAL '1' HOUR SUBSET bc = (b, c) DEFINE a AS a.v > 0) AS x;
SELECT STREAM FLOOR(t TO HOUR) AS h, COUNT(*) AS c FROM m GROUP BY FLOOR(t TO HOUR);"""
OF_THE_LAST_ROW = [
    ("c.ROWTIME", "a b c"), ("LAST(c.ROWTIME)", "a b c+"), ("bc.ROWTIME", "a (b | c)"), ("ROWTIME", "a b* c*"),
    ("FLOOR(c.ROWTIME TO MINUTE)", "a b* c"), ("FINAL LAST(ROWTIME)", "a b c?"),
]  # fmt: skip
OTHERS = [
    ("c.ROWTIME", "a b c*"), ("b.ROWTIME", "a b c"), ("FIRST(c.ROWTIME)", "a b c+"), ("LAST(c.ROWTIME, 1)", "a b c+"),
    ("PREV(c.ROWTIME)", "a b c"), ("ROWTIME", "a* b* c*"), ("bc.ROWTIME", "b c a"), ("LAST(ROWTIME)", "(a b c)?"),
]  # fmt: skip


def codes(measure: str, pattern: str, rows: str = "") -> list[str]:
    return [
        problem.code for problem in compile_script(SQL.format(measure=measure, pattern=pattern, rows=rows)).problems
    ]


@pytest.mark.parametrize(("measure", "pattern"), OF_THE_LAST_ROW)
def test_a_measure_of_the_last_row_of_every_match_closes_groups(measure: str, pattern: str) -> None:
    assert codes(measure, pattern) == []


@pytest.mark.parametrize(("measure", "pattern"), OTHERS)
def test_a_measure_that_may_be_of_another_row_does_not(measure: str, pattern: str) -> None:
    assert codes(measure, pattern) == ["R104"]


def test_a_measure_of_each_row_of_a_match_does_not_but_its_columns_do() -> None:
    assert codes("FINAL LAST(ROWTIME)", "a b c", "ALL ROWS PER MATCH") == ["R104"]
    minutes = "SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, COUNT(*) AS v FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE)"
    sql = SQL.format(measure="a.v", pattern="a b c", rows="ALL ROWS PER MATCH").replace("FROM s MATCH", "FROM g MATCH")
    sql = sql.replace("CREATE VIEW m", f"CREATE VIEW g AS {minutes};\nCREATE VIEW m").replace(
        "SELECT STREAM t FROM g", "SELECT STREAM m AS t FROM g"
    )
    assert compile_script(sql).problems == ()
