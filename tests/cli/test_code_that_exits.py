"""Code of a script that calls ``sys.exit`` never ends a command as if all were well."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from typer.testing import Result

STREAM = "CREATE STREAM s (a BIGINT);\n"
QUITS = "import sys\n{}sys.exit(0)\n"
TABLE = """import sys
class F:
    def __init__(self):
        {made}
    def columns(self, given):
        {columns}
        return [("b", "BIGINT")]
    def process(self, rows, state):
        {process}
        return rows
"""
CALL = "SELECT STREAM b FROM STREAM(f(CURSOR(SELECT STREAM a FROM s))) AS t;"
MAIN = "from rowtime.cli.main import main; main()"


@pytest.mark.parametrize("arguments", [("check", "--import"), ("explain", "--import"), ("run",)], ids=" ".join)
def test_a_module_that_exits_is_refused_with_its_line(
    rowtime: Callable[..., Result], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    name = f"quits_by_{arguments[0]}"
    (tmp_path / f"{name}.py").write_text(QUITS.format("x = 1\n"))
    script = f"CREATE FUNCTION g(x BIGINT) RETURNS BIGINT AS '{name}:f';\nSELECT STREAM nosuch FROM s;\n"
    (tmp_path / "q.sql").write_text(STREAM + script)
    result = rowtime(arguments[0], "q.sql", *arguments[1:])
    assert result.exit_code == 1
    said = "".join(result.output.split())
    assert "".join(f"R141 g cannot be loaded from {name}: SystemExit: 0 (line 3 of".split()) in said
    assert f"{name}.py" in said
    assert "R103" in said


@pytest.mark.parametrize("place", ["made", "columns"])
def test_a_table_function_that_exits_when_it_is_bound_is_refused(
    rowtime: Callable[..., Result], tmp_path: Path, place: str
) -> None:
    name = f"quits_{place}"
    bodies = {"made": "pass", "columns": "pass", "process": "pass", place: "sys.exit(0)"}
    (tmp_path / f"{name}.py").write_text(TABLE.format(**bodies))
    (tmp_path / "q.sql").write_text(f"{STREAM}CREATE FUNCTION f AS '{name}:F';\n{CALL}")
    result = rowtime("check", "q.sql", "--import")
    assert (result.exit_code, "R141 f cannot be called: SystemExit: 0 (line" in result.output) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scalar", "table"])
def test_a_function_that_exits_while_it_runs_is_a_failure(
    process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, kind: str
) -> None:
    bodies = {"made": "pass", "columns": "pass", "process": "sys.exit(0)"}
    (tmp_path / "late.py").write_text(TABLE.format(**bodies) + "def g(x):\n    sys.exit(0)\n")
    scalar = f"{STREAM}CREATE FUNCTION g(x BIGINT) RETURNS BIGINT AS 'late:g'; SELECT STREAM g(a) AS b FROM s;"
    table = f"{STREAM}CREATE FUNCTION f AS 'late:F'; {CALL}"
    (tmp_path / "q.sql").write_text((scalar if kind == "scalar" else table) + "INSERT INTO s (a) VALUES (1);")
    done = process(MAIN, "run", "q.sql", "--available-now")
    assert done.returncode == 3, done.stderr
    assert ("R512" if kind == "scalar" else "R506") in done.stderr
    assert "SystemExit: 0 (line" in done.stderr
    assert "late.py" in done.stderr


def test_an_exit_from_anywhere_in_a_command_is_a_failure(
    rowtime: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(*_: object, **__: object) -> None:
        raise SystemExit

    monkeypatch.setattr("rowtime.cli.check.compile_script", leave)
    (tmp_path / "q.sql").write_text(STREAM)
    assert rowtime("check", "q.sql").exit_code == 3


def test_ctrl_c_while_a_module_is_imported_still_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "interrupted.py").write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        rt.check("CREATE FUNCTION f AS 'interrupted:f'", imports=True)
