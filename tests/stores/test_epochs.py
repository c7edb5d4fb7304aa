"""Drivers of one checkpoint in a store: only the last one that opened it can commit (semantics 14.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reliability.stores.proxy import LATE, LOSE, THROTTLE, Faults
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.plan.stored import StoredOperator, StoredPlan
from rowtime.runtime.handing_over import HandingOver
from rowtime.state import cuts
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.files import arrived, copy_folder, write_new
from rowtime.state.journal import KEPT_ENTRIES, LARGE
from tests.stores.conftest import STORES, folder_of

EMPTY = {"segments": {}, "sources": {}, "clocks": {}, "outputs": {}, "refused": {}, "control": {}}


@pytest.fixture(params=["memory", *STORES])
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Checkpoint]]:
    """Opens one and the same checkpoint, each time as another process would."""
    with folder_of(request.param, tmp_path, monkeypatch) as url:
        yield lambda: Checkpoint(place_of(url))


def commit(driver: Checkpoint, tick: int, **more: object) -> None:
    driver.journal.commit(tick, {**EMPTY, **more})


def last(checkpoint: Checkpoint) -> tuple[int, int]:
    entry = checkpoint.journal.last()
    return (-1, -1) if entry is None else (entry["tick"], entry["epoch"])


def code(refused: pytest.ExceptionInfo[Refused] | pytest.ExceptionInfo[Failure]) -> str:
    return refused.value.problems[0].code


def test_a_driver_that_has_been_succeeded_commits_nothing(opened: Callable[[], Checkpoint]) -> None:
    old, new = opened(), opened()
    old.acquire()
    assert last(old) == (-1, -1), "a checkpoint without a tick is fresh, whoever has opened it"
    assert old.journal.check() == -1
    commit(old, 0, by="old")
    identity = old.identity
    new.acquire()
    assert (last(new), new.identity) == ((0, 2), identity)
    with pytest.raises(Refused) as refused:
        commit(old, 1, by="old")
    assert code(refused) == "R403"
    commit(new, 1, by="new")
    commit(new, 2, by="new")
    with pytest.raises(Refused) as refused:
        commit(old, 1, by="old")
    assert code(refused) == "R403"
    reader = opened()
    assert reader.journal.check() == 2
    assert [(entry["tick"], entry["by"]) for entry in reader.journal.entries()] == [(0, "old"), (1, "new"), (2, "new")]


def test_a_driver_that_has_been_succeeded_before_the_first_tick_commits_nothing(
    opened: Callable[[], Checkpoint],
) -> None:
    old, new = opened(), opened()
    old.acquire()
    new.acquire()
    with pytest.raises(Refused) as refused:
        commit(old, 0)
    assert code(refused) == "R403"
    new.acquire()
    commit(new, 0)
    assert last(opened()) == (0, 2), "a driver has one epoch"


def test_an_entry_that_is_followed_by_another_driver_stays(
    opened: Callable[[], Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = opened(), opened()
    old.acquire()
    commit(old, 0)
    create = ObjectPlace.create

    def overtaken(place: ObjectPlace, data: bytes) -> None:
        monkeypatch.undo()
        create(place, data)
        new.acquire()  # after the entry, and before the old driver reads the next one

    monkeypatch.setattr(ObjectPlace, "create", overtaken)
    with pytest.raises(Refused) as refused:
        commit(old, 1)
    assert code(refused) == "R403"
    commit(new, 2)
    assert opened().journal.check() == 2


def test_a_former_driver_removes_nothing_of_its_successor(opened: Callable[[], Checkpoint]) -> None:
    old, new = opened(), opened()
    old.acquire()
    commit(old, 0)
    write_new(old.folder / "state" / "s" / "left", b"of a crash")
    entry = old.journal.last()
    new.acquire()
    new.sweep(new.journal.last())
    assert not [*new.folder.glob("state")]
    write_new(new.folder / "state" / "s" / "under way", b"of the new driver")
    cut = {"tick": 0, "sources": {}, "clocks": {}}
    cuts.note(new.folder, cut, [{"by": "new"}])
    # A directory is on a disk, so its staged files have no guard of their own.
    staged: list[str] = ["of the new driver"]
    stages: Any = {"p": SimpleNamespace(recover=lambda _staged: staged.clear())}
    nodes: Any = [SimpleNamespace(name="p", options=(), format="json")]
    handing_over = HandingOver(cast("Any", None), old, stages, nodes)
    for attempt in (
        lambda: old.sweep(entry),
        lambda: cuts.note(old.folder, cut, []),
        lambda: handing_over.finish({"tick": 0, "outputs": {}}),
        old.journal.settle,
    ):
        with pytest.raises(Refused) as refused:
            attempt()
        assert code(refused) == "R403"
    assert staged == ["of the new driver"]
    assert [path.name for path in new.folder.rglob("under*")] == ["under way"]
    assert cuts.noted(new.folder, {"cuts": 1})[0].settings == [{"by": "new"}]


def test_epochs_are_pruned_as_ticks_are_and_large_entries_have_bases(opened: Callable[[], Checkpoint]) -> None:
    large = {str(number): number for number in range(LARGE // 8)}
    for start in range(3):
        driver = opened()
        driver.acquire()
        for tick in range(start * 30, start * 30 + 30):
            commit(driver, tick, control=large, at=tick)
        driver.release()
    reader = opened()
    assert reader.journal.check() == 89
    entry = reader.journal.last()
    assert entry is not None
    assert (entry["epoch"], entry["control"], entry["at"]) == (3, large, 89)
    ticks = [entry["tick"] for entry in reader.journal.entries()]
    assert ticks == [*range(ticks[0], 90)]
    assert len(ticks) < 2 * KEPT_ENTRIES


def test_a_checkpoint_on_a_store_continues_in_a_folder(opened: Callable[[], Checkpoint], tmp_path: Path) -> None:
    driver = opened()
    driver.acquire()
    plan = StoredPlan("SELECT 1", {"s": StoredOperator("stream", "s", (), {})})
    driver.bind(plan)
    commit(driver, 0)
    driver.published = 0
    copy_folder(driver.folder, tmp_path / "copy")
    copy = Checkpoint(tmp_path / "copy")
    copy.acquire()
    copy.check()
    commit(copy, 1)
    assert (last(copy), copy.published, copy.identity) == ((1, 1), 0, driver.identity)
    assert copy.plan is not None
    assert copy.plan.sql == plan.sql
    assert max(path.name for path in (tmp_path / "copy" / "journal").iterdir()) == "000000000002.json"


def test_a_folder_with_other_content_is_not_a_checkpoint(opened: Callable[[], Checkpoint]) -> None:
    checkpoint = opened()
    write_new(checkpoint.folder / "rows" / "part-0.parquet", b"somebody's")
    with pytest.raises(Refused) as refused:
        checkpoint.acquire()
    assert code(refused) == "R421"


# -- behaviour of stores ----------------------------------------------------------------


def test_throttled_requests_are_repeated(stored: str, faults: Faults) -> None:
    driver = Checkpoint(place_of(stored))
    driver.acquire()
    faults.put("journal", THROTTLE, THROTTLE)
    commit(driver, 0)
    assert last(driver) == (0, 1)
    assert not faults.next


def test_a_commit_whose_answer_is_lost_is_recognised(stored: str, faults: Faults) -> None:
    driver = Checkpoint(place_of(stored))
    faults.put("journal", LOSE)
    driver.acquire()
    for kinds in ([LOSE], [LOSE, LOSE], [THROTTLE, LOSE]):
        faults.put("journal", *kinds)
        entry = driver.journal.last() or {"tick": -1}
        commit(driver, entry["tick"] + 1)
        assert not faults.next
    assert last(driver) == (2, 1)


def test_a_commit_is_one_write_and_the_delivery_record_another(stored: str, faults: Faults) -> None:
    driver = Checkpoint(place_of(stored))
    driver.acquire()
    commit(driver, 0)
    faults.seen.clear()
    commit(driver, 1)
    driver.published = 1
    arrived(driver.folder)
    asked = [(method, "journal" in path) for method, path in faults.seen]
    assert asked == [("PUT", True), ("GET", True), ("PUT", False)]


def test_equal_entries_of_another_driver_are_not_mistaken_for_own_ones(stored: str, faults: Faults) -> None:
    old, new = Checkpoint(place_of(stored)), Checkpoint(place_of(stored))
    old.acquire()
    new.acquire()
    commit(new, 0)
    faults.put("journal", LOSE)
    with pytest.raises(Refused) as refused:
        commit(old, 0)
    assert code(refused) == "R403"


def without_answers(stored: str, faults: Faults, patch: pytest.MonkeyPatch) -> Checkpoint:
    """A driver that has committed tick 0, and whose next writes of the journal arrive late."""
    patch.setattr("rowtime.core.stores.RETRIED", timedelta(milliseconds=1))
    patch.setattr("rowtime.core.stores.TRIES", 1)
    driver = Checkpoint(place_of(stored))
    driver.acquire()
    commit(driver, 0)
    faults.put("journal", *[LATE] * 20)
    return driver


def test_a_commit_that_arrives_after_its_driver_gave_up_has_no_effect(
    stored: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = without_answers(stored, faults, monkeypatch)
    with pytest.raises(Failure) as failed:
        commit(driver, 1, rows="swept")
    assert code(failed) == "R583"
    faults.next.clear()
    driver.journal.settle()
    assert set(faults.deliver()) <= {409, 412}
    commit(driver, 1, rows="kept")
    assert [entry.get("rows") for entry in driver.journal.entries()] == [None, "kept"]


def test_a_commit_that_arrives_before_its_driver_asks_again_counts(
    stored: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = without_answers(stored, faults, monkeypatch)
    with pytest.raises(Failure):
        commit(driver, 1, rows="there")
    faults.next.clear()
    assert faults.deliver()[0] in (200, 201)
    driver.journal.settle()
    entry = driver.journal.last()
    assert entry is not None
    assert (entry["tick"], entry["rows"]) == (1, "there")
    commit(driver, 2)
    assert driver.journal.check() == 2


def test_credentials_that_a_store_refuses_have_a_code_and_are_not_shown(
    stored: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "ask", lambda *_: (403, {}, b"<Error><Code>SignatureDoesNotMatch</Code></Error>"))
    for ask in (Checkpoint(place_of(stored)).acquire, lambda: write_new(place_of(stored) / "x", b"1")):
        with pytest.raises(Failure, match=r"R582 (the checkpoint .*: )?the bucket") as failed:
            ask()
        assert "of-no-use-elsewhere" not in str(failed.value)


def test_no_secret_is_written(stored: str) -> None:
    driver = Checkpoint(place_of(stored))
    driver.acquire()
    commit(driver, 0)
    assert [*place_of(stored).rglob("*.json")]
    found = b"".join(path.read_bytes() for path in place_of(stored).rglob())
    assert b"of-no-use-elsewhere" not in found
