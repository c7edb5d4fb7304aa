"""A log that is not the one that was read is noticed at the next look: restored older, rewritten, cut, or removed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rowtime.client import log_folder
from rowtime.client.log_items import Bound, Entry, Leave, file_name, link_of, parse_entry
from rowtime.client.stream_log import scan, survey
from rowtime.client.writer import Writer
from rowtime.core.errors import Failure

ANOTHER = "R501 the stream log .* is not the one that was read before"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_folder, "SHARD_FILES", 4)


def ticks() -> Iterator[int]:
    yield from range(1_000, 1_000_000)


CLOCK = ticks()


def fill(log: Path, count: int) -> list[Entry]:
    """Add items, and return all that a new reader sees."""
    with Writer(log, clock=lambda: next(CLOCK)) as writer:
        for number in range(count):
            writer.insert([{"x": number}])
    return scan(log, {})["main"]


def look(log: Path, last: Entry, most: int | None = None) -> list[int]:
    """Look as a reader that has read up to an item."""
    seen = survey(log, {"main": last.end}, most=most, links={"main": link_of(last)})["main"]
    return [entry.first for entry in seen.entries]


def rewind(log: Path, position: int) -> None:
    """Remove all items from a position on, as an older copy does not have them."""
    for path in [*log.rglob("?-*")]:
        entry = parse_entry(path.name)
        if entry is not None and entry.first >= position:
            path.unlink()
        elif path.is_dir() and path.name >= log_folder.shard_name(position) and not any(path.iterdir()):
            path.rmdir()


def test_an_item_names_the_link_of_the_one_before_it(log: Path) -> None:
    items = fill(log, 2) + fill(log, 1)[2:]
    assert [entry.follows for entry in items] == ["", link_of(items[0]), link_of(items[1])]
    assert len({link_of(entry) for entry in items}) == 3


def test_two_leaves_at_one_position_have_different_links(log: Path) -> None:
    links = []
    for _ in range(2):
        with Writer(log, clock=lambda: next(CLOCK)) as writer:
            writer.insert([{"x": 1}])
            writer.close(leave=True)
        leave = scan(log, {})["main"][-1]
        assert isinstance(leave, Leave)
        links.append(link_of(leave))
        shutil.rmtree(log)
    assert links[0] != links[1]


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("again", [0, 1, 2, 9])
def test_an_older_copy_that_was_written_past_the_reader_is_noticed(log: Path, again: int, most: int | None) -> None:
    last = fill(log, 8)[-1]
    assert look(log, last, most) == []
    rewind(log, 6)
    if again:
        fill(log, again)
    with pytest.raises(Failure, match=ANOTHER):
        look(log, last, most)


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("read", [*range(1, 9)])
def test_a_reader_of_the_same_log_goes_on(log: Path, read: int) -> None:
    last = fill(log, read)[-1]
    fill(log, 5)
    assert look(log, last) == [*range(read, read + 5)]


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("read", [4, 5, 8])
def test_items_that_were_read_may_be_removed(log: Path, read: int) -> None:
    last = fill(log, read)[-1]
    fill(log, 5)
    for path in [*log.rglob("r-*")]:
        entry = parse_entry(path.name)
        assert entry is not None
        if entry.first < read:
            path.unlink()
    assert look(log, last) == [*range(read, read + 5)]
    later = scan(log, {})["main"][-1]
    fill(log, 1)
    assert look(log, later) == [read + 5]


@pytest.mark.usefixtures("small_shards")
def test_removed_items_do_not_hide_another_history(log: Path) -> None:
    last = fill(log, 8)[-1]
    rewind(log, 6)
    fill(log, 4)
    shutil.rmtree(log / "main" / log_folder.shard_name(0))
    (log / "main" / log_folder.shard_name(4)).rename(log / "aside")
    with pytest.raises(Failure, match=ANOTHER):
        look(log, last)


def test_an_insert_of_another_size_over_the_reader_is_noticed(log: Path) -> None:
    last = fill(log, 4)[-1]
    rewind(log, 3)
    with Writer(log, clock=lambda: next(CLOCK)) as writer:
        writer.insert([{"x": 1}, {"x": 2}])
    with pytest.raises(Failure, match=ANOTHER):
        look(log, last)
    with pytest.raises(Failure, match=ANOTHER):  # without knowing the item, too
        survey(log, {"main": 4})


def test_a_mixture_of_two_copies_is_noticed_by_a_new_reader(log: Path, tmp_path: Path) -> None:
    fill(log, 2)
    shutil.copytree(log, tmp_path / "copy")
    fill(log, 3)
    fill(tmp_path / "copy", 2)
    [newest] = log.rglob("r-00000000000000000004-*")
    newest.rename(tmp_path / "copy" / newest.relative_to(log))
    assert len(scan(log, {})["main"]) == 4
    with pytest.raises(Failure, match=ANOTHER):
        scan(tmp_path / "copy", {})


@pytest.mark.parametrize("change", [lambda log: rewind(log, 2), shutil.rmtree])
def test_a_writer_does_not_go_on_in_a_log_that_lost_its_last_item(log: Path, change: Callable[[Path], None]) -> None:
    with Writer(log) as writer:
        for number in range(3):
            writer.insert([{"x": number}])
        change(log)
        with pytest.raises(Failure, match="R501"):
            writer.insert([{"x": 3}])


def test_a_log_of_an_older_version_goes_on_and_its_chain_begins_there(log: Path) -> None:
    fill(log, 3)
    for path in [*log.rglob("r-*")]:
        path.rename(path.with_name(re.sub("-p[0-9a-f]{16}", "", path.name)))
    old = scan(log, {})["main"]
    assert [entry.follows for entry in old] == ["", "", ""]
    items = fill(log, 2)
    assert [entry.follows for entry in items[3:]] == [link_of(old[-1]), link_of(items[3])]
    assert look(log, old[-1]) == [3, 4]
    rewind(log, 2)
    fill(log, 4)
    with pytest.raises(Failure, match=ANOTHER):
        look(log, old[-1])


def test_a_bound_without_an_arrival_may_have_a_link() -> None:
    bound = Bound(7, -5, follows="0123456789012345")
    assert parse_entry(file_name(bound)) == Bound(7, -5, file_name(bound), None, "0123456789012345")
