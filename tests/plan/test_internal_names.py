"""EXPLAIN of every transcript, as text and JSON, shows no internal name of the engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rowtime.plan.explain import as_text, explain, explained
from rowtime.plan.program import compile_script
from rowtime.testing.transcripts import Safe
from tests.conftest import INTERNAL

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
SCRIPTS = {
    path.stem: case["sql"]
    for path in sorted(TRANSCRIPTS.rglob("*.yaml"))
    if "sql" in (case := yaml.load(path.read_text(), Loader=Safe))  # noqa: S506 - a safe loader
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_explain_shows_no_name_of_the_engine(name: str) -> None:
    program = compile_script(SCRIPTS[name])
    assert program.problems == ()
    entries = explain(program)
    shown = "\n".join([as_text(entries), json.dumps(entries), *(explained(*asked) for asked in program.explains)])
    assert INTERNAL.findall(shown) == []


def test_there_are_scripts_to_explain() -> None:
    assert len(SCRIPTS) > 50
