"""The hints of writers and definitions work as they say; nothing here needs Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.client.home import Home
from rowtime.core.errors import Refused
from rowtime.core.time import to_micros
from rowtime.plan.program import compile_script

SQL = "CREATE STREAM s (a INT, b INT ASCENDING, d STRING DESCENDING); CREATE STREAM plain (a INT)"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return defined(Home(tmp_path / "home"), SQL)


def defined(home: Home, sql: str) -> Home:
    program = compile_script(sql, home=home)
    assert program.problems == ()
    for stream in program.defines:
        home.define(stream.name, stream.as_json(), replace="REPLACE" in sql)
    return home


def told(act: Callable[[], object], taken: str) -> str:
    """The part of the hint of a refusal that ``taken`` matches."""
    with pytest.raises(Refused) as refused:
        act()
    found = re.search(taken, refused.value.problems[-1].hint)
    assert found is not None, refused.value.problems[-1].hint
    return found[1]


def test_a_definition_is_replaced(home: Home) -> None:
    other = {"columns": [{"name": "x", "type": "INT", "nullable": True}], "format": None, "options": {}}
    words = told(lambda: home.define("plain", other), "Write (CREATE OR REPLACE STREAM)")
    defined(home, f"{words} plain (x INT)")
    definition = home.definition("plain")
    assert definition is not None
    assert [column["name"] for column in definition["columns"]] == ["x"]


def test_an_empty_home_has_the_stream_after_a_start(tmp_path: Path) -> None:
    script = told(lambda: rt.writer("s", home=tmp_path), "when a script with its (CREATE STREAM) starts")
    file = tmp_path / "script.sql"
    file.write_text(f"{script} s (a INT);")
    assert CliRunner().invoke(app, ["run", str(file), "--home", str(tmp_path)]).exit_code == 0
    with rt.writer("s", home=tmp_path) as log:
        assert log.insert([{"a": 1}]) == 0


def test_existing_names_are_replaced_or_kept(home: Home) -> None:
    name = told(lambda: rt.writer("ss", home=home), "there: plain, (.*)[.]")
    with rt.writer(name, home=home) as log:
        column, key = "", ""
        with pytest.raises(Refused) as refused:
            log.insert([{"aa": 1}])
        if found := re.search("columns are (a), .* Use the key (rowtime) for", refused.value.problems[-1].hint):
            column, key = found.groups()
        log.insert([{column: 1, "b": 2, "d": "x", key: 3}])
        assert log.position == 1
    told(lambda: rt.writer("s", home=home, writer="\U0010ffffx"), "name that begins with (another) character")
    rt.writer("s", home=home, writer="another").close()


def test_bounds_of_columns(home: Home) -> None:
    with rt.writer("s", home=home) as log:
        column = told(lambda: log.set_bound("a", 1), "have one: (b), d[.]")
        log.set_bound(column, 1)
        told(lambda: log.set_bound("d", "x", strict=True), "Use another (value)")
        log.set_bound("d", "x")
    with rt.writer("plain", home=home) as log:
        words = told(lambda: log.set_bound("a", 1), "Declare it: (.*)[.]")
    with rt.writer("s", home=home, writer="second") as log:
        log.set_bound("b", 1)
    runner = CliRunner()
    bound = ["bound", "s", "5", "--column", "b", "--home", str(home.path)]
    found = re.search("Name the writer; there are: main, (.*)[.]", runner.invoke(app, bound).output)
    assert found is not None
    assert (
        runner.invoke(app, [*bound, "--writer", found[1]]).output == "s: b from 5 on, after the rows of writer second\n"
    )
    defined(home, f"CREATE OR REPLACE STREAM plain ({words})")
    with rt.writer("plain", home=home, writer="third") as log:
        log.set_bound("a", 1)


def test_a_closed_writer_is_opened_again(home: Home) -> None:
    log = rt.writer("plain", home=home)
    log.close()
    opened = told(lambda: log.insert([{"a": 1}]), r"Open a new one: (rt\.writer)\(…\)")
    assert opened == "rt.writer"
    with rt.writer("plain", home=home) as log:
        assert log.insert([{"a": 1}]) == 0


def test_times() -> None:
    assert to_micros(told(lambda: to_micros("noon"), "Write it as (.*), in UTC")) == to_micros(
        "2024-01-31 23:59:59.123456+00:00"
    )
