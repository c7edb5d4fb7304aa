"""SET SCHEMA, SET PATH and DROP SCHEMA: the objects that the names of a script mean."""

from __future__ import annotations

import pytest

from rowtime.plan.program import Program, compile_script
from rowtime.sql.script import parse_script

EVENTS = "(k INT, since TIMESTAMP) EVENT SHAPE POINT (since)"


def compiled(script: str) -> Program:
    program = compile_script(script)
    assert program.problems == ()
    return program


def reads(script: str) -> list[str]:
    """The streams that a script reads."""
    return sorted(stream.name for stream in compiled(script).streams)


@pytest.mark.parametrize(
    ("given", "schema"),
    [
        ("SET SCHEMA 'app'", "app"),
        ("SET SCHEMA '\"App\"'", "App"),
        ("SET SCHEMA app", "app"),
        ('SET SCHEMA \' "a"."b" \'', "a.b"),
        ("USE app", "app"),
        ("USE DATABASE app", "app"),
        ("USE SCHEMA 'app'", "app"),
    ],
)
def test_a_schema_is_set_in_each_spelling(given: str, schema: str) -> None:
    _, stream = parse_script(f"{given}; CREATE STREAM a (x INT)").statements
    assert stream.name.text == f"{schema}.a"  # type: ignore[attr-defined]


def test_a_schema_applies_to_the_names_after_it() -> None:
    script = "CREATE STREAM a (x INT); SET SCHEMA 'one'; CREATE STREAM a (x INT); CREATE STREAM two.a (x INT);"
    assert [stream.name for stream in compiled(script).defines] == ["a", "one.a", "two.a"]
    assert reads(script + "SELECT STREAM x FROM a") == ["one.a"]
    assert reads(script + "USE two; SELECT STREAM x FROM a") == ["two.a"]
    assert reads(script + "USE three; SELECT STREAM x FROM a") == ["a"]
    assert reads("SELECT STREAM x FROM a;" + script) == ["a"]
    assert reads(script + "SET SCHEMA ''; SELECT STREAM x FROM a") == ["a"]
    assert reads(script + "SELECT STREAM x FROM two.a") == ["two.a"]


def test_the_schema_comes_before_the_path_and_that_before_no_schema() -> None:
    made = "".join(f"CREATE STREAM {name} (x INT);" for name in ("a", "p.a", "p.b", "q.a", "q.b", "q.c", "s.b", "d"))
    script = made + "SET PATH 'p, q'; {} SELECT STREAM x FROM {}"
    assert [reads(script.format("", name)) for name in "abcd"] == [["p.a"], ["p.b"], ["q.c"], ["d"]]
    assert [reads(script.format("USE s;", name)) for name in "abcd"] == [["p.a"], ["s.b"], ["q.c"], ["d"]]
    assert reads(script.format("SET PATH 'q';", "a")) == ["q.a"]
    assert reads(script.format("SET PATH '';", "a")) == ["a"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT STREAM x FROM (SELECT STREAM x FROM a) AS b",
        "SELECT STREAM a.x FROM a",
        "SELECT STREAM reason FROM a.rejected",
        "WITH a AS (SELECT STREAM x FROM a) SELECT STREAM x FROM a",
        "WITH b AS (SELECT STREAM x FROM a), a AS (SELECT STREAM x FROM b) SELECT STREAM x FROM a",
        "SELECT STREAM x FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ROWTIME), INTERVAL '1' HOUR))",
        "SELECT STREAM x FROM STREAM(SAMPLE(TABLE a PARTITION BY x, 10)) AS b",
        "SELECT STREAM c.x FROM a AS c JOIN a AS d ON c.x = d.x AND c.ROWTIME = d.ROWTIME",
        "CREATE VIEW v AS SELECT STREAM x FROM a; SELECT STREAM x FROM v",
        "CREATE STREAM o (x INT); CREATE PUMP p AS INSERT INTO o SELECT STREAM x FROM a",
        "CREATE STREAM o (x INT); INSERT INTO o SELECT STREAM x FROM a",
    ],
)
def test_names_are_found_wherever_a_query_has_them(query: str) -> None:
    checked = "CREATE STREAM a (x INT CHECK (x > 0)); CREATE STREAM s.a (x INT CHECK (x > 0)); USE s;"
    assert reads(checked + query) == ["s.a"]


