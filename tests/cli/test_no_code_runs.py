"""Checking, explaining and showing a script or a checkpoint run none of its code, unless `--import` asks for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

import rowtime as rt
from rowtime.client.home import Home
from rowtime.web.guard import Access
from rowtime.web.server import Console
from rowtime.web.watched import Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typer.testing import Result

LEAVES_A_MARK = "import pathlib; pathlib.Path({!r}).touch()\n"
FUNCTIONS = """
def twice(x, times=2):
    return x * times

def alone():
    return 1

class Doubled:
    def columns(self, given):
        pathlib.Path(RAN).touch()
        return [("d", "BIGINT")]

    def process(self, rows, state):
        import pyarrow.compute as pc
        return rows.select(["ROWTIME"]).append_column("d", pc.multiply(rows["a"], 2))

LIMIT = 3
"""
STREAM = "CREATE STREAM s (a BIGINT);\n"
SCALAR = STREAM + "CREATE FUNCTION g(x BIGINT) RETURNS BIGINT AS 'shop.inner.code:twice';\n"
TABLE = STREAM + "CREATE FUNCTION f AS 'shop.inner.code:Doubled';\n"
OF_SCALAR = "SELECT STREAM g(a) AS b FROM s;\n"
OF_TABLE = "SELECT STREAM d + 1 AS e FROM STREAM(f(CURSOR(SELECT STREAM a FROM s))) AS t;\n"
Ran = Callable[[], list[str]]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ran]:
    """Packages with code at each level; the result returns, and forgets, which of it has run."""
    monkeypatch.chdir(tmp_path)
    marks = tmp_path / "marks"
    marks.mkdir()
    inner = tmp_path / "shop" / "inner"
    inner.mkdir(parents=True)
    for number, file in enumerate([inner.parent / "__init__.py", inner / "__init__.py", inner / "code.py"]):
        mark = LEAVES_A_MARK.format(str(marks / f"{number} {file.stem}"))
        file.write_text(mark + (f"RAN = {str(marks / 'columns')!r}\n{FUNCTIONS}" if file.stem == "code" else ""))

    def forget() -> list[str]:
        for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
            del sys.modules[name]
        names = sorted(path.name for path in marks.iterdir())
        for path in marks.iterdir():
            path.unlink()
        return names

    path = [*sys.path]
    yield forget
    sys.path[:] = path
    forget()


CHECKING = [("check", "f.sql"), ("check", "f.sql", "--json"), ("explain", "f.sql"), ("explain", "f.sql", "--json")]
CHECKING += [("explain", "f.sql", "--monotonicity"), ("streams",), ("top", "--once")]


@pytest.mark.parametrize("arguments", CHECKING, ids=" ".join)
@pytest.mark.parametrize("script", [SCALAR + OF_SCALAR, TABLE + OF_TABLE], ids=["scalar", "table"])
def test_a_command_that_does_not_run_a_script_runs_none_of_its_code(
    rowtime: Callable[..., Result], ran: Ran, tmp_path: Path, arguments: tuple[str, ...], script: str
) -> None:
    (tmp_path / "f.sql").write_text(script)
    result = rowtime(*arguments)
    assert ran() == []
    assert result.exit_code == int(arguments[0] == "explain" and script.startswith(TABLE)), result.output


@pytest.mark.parametrize("command", ["check", "explain"])
def test_an_import_is_possible_if_it_is_asked_for(
    rowtime: Callable[..., Result], ran: Ran, tmp_path: Path, command: str
) -> None:
    (tmp_path / "f.sql").write_text(TABLE + OF_TABLE)
    without = rowtime(command, "f.sql")
    assert ran() == []
    assert "R169" in without.output
    assert "shop.inner.code is not run" in without.output
    assert "--import" in without.output
    result = rowtime(command, "f.sql", "--import")
    assert (result.exit_code, "R169" in result.output) == (0, False)
    assert ran() == ["0 __init__", "1 __init__", "2 code", "columns"]


def test_python_checks_and_explains_without_running_code(ran: Ran) -> None:
    pipeline = rt.Pipeline().sql(SCALAR + TABLE.removeprefix(STREAM) + OF_SCALAR + OF_TABLE)
    (warning,) = rt.check(SCALAR + TABLE.removeprefix(STREAM) + OF_SCALAR + OF_TABLE)
    assert (warning.code, warning.warns) == ("R169", True)
    assert [problem.code for problem in pipeline.compile().warnings] == ["R169"]
    assert "R169" in pipeline._repr_html_()
    with pytest.raises(rt.Refused, match="R169"):
        pipeline.explain()
    assert ran() == []
    assert "d BIGINT" in str(pipeline.explain(imports=True))
    assert "columns" in ran()


def test_what_depends_on_unknown_columns_is_not_reported_as_wrong(ran: Ran) -> None:
    script = TABLE + (
        "CREATE STREAM o AS SELECT STREAM * FROM STREAM(f(CURSOR(SELECT STREAM a FROM s))) AS t;\n"
        "CREATE VIEW v AS SELECT STREAM d, d + 1 AS e FROM o;\n"
        "CREATE VIEW w AS SELECT STREAM e FROM v;\n"
        "CREATE PUMP more AS INSERT INTO o SELECT STREAM a FROM s;\n"
        "CREATE STREAM p (e BIGINT); CREATE PUMP q AS INSERT INTO p SELECT STREAM e FROM w;\n"
        "SELECT STREAM nosuch FROM s;\n"
    )
    assert [(problem.code, problem.warns) for problem in rt.check(script)] == [("R103", False), ("R169", True)]
    assert ran() == []


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ("g(x BIGINT, y INT, z INT) RETURNS BIGINT AS 'shop.inner.code:twice'", "with 3 values: too many positional"),
        ("g() RETURNS BIGINT AS 'shop.inner.code:twice'", "with 0 values: missing a required argument: 'x'"),
        ("g(x BIGINT) RETURNS BIGINT AS 'shop.inner.code:thrice'", "has no attribute 'thrice'"),
        ("g(x BIGINT) RETURNS BIGINT AS 'shop.inner.code:LIMIT'", "is not a function"),
        ("g(x BIGINT) RETURNS BIGINT AS 'shop.outer:f'", "No module named 'shop.outer'"),
        ("g(x BIGINT) RETURNS BIGINT AS 'broken:f'", "broken.py, line 2"),
        ("g AS 'partly:Half'", "it has no method process"),
    ],
)
def test_what_the_source_says_is_checked(ran: Ran, tmp_path: Path, definition: str, says: str) -> None:
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "partly.py").write_text("class Half:\n    def columns(self, given): ...\n")
    for imports in (False, True):
        (problem,) = rt.check(f"CREATE FUNCTION {definition}", imports=imports)
        assert problem.code == "R141"
        assert says in problem.message
        assert "python_source" not in problem.message
        assert imports or ran() == []


def test_arguments_of_a_table_function_are_counted(ran: Ran) -> None:
    (problem,) = rt.check(TABLE + "SELECT STREAM * FROM STREAM(f(CURSOR(SELECT STREAM a FROM s), 1)) AS t")
    assert (problem.code, "too many positional arguments" in problem.message) == ("R141", True)
    assert ran() == []


@pytest.fixture
def checkpoint(spark: SparkSession, ran: Ran, tmp_path: Path) -> Path:
    """The checkpoint of a run with both kinds of functions."""
    script = "CREATE STREAM o (b BIGINT); CREATE STREAM q (e BIGINT);\n" + SCALAR + TABLE.removeprefix(STREAM)
    script += f"CREATE PUMP p AS INSERT INTO o {OF_SCALAR} CREATE PUMP r AS INSERT INTO q {OF_TABLE}"
    script += "INSERT INTO s (a) VALUES (1), (2);"
    folder = tmp_path / "home" / "checkpoints" / "f"
    rt.Pipeline(spark, home=tmp_path / "home").sql(script).run_available(folder)
    assert "columns" in ran()
    return folder


SHOWING = ["graph", "graph.json", "timeline", "timeline.json", "ticks", "waiting", "rows", "box?box=r.t", "trace"]
OF_A_CHECKPOINT = [("status", "{}"), ("status", "{}", "--json"), ("status", "{}", "--waiting"), ("top", "{}", "--once")]
OF_A_CHECKPOINT += [("alter", "-e", "ALTER PUMP r STOP", "--checkpoint", "{}"), ("streams", "--home", "home")]


@pytest.mark.parametrize("extra", [[], ["--import"]], ids=["read", "imported"])
def test_showing_a_checkpoint_runs_none_of_its_code(
    rowtime: Callable[..., Result], checkpoint: Path, ran: Ran, extra: list[str]
) -> None:
    for arguments in OF_A_CHECKPOINT:
        result = rowtime(*(part.format(checkpoint) for part in arguments))
        assert (ran(), result.exit_code) == ([], 0), result.output
    watched = Watched(Home(checkpoint.parents[1]), [str(checkpoint)], imports=bool(extra))
    client = TestClient(Console(watched, Access(port=8642)).app, base_url="http://127.0.0.1:8642")
    key = watched.pipelines[0].key
    for page in SHOWING:
        answer = client.get(f"/p/{key}/{page}")
        assert answer.status_code < 500, page
        assert ran() == []
    box = client.get(f"/p/{key}/box", params={"box": "r.t"}).text
    assert "d BIGINT" in box  # the stored columns: the query is complete
    assert "R169" not in box
    assert json.loads(client.get(f"/p/{key}/graph.json").text)["nodes"]
    assert ran() == []


def test_a_trace_in_the_console_imports_only_if_the_console_may(checkpoint: Path, ran: Ran) -> None:
    from rowtime.web.rows import Traces, Wanted

    watched = Watched(Home(checkpoint.parents[1]), [str(checkpoint)])
    result = Traces(watched)._run(watched.pipelines[0], Wanted(watched.pipelines[0].key, "p.into_o", 0))
    assert "shop.inner.code" in result.problem
    assert "--import" in result.problem
    assert ran() == []


@pytest.mark.slow
def test_a_check_with_spark_runs_none_either(rowtime: Callable[..., Result], ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "f.sql").write_text(SCALAR + OF_SCALAR)
    result = rowtime("check", "f.sql", "--spark")
    assert (result.exit_code, ran()) == (0, [])
