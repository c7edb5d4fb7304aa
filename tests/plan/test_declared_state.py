"""The law of declared state, which every plan and every tick of the tests obeys (tests/conftest.py), sees faults."""

from __future__ import annotations

import ast
import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rowtime
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import Control, Operator, StateNote, UpTo, walk
from rowtime.operators.events.chop import Chop
from rowtime.plan.program import compile_script
from tests.plan.declared_state import controls, undeclared, unexplained, unfounded

OLD = sorted((Path(__file__).parents[1] / "checkpoints").glob("format_*/*"))
SOURCES = Path(rowtime.__file__).parent
PIECES = """
CREATE STREAM s (a TIMESTAMP, b TIMESTAMP, v INT) EVENT SHAPE INTERVAL (a, b);
SELECT STREAM v FROM CHOP(s, INTERVAL '1' MINUTE);
"""


def _named(control: type[Control]) -> list[str]:
    """The classes that its docstring names, which know it by other words."""
    return re.findall(r"(?<!`)`(\w+)`(?!`)", inspect.getdoc(control) or "")


def _chop() -> Operator:
    return next(node for node in walk(compile_script(PIECES).sinks[0]) if isinstance(node, Chop))


def test_what_is_kept_under_another_name_or_by_another_time_is_seen() -> None:
    assert list(undeclared(_chop(), "state", "__n")) == []
    assert len(list(undeclared(_chop(), "other", "__n"))) == 1
    assert len(list(undeclared(_chop(), "state", "__e"))) == 1


def test_what_is_said_to_be_kept_nowhere_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    node = _chop()
    assert list(unfounded([node])) == []
    monkeypatch.setattr(Chop, "keeps", lambda _: (StateNote("events", "they end"),))
    assert list(unfounded([node])) == ["query.chop keeps events nowhere"]
    monkeypatch.setattr(Chop, "keeps", lambda _: (StateNote("a clock", "it ends", fields=("clock",)),))
    assert list(unfounded([node])) == ["query.chop has no scalar clock"]


def test_every_scalar_says_what_it_means() -> None:
    @dataclass(slots=True)
    class Untold(Control):
        """``one``: the first."""

        one: int = 0
        two: int = 0

    assert list(unexplained(Untold)) == ["Untold.two"]
    assert [name for control in controls() for name in unexplained(control)] == []
    assert len(list(controls())) > 20


def test_every_scalar_that_is_declared_is_used() -> None:
    used: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.alias | ast.ClassDef):
                used.setdefault(node.id if isinstance(node, ast.Name) else node.name, set()).update(names)
    unused = [
        f"{control.__name__}.{name}"
        for control in controls()
        for name in inspect.get_annotations(control)
        if not any(name in used[known] for known in (control.__name__, *_named(control)))
    ]
    assert unused == []


def test_a_scalar_that_is_not_declared_cannot_be_kept() -> None:
    assert not hasattr(UpTo(), "__dict__")
    with pytest.raises(AttributeError):
        UpTo().other = 1  # type: ignore[attr-defined]
    assert [control.__name__ for control in controls() if hasattr(control(), "__dict__")] == []


def test_scalars_stand_in_the_journal_by_name_and_defaults_do_not() -> None:
    assert UpTo(5).stored() == {"bound": 5}
    assert UpTo.of({"bound": 5, "gone": 1}) == UpTo(5)
    assert (UpTo().stored(), UpTo.of({"bound": BEGINNING})) == ({}, UpTo())
    for control in controls():
        assert control.of({}) == control()
        assert control().stored() == {}


@pytest.mark.parametrize("old", OLD, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_no_scalar_of_an_older_checkpoint_is_lost(old: Path) -> None:
    nodes = {node.name: node for node in compile_script((old / "script.sql").read_text(encoding="utf-8")).operators}
    entries: list[dict[str, Any]] = [json.loads(path.read_text()) for path in (old / "checkpoint/journal").iterdir()]
    seen = 0
    for entry in entries:
        for name, stored in entry["control"].items():
            made = nodes[name].control.of(stored) if name in nodes else None
            if made is not None:
                seen += len(stored)
                assert {field: getattr(made, field) for field in stored} == stored
                assert made.of(made.stored()) == made
    assert seen
