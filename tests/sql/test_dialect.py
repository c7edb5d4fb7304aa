"""The trees of queries and expressions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlglot import exp

from rowtime.sql import nodes
from rowtime.sql.generate import to_rowtime, to_spark, to_stored
from rowtime.sql.intervals import Duration, Months, span_of
from rowtime.sql.places import place_of, position
from rowtime.sql.script import parse_expression, parse_script
from rowtime.sql.statements import Query, Statement
from tests.sql.case_files import expressions, scripts, verdicts


def query(text: str) -> exp.Query:
    script = parse_script(text)
    assert not script.problems, str(script.problems[0])
    (statement,) = script.statements
    assert isinstance(statement, Query)
    return statement.query


@pytest.mark.parametrize("text", [*scripts().values(), *verdicts()])
def test_every_statement_of_the_case_files_parses(text: str) -> None:
    script = parse_script(text)
    assert [str(problem) for problem in script.problems] == []
    assert script.statements
    assert not any(node for s in script.statements for node in commands(s))


def commands(statement: Statement) -> list[exp.Expr]:
    tree = getattr(statement, "query", None)
    return list(tree.find_all(exp.Command)) if tree is not None else []


@pytest.mark.parametrize("text", [t for t in [*scripts().values(), *verdicts()] if "SELECT" in t])
def test_the_text_of_a_query_parses_to_the_same_query(text: str) -> None:
    for statement in parse_script(text).statements:
        tree = getattr(statement, "query", None)
        if tree is not None:
            assert query(to_rowtime(tree)) == tree


@pytest.mark.parametrize("text", expressions())
def test_the_text_of_an_expression_parses_to_the_same_expression(text: str) -> None:
    tree = parse_expression(text)
    assert parse_expression(to_rowtime(tree)) == tree


def test_stream_is_a_flag_of_each_select() -> None:
    union = query("SELECT STREAM a FROM p UNION ALL SELECT b FROM q")
    assert isinstance(union, exp.Union)
    assert [select.args.get("stream") for select in (union.left, union.right)] == [True, None]
    nested = query("SELECT STREAM DISTINCT a FROM (SELECT a FROM p) AS x")
    assert nested.args["stream"] is True
    assert nested.args["distinct"] is not None
    inner = nested.find(exp.Subquery)
    assert inner is not None
    assert inner.this.args.get("stream") is None


def test_a_quoted_stream_is_a_column() -> None:
    assert query('SELECT "stream" FROM s').args.get("stream") is None


def test_rowtime_beside_a_star() -> None:
    select = query("SELECT STREAM ROWTIME, s.ROWTIME AS t, * FROM s")
    assert [to_rowtime(item) for item in select.expressions] == ["ROWTIME", "s.ROWTIME AS t", "*"]


def test_within_belongs_to_the_sort_key() -> None:
    order = query("SELECT STREAM t AS ROWTIME FROM s ORDER BY t DESC WITHIN INTERVAL '1' MINUTE, k").args["order"]
    first, second = order.expressions
    assert span_of(first.args["within"]) == Duration(60_000_000)
    assert first.args["desc"] is True
    assert second.args.get("within") is None


def test_within_wraps_the_group_key() -> None:
    group = query("SELECT STREAM 1 FROM s GROUP BY FLOOR(t TO MINUTE) WITHIN INTERVAL '30' SECOND, k").args["group"]
    key, other = group.expressions
    assert isinstance(key, nodes.Within)
    assert isinstance(key.this, exp.Floor)
    assert key.this.args["to"].name == "MINUTE"
    assert isinstance(other, exp.Column)


def test_an_input_has_its_window_beside_its_alias() -> None:
    join = query(
        "SELECT STREAM 1 FROM a OVER (RANGE INTERVAL '1' HOUR PRECEDING) AS s "
        "JOIN (SELECT STREAM * FROM b) OVER (RANGE INTERVAL '2' HOUR PRECEDING) AS t ON s.x = t.x"
    )
    left, right = join.args["from_"].this, join.args["joins"][0].this
    assert (left.alias, right.alias) == ("s", "t")
    assert span_of(left.args["over"].args["spec"].args["start"]) == Duration(3_600_000_000)
    assert span_of(right.args["over"].args["spec"].args["start"]) == Duration(7_200_000_000)


def test_stagger_is_a_clause_of_its_query() -> None:
    select = query("SELECT STREAM k FROM q WINDOWED BY STAGGER (PARTITION BY k, j RANGE INTERVAL '1' MINUTE)")
    windowed = select.args["windowed"]
    assert isinstance(windowed, nodes.Stagger)
    assert len(windowed.expressions) == 2
    assert query("SELECT windowed FROM q windowed").find(exp.Table).alias == "windowed"  # type: ignore[union-attr]


def test_a_table_function_takes_a_table() -> None:
    call = query("SELECT STREAM * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR))")
    argument = call.find(nodes.TableArgument)
    assert argument is not None
    assert argument.this.name == "s"


def test_the_options_of_a_query_come_at_its_end() -> None:
    select = query("SELECT STREAM k FROM s KEYS EXPIRE AFTER INTERVAL '1' DAY EMIT CHANGES WITH UNBOUNDED STATE")
    assert select.args["emit_changes"] is True
    assert select.args["unbounded_state"] is True
    assert span_of(select.args["keys_expire"]) == Duration(86_400_000_000)
    assert query("SELECT STREAM k FROM s").args.get("emit_changes") is None


@pytest.mark.parametrize(
    "end", ["s AS x", "s WHERE a > 1", "s GROUP BY k", "s ORDER BY t", "(SELECT STREAM 1 FROM s) AS x"]
)
def test_options_follow_any_last_clause(end: str) -> None:
    assert query(f"SELECT STREAM k FROM {end} WITH UNBOUNDED STATE").args["unbounded_state"] is True
    assert (
        query(f"SELECT STREAM k FROM p UNION ALL SELECT STREAM k FROM {end} EMIT CHANGES").args["emit_changes"] is True
    )


def test_double_quotes_hold_a_name_and_single_quotes_a_text() -> None:
    assert isinstance(parse_expression('"a b"'), exp.Column)
    assert parse_expression("'it''s'").name == "it's"
    assert parse_expression("`a b`") == parse_expression('"a b"')


def test_a_timestamp_literal_is_an_instant() -> None:
    literal = parse_expression("TIMESTAMP '2020-01-01 00:00:00'")
    assert isinstance(literal, exp.Cast)
    assert literal.to.this == exp.DType.TIMESTAMPTZ


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("INTERVAL '5' MINUTES", Duration(300_000_000)),
        ("INTERVAL '4.999' SECOND", Duration(4_999_000)),
        ("INTERVAL '1:30' MINUTE TO SECOND", Duration(90_000_000)),
        ("INTERVAL '-1 02:00' DAY TO MINUTE", Duration(-93_600_000_000)),
        ("INTERVAL '1 hour 30 minutes'", Duration(5_400_000_000)),
        ("INTERVAL '1-6' YEAR TO MONTH", Months(18)),
        ("INTERVAL '2' WEEK", Duration(1_209_600_000_000)),
        ("INTERVAL 3 DAYS", Duration(259_200_000_000)),
        ("INTERVAL -1 SECOND", Duration(-1_000_000)),
        ("- INTERVAL '1' QUARTER", Months(-3)),
    ],
)
def test_an_interval_is_a_number(text: str, span: Duration | Months) -> None:
    assert span_of(parse_expression(text)) == span


TEXT = """SELECT STREAM page,
    COUNT(*) AS n
