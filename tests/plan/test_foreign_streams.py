"""Foreign streams of SQLstream: they work if a format means the same, else they are refused with the form to write."""

from __future__ import annotations

import pytest

import rowtime as rt
from rowtime.plan.program import compile_script

FOREIGN = "CREATE OR REPLACE FOREIGN STREAM s (k STRING, v INT) SERVER {server} OPTIONS ({options});"
QUERY = "SELECT STREAM k FROM s;"


def source(options: str, server: str = "FILE_SERVER") -> tuple[str, dict[str, str]]:
    program = compile_script(FOREIGN.format(server=server, options=options) + QUERY)
    if program.problems:
        raise rt.Refused(*program.problems)
    (stream,) = program.defines
    return stream.format, dict(stream.options)


@pytest.mark.parametrize(
    ("given", "kind", "options"),
    [
        ("DIRECTORY '/in', PARSER 'CSV'", "csv", {"path": "/in"}),
        ("directory '/in', parser 'JSON', STATIC_FILES 'true'", "json", {"path": "/in", "ends": "true"}),
        (
            "PARSER 'CSV', SEPARATOR '|', QUOTE_CHARACTER '~', CHARACTER_ENCODING 'UTF-8', DIRECTORY '/in'",
            "csv",
            {"path": "/in", "sep": "|", "quote": "~", "encoding": "UTF-8"},
        ),
        (
            r"DIRECTORY '/in', PARSER 'CSV', FILENAME_PATTERN 'buses.*\\.log', SKIP_HEADER 'false'",
            "csv",
            {"path": "/in", "pathGlobFilter": "buses*.log"},
        ),
    ],
)
def test_files_of_a_server_become_files_of_a_format(given: str, kind: str, options: dict[str, str]) -> None:
    """The statement was accepted, and read nothing."""
    found, said = source(given)
    assert found == kind
    assert {name.lower(): value for name, value in said.items()} == {k.lower(): v for k, v in options.items()}


@pytest.mark.parametrize(
    ("given", "server", "said", "hint"),
    [
        (
            "DIRECTORY '/in', PARSER 'XML'",
            "FILE_SERVER",
            "the server FILE_SERVER with",
            "USING csv OPTIONS (path '/in')",
        ),
        ("TOPIC 'a'", "AMQP_SERVER", "the server AMQP_SERVER with", "OPTIONS (path '/data/in')"),
        ("PARSER 'CSV'", "FILE_SERVER", "the server FILE_SERVER with", "USING csv OPTIONS (path '/data/in')"),
        (
            "DIRECTORY '/in', PARSER 'CSV', SEPARATOR ';', SKIP_HEADER 'true'",
            "FILE_SERVER",
            "SKIP_HEADER 'true' is not supported",
            "OPTIONS (path '/in', sep ';'); with header 'true', the columns go by the names in the first line.",
        ),
        (
            "DIRECTORY '/in', PARSER 'JSON', FILENAME_PATTERN '(a|b)+'",
            "FILE_SERVER",
            "FILENAME_PATTERN '(a|b)+' is not supported",
            "Write CREATE STREAM s (…) USING json OPTIONS (path '/in').",
        ),
        ("DIRECTORY '/in', PARSER 'CSV', REPEAT '2'", "FILE_SERVER", "REPEAT '2' is not supported", "USING csv"),
    ],
)
def test_options_without_an_equivalent_are_refused_with_the_form_to_write(
    given: str, server: str, said: str, hint: str
) -> None:
    with pytest.raises(rt.Refused) as found:
        source(given, server)
    (problem,) = found.value.problems
    assert problem.code == "R207"
    assert said in problem.message
    assert hint in problem.hint


def test_a_sink_of_files_may_omit_rowtime() -> None:
    sink = FOREIGN.format(
        server="FILE_SERVER", options="DIRECTORY '/o', FORMATTER 'CSV', FORMATTER_INCLUDE_ROWTIME 'false'"
    )
    program = compile_script(sink + "CREATE STREAM a (k STRING, v INT); INSERT INTO s SELECT STREAM k, v FROM a;")
    assert program.problems == ()
    assert program.sinks[0].rowtime == ""


