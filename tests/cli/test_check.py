"""``rowtime check`` reports every problem with its place, and needs neither Spark nor Java."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.client.home import Home
from rowtime.core.errors import Place, Problem
from rowtime.plan.program import Program

if TYPE_CHECKING:
    from typer.testing import Result

GOOD = "CREATE STREAM clicks (page STRING);\nSELECT STREAM page FROM clicks;\n"
BAD = """\
CREATE STREAM clicks (page STRING, n INT);
SELECT STREAM page, COUNT(*) FROM clicks
GROUP BY page;
SELECT STREAM page FROM klicks;
"""
MAIN = "from rowtime.cli.main import main; main()"
WITHOUT_SPARK = """
import subprocess, sys
started = []
subprocess.Popen.__init__ = lambda self, *a, **k: started.append(a)
from rowtime.cli.main import app
for command in ["check", "explain"]:
    try:
        app([command, "good.sql"])
    except SystemExit as ended:
        assert not ended.code, ended.code
assert not started, started
assert "pyspark" not in sys.modules, "pyspark was imported"
assert "py4j" not in sys.modules, "py4j was imported"
"""


def test_a_good_script_is_ok(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "good.sql").write_text(GOOD)
    result = rowtime("check", "good.sql")
    assert (result.exit_code, result.stdout) == (0, "ok: 2 statements\n")


def test_all_problems_of_a_file_are_reported_together_with_their_places(
    rowtime: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "bad.sql").write_text(BAD)
    result = rowtime("check", "bad.sql")
    assert result.exit_code == 1
    first, second = result.stdout.strip().split("\n\n")
    assert first.splitlines()[:2] == [
        "R104 GROUP BY has no monotonic expression, so no group would ever be complete.",
        "  3 | GROUP BY page;",
    ]
    assert "page: the column has no known order" in first
    assert second.splitlines() == [
        "R103 there is no stream or view klicks",
        "  4 | SELECT STREAM page FROM klicks;",
        "    |                         ^^^^^^",
        "Did you mean clicks?",
    ]


def test_problems_as_json_have_codes_and_places(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text(BAD)
    (tmp_path / "good.sql").write_text(GOOD)
    result = rowtime("check", "bad.sql", "good.sql", "--json")
    assert result.exit_code == 1
    bad, good = json.loads(result.stdout)
    assert [(p["code"], p["line"]) for p in bad["problems"]] == [("R104", 3), ("R103", 4)]
    assert good == {"file": "good.sql", "ok": True, "statements": 2, "problems": []}


def test_a_warning_is_shown_and_refuses_nothing(
    rowtime: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "good.sql").write_text(GOOD)
    warning = Problem("R199", "this grows", Place(2, 1, "SELECT"), warns=True)
    monkeypatch.setattr(
        "rowtime.cli.check.compile_script", lambda text, *_, **__: Program(text, warnings=(warning,), statements=2)
    )
    result = rowtime("check", "good.sql")
    assert result.exit_code == 0
    assert result.stdout == "R199 warning: this grows\n  2 | SELECT\n    | ^\n\nok: 2 statements\n"
    (found,) = json.loads(rowtime("check", "good.sql", "--json").stdout)
    assert found["ok"]
    assert found["problems"][0]["severity"] == "warning"


def test_streams_of_the_home_directory_are_known(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text("SELECT STREAM page FROM visits;")
    assert rowtime("check", "query.sql").exit_code == 1
    columns = [{"name": "page", "type": "STRING", "nullable": True}]
    Home(tmp_path / "elsewhere").define("visits", {"columns": columns, "format": None, "options": {}})
    assert rowtime("check", "query.sql", "--home", "elsewhere").exit_code == 0


def test_a_variable_gets_its_value_from_set(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text(GOOD.replace("page FROM", "page FROM ${stream}").replace("clicks;", ";"))
    result = rowtime("check", "query.sql")
    assert result.exit_code == 1
    assert "--set stream=" in result.stdout
    assert rowtime("check", "query.sql", "--set", "stream=clicks").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [["check", "none.sql"], ["check"], ["check", "good.sql", "--set", "novalue"], ["chek"]]
)
def test_wrong_usage_has_exit_status_2(rowtime: Callable[..., Result], tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "good.sql").write_text(GOOD)
    assert rowtime(*arguments).exit_code == 2


def test_a_file_that_is_not_text_is_refused(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "binary.sql").write_bytes(b"SELECT \xff")
    result = rowtime("check", "binary.sql")
    assert result.exit_code == 1
    assert "binary.sql is not UTF-8 text" in result.stderr


def test_check_and_explain_import_no_spark_and_start_no_process(
    process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "good.sql").write_text(GOOD)
    done = process(WITHOUT_SPARK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ok: 2 statements\n")


def test_the_shell_sees_the_exit_status(
    process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "bad.sql").write_text(BAD)
    assert process(MAIN, "check", "bad.sql").returncode == 1


@pytest.mark.usefixtures("spark")
def test_with_spark_wrong_types_and_functions_are_found_with_their_places(
    rowtime: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "typed.sql").write_text(
        "CREATE STREAM clicks (page STRING, tags ARRAY<INT>);\n"
        "SELECT STREAM tags + 1 AS n, nope(page) AS m FROM clicks;\n"
    )
    assert rowtime("check", "typed.sql").exit_code == 0
    told = rowtime("check", "--spark", "typed.sql", "--json")
    assert told.exit_code == 1
    problems = json.loads(told.stdout)[0]["problems"]
    assert [(problem["code"], problem["line"], problem["column"]) for problem in problems] == [
        ("R107", 2, 15),
        ("R107", 2, 30),
    ]
    shown = rowtime("check", "--spark", "typed.sql")
    assert "^" in shown.output
    assert "at org.apache" not in shown.output + shown.stderr
