"""A target that does not have the rows that its pump has written is refused, by what identifies it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan
from rowtime.core.counts import counted
from rowtime.core.errors import RowtimeError
from rowtime.runtime.sinks.directory import mark_in
from rowtime.runtime.sinks.ownership import tag_of
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.journal import Journal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM s (id INT);
CREATE STREAM t (id INT);
CREATE STREAM d (id INT) USING parquet OPTIONS (path '{out}');
CREATE PUMP p AS INSERT INTO t SELECT STREAM id FROM s;
CREATE PUMP q AS INSERT INTO d SELECT STREAM id FROM s;
"""


class Place:
    """A pipeline whose two pumps copy a stream into a log and into a directory."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.home, self.check, self.out = spark, folder / "home", folder / "check", folder / "out"
        self.log, self.folder, self.consumed, self._next = self.home / "logs" / "t", folder, list[int](), 0
        self.run()

    def send(self, count: int = 1) -> None:
        with rt.writer("s", home=self.home) as log:
            log.insert([{"id": self._next + n, "rowtime": self._next + n} for n in range(count)])
        self._next += count

    def bound(self, at: int) -> None:
        with rt.writer("s", home=self.home) as log:
            log.set_rowtime_bound(at)

    def fork(self, last: Callable[[], None]) -> None:
        """Add something in this copy of all parts, and something else in the other one, whose parts are aside."""
        parts = ("check", "home", "out")
        for name in parts:
            shutil.copytree(self.folder / name, self.folder / "copy" / name)
        number = self._next
        self._next += 100
        last()
        self.run()
        for name in parts:
            (self.folder / name).rename(self.folder / f"other-{name}")
            shutil.copytree(self.folder / "copy" / name, self.folder / name)
        self._next = number
        last()
        self.run()

    def run(self) -> None:
        rt.Pipeline(self.spark, home=self.home).sql(SQL.format(out=self.out)).run_available(self.check)

    def ticks(self, count: int) -> None:
        for _ in range(count):
            self.send()
            self.run()

    def refused(self) -> str:
        """Run it; return the first message. It is refused again, and neither target changes."""
        before = self.written()
        messages = []
        for _ in range(2):
            with pytest.raises(RowtimeError) as refused:
                self.run()
            messages.append(str(refused.value))
        assert self.written() == before
        return messages[0]

    def consume(self) -> None:
        for path in sorted(self.out.glob("*.parquet")):
            self.consumed += pq.read_table(path)["id"].to_pylist()
            path.unlink()

    def written(self) -> tuple[list[int], list[int]]:
        entries = scan(self.log, {}).get("pump.p", []) if self.log.exists() else []
        items = [self.log / entry.path for entry in entries if isinstance(entry, Rows)]
        return ids(items), ids(sorted(self.out.glob("*.parquet")))


def ids(files: Sequence[Path]) -> list[int]:
    return [number for file in files for number in pq.read_table(file)["id"].to_pylist()]


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    return Place(spark, tmp_path)


def swap(place: Path, copy: Path) -> None:
    shutil.rmtree(place)
    shutil.copytree(copy, place)


def test_a_log_that_was_restored_got_a_gap(place: Place) -> None:
    place.ticks(1)
    shutil.copytree(place.log, place.folder / "copy")
    place.ticks(2)
    swap(place.log, place.folder / "copy")
    place.send()
    assert "R564 the pump p has written 2 rows to the log of the stream t, which has 1 of them" in place.refused()


@pytest.mark.parametrize("lost", [shutil.rmtree, lambda log: shutil.rmtree(log / "pump%2Ep")])
def test_a_log_that_was_removed_is_refused(place: Place, lost: Callable[[Path], None]) -> None:
    place.ticks(2)
    lost(place.log)
    assert "R564 the pump p" in place.refused()


def test_a_log_of_another_copy_of_the_checkpoint_is_refused_although_it_has_as_many_rows(place: Place) -> None:
    place.ticks(1)
    for name in ("check", "home", "out"):
        shutil.copytree(place.folder / name, place.folder / "copy" / name)
    place.ticks(3)
    for name in ("check", "home", "out"):
        (place.folder / name).rename(place.folder / f"first-{name}")
        shutil.copytree(place.folder / "copy" / name, place.folder / name)
    place.ticks(3)
    shutil.copytree(place.log, place.folder / "good")
    swap(place.log, place.folder / "first-home" / "logs" / "t")
    assert "R564 the pump p has written 3 rows to the log of the stream t, which has others" in place.refused()
    swap(place.log, place.folder / "good")
    place.ticks(1)
    swap(place.out, place.folder / "first-out")
    assert "R564 the pump q" in place.refused()


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("count", [1, 2])
def test_a_log_that_was_forked_by_the_last_tick_alone_was_not_noticed(place: Place, before: int, count: int) -> None:
    place.ticks(before)
    place.fork(lambda: place.send(count))
    swap(place.log, place.folder / "other-home" / "logs" / "t")
    said = f"R564 the pump p has written {counted(before + count, 'rows')} to the log of the stream t, which has those"
    place.send()
    assert f"{said} of another copy of the checkpoint" in place.refused()


def test_a_log_that_was_forked_by_a_bound_alone_is_refused(place: Place) -> None:
    place.ticks(1)
    bounds = iter([1_000, 500])
    place.fork(lambda: place.bound(next(bounds)))
    swap(place.log, place.folder / "other-home" / "logs" / "t")
    assert "which has those of another copy of the checkpoint" in place.refused()


@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_directory_that_was_forked_by_the_last_tick_alone_was_not_noticed(place: Place, before: int) -> None:
    place.ticks(before)
    place.fork(place.send)
    swap(place.out, place.folder / "other-out")
    assert "R564 the pump q" in place.refused()


def test_a_directory_that_lost_its_only_tick_is_refused(place: Place) -> None:
    place.ticks(1)
    shutil.rmtree(place.out)
    assert "R564 the pump q has written 1 row to" in place.refused()


def test_items_of_a_log_that_were_read_may_be_removed_and_rows_are_not_written_twice(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtime.client.log_folder.SHARD_FILES", 2)
    place.ticks(3)
    for shard in sorted((place.log / "pump%2Ep").glob("s-*"))[:-1]:
        shutil.rmtree(shard)
    left = place.written()[0]
    (place.check / "published").unlink()  # as if it had crashed: the last tick is delivered again
    place.ticks(2)
    assert place.written()[0] == [*left, 3, 4]


def test_rows_were_written_twice_after_their_files_were_moved_away(place: Place) -> None:
    place.ticks(1)
    place.consume()
    shutil.copytree(place.check, place.folder / "copy")
    place.ticks(2)
    place.consume()
    swap(place.check, place.folder / "copy")
    shutil.rmtree(place.log)  # so that only the directory knows
    assert "R420" in (said := place.refused()) or "R564" in said
    assert place.consumed == [0, 1, 2]


def test_the_mark_alone_tells_that_a_checkpoint_is_older(spark: SparkSession, tmp_path: Path) -> None:
    sql = f"CREATE STREAM s (id INT); CREATE STREAM d (id INT) USING parquet OPTIONS (path '{tmp_path / 'out'}');"
    sql += "CREATE PUMP q AS INSERT INTO d SELECT STREAM id FROM s;"

    def tick(number: int) -> None:
        with rt.writer("s", home=tmp_path / "home") as log:
            log.insert([{"id": number, "rowtime": number}])
        rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(tmp_path / "check")
        for path in (tmp_path / "out").glob("*.parquet"):
            path.unlink()

    rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(tmp_path / "check")
    tick(0)
    shutil.copytree(tmp_path / "check", tmp_path / "copy")
    tick(1)
    swap(tmp_path / "check", tmp_path / "copy")
    with pytest.raises(rt.Failure, match=r"R420 .*out has rows of tick 2, or has had them"):
        tick(2)


@pytest.mark.parametrize("emptied", [False, True])
def test_a_directory_that_was_restored_or_emptied_is_noticed_as_a_table_is(place: Place, *, emptied: bool) -> None:
    place.ticks(1)
    shutil.copytree(place.out, place.folder / "copy")
    place.ticks(2)
    shutil.rmtree(place.out)
    if not emptied:
        shutil.copytree(place.folder / "copy", place.out)
    said = "which has no mark of them" if emptied else "which by its mark has 1 of them"
    assert f"R564 the pump q has written 3 rows to the directory {place.out}, {said}" in place.refused()


def test_a_directory_whose_files_were_consumed_goes_on(place: Place) -> None:
    for _ in range(3):
        place.ticks(1)
        place.consume()
    shutil.copytree(place.out, place.folder / "copy")
    assert place.consumed == [0, 1, 2]
    mark = mark_in(place.out / "_rowtime" / "q", tag_of(Checkpoint(place.check).identity, "q"))
    assert mark is not None
    assert mark.rows == 3
    assert len([*(place.out / "_rowtime" / "q").glob("published-*")]) == 1


def test_a_directory_of_an_older_version_gets_its_mark_with_the_next_rows(place: Place) -> None:
    place.ticks(2)
    for mark in (place.out / "_rowtime" / "q").glob("published-*"):
        mark.unlink()
    journal = Journal(place.check / "journal")
    last = dict(journal.last() or {})
    for sink in ("p.sink", "q.sink"):
        del last["control"][sink]["proof"], last["control"][sink]["link"]
    journal.commit(last["tick"] + 1, {name: value for name, value in last.items() if name not in ("sum", "format")})
    place.ticks(1)
    assert place.written() == ([0, 1, 2], [0, 1, 2])
    place.ticks(1)
    shutil.rmtree(place.out)
    assert "R564 the pump q" in place.refused()


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("0" * 32)])
def test_a_lost_identity_named_the_checkpoint_itself_as_another_one(
    place: Place, damage: Callable[[Path], None]
) -> None:
    place.ticks(1)
    identity = place.check / "identity"
    right = identity.read_text()
    damage(identity)
    assert place.refused().startswith(f"R406 {identity}, by which the targets know this checkpoint, ")
    pipeline = rt.Pipeline(place.spark, home=place.home).sql(SQL.format(out=place.out))
    with pytest.raises(RowtimeError, match=r"R406 .*by which the targets know this checkpoint"):
        rt.verify(place.check, pipeline)  # it said that each row was missing
    identity.write_text(right)
    place.ticks(1)
    assert place.written() == ([0, 1], [0, 1])
