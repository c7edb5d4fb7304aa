"""The parsed form of statements."""

from __future__ import annotations

from typing import Any

import pytest

from rowtime.sql import statements as st
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.script import parse_column, parse_script


def only(text: str) -> Any:
    script = parse_script(text)
    assert not script.problems, str(script.problems[0])
    (statement,) = script.statements
    return statement


def test_a_stream_with_everything() -> None:
    stream = only("""
        CREATE OR REPLACE FOREIGN STREAM IF NOT EXISTS shop.orders (
          id BIGINT NOT NULL STRICTLY ASCENDING CHECK (id > 0) COMMENT 'number',
          "t s" TIMESTAMP ASCENDING WITHIN INTERVAL '5' SECONDS,
          q DECIMAL(10,2) DESCENDING WITHIN 100 ROWS
        ) SERVER files USING kafka OPTIONS (topic 'a', "x y" = 'b', kafka.bootstrap.servers 'c:9', n -3, f true)
        IDLE AFTER INTERVAL '10' SECOND EARLY BEYOND INTERVAL '1' HOUR COMMENT 'all'""")
    assert isinstance(stream, st.CreateStream)
    assert (str(stream.name), stream.using, stream.server, stream.comment) == ("shop.orders", "kafka", "files", "all")
    assert stream.replace
    assert stream.foreign
    assert stream.if_not_exists
    assert dict(stream.options) == {
        "topic": "a",
        "x y": "b",
        "kafka.bootstrap.servers": "c:9",
        "n": "-3",
        "f": "true",
    }
    assert stream.idle_after is not None
    assert span_of(stream.idle_after) == Duration(10_000_000)
    assert stream.early is not None
    assert span_of(stream.early) == Duration(3_600_000_000)
    number, time, quantity = stream.columns
    assert (number.name, number.type, number.nullable, number.comment) == ("id", "BIGINT", False, "number")
    assert number.order == st.DeclaredOrder(ascending=True, strict=True)
    assert [to_rowtime(check) for check in number.checks] == ["id > 0"]
    assert (time.name, time.type) == ("t s", "TIMESTAMP")
    assert time.order is not None
    assert time.order.within is not None
    assert quantity.type == "DECIMAL(10, 2)"
    assert quantity.order == st.DeclaredOrder(ascending=False, within_rows=100)
    assert (quantity.place.line, quantity.place.column) == (5, 11)


@pytest.mark.parametrize(
    ("text", "spark_type"),
    [
        ("a INTEGER", "INT"),
        ("a VARCHAR(20)", "VARCHAR(20)"),
        ("a STRUCT<x: INT, y: ARRAY<STRING>>", "STRUCT<x: INT, y: ARRAY<STRING>>"),
        ("a STRUCT<x: MAP<INT, ARRAY<STRING>>>", "STRUCT<x: MAP<INT, ARRAY<STRING>>>"),
        ("a ARRAY<ARRAY<ARRAY<ARRAY<INT>>>>", "ARRAY<ARRAY<ARRAY<ARRAY<INT>>>>"),
        ("a INT CHECK (a >>> 1 > 2)", "INT"),
        ("a MAP<STRING, DOUBLE>", "MAP<STRING, DOUBLE>"),
        ("a TIMESTAMP_NTZ", "TIMESTAMP_NTZ"),
        ("a BOOLEAN", "BOOLEAN"),
    ],
)
def test_a_column_has_a_type_of_spark(text: str, spark_type: str) -> None:
    assert parse_column(text).type == spark_type


def test_a_text_is_at_most_as_long_as_in_spark() -> None:
    assert parse_column("a VARCHAR(2147483647)").type == "VARCHAR(2147483647)"
    (problem,) = parse_script("CREATE STREAM s (a ARRAY<CHAR(2147483648)>)").problems
    assert str(problem).startswith("R101 This does not parse: the length of a text type is at most 2,147,483,647")


def test_the_sign_of_an_option_belongs_to_a_number() -> None:
    (problem,) = parse_script("CREATE STREAM s (v INT) USING kafka OPTIONS (key.column- 'page')").problems
    assert problem.code == "R101"
    assert "option key.column needs a value" in str(problem)


