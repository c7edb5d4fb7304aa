"""Large journal entries: each stores the differences from a base, and is read back as it was committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowtime.core.errors import Failure
from rowtime.state.journal import BASES, KEPT_ENTRIES, Journal, applied, difference

NAMES = st.sampled_from(["a", "b", "c", "set", "in", "gone", ""])
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2) | st.lists(st.integers(0, 2), max_size=2)
OBJECTS = st.recursive(st.dictionaries(NAMES, LEAVES, max_size=4), lambda inner: st.dictionaries(NAMES, LEAVES | inner))


@given(OBJECTS, OBJECTS)
@example({"a": True}, {"a": 1})
@example({"a": {}}, {"a": None})
@example({"a": {"b": 1}}, {"a": {}})
def test_an_object_is_restored_from_its_difference(old: dict[str, Any], new: dict[str, Any]) -> None:
    before, text = json.dumps(old), json.dumps(difference(old, new))
    found = applied(old, json.loads(text))
    assert json.dumps(found, sort_keys=True) == json.dumps(new, sort_keys=True)
    assert json.dumps(old) == before
    assert difference(new, new) == {}


def entry(writers: int, tick: int) -> dict[str, Any]:
    """An entry like a stream's: two of ``writers`` in each tick, and the others have left."""
    offsets = {f"job-{n:06}": 1 if n < writers - 2 else tick for n in range(writers)}
    away = {f"job-{n:06}": "left" for n in range(writers - 2)}
    return {"sources": {"s": {"offsets": offsets, "away": away}}, "spans": [(0, tick)], "began": 17}


def as_text(entry: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(entry))
    return found


def whole(journal: Journal, tick: int) -> dict[str, Any]:
    return {name: value for name, value in journal.read(tick).items() if name not in {"tick", "format"}}


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.json"))


def test_an_entry_does_not_grow_with_the_writers_that_left(tmp_path: Path) -> None:
    folder, journal = tmp_path / "journal", Journal(tmp_path / "journal")
    for tick in range(60):
        journal.commit(tick, entry(2_000 + tick, tick))
    assert size(folder) < 3 * len(json.dumps(entry(2_000, 0))), "two bases and 60 small entries; not 60 large ones"
    assert (folder / f"{1:012d}.json").stat().st_size < 1_000
    for tick in (0, 1, 30, 59):
        assert whole(Journal(folder), tick) == as_text(entry(2_000 + tick, tick))


def test_small_entries_are_stored_as_they_are(tmp_path: Path) -> None:
    folder, journal = tmp_path / "journal", Journal(tmp_path / "journal")
    journal.commit(0, entry(10, 0))
    assert json.loads((folder / f"{0:012d}.json").read_text())["began"] == 17
    assert not (folder / BASES).exists()


def test_a_new_base_follows_once_the_differences_are_as_long(tmp_path: Path) -> None:
    folder, journal = tmp_path / "journal", Journal(tmp_path / "journal")
    for tick in range(40):  # each replaces nearly everything
        journal.commit(tick, {"all": {str(n): n + tick for n in range(2_000)}})
    bases = sorted(path.name for path in (folder / BASES).iterdir())
    assert 15 < len(bases) < 25
    assert size(folder) < 2.1 * 40 * len(json.dumps({str(n): n for n in range(2_000)}))


def test_bases_are_removed_with_their_entries(tmp_path: Path) -> None:
    folder, journal = tmp_path / "journal", Journal(tmp_path / "journal")

    def numbers(tick: int) -> dict[str, Any]:
        return {"all": {str(n): n + tick // 8 for n in range(2_000)}}  # a new base about every eight ticks

    journal.commit(0, numbers(0))
    leftover = folder / BASES / f"{1:012d}-abcdef.json"
    leftover.write_bytes(b"what a driver that died had begun")
    ticks = range(1, 3 * KEPT_ENTRIES + 1)
    for tick in ticks:
        journal.commit(tick, numbers(tick))
    assert not leftover.exists()
    assert all(whole(Journal(folder), tick) == as_text(numbers(tick)) for tick in ticks[-KEPT_ENTRIES:])
    assert min(path.name for path in (folder / BASES).iterdir()) > f"{2 * KEPT_ENTRIES - 32:012d}"


def test_another_process_continues_with_the_present_base(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    for tick in range(20):
        Journal(folder).commit(tick, entry(2_000, tick))
    assert len(list((folder / BASES).iterdir())) == 1
    assert whole(Journal(folder), 19) == as_text(entry(2_000, 19))


def test_changes_of_a_reader_to_an_entry_do_not_affect_the_next_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.commit(0, entry(2_000, 0))
    last = journal.last()
    assert last is not None
    last["sources"]["s"]["offsets"]["job-000000"] = 99
    journal.commit(1, entry(2_000, 1))
    assert whole(Journal(tmp_path / "journal"), 1) == as_text(entry(2_000, 1))


def test_an_entry_that_changes_in_memory_after_its_commit_is_distinguished_from_what_was_written(
    tmp_path: Path,
) -> None:
    journal, kept = Journal(tmp_path / "journal"), entry(2_000, 0)
    journal.commit(0, kept)
    kept["sources"]["s"]["offsets"]["job-000000"] = 5
    journal.commit(1, kept)
    assert whole(Journal(tmp_path / "journal"), 1)["sources"]["s"]["offsets"]["job-000000"] == 5


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_a_missing_or_damaged_base_is_noticed(tmp_path: Path, harm: str) -> None:
    folder, journal = tmp_path / "journal", Journal(tmp_path / "journal")
    journal.commit(0, entry(2_000, 0))
    (base,) = (folder / BASES).iterdir()
    if harm == "gone":
        base.unlink()
    else:
        base.write_bytes(base.read_bytes().replace(b'"left"', b'"lost"', 1))
    with pytest.raises(Failure, match="R406"):
        Journal(folder).last()
