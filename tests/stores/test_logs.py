"""Stream logs in buckets: the same items as on a disk, one per writer and position, whatever a store answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from reliability.stores.proxy import LATE, LOSE, THROTTLE, Faults
from rowtime.client import log_bucket, log_folder, log_items, stream_log
from rowtime.client.log_items import Bound, ColumnBound, Entry, Leave, Rows
from rowtime.client.writer import Writer
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import Place, content_of, place_of
from rowtime.core.time import BEGINNING

DEFINITION = {
    "name": "s",
    "columns": [{"name": "x", "type": "BIGINT", "nullable": True}],
    "orders": [("x", "BIGINT", "ASCENDING")],
}


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.slow)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place for a log in a bucket."""
    url = f"memory://{tmp_path.name}/log" if request.param == "memory" else request.getfixturevalue("bucket")
    return place_of(url)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes and shards with few items."""
    for module in (log_bucket, log_folder):
        monkeypatch.setattr(module, "SHARD_FILES", 4)
    monkeypatch.setattr(log_bucket, "_FEW", 2)


def forget() -> None:
    """Read as another process would."""
    stream_log._buckets.clear()


def told(entry: Entry) -> Entry:
    """An entry, without its path."""
    there = replace(entry, path="", follows="")  # files and objects have other checksums, so other links
    return replace(there, sum=None) if isinstance(there, Rows | ColumnBound) else there


def rows(log: Place, entries: list[Entry]) -> list[Any]:
    files = [log / entry.path for entry in entries if isinstance(entry, Rows)]
    return [row for file in files for row in pq.read_table(content_of(file), partitioning=None).to_pylist()]


def numbers(log: Place, writer: str = "main") -> list[int]:
    forget()
    return [row["x"] for row in rows(log, stream_log.entries_of(log, writer))]


def code(error: pytest.ExceptionInfo[Any]) -> str:
    return str(error.value.problems[0].code)


def drawn(seed: int, log: Place) -> None:
    """Calls of two writers, some of which are opened again, each with its own clock."""
    draw, clock = random.Random(seed), iter(range(1000, 10_000))
    writers: dict[str, Writer] = {}

    def opened(name: str) -> Writer:
        if name not in writers:
            writers[name] = Writer(log, name, clock=lambda: next(clock), definition=DEFINITION)
        return writers[name]

    def insert(writer: Writer) -> None:
        given = [{"x": draw.randrange(99), "rowtime": draw.choice([None, draw.randrange(99)])} for _ in range(3)]
        writer.insert(given[: draw.randrange(4)])

    def reopen(writer: Writer) -> None:
        writers.pop(writer.name).close(leave=draw.random() < 0.5)

    steps: list[Callable[[Writer], Any]] = [
        *[insert] * 4,
        reopen,
        lambda writer: writer.set_rowtime_bound(draw.randrange(99), strict=draw.random() < 0.5),
        lambda writer: writer.set_bound("x", draw.randrange(99)),
    ]
    for _ in range(30):
        draw.choice(steps)(opened(draw.choice(["a", "b c"])))
    for writer in writers.values():
        writer.close()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("read", [5, 8, 9])
@pytest.mark.parametrize("again", [0, 2, 3, 7])
@pytest.mark.parametrize("cached", [True, False])
def test_a_log_that_was_restored_and_written_past_the_reader_is_noticed(
    log: Place, read: int, again: int, *, cached: bool
) -> None:
    with Writer(log) as writer:
        for number in range(read):
            writer.insert([{"x": number}])
    last = stream_log.scan(log, {})["main"][-1]
    links = {"main": log_items.link_of(last)}
    assert stream_log.survey(log, {"main": read}, links=links)["main"].entries == []
    for place in [*log.rglob("*")]:
        if place.name.isdecimal() and int(place.name) >= read - 2:
            place.unlink()
    before = dict(stream_log._buckets)
    forget()
    with Writer(log) as writer:  # a process that knows the last item from before looks again once there is a later one
        for number in range(again + (cached and again == 2)):
            writer.insert([{"x": -number}])
    forget()
    if cached:
        stream_log._buckets.update(before)
    with pytest.raises(Failure, match=r"R501 .* is not the one that was read before"):
        stream_log.survey(log, {"main": read}, links=links)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(3))
def test_the_same_calls_give_the_same_items_and_rows_as_on_a_disk(log: Place, tmp_path: Path, seed: int) -> None:
    here = tmp_path / "log"
    drawn(seed, here)
    drawn(seed, log)
    forget()
    there, wanted = stream_log.scan(log, {}), stream_log.scan(here, {})
    assert {name: [*map(told, found)] for name, found in there.items()} == {
        name: [*map(told, found)] for name, found in wanted.items()
    }
    assert {name: rows(log, found) for name, found in there.items()} == {
        name: rows(here, found) for name, found in wanted.items()
    }
    for name, found in there.items():
        of_rows = [entry.path for entry in found if isinstance(entry, Rows)]
        together = [row for part in stream_log.rows(log, of_rows) for row in part.to_pylist()]
        assert together == rows(log, found)
        stream_log.check(log, [entry.path for entry in found])
        last = stream_log.last_entry(log, name)
        assert last is not None
        assert told(last) == told(wanted[name][-1])
        for at in [0, *(entry.end for entry in found)]:
            forget()
            seen = stream_log.survey(log, {name: at}, most=1)[name]
            left = [told(entry) for entry in found if entry.first >= at]
            assert [*map(told, seen.entries)] == left[: len(seen.entries)]
            assert (len(seen.entries) == len(left)) is seen.to_end
            for kind in (Rows, Bound, Leave, ColumnBound):
                mine = stream_log.last_entry(log, name, kind)
                assert mine == next((entry for entry in reversed(found) if isinstance(entry, kind)), None)


def test_of_two_processes_with_one_name_the_slower_one_is_refused_and_nothing_is_lost(log: Place) -> None:
    one, other = Writer(log), Writer(log)
    one.insert([{"x": 1}])
    for attempt in (lambda: other.insert([{"x": 2}]), lambda: other.set_rowtime_bound(5)):
        with pytest.raises(Refused, match='writer="second"') as refused:
            attempt()
        assert code(refused) == "R214"
    one.insert([{"x": 3}])
    assert numbers(log) == [1, 3]
    with Writer(log, "second") as second:
        second.insert([{"x": 2}])
        one.insert([{"x": 4}])
        second.insert([{"x": 5}])
    assert (numbers(log), numbers(log, "second")) == ([1, 3, 4], [2, 5])
    with Writer(log) as again:
        assert again.insert([{"x": 2}]) == 3
    assert numbers(log) == [1, 3, 4, 2]


def test_a_fence_keeps_an_older_process_out_and_changes_nothing(log: Place) -> None:
    for name, ends in (("new", []), ("here", [Rows, Bound]), ("gone", [Rows, Leave, Leave])):
        old = Writer(log, name)
        if ends:
            old.insert([{"x": 1}])
        if ends[1:] == [Leave, Leave]:
            old.close(leave=True)
            old = Writer(log, name)
        new = Writer(log, name)
        new.fence()
        with pytest.raises(Refused, match="R214"):
            old.insert([{"x": 2}])
        entries = stream_log.entries_of(log, name)
        assert [type(entry) for entry in entries] == (ends or [Leave])
        assert all(entry.at == BEGINNING for entry in entries if isinstance(entry, Bound))


def test_users_of_a_dropped_log_get_an_error(log: Place) -> None:
    late, writer = Writer(log, "late"), Writer(log)
    writer.insert([{"x": 1}])
    assert stream_log.survey(log, {"main": 1})["main"].to_end
    log_bucket.LogBucket(log).drop()  # type: ignore[arg-type]  # it is in a bucket
    for act in (
        lambda: writer.insert([{"x": 2}]),
        lambda: late.insert([{"x": 2}]),
        lambda: stream_log.scan(log, {"main": 1}),
        lambda: stream_log.scan(log, {}),
    ):
        with pytest.raises(Failure, match="its stream was dropped") as failed:
            act()
        assert code(failed) == "R501"


def test_missing_or_damaged_items_are_reported(log: Place) -> None:
    with Writer(log, definition=DEFINITION) as writer:
        for number in range(4):
            writer.insert([{"x": number}])
        writer.set_bound("x", 9)
    entries = stream_log.entries_of(log, "main")
    path = log / entries[1].path
    data = path.read_bytes()
    for at in (10, len(data) // 2):
        path.write_bytes(data) if isinstance(path, Path) else path.upload(
            data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        )
        forget()
        with pytest.raises(Failure, match="its checksum differs") as failed:
            stream_log.check(log, [entry.path for entry in entries])
        assert code(failed) == "R524"
    path.unlink()
    forget()
    with pytest.raises(Failure, match="before position 2 are missing") as failed:
        stream_log.scan(log, {})
    assert code(failed) == "R501"
    last = log / entries[4].path
    last.unlink()
    with pytest.raises(Failure, match="the reader at 5"):
        stream_log.scan(log, {"main": 5})


# -- behaviour of stores ----------------------------------------------------------------


def test_throttled_requests_are_repeated_and_lost_answers_looked_up(stored: str, faults: Faults) -> None:
    writer = Writer(stored)
    for number, kinds in enumerate(([LOSE], [THROTTLE], [LOSE, LOSE], [THROTTLE, LOSE], [LOSE])):
        faults.put("main", *kinds)
        writer.set_rowtime_bound(number) if number == 4 else writer.insert([{"x": number}])
        assert not faults.next
    assert writer.position == 5
    assert numbers(place_of(stored)) == [0, 1, 2, 3]


def test_equal_rows_of_another_process_are_not_mistaken_for_own_rows(stored: str, faults: Faults) -> None:
    one, other = (Writer(stored, clock=lambda: 7) for _ in range(2))
    one.insert([{"x": 1}])
    faults.put("main", LOSE)
    with pytest.raises(Refused, match="R214"):
        other.insert([{"x": 1}])
    assert numbers(place_of(stored)) == [1]


@pytest.mark.parametrize("arrives", ["before", "after", "never"])
def test_an_insert_without_an_answer_is_there_once_or_never(
    stored: str, faults: Faults, monkeypatch: pytest.MonkeyPatch, arrives: str
) -> None:
    monkeypatch.setattr("rowtime.core.stores.RETRIED", timedelta(milliseconds=1))
    monkeypatch.setattr("rowtime.core.stores.TRIES", 1)
    writer = Writer(stored)
    writer.insert([{"x": 0}])
    faults.put("main", *[LATE] * 20)
    with pytest.raises(Failure) as failed:
        writer.insert([{"x": 1}, {"x": 2}])
    assert code(failed) == "R583"
    with pytest.raises(Failure, match="R583"):
        writer.set_rowtime_bound(3)
    faults.next.clear()
    if arrives == "before":
        assert faults.deliver()[0] in (200, 201)
    there = writer.position == 3
    assert there is (arrives == "before")
    if arrives == "after":
        assert set(faults.deliver()) <= {409, 412}
    writer.insert([{"x": 9}] if there else [{"x": 1}, {"x": 2}, {"x": 9}])
    assert numbers(place_of(stored)) == [0, 1, 2, 9]


def test_the_requests_of_an_insert_and_a_look(stored: str, faults: Faults) -> None:
    log = place_of(stored)
    writer = Writer(log)
    writer.insert([{"x": 0}])
    faults.seen.clear()
    writer.insert([{"x": 1}] * 1000)
    assert [method for method, _ in faults.seen] == ["PUT"]
    stream_log.survey(log, {"main": 1})
    faults.seen.clear()
    stream_log.survey(log, {"main": 1001})
    a_list = "comp=list" if stored.startswith("az:") else "list-type=2"
    assert [a_list in path for _, path in faults.seen] == [True, True], "who writes, and what is new"
    writer.insert([{"x": 2}])
    faults.seen.clear()
    assert [entry.first for entry in stream_log.survey(log, {"main": 1001})["main"].entries] == [1001]
    an_item = 1 + stored.startswith("az:")  # a store that does not support ranges from the end of an object
    assert len(faults.seen) == 2 + an_item
    forget()
    faults.seen.clear()
    Writer(log)
    assert len(faults.seen) == 2 + an_item


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("processes", ["one", "many"])
def test_small_items_are_read_together(stored: str, faults: Faults, processes: str) -> None:
    log, writer = place_of(stored), Writer(place_of(stored))
    for number in range(41):
        if processes == "many":
            writer.close()
            writer = Writer(log)
        writer.insert([{"x": number}] * (20_000 if number == 2 else 1))  # one that is too large
    forget()
    paths = [entry.path for entry in stream_log.entries_of(log, "main")]
    faults.seen.clear()
    found = stream_log.rows(log, paths)
    assert [part["x"][0].as_py() for part in found] == [*range(41)]
    assert sum(path.endswith(paths[2]) for _, path in faults.seen) == 1
    assert len(faults.seen) < 25, "the one, those behind the last pack, a list, and one for each pack"


@pytest.mark.usefixtures("small")
def test_a_damaged_or_missing_pack_costs_requests_but_no_row(log: Place) -> None:
    with Writer(log) as writer:
        for number in range(12):
            writer.insert([{"x": number}])
    paths = [entry.path for entry in stream_log.entries_of(log, "main") if isinstance(entry, Rows)]
    packs = sorted((log / ".packs" / "main").iterdir())
    assert len(packs) == 3
    data = packs[0].read_bytes()
    for content in (data[:50], data[:40] + bytes([data[40] ^ 1]) + data[41:], packs[1].read_bytes()):
        (log / ".packs" / "main" / packs[0].name).upload(content)  # type: ignore[union-attr]  # it is in a bucket
        forget()
        assert [part["x"][0].as_py() for part in stream_log.rows(log, paths)] == [*range(12)]
    for pack in packs:
        pack.unlink()
    forget()
    assert [part["x"][0].as_py() for part in stream_log.rows(log, paths)] == [*range(12)]
    (log / paths[5]).unlink()
    with pytest.raises(Failure, match="is gone") as failed:
        stream_log.rows(log, paths)
    assert code(failed) == "R524"


@pytest.mark.usefixtures("small")
def test_an_index_that_cannot_be_written_is_ignored(
    stored: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = place_of(stored)
    with Writer(log) as writer:
        ask = faults.ask

        def refusing(method: str, path: str, *request: Any) -> tuple[int, dict[str, str], bytes]:
            return (403, {}, b"") if method == "PUT" and ".index" in unquote(path) else ask(method, path, *request)

        monkeypatch.setattr(faults, "ask", refusing)
        for number in range(6):
            writer.insert([{"x": number}])
    monkeypatch.setattr(faults, "ask", ask)
    with Writer(log) as writer:
        writer.insert([{"x": 6}])
    assert stream_log.opened(log).indexes("main") == [7]  # type: ignore[attr-defined]  # it is in a bucket
    assert numbers(log) == [*range(7)]
