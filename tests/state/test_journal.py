"""The journal and a checkpoint: entries are there completely or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowtime.core.errors import Failure, Refused
from rowtime.plan.stored import FORMAT as PLAN_FORMAT
from rowtime.plan.stored import StoredOperator, StoredPlan
from rowtime.state import files
from rowtime.state.checkpoint import Checkpoint, folder_of
from rowtime.state.journal import KEPT_ENTRIES, Journal
from rowtime.state.sealed import FORMAT, READ

PLAN = StoredPlan("SELECT 1", {"s": StoredOperator("stream", "s", (), {"within": {"micros": 5}})})


def code(refused: pytest.ExceptionInfo[Refused]) -> str:
    return refused.value.problems[0].code


def tree(folder: Path) -> dict[str, bytes]:
    """Every file with its content, except the lock, which names its holder."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


# -- entries ----------------------------------------------------------------------------


def test_a_fresh_journal_has_no_last_entry(tmp_path: Path) -> None:
    assert Journal(tmp_path / "journal").last() is None


def test_the_last_entry_is_the_one_of_the_greatest_tick(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    for tick in (0, 1, 2):
        journal.commit(tick, {"clock": tick * 10})
    last = journal.last()
    assert last is not None
    assert (last["tick"], last["clock"], last["format"]) == (2, 20, FORMAT)
    assert journal.read(1)["clock"] == 10


def test_a_tick_is_committed_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.commit(0, {"who": "first"})
    with pytest.raises(Refused) as refused:
        Journal(tmp_path / "journal").commit(0, {"who": "second"})
    assert code(refused) == "R403"
    assert journal.read(0)["who"] == "first"
    assert [path.name for path in (tmp_path / "journal").iterdir()] == ["000000000000.json"], "no draft is left"


@pytest.mark.parametrize("torn", [b"", b'{"format": 1, "tick": 1, "clo', b'{"format": 1, "tick": 1}'])
def test_a_draft_left_by_a_crash_is_not_an_entry(tmp_path: Path, torn: bytes) -> None:
    journal = Journal(tmp_path / "journal")
    journal.commit(0, {"clock": 5})
    (tmp_path / "journal" / ".000000000001.json.0123456789abcdef").write_bytes(torn)
    last = journal.last()
    assert last is not None
    assert last["tick"] == 0
    journal.commit(1, {"clock": 6})
    assert journal.read(1)["clock"] == 6


def test_a_crash_before_the_link_leaves_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal")
    journal.commit(0, {"clock": 5})

    def no_link(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(files.os, "link", no_link)
    with pytest.raises(OSError, match="no space"):
        journal.commit(1, {"clock": 6})
    monkeypatch.undo()
    assert Journal(tmp_path / "journal").last() == journal.read(0)


def test_old_entries_are_pruned_so_that_a_start_lists_few(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    for tick in range(3 * KEPT_ENTRIES + 5):
        journal.commit(tick, {})
    there = sorted(path.stem for path in (tmp_path / "journal").iterdir())
    assert len(there) <= 2 * KEPT_ENTRIES
    assert int(there[-1]) == 3 * KEPT_ENTRIES + 4
    assert [int(name) for name in there] == list(range(int(there[0]), 3 * KEPT_ENTRIES + 5))


def test_the_journal_can_keep_more_entries(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.keeps = 2 * KEPT_ENTRIES + 10
    for tick in range(5 * KEPT_ENTRIES + 1):
        journal.commit(tick, {})
    there = journal.numbers()
    assert there == [*range(5 * KEPT_ENTRIES - journal.keeps + 1, 5 * KEPT_ENTRIES + 1)]
    assert journal.check() == 5 * KEPT_ENTRIES
    journal = Journal(tmp_path / "journal")
    journal.keeps = 1
    for tick in range(5 * KEPT_ENTRIES + 1, 6 * KEPT_ENTRIES + 1):
        journal.commit(tick, {})
    assert journal.numbers() == [*range(5 * KEPT_ENTRIES + 1, 6 * KEPT_ENTRIES + 1)], "those of the last 64 ticks stay"


def test_an_entry_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.commit(0, {})
    path = tmp_path / "journal" / "000000000001.json"
    path.write_text(json.dumps({"format": READ[-1] + 1, "tick": 1}))
    with pytest.raises(Refused) as refused:
        journal.last()
    assert code(refused) == "R402"


# -- the checkpoint ---------------------------------------------------------------------


def test_a_checkpoint_has_the_plan_that_it_was_given(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path).plan is None
    Checkpoint(tmp_path).bind(PLAN)
    found = Checkpoint(tmp_path).plan
    assert found == PLAN
    assert json.loads((tmp_path / "plan.json").read_text())["format"] == PLAN_FORMAT


def test_a_plan_counts_once_an_entry_names_it(tmp_path: Path) -> None:
    place = Checkpoint(tmp_path)
    place.bind(PLAN)
    for tick in (0, 1):
        place.journal.commit(tick, {"segments": {}})
    with pytest.raises(Refused):
        place.change(replace(PLAN, sql="never"), {"tick": 1, "segments": {}})
    assert place.plan == PLAN
    assert len(list((tmp_path / "plans").iterdir())) == 1
    place.sweep(place.journal.last())
    assert list((tmp_path / "plans").iterdir()) == []
    journaled = place.change(replace(PLAN, sql="SELECT 2"), {"tick": 2, "segments": {}})
    place.sweep(place.journal.last())
    assert [plan.sql for plan in (place.first_plan, *place.later_plans(journaled))] == ["SELECT 1", "SELECT 2"]
    assert place.plan == replace(PLAN, sql="SELECT 2", since=2)


def test_refused_rows_are_found_under_the_names_that_their_gate_had(tmp_path: Path) -> None:
    for gate, ticks in {"a": (1, 2, 7), "b": (3, 5)}.items():
        for tick in ticks:
            path = tmp_path / "rejected" / gate / f"{tick:012d}-00-x.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    place = Checkpoint(tmp_path)
    place.bind(replace(PLAN, spans={"b": [["a", 0, 2], ["b", 4, 2**62]], "a": [["a", 4, 2**62]]}))
    assert [path.parent.name + path.name[11] for path in place.rejected("b", 9)] == ["a1", "a2", "b5"]
    assert [path.name[11] for path in place.rejected("a", 9)] == ["7"]
    assert [path.name[11] for path in place.rejected("b", 1)] == ["1"]


@pytest.mark.parametrize("format_", [READ[0] - 1, READ[-1] + 1])
def test_a_checkpoint_of_another_format_is_refused_and_not_touched(tmp_path: Path, format_: int) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"format": format_, **PLAN.as_json()}))
    before = tree(tmp_path)
    with pytest.raises(Refused) as refused:
        _ = Checkpoint(tmp_path).plan
    assert code(refused) == "R402"
    assert tree(tmp_path) == before


def test_a_checkpoint_has_one_driver_at_a_time(tmp_path: Path) -> None:
    first, second = Checkpoint(tmp_path), Checkpoint(tmp_path)
    first.acquire()
    with pytest.raises(Refused) as refused:
        second.acquire()
    assert code(refused) == "R404"
    first.release()
    second.acquire()
    second.release()


def test_the_sweep_keeps_what_the_last_commit_knows_and_nothing_else(tmp_path: Path) -> None:
    kept = ["state/q/1.parquet", f"rejected/s/{3:012d}-00-a.parquet", "plan.json"]
    swept = ["state/q/2.parquet", f"rejected/s/{4:012d}-00-b.parquet"]
    for name in [*kept, *swept]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    place = Checkpoint(tmp_path)
    place.sweep({"tick": 3, "segments": {"q/state": [["state/q/1.parquet", 1, 0, 0, 0]]}})
    assert sorted(tree(tmp_path)) == sorted(kept)
    place.sweep(None)
    assert sorted(tree(tmp_path)) == ["plan.json"]


def test_refused_rows_are_found_up_to_a_tick_oldest_first(tmp_path: Path) -> None:
    names = [f"{tick:012d}-00-x.parquet" for tick in (10, 9, 2)]
    for name in names:
        (tmp_path / "rejected" / "s").mkdir(parents=True, exist_ok=True)
        (tmp_path / "rejected" / "s" / name).write_text("")
    place = Checkpoint(tmp_path)
    assert [path.name for path in place.rejected("s", 9)] == [names[2], names[1]]
    assert place.rejected("nobody", 9) == []


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", ".", "..", ".hidden", "ä b:c"])
def test_no_name_of_an_operator_leads_out_of_the_checkpoint(name: str) -> None:
    folder = folder_of(name)
    assert folder == Path(folder).name
    assert folder not in ("", ".", "..")


@given(st.lists(st.text(max_size=300), min_size=2, max_size=6, unique=True))
@example([".a", "a"])
@example(["/", "\x02f"])
@example(["", "_"])
@example(["x" * 300, "x" * 299 + "y"])
@example(["日" * 100, "日" * 101])
def test_no_two_operators_share_a_folder(names: list[str]) -> None:
    folders = [folder_of(name) for name in names]
    assert len(set(folders)) == len(names)
    assert all(0 < len(folder.encode()) <= 200 and not set(folder) & set("/\0") for folder in folders)


# -- files ------------------------------------------------------------------------------


def test_a_file_is_moved_whole_between_file_systems_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "from", tmp_path / "to"
    source.write_text("rows")
    real = Path.rename

    def rename(self: Path, to: Path) -> Path:
        if self == source:
            raise OSError("another file system")
        return real(self, to)

    monkeypatch.setattr(Path, "rename", rename)
    files.move(source, target)
    assert target.read_text() == "rows"
    assert [path.name for path in tmp_path.iterdir()] == ["to"]


def test_removing_a_missing_file_is_not_an_error(tmp_path: Path) -> None:
    files.remove(tmp_path / "nothing")
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    files.remove(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_the_journal_names_must_exist(tmp_path: Path) -> None:
    place = Checkpoint(tmp_path)
    place.journal.commit(0, {"plans": ["000001-abc123.json"]})
    with pytest.raises(Failure) as failed:
        _ = place.plan
    assert failed.value.problems[0].code == "R406"