FROM clicks AS c
WHERE "page" <> 'x'
\tGROUP BY FLOOR(c.ROWTIME TO HOUR), page
ORDER BY ROWTIME"""


@pytest.mark.parametrize(
    ("kind", "line", "column", "source"),
    [
        (exp.Column, 1, 15, "page"),
        (exp.Count, 2, 5, "COUNT(*)"),
        (exp.Table, 3, 6, "clicks AS c"),
        (exp.NEQ, 4, 7, "\"page\" <> 'x'"),
        (exp.Group, 5, 2, "GROUP BY FLOOR(c.ROWTIME TO HOUR), page"),
        (exp.Floor, 5, 11, "FLOOR(c.ROWTIME TO HOUR)"),
        (exp.Order, 6, 1, "ORDER BY ROWTIME"),
    ],
)
def test_a_node_knows_its_place(kind: type[exp.Expr], line: int, column: int, source: str) -> None:
    node = query(TEXT).find(kind)
    assert node is not None
    assert position(node) == (line, column)
    place = place_of(TEXT, node)
    assert (place.line, place.column) == (line, column)
    assert place.text[column - 1 : column - 1 + place.length] == source


def test_a_node_without_a_token_has_the_place_of_its_parent() -> None:
    select = query(TEXT)
    made = exp.Null()
    select.args["group"].append("expressions", made)
    assert position(made) is None
    assert place_of(TEXT, made).line == 5
    assert place_of(TEXT, exp.Null()).line == 1


@pytest.mark.parametrize("write", [to_spark, to_stored])
@pytest.mark.parametrize("rounded", ["FLOOR", "CEIL"])
def test_the_text_of_nested_roundings_grows_with_their_number_alone(
    write: Callable[[exp.Expr], str], rounded: str
) -> None:
    depth = 20  # at twice the text for each level, this would be a million times as long
    text = write(parse_expression(f"{rounded}(" * depth + "x" + ")" * depth))
    assert len(text) < 400 * depth
