"""The law of declared state, which every plan and every tick of the tests obeys (tests/conftest.py), finds faults."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any

import pytest

from rowtime.core.columns import DUE, PERIODS, STOP, WEIGHT, Hidden
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import Control, Operator, UpTo, walk
from rowtime.operators.contract.state import Kept, StateNote
from rowtime.operators.events.chop import Chop
from rowtime.plan.program import compile_script
from tests.plan.declared_state import controls, undeclared, unexplained, unfounded, unwritten

OLD = sorted((Path(__file__).parents[1] / "checkpoints").glob("format_*/*"))
PIECES = """
CREATE STREAM s (a TIMESTAMP, b TIMESTAMP, v INT) EVENT SHAPE INTERVAL (a, b);
SELECT STREAM v FROM CHOP(s, INTERVAL '1' MINUTE);
"""


def _chop() -> Operator:
    return next(node for node in walk(compile_script(PIECES).sinks[0]) if isinstance(node, Chop))


def test_undeclared_names_times_columns_and_types_of_state_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = {"v": "INT", **dict.fromkeys(["__ls", "__le", WEIGHT, DUE], "BIGINT")}
    assert list(undeclared(_chop(), "state", DUE, columns)) == []
    assert len(list(undeclared(_chop(), "other", DUE, columns))) == 1
    assert len(list(undeclared(_chop(), "state", STOP, columns))) == 1
    assert len(list(undeclared(_chop(), "state", DUE, {**columns, "other": "INT"}))) == 1
    assert len(list(undeclared(_chop(), "state", DUE, dict(list(columns.items())[1:])))) == 1
    assert list(undeclared(_chop(), "state", DUE, columns | {DUE: "TIMESTAMP"})) == [
        "query.chop (Chop) keeps state with {'__n': 'TIMESTAMP'}, declared as ['BIGINT']"
    ]
    monkeypatch.setattr(Chop, "keeps", lambda _: (StateNote("events", "they end", rows=(Kept(DUE, ()),)),))
    assert len(list(undeclared(_chop(), "state", DUE, columns))) == 1


def test_declared_state_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    node = _chop()
    assert list(unfounded([node])) == []
    monkeypatch.setattr(Chop, "keeps", lambda _: (StateNote("events", "they end"),))
    assert list(unfounded([node])) == ["query.chop keeps events nowhere"]
    monkeypatch.setattr(Chop, "keeps", lambda _: (StateNote("a clock", "it ends", fields=("clock",)),))
    assert list(unfounded([node])) == ["query.chop has no scalar clock"]
    monkeypatch.setattr(Chop, "keeps", lambda _: (StateNote("pieces", "they end", rows=(Kept(DUE, (), "pieces"),)),))
    assert list(unfounded([node])) == ["query.chop never writes pieces"]


def test_a_hidden_column_with_a_wrong_type_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    lifetimes = """
    CREATE STREAM r (a TIMESTAMP, b TIMESTAMP, k INT) EVENT SHAPE INTERVAL (a, b);
    CREATE STREAM s (a TIMESTAMP, b TIMESTAMP, k INT) EVENT SHAPE INTERVAL (a, b);
    SELECT STREAM r.k FROM r JOIN s ON r.k = s.k WHERE LIFETIME(r) CONTAINS LIFETIME(s);
    """
    nodes = compile_script(lifetimes).operators
    for name in PERIODS[0]:
        assert isinstance(name, Hidden)
        monkeypatch.setattr(name, "type", "TIMESTAMP")
    found = list(unfounded(nodes))
    assert len(found) > 1
    assert {told.partition(" emits ")[2] for told in found} == {"__l_start as BIGINT", "__l_end as BIGINT"}


def test_every_scalar_is_documented() -> None:
    @dataclass(frozen=True)
    class Untold(Control):
        """``one``: the first."""

        one: int = 0
        two: int = 0

    assert list(unexplained(Untold)) == ["Untold.two"]
    assert [name for control in controls() for name in unexplained(control)] == []
    assert len(list(controls())) > 20


def test_every_scalar_that_is_declared_is_written() -> None:
    assert [name for control in controls() for name in unwritten(control)] == []


def test_a_scalar_that_is_not_written_is_found() -> None:
    @dataclass(frozen=True)
    class Closed(Control):
        """The name of a class of scalars that operators write."""

        closed: int = 0
        opened: int = 0

    assert list(unwritten(Closed)) == ["Closed.opened"]


def test_only_the_tick_changes_scalars() -> None:
    for control in controls():
        with pytest.raises(FrozenInstanceError):
            control().other = 1  # type: ignore[attr-defined]
        for name in inspect.get_annotations(control):
            with pytest.raises(FrozenInstanceError):
                setattr(control(), name, 1)
    kinds = {text for control in controls() for text in inspect.get_annotations(control).values()}
    assert [text for text in kinds if re.search(r"\b(dict|list|set)\b|Mutable", text)] == []


def test_the_journal_has_scalars_by_name_and_no_defaults() -> None:
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
