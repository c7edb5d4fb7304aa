"""The page of the command line equals the commands: each has its arguments and options there, and is in the README."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from rowtime.cli.main import COMMANDS, app
from tests.docs.scripts import ROOT, script

TABLES = script("command_tables")
PAGE = TABLES.PAGE.read_text(encoding="utf-8")
SECTIONS = dict(part.split("\n", 1) for part in PAGE.split("\n## rowtime ")[1:])


def test_the_page_is_up_to_date() -> None:
    assert TABLES.written(PAGE) == PAGE, "run make options"


def test_a_page_that_is_out_of_date_is_noticed() -> None:
    assert TABLES.written(PAGE.replace("| `--available-now", "| `--all")) == PAGE


@pytest.mark.parametrize("name", COMMANDS)
def test_each_word_of_the_help_of_a_command_is_on_the_page(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"]).stdout.replace("--help", "").split("Options:")
    options = {word.strip("`,") for word in " ".join(shown[1:]).split() if word.startswith("--")}
    section = SECTIONS[name].replace("--help", "")
    assert {option for option in options if option not in section} == set()
    assert f"`rowtime {name}" in (ROOT / "README.md").read_text(encoding="utf-8")