def test_a_table() -> None:
    table = only("CREATE TABLE items (item INT, label STRING) USING csv OPTIONS (path 'items.csv')")
    assert isinstance(table, st.CreateTable)
    assert (table.using, table.options) == ("csv", (("path", "items.csv"),))


def test_a_view() -> None:
    view = only("CREATE OR REPLACE VIEW v (a, b) AS SELECT STREAM x, y FROM s")
    assert isinstance(view, st.CreateView)
    assert (view.name.text, view.columns, view.replace) == ("v", ("a", "b"), True)
    assert to_rowtime(view.query) == "SELECT STREAM x, y FROM s"


@pytest.mark.parametrize(("word", "started"), [("", True), ("STARTED", True), ("STOPPED", False)])
def test_a_pump(word: str, started: bool) -> None:
    pump = only(f"CREATE PUMP p {word} AS INSERT INTO t (a, b) SELECT STREAM a, b FROM s")
    assert isinstance(pump, st.CreatePump)
    assert (str(pump.name), pump.target.text, pump.columns, pump.started) == ("p", "t", ("a", "b"), started)


@pytest.mark.parametrize(
    "query", ["SELECT STREAM * FROM s", "(SELECT STREAM * FROM s) UNION ALL SELECT STREAM * FROM r"]
)
def test_an_insert_of_a_query_is_a_pump_without_a_name(query: str) -> None:
    pump = only(f"INSERT INTO t {query}")
    assert isinstance(pump, st.CreatePump)
    assert pump.name is None
    assert to_rowtime(pump.query) == query


def test_an_insert_of_rows() -> None:
    insert = only("INSERT INTO s (ROWTIME, a) VALUES (TIMESTAMP '2020-01-01 00:00:00', 1), (NULL, 2 - 3)")
    assert isinstance(insert, st.InsertValues)
    assert (insert.stream.text, insert.columns) == ("s", ("ROWTIME", "a"))
    assert [[to_rowtime(value) for value in row] for row in insert.rows] == [
        ["CAST('2020-01-01 00:00:00' AS TIMESTAMP)", "1"],
        ["NULL", "2 - 3"],
    ]


def test_bounds() -> None:
    bound = only("ALTER STREAM s SET ROWTIME BOUND TIMESTAMP '2020-01-01 00:00:00'")
    assert isinstance(bound, st.SetBound)
    assert (bound.writer, bound.strict) == (None, False)
    column = only("ALTER STREAM s WRITER 'w' SET BOUND OF Id = -100 STRICT")
    assert (column.writer, column.column.text, to_rowtime(column.at), column.strict) == ("w", "Id", "-100", True)
    strict = only("ALTER STREAM s WRITER 'w' SET ROWTIME BOUND TIMESTAMP '2020-01-01 00:00:00' STRICT")
    assert (strict.writer, strict.strict) == ("w", True)


def test_the_other_alterations() -> None:
    idle = only("ALTER STREAM s SET (IDLE AFTER INTERVAL '10' SECOND)")
    assert isinstance(idle, st.SetIdle)
    assert span_of(idle.after) == Duration(10_000_000)
    assert isinstance(only("ALTER STREAM s END"), st.EndStream)
    assert only("ALTER STREAM s WRITER 'w' END").writer == "w"
    assert only("ALTER PUMP p START").start
    several = only('ALTER PUMP p, "app".q, app.* STOP')
    assert [str(name) for name in several.pumps] == ["p", "app.q", "app.*"]
    assert [str(name) for name in only("ALTER PUMP * START").pumps] == ["*"]
    assert not only("ALTER PUMP p STOP").start


@pytest.mark.parametrize("kind", ["STREAM", "VIEW", "PUMP", "TABLE", "FUNCTION"])
def test_drop(kind: str) -> None:
    drop = only(f"DROP {kind} IF EXISTS x CASCADE")
    assert isinstance(drop, st.Drop)
    assert (drop.kind, drop.name.text, drop.if_exists, drop.cascade) == (kind, "x", True, True)