def test_a_server_of_the_script_has_a_kind_and_options() -> None:
    """An option of the stream overrides that of its server."""
    server = "CREATE OR REPLACE SERVER \"Mine\" TYPE 'KAFKA10' FOREIGN DATA WRAPPER ecda OPTIONS ({}) DESCRIPTION 'x';"
    given = server.format("SEED_BROKERS 'a:1', STARTING_TIME 'LATEST'")
    stream = FOREIGN.format(server='"Mine"', options="TOPIC 't', SEED_BROKERS 'b:9092', PARSER 'JSON', ROW_PATH '$'")
    for script in (given + stream, stream + given, given + stream + "DROP SERVER mine;"):
        program = compile_script(script + QUERY)
        assert [str(problem) for problem in program.problems] == []
        options = {**BROKERS, "subscribe": "t", "startingOffsets": "latest"}
        assert (program.defines[0].format, dict(program.defines[0].options)) == ("kafka", options)
    files = "CREATE SERVER files TYPE 'FILE' FOREIGN DATA WRAPPER ecda;"
    found = compile_script(files + FOREIGN.format(server="FILES", options="DIRECTORY '/in', PARSER 'CSV'") + QUERY)
    assert (found.problems, found.defines[0].format) == ((), "csv")
    for kind, said in (("TYPE 'AMQP'", "of TYPE 'AMQP'"), ("", "without a TYPE")):
        other = f"CREATE SERVER other {kind} FOREIGN DATA WRAPPER ecda;"
        (problem,) = rt.check(other + FOREIGN.format(server="other", options="TOPIC 't'") + QUERY)
        assert (problem.code, f"the server other {said} is not supported" in problem.message) == ("R207", True)
        assert rt.check(f"{other} CREATE STREAM s (k INT); {QUERY}") == []


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_a_column_has_the_path_of_its_name(kind: str) -> None:
    made = "CREATE {} s (k STRING OPTIONS (\"PATH\" '{}') DESCRIPTION 'x') USING json OPTIONS (path '/in');"
    use = "CREATE STREAM t (k STRING); SELECT STREAM t.k FROM t JOIN s ON t.k = s.k" if kind == "TABLE" else QUERY
    assert rt.check(made.format(kind, "$.k") + use) == []
    for path in ("$.v", "$.v.k", "$.k[0]", "k.v"):
        assert rt.check(made.format(kind, path) + use)[0].code == "R207"


TOPIC = "TOPIC 't', SEED_BROKERS 'b:9092'"
BROKERS = {"kafka.bootstrap.servers": "b:9092", "format": "json"}


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (f"{TOPIC}, PARSER 'JSON', STARTING_TIME 'LATEST'", {"subscribe": "t", "startingOffsets": "latest"}),
        (f"{TOPIC}, starting_time 'earliest', parser 'json'", {"subscribe": "t", "startingOffsets": "earliest"}),
        (f"{TOPIC}, FORMATTER 'JSON'", {"topic": "t"}),
        (f"{TOPIC}, FORMATTER 'JSON', FORMATTER_INCLUDE_ROWTIME 'true', CHARACTER_ENCODING 'UTF-8'", {"topic": "t"}),
        (f"{TOPIC}, FORMATTER 'JSON', FORMATTER_INCLUDE_ROWTIME 'false'", {"topic": "t", "rowtime.column": ""}),
        (
            f"{TOPIC}, PARSER 'JSON', STARTING_TIME 'LATEST', MAX_POLL_RECORDS '100', POLL_TIMEOUT '50'",
            {"subscribe": "t", "startingOffsets": "latest"},
        ),
    ],
)
@pytest.mark.parametrize("server", ["KAFKA_SERVER", "KAFKA10_SERVER"])
def test_a_topic_of_a_server_is_one_of_kafka(server: str, given: str, options: dict[str, str]) -> None:
    fills = "CREATE STREAM a (k STRING, v INT); INSERT INTO s SELECT STREAM k, v FROM a;"
    program = compile_script(FOREIGN.format(server=server, options=given) + (fills if "topic" in options else QUERY))
    assert [str(problem) for problem in program.problems] == []
    assert (program.defines[0].format, dict(program.defines[0].options)) == ("kafka", {**BROKERS, **options})


@pytest.mark.parametrize(
    "given",
    [
        f"{TOPIC}, PARSER 'JSON'",
        f"{TOPIC}, PARSER 'CSV', STARTING_TIME 'LATEST'",
        f"{TOPIC}, PARSER 'JSON', STARTING_TIME '2020-01-01'",
        f"{TOPIC}, PARSER 'JSON', STARTING_TIME 'LATEST', PARTITION '3'",
        f"{TOPIC}, FORMATTER 'CSV'",
        f"{TOPIC}, FORMATTER 'JSON', CHARACTER_ENCODING 'UTF-16'",
        f"{TOPIC}, FORMATTER 'JSON', FORMATTER_INCLUDE_ROWTIME 'perhaps'",
    ],
)
def test_another_topic_is_refused_with_the_form_to_write(given: str) -> None:
    fills = "CREATE STREAM a (k STRING, v INT); INSERT INTO s SELECT STREAM k, v FROM a;"
    rest = fills if "FORMATTER" in given else QUERY
    (problem,) = rt.check(FOREIGN.format(server="KAFKA10_SERVER", options=given) + rest)
    assert problem.code == "R207"
    form = problem.hint.removeprefix("Write ").removesuffix(".").replace("(…)", "(k STRING, v INT)")
    assert "subscribe 't'" in form or "topic 't'" in form
    assert rt.check(f"{form}; {rest}") == []
