"""The log on disk: file names hold the metadata, listings read only new items, gaps are found."""

from __future__ import annotations

import fcntl
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtime.client import log_folder, log_items, stream_log
from rowtime.client.log_items import Bound, ColumnBound, Entry, Leave, Order, Rows, file_name, parse_entry
from rowtime.client.stream_log import scan, survey
from rowtime.client.writer import Writer
from rowtime.core.errors import Failure
from rowtime.core.time import BEGINNING, END, wall_clock

micros = st.integers(BEGINNING, END)
positions = st.integers(0, 2**63 - 1)
sums = st.none() | st.integers(0, 2**32 - 1)
paths = st.just("")
links = st.just("") | st.integers(0, 2**64 - 1).map("{:016x}".format)
entries = st.one_of(
    st.builds(
        Rows, positions, st.integers(1, 10**9), micros, micros, st.sampled_from(Order), micros, paths, sums, links
    ),
    st.builds(ColumnBound, positions, paths, sums, links),
    st.builds(Bound, positions, micros, paths, st.none() | micros, links),
    st.builds(Leave, positions, paths, links),
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_folder, "SHARD_FILES", 4)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories that are listed from now on."""
    seen: list[str] = []
    original = log_folder._names

    def names(directory: Path) -> list[str]:
        seen.append(directory.name)
        return original(directory)

    monkeypatch.setattr(log_folder, "_names", names)
    return seen


def fill(log: Path, count: int, name: str = "main") -> None:
    with Writer(log, name) as writer:
        for number in range(count):
            writer.insert([{"x": number, "rowtime": number}])


def firsts(found: list[Entry]) -> list[int]:
    return [entry.first for entry in found]


@given(entries)
def test_a_name_says_everything_about_an_entry(entry: Entry) -> None:
    parsed = parse_entry(file_name(entry))
    assert parsed is not None
    assert parsed == type(entry)(**{**entry.__dict__, "path": parsed.path})


@given(st.lists(positions, min_size=2, max_size=5))
def test_names_sort_as_positions_do(found: list[int]) -> None:
    names = [file_name(Leave(position)) for position in sorted(found)]
    assert names == sorted(names)


@pytest.mark.parametrize("name", [".insert", "r-1.parquet", "b-00000000000000000001", "_SUCCESS", "notes.txt"])
def test_other_files_are_not_entries(name: str) -> None:
    assert parse_entry(name) is None


def test_a_log_that_does_not_exist_has_no_writers(log: Path) -> None:
    assert scan(log, {}) == {}
    assert stream_log.last(log) == {}


def test_a_writer_exists_from_its_first_item(log: Path) -> None:
    with Writer(log, "quiet", clock=lambda: 70) as writer:
        assert scan(log, {}) == {}
        writer.set_rowtime_bound(-5)
        path = "quiet/s-00000000000000000000/b-00000000000000000000--5-70"
        assert scan(log, {}) == {"quiet": [Bound(0, -5, path, 70)]}


def test_bounds_of_older_logs_have_no_arrival() -> None:
    assert parse_entry("b-00000000000000000007--5") == Bound(7, -5, "b-00000000000000000007--5")
    assert log_items.file_name(Bound(7, -5)) == "b-00000000000000000007--5"


def test_arrivals_of_bounds_and_rows_do_not_go_back(log: Path) -> None:
    clock = iter([50, 40, 30, 20])
    with Writer(log, "main", clock=lambda: next(clock)) as writer:
        writer.set_rowtime_bound(1)
        writer.insert([{"x": 1}])
    with Writer(log, "main", clock=lambda: next(clock)) as writer:
        writer.set_rowtime_bound(2)
        writer.insert([{"x": 1}])
    assert [entry.arrival for entry in scan(log, {})["main"] if isinstance(entry, Bound | Rows)] == [50, 50, 50, 50]


def test_a_scan_returns_what_is_after_a_position_per_writer(log: Path) -> None:
    fill(log, 3, "a")
    fill(log, 2, "b")
    found = scan(log, {"a": 2})
    assert {name: firsts(part) for name, part in found.items()} == {"a": [2], "b": [0, 1]}
    assert {name: firsts(part) for name, part in scan(log, {"a": 3}, exclude=["b"]).items()} == {"a": []}


@pytest.mark.usefixtures("small_shards")
def test_listing_new_items_does_not_touch_old_shards(log: Path, listed: list[str]) -> None:
    fill(log, 41)
    listed.clear()
    assert firsts(scan(log, {"main": 39})["main"]) == [39, 40]
    assert listed == ["log", "main", "s-00000000000000000036", "s-00000000000000000040"]
    listed.clear()
    assert scan(log, {"main": 41})["main"] == []
    assert listed == ["log", "main", "s-00000000000000000040"]


@pytest.mark.usefixtures("small_shards")
def test_a_backlog_can_be_listed_piece_by_piece(log: Path, listed: list[str]) -> None:
    fill(log, 41)
    listed.clear()
    found = survey(log, {"main": 8}, most=2)["main"]
    assert (firsts(found.entries), found.to_end) == ([*range(8, 16)], False)
    assert len(listed) == 4
    assert survey(log, {"main": 36}, most=2)["main"].to_end


@pytest.mark.usefixtures("small_shards")
def test_no_shard_has_more_files_than_the_limit(log: Path) -> None:
    fill(log, 3)
    fill(log, 6)
    shards = sorted((log / "main").glob("s-*"))
    assert [len(list(shard.iterdir())) for shard in shards] == [4, 4, 1]


@pytest.mark.usefixtures("small_shards")
def test_the_last_entry_is_found_behind_an_empty_shard(log: Path) -> None:
    fill(log, 4)
    (log / "main" / log_folder.shard_name(4)).mkdir()
    assert firsts([*stream_log.last(log).values()]) == [3]
    fill(log, 1)
    assert firsts(scan(log, {})["main"]) == [0, 1, 2, 3, 4]


def hide(log: Path, position: int) -> tuple[Path, Path]:
    (path,) = (log / "main").rglob(f"r-{position:020}-*")
    return path, path.rename(log / path.name)


def test_a_file_that_a_listing_misses_is_found_by_the_second(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(log, 3)
    path, aside = hide(log, 0)
    original = log_folder.shard_entries

    def racing(log: Path, writer: str, shard: int) -> list[Entry]:
        found = original(log, writer, shard)
        if aside.exists():
            aside.rename(path)
        return found

    monkeypatch.setattr(log_folder, "shard_entries", racing)
    assert firsts(scan(log, {})["main"]) == [0, 1, 2]


def test_items_after_a_new_gap_wait(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(log, 4)
    original, answers = log_folder.shard_entries, iter([[1], [0, 1, 3]])

    def racing(log: Path, writer: str, shard: int) -> list[Entry]:
        shown = next(answers)
        return [entry for entry in original(log, writer, shard) if entry.first in shown]

    monkeypatch.setattr(log_folder, "shard_entries", racing)
    assert firsts(scan(log, {})["main"]) == [0, 1]


def test_a_lost_file_is_a_failure_never_a_silent_gap(log: Path) -> None:
    fill(log, 4)
    hide(log, 2)
    for after in ({}, {"main": 2}):
        with pytest.raises(Failure, match="before position 3 are missing"):
            scan(log, after)


@pytest.mark.usefixtures("small_shards")
def test_a_new_reader_starts_at_the_first_retained_item_and_an_old_one_fails(log: Path) -> None:
    fill(log, 9)
    shutil.rmtree(log / "main" / log_folder.shard_name(0))
    assert firsts(scan(log, {})["main"]) == [4, 5, 6, 7, 8]
    with pytest.raises(Failure, match="missing"):
        scan(log, {"main": 2})


def test_a_log_that_was_replaced_is_a_failure(log: Path) -> None:
    fill(log, 2)
    with pytest.raises(Failure, match="at position 2, the reader at 5"):
        scan(log, {"main": 5})
    with pytest.raises(Failure, match="other are gone"):
        scan(log, {"other": 5})


def test_the_end_is_not_seen_while_a_living_writer_inserts(log: Path) -> None:
    fill(log, 1)
    marker = log / "main" / log_folder.UNDER_WAY
    marker.touch()
    with (log / "main" / log_folder.LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert survey(log, {})["main"].to_end is False
    assert survey(log, {})["main"].to_end is True, "the leftover of a crash holds nobody up"
    assert marker.exists()


def test_items_inserted_after_the_end_was_seen_arrive_after_the_survey_began(log: Path) -> None:
    """The law of ``Seen.to_end``, tested on a writer that inserts as fast as it can."""
    fill(log, 1)
    promised, last = 0, 0
    with Writer(log) as writer, ThreadPoolExecutor(1) as pool:
        inserts = pool.submit(lambda: [writer.insert([{"x": 1}]) for _ in range(300)])
        at = 0
        while not inserts.done():
            now = wall_clock()
            seen = survey(log, {"main": at})["main"]
            assert all(entry.arrival >= promised for entry in seen.entries if isinstance(entry, Rows))
            promised, last = (now, last + 1) if seen.to_end else (promised, last)
            at = seen.entries[-1].end if seen.entries else at
    assert last > 0, "the end was seen now and then"


def test_writers_with_odd_names_stay_apart(log: Path) -> None:
    names = ["main", "Main", "a/b", "a%2Fb", "ü", ".."]
    for name in names:
        fill(log, 1, name)
    assert list(scan(log, {})) == sorted(names)
    assert len(list(log.iterdir())) == len(names)


def test_a_changed_byte_of_a_log_is_found_by_the_name_of_its_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Writer(log) as writer:
        writer.insert([{"k": "HELLO"}])
    (entry,) = stream_log.scan(log, {})["main"]
    assert isinstance(entry, Rows)
    assert entry.sum is not None
    assert log_items.parse_entry(log_items.file_name(entry)) == replace(entry, path=log_items.file_name(entry))
    stream_log.check(log, [entry.path])
    path = log / entry.path
    path.write_bytes(path.read_bytes().replace(b"HELLO", b"JELLY"))
    for said in ("checksum differs", "is gone"):
        with pytest.raises(Failure, match=said) as found:
            stream_log.check(log, [entry.path])
        assert found.value.problems[0].code == "R524"
        assert str(path) in str(found.value)
        path.unlink(missing_ok=True)


def test_files_of_an_older_version_have_no_checksum(tmp_path: Path) -> None:
    old = Rows(3, 2, 0, 0, Order.NONE, -5, f"main/{log_folder.shard_name(0)}/{file_name_of_old(3)}")
    assert log_items.parse_entry(old.path) == old
    (tmp_path / old.path).parent.mkdir(parents=True)
    (tmp_path / old.path).touch()
    stream_log.check(tmp_path, [old.path])


def file_name_of_old(first: int) -> str:
    return f"r-{first:020}-2-0-0-n--5.parquet"
