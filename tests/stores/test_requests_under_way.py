"""Requests to a store that run in the background of a tick: who waits for them, and what their errors do."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from reliability.stores.proxy import LATE, LOSE, Faults
from rowtime.core.background import AT_ONCE
from rowtime.core.errors import Failure
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.runtime.sources.file_list import FileList, NumberedFile
from rowtime.runtime.sources.ledger import LedgerBook
from rowtime.state.files import arrived, begin, begin_to_remove

FILES = [NumberedFile(f"/in/{n}.parquet", n, 1) for n in range(4)]


def in_memory() -> ObjectPlace:
    found = place_of("memory://under-way/a")
    assert isinstance(found, ObjectPlace)
    return found


def test_readers_of_an_object_wait_until_it_is_written() -> None:
    place, go = in_memory() / "one", Event()

    def write() -> None:
        assert go.wait(10)
        place.upload(b"1")

    begin(place, write)
    begin(place / "other", go.set)
    assert place.read_bytes() == b"1"
    begin(place / "b" / "c", lambda: (place / "b" / "c").upload(b"2"))
    assert [path.name for path in (place / "b").iterdir()] == ["c"]


def test_requests_for_one_object_are_made_in_their_order() -> None:
    place = in_memory() / "one"

    def write(number: int) -> None:
        time.sleep(0.001 * (number % 3))
        place.upload(b"%d" % number)

    for number in range(3 * AT_ONCE):
        begin(place, partial(write, number))
    begin_to_remove(place / "never")
    arrived(place)
    assert place.read_bytes() == b"%d" % (3 * AT_ONCE - 1)


def test_an_error_of_a_request_is_raised_when_all_have_ended() -> None:
    place = in_memory()
    done: list[int] = []

    def fails() -> None:
        raise OSError("no space")

    def succeeds() -> None:
        time.sleep(0.05)
        done.append(1)

    begin(place / "bad", fails)
    begin(place / "good", succeeds)
    with pytest.raises(OSError, match="no space"):
        arrived(place)
    assert done == [1]
    arrived(place)


def test_on_a_disk_work_is_done_immediately(tmp_path: Path) -> None:
    begin(tmp_path / "a", (tmp_path / "a").touch)
    assert (tmp_path / "a").exists()


@pytest.mark.parametrize("fault", [LOSE, LATE])
def test_a_list_of_files_whose_write_failed_is_written_completely(
    stored: str, faults: Faults, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("rowtime.core.stores.RETRIED", timedelta(milliseconds=1))
    monkeypatch.setattr("rowtime.core.stores.TRIES", 1)
    notes = place_of(stored)
    known = FileList(notes)
    known.load(0, None)
    known.add(FILES[:2])
    known.write(2)
    arrived(notes)
    known.add(FILES[2:3])
    faults.put("files.jsonl", *[fault] * 20)
    known.write(3)
    with pytest.raises(Failure, match="R583"):
        arrived(notes)
    faults.next.clear()
    known.write(3)  # the tick is tried again
    arrived(notes)
    known.add(FILES[3:])
    known.write(4)
    arrived(notes)
    faults.deliver()
    again = FileList(place_of(stored))
    again.load(4, known.sum_of(4))
    assert again.files == FILES


def test_a_book_whose_write_failed_is_written_again(
    stored: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtime.core.stores.RETRIED", timedelta(milliseconds=1))
    monkeypatch.setattr("rowtime.core.stores.TRIES", 1)
    notes = place_of(stored)
    book = LedgerBook(notes)
    there, known = book.add(0, 0, [b"a", b"b"])
    arrived(notes)
    faults.put("ledger-", *[LOSE] * 20)
    book.add(there, known, [b"c"])
    with pytest.raises(Failure, match="R583"):
        arrived(notes)
    faults.next.clear()
    there, known = book.add(there, known, [b"c"])
    arrived(notes)
    assert [*LedgerBook(place_of(stored)).read(there, known)] == [b"a", b"b", b"c"]
