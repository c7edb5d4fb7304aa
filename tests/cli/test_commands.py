"""The list of commands: each is imported when it is used."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from rowtime.cli.main import COMMANDS

if TYPE_CHECKING:
    from typer.testing import Result

IMPORTED = """import sys
from rowtime.cli.main import main
try: main()
except SystemExit as ended: print(ended.code, *sorted({"numpy", "pyarrow", "pyspark"} & {*sys.modules}))
"""


@pytest.mark.parametrize("argument", [*COMMANDS, "none"])
def test_every_command_has_a_help(rowtime: Callable[..., Result], argument: str) -> None:
    result = rowtime(argument, "--help")
    if argument == "none":
        assert result.exit_code == 2
        assert "No such command 'none'" in result.stderr
    else:
        assert result.exit_code == 0, result.output
        assert f"{argument} [OPTIONS]" in result.output


def test_the_help_lists_all_commands_in_order(rowtime: Callable[..., Result]) -> None:
    lines = rowtime("--help").output.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "][: len(COMMANDS)] == [
        *COMMANDS
    ]


@pytest.mark.parametrize("arguments", [["--version"], ["run", "--help"], ["warm", "--help"]])
def test_libraries_are_not_imported_for_a_help(
    process: Callable[..., subprocess.CompletedProcess[str]], arguments: list[str]
) -> None:
    assert process(IMPORTED, *arguments).stdout.splitlines()[-1] == "0"
