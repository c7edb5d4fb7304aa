"""The model of the commit holds, each guard is needed, and journals that no pipeline can write are rejected."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reliability.crash.cases import KINDS, Case
from reliability.crash.inside import Sample, undisturbed
from reliability.model.campaign import main
from reliability.model.checker import checked
from reliability.model.guards import GUARDS, INVARIANTS, SETTINGS, Guard
from reliability.model.journals import Behaviour, behaviours
from reliability.model.replay import refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "model.md"
MODEL = Path(__file__).parents[2] / "reliability" / "model" / "Commit.tla"


def test_the_page_has_every_guard_and_the_invariant_that_breaks_without_it() -> None:
    rows = re.findall(r"^\| ([\w ,-]+) \| [^|]+ \| `([\w/.]+)` \| `(\w+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [(one.name, one.where.removeprefix("src/rowtime/"), one.breaks) for one in GUARDS]
    assert re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE) == [*INVARIANTS]


def test_each_guard_of_the_model_is_taken_out() -> None:
    assert sorted(set(re.findall(r'On\("([^"]+)"\)', MODEL.read_text()))) == sorted(one.name for one in GUARDS)
    root = MODEL.parents[2] / "src" / "rowtime"
    assert not [one.where for one in GUARDS if not list(root.glob(f"**/{one.where}"))]


@pytest.mark.slow
def test_a_small_setting_holds_and_breaks_without_a_guard() -> None:
    smallest = next(one for one in SETTINGS if "drop" in one.events)
    assert not checked(smallest).broken
    assert checked(smallest, ["all handed over"]).broken == "NoLoss"


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_without_the_guard_its_invariant_breaks(guard: Guard) -> None:
    assert checked(guard.setting, [guard.name]).broken == guard.breaks


@pytest.mark.slow
def test_a_revert_that_breaks_nothing_or_something_else_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = GUARDS[0]
    wrong = [replace(first, breaks="NoGap"), replace(first, name="settle")]
    monkeypatch.setattr("sys.argv", ["model"])
    monkeypatch.setattr("reliability.model.campaign.SETTINGS", ())
    monkeypatch.setattr("reliability.model.campaign.GUARDS", [*wrong, first])
    assert main() == 1
    *lines, right, last = capsys.readouterr().out.splitlines()
    assert ["WRONG" in line for line in lines] == [True, True]
    assert "OnlyCommitted is broken in 8 steps" in right
    assert "2 wrong" in last


ENTRIES = ((1, 1, 0, 1, 0), (2, 2, 0, 1, 1), (3, 3, 0, 2, 1))
GATHERED = ((1, 1, 0, 1, 0), (2, 2, 0, 2, 1), (3, 3, 0, 3, 1))
STARTED = ((1, 0, 1, 0, 0), (2, 1, 1, 1, 0), (3, 1, 2, 1, 0), (4, 2, 2, 2, 1))


def told(
    name: str, entries: Sequence[Sequence[int]], commits: Sequence[int], published: int, kind: str = "directory"
) -> Behaviour:
    names = ("num", "tick", "epoch", "rows", "from")
    listed: list[Mapping[str, int]] = [dict(zip(names, entry, strict=True)) for entry in entries]
    return Behaviour(name, kind, "store" if entries and entries[0][2] else "disk", listed, commits, published)


@pytest.mark.slow
def test_a_journal_that_is_not_a_behaviour_is_refused() -> None:
    right = [
        told("to the end", ENTRIES, [1, 2], 3),
        told("not handed over yet", ENTRIES, [1], 2),
        told("two ticks in one version", GATHERED, [1, 3], 3, "lake"),
        told("a second start on a store", STARTED, [1, 2], 2, "lake"),
    ]
    wrong = [
        told("handed over twice", ENTRIES, [1, 1], 3),
        told("lost in the target", ENTRIES, [2], 3),
        told("noted before it was handed over", ENTRIES, [1], 3),
        told("an entry is missing", [ENTRIES[0], ENTRIES[2]], [1, 2], 3),
        told("two ticks that were not gathered", [*GATHERED[:2], (3, 3, 0, 3, 2)], [1, 3], 3, "lake"),
        told("an epoch that nobody raised", [*STARTED[:2], STARTED[3]], [1, 2], 2, "lake"),
    ]
    assert [line.split(":")[0] for line in sorted(refused([*right, *wrong]))] == sorted(one.name for one in wrong)


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, KINDS.index("iceberg tables")], ids=["files", "iceberg tables"])
def test_a_real_journal_is_a_behaviour_until_something_of_it_changes(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    run = undisturbed(Case(number, tmp_path / "live"), spark, tmp_path / "kept", Sample(random.Random(4), 1000))
    found = behaviours(run.case.check, run.case.home, "live")
    assert found
    assert not refused(found)
    changed = [replace(one, name=f"{n}", commits=one.commits[:-1]) for n, one in enumerate(found) if one.commits]
    assert len(refused(changed)) == len(changed)