@pytest.mark.parametrize(("word", "kind"), [("", "PLAN"), ("MONOTONICITY", "MONOTONICITY"), ("WAITING", "WAITING")])
def test_explain(word: str, kind: str) -> None:
    explain = only(f"EXPLAIN {word} SELECT STREAM a FROM s")
    assert isinstance(explain, st.Explain)
    assert explain.kind == kind


def test_a_function_keeps_its_definition_as_text() -> None:
    function = only("CREATE FUNCTION f AS 'module.name' LANGUAGE PYTHON")
    assert isinstance(function, st.CreateFunction)
    assert (function.name.text, function.definition) == ("f", "AS 'module.name' LANGUAGE PYTHON")


@pytest.mark.parametrize("word", ["COMMENT", "DESCRIPTION"])
def test_everything_can_be_described(word: str) -> None:
    query = "SELECT STREAM a FROM s"
    for text in (
        f"CREATE STREAM x (a INT) {word} 'what'",
        f"CREATE TABLE x (a INT) USING csv {word} 'what'",
        f"CREATE VIEW x {word} 'what' AS {query}",
        f"CREATE VIEW x (a) {word} 'what' AS {query}",
        f"CREATE PUMP x {word} 'what' STOPPED AS INSERT INTO t {query}",
        f"CREATE PUMP x STARTED {word} 'what' AS INSERT INTO t {query}",
        f"CREATE FUNCTION x AS 'a:B' {word} 'what'",
    ):
        assert only(text).comment == "what", text
    assert only(f"CREATE STREAM x (a INT {word} 'what')").columns[0].comment == "what"
    assert only(f"CREATE FUNCTION x AS 'a:B' {word} 'what'").definition == "AS 'a:B'"


def test_a_schema_is_the_first_part_of_names() -> None:
    for text in (
        "CREATE SCHEMA app",
        'CREATE OR REPLACE SCHEMA "app"',
        "CREATE SCHEMA IF NOT EXISTS app DESCRIPTION 'x'",
    ):
        assert str(only(text).name) == "app"
    assert only("CREATE SCHEMA app COMMENT 'x'").comment == "x"


def test_plans_are_explained_as_in_calcite() -> None:
    for text in ("EXPLAIN", "EXPLAIN FOR", "EXPLAIN PLAN", "EXPLAIN PLAN FOR"):
        assert only(f"{text} SELECT STREAM a FROM s") == only("EXPLAIN SELECT STREAM a FROM s")


def test_views_and_functions_are_of_their_script_and_so_temporary() -> None:
    for what in ("VIEW v AS SELECT STREAM a FROM s", "FUNCTION f AS 'a:B'"):
        for word in ("TEMPORARY", "TEMP"):
            assert only(f"CREATE OR REPLACE {word} {what}") == only(f"CREATE OR REPLACE {what}")
    assert only("DROP FOREIGN STREAM s") == only("DROP STREAM s")


@pytest.mark.parametrize("words", ["AFTER WATERMARK", "STREAM AFTER WATERMARK", "ON WINDOW CLOSE", "FINAL"])
def test_final_rows_may_be_asked_for(words: str) -> None:
    query = only(f"SELECT STREAM a FROM s EMIT {words}").query
    assert query.args["emit_final"]
    assert not query.args["from_"].this.alias
    assert only(f"SELECT STREAM a FROM s emit WHERE emit.{words[0]} > 1").query.args["from_"].this.alias == "emit"


def test_words_of_statements_are_names_elsewhere() -> None:
    script = parse_script(
        "CREATE STREAM pump (stream INT, bound INT, writer INT); SELECT STREAM stream, bound FROM pump"
    )
    assert not script.problems


def test_a_statement_knows_its_source_and_place() -> None:
    first, second = parse_script("-- one\nSELECT STREAM 1 FROM s -- tail\n;\n  DROP VIEW v;").statements
    assert first.text == "SELECT STREAM 1 FROM s"
    assert (second.text, second.place.line, second.place.column) == ("DROP VIEW v", 4, 3)


def test_place_and_text_do_not_count_for_equality() -> None:
    assert only("DROP VIEW v") == only("\n drop  view v ;")