@pytest.mark.parametrize(
    "events",
    ["EXTEND(a, INTERVAL '1' HOUR)", "CLIP(TO_POINT(a), a, k)", "CLIP(s.a, TABLE a)", "SHIFT(s.a, INTERVAL '1' HOUR)"],
)
def test_functions_on_lifetimes_find_their_events(events: str) -> None:
    script = f"CREATE STREAM a {EVENTS}; CREATE STREAM s.a {EVENTS}; CREATE STREAM s.k {EVENTS}; USE s;"
    assert reads(f"{script} SELECT STREAM k FROM {events} EMIT INTERVALS") == ["s.a"]


def test_the_bounds_of_another_stream_are_found() -> None:
    lender = f"USE s; CREATE STREAM b {EVENTS}; CREATE STREAM a {EVENTS} BOUND FROM b;"
    assert reads(f"{lender} SELECT STREAM k FROM a EMIT POINTS") == ["s.a", "s.b"]


def test_statements_change_what_is_in_the_schema() -> None:
    program = compiled(
        "CREATE STREAM a (x INT); USE s; CREATE STREAM a (x INT); ALTER STREAM a SET (IDLE AFTER INTERVAL '1' MINUTE);"
        "INSERT INTO a VALUES (1); ALTER STREAM a SET ROWTIME BOUND TIMESTAMP '2024-01-01 00:00:00'; ALTER STREAM a END"
    )
    assert [stream.idle_after for stream in program.defines if stream.name == "s.a"] == [None, 60_000_000]
    assert [action.stream.text for action in program.actions] == ["s.a"] * 3  # type: ignore[attr-defined]
    assert compiled("CREATE STREAM s.a (x INT); USE s; DROP STREAM a").drops == ("s.a",)
    assert compiled("USE s; CREATE VIEW a AS SELECT STREAM x FROM b; DROP VIEW a").problems == ()


def test_pumps_are_started_by_the_schema() -> None:
    made = "CREATE STREAM i (x INT); CREATE STREAM o (x INT); CREATE STREAM t (x INT);"
    pump = "CREATE PUMP {} STOPPED AS INSERT INTO o SELECT STREAM x FROM i;"
    script = made + pump.format("p") + "USE s;" + pump.format("p") + pump.format("q")
    pumps = {"p.sink", "s.p.sink", "s.q.sink"}
    started = {"*": {"s.p.sink", "s.q.sink"}, "p": {"s.p.sink"}, "s.*": {"s.p.sink", "s.q.sink"}, "*.*": pumps}
    for name, names in started.items():
        assert {sink.name for sink in compiled(f"{script} ALTER PUMP {name} START").sinks} == names
    assert compiled(f"{script} ALTER PUMP p TAKE OVER").take_over == {"s.p"}


def test_a_schema_is_dropped_with_what_it_has() -> None:
    made = "CREATE STREAM s.a (x INT); CREATE VIEW s.v AS SELECT STREAM x FROM s.a; CREATE STREAM sa (x INT);"
    program = compiled(f"{made} DROP SCHEMA s CASCADE; CREATE VIEW s.v AS SELECT STREAM x FROM sa")
    assert (program.drops, program.dropped_schemas) == (("s.a",), ("s",))
    assert set(program.catalog.views) == {"s.v"}
    assert [stream.name for stream in program.defines] == ["sa"]
    (problem,) = compile_script(f"{made} DROP SCHEMA s").problems
    assert (problem.code, "it has s.a, s.v" in problem.message) == ("R147", True)
    assert compiled("CREATE SCHEMA s; DROP SCHEMA s").drops == ()
    assert compiled("DROP SCHEMA IF EXISTS s").drops == ()
    assert [problem.code for problem in compile_script("CREATE SCHEMA s; DROP SCHEMA s; DROP SCHEMA s").problems] == [
        "R103"
    ]
