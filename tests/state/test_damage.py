"""Damage to the files of a checkpoint is found when they are read, and never becomes a result."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.cli.running import _traceback_kept
from rowtime.core.checksums import checksum
from rowtime.operators.contract.state import Route, Segment
from rowtime.plan.stored import StoredPlan
from rowtime.runtime.segment_writer import write_routes, write_table
from rowtime.state import refused_files
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.journal import KEPT_ENTRIES
from rowtime.state.memory import Memory
from rowtime.state.segments import SegmentLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EMPTY = {"segments": {}}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def code(error: pytest.ExceptionInfo[rt.RowtimeError]) -> str:
    return error.value.problems[0].code


# -- segments ---------------------------------------------------------------------------


def test_a_changed_byte_of_a_state_file_is_found_before_its_rows_are_used(tmp_path: Path) -> None:
    table = pa.table({"k": ["HELLO"], "__t": [1]})
    segment = write_table(table, tmp_path, "state/x/0", "rows", "__t")
    assert segment.sum == checksum(tmp_path / segment.path)
    assert Memory(tmp_path).get(segment).equals(table)
    flip(tmp_path / segment.path)
    with pytest.raises(rt.Failure, match="checksum") as found:
        Memory(tmp_path).get(segment)
    assert code(found) == "R406"
    assert segment.path in str(found.value)


def test_a_missing_state_file_is_distinguished_from_a_fault_of_the_sql(tmp_path: Path) -> None:
    for known in (1, None):  # also one of an older version, which wrote no checksums
        with pytest.raises(rt.Failure, match="is gone") as found:
            Memory(tmp_path).check([Segment("state/x/0.parquet", 1, 0, 0, sum=known)])
        assert code(found) == "R406"


def test_a_file_is_compared_once_and_a_removed_name_again(tmp_path: Path) -> None:
    segment = write_table(pa.table({"__t": [1]}), tmp_path, "x", "rows", "__t")
    memory = Memory(tmp_path)
    memory.check([segment])
    flip(tmp_path / segment.path)
    memory.check([segment])
    memory.drop(segment.path)
    with pytest.raises(rt.Failure, match="checksum"):
        memory.check([segment])


def test_checksums_stay_with_segments_that_are_merged_and_journaled() -> None:
    log = SegmentLog()
    log.add([Segment("a", 1, 0, 0, sum=7), Segment("b", 1, 0, 0, sum=8)])
    assert SegmentLog(log.entries(), log.sums()).live == log.live
    log.replace(log.live, [Segment("c", 2, 0, 0, sum=9)])
    assert log.sums() == {"c": 9}


def test_tasks_report_the_checksums_of_what_they_write(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(10).selectExpr("id AS v", "id AS __n", "0 AS __route")
    written, _ = write_routes(rows, tmp_path, "x", {"part": Route(0, {"v": "v"}, "__n")})
    assert [segment.sum for segment in written["part"]] == [
        checksum(tmp_path / segment.path) for segment in written["part"]
    ]


# -- the journal ------------------------------------------------------------------------


def journaled(folder: Path, ticks: int) -> Checkpoint:
    place = Checkpoint(folder)
    place.acquire()
    place.bind(StoredPlan("", {}))
    for tick in range(ticks):
        place.journal.commit(tick, EMPTY)
        place.published = tick
    return place


def refused(place: Checkpoint) -> str:
    with pytest.raises(rt.Failure) as found:
        place.check()
    return code(found)


def test_a_complete_journal_is_accepted_however_long_it_is(tmp_path: Path) -> None:
    for ticks in (0, 1, KEPT_ENTRIES, KEPT_ENTRIES + 1, 2 * KEPT_ENTRIES + 5):
        journaled(tmp_path / str(ticks), ticks).check()


def test_a_journal_without_its_newest_entry_is_behind_its_outputs(tmp_path: Path) -> None:
    place = journaled(tmp_path, 3)
    (tmp_path / "journal" / f"{2:012d}.json").unlink()
    assert refused(place) == "R420"


def test_a_journal_without_any_entry_is_behind_its_outputs(tmp_path: Path) -> None:
    place = journaled(tmp_path, 3)
    shutil.rmtree(tmp_path / "journal")
    with pytest.raises(rt.Failure, match="has lost entries: none is left, and tick 2 is in the outputs") as found:
        place.check()
    assert code(found) == "R420"


@pytest.mark.parametrize(("ticks", "gone"), [(3, 0), (3, 1), (2 * KEPT_ENTRIES + 5, KEPT_ENTRIES + 1)])
def test_a_journal_with_a_gap_is_refused(tmp_path: Path, ticks: int, gone: int) -> None:
    place = journaled(tmp_path, ticks)
    (tmp_path / "journal" / f"{gone:012d}.json").unlink()
    assert refused(place) == "R420"


def test_entries_that_pruning_removes_may_be_missing_in_any_order(tmp_path: Path) -> None:
    place = journaled(tmp_path, 2 * KEPT_ENTRIES + 1)
    (tmp_path / "journal" / f"{3:012d}.json").write_bytes(b"")  # a machine crashed while it removed old entries
    place.check()


def test_a_tick_that_was_committed_and_not_delivered_is_not_a_gap(tmp_path: Path) -> None:
    place = journaled(tmp_path, 3)
    place.journal.commit(3, EMPTY)
    place.check()


@pytest.mark.parametrize("text", ["", "x", "2", "3 00000000", None])
def test_a_damaged_delivery_record_is_ignored(tmp_path: Path, text: str | None) -> None:
    place = journaled(tmp_path, 3)
    assert place.published == 2
    path = tmp_path / "published"
    path.unlink() if text is None else path.write_text(text)
    assert place.published == -1
    place.check()


def test_a_missing_plan_is_not_written_again_under_a_journal(tmp_path: Path) -> None:
    place = journaled(tmp_path, 1)
    (tmp_path / "plan.json").unlink()
    assert refused(place) == "R406"
    with pytest.raises(rt.Failure, match="is gone"):
        assert place.plan


# -- refused rows -----------------------------------------------------------------------


def refused_in(place: Checkpoint, ticks: Sequence[int]) -> dict[int, Path]:
    """Commit ticks, each of which refuses one row at the gate s; return the files in ``rejected``."""
    if place.plan is None:
        place.bind(StoredPlan("", {}))
    entry = place.journal.last() or {}
    for tick in ticks:
        path = place.folder / "state" / "s" / f"{tick:012d}-abc.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"v": [tick]}), path)
        named, sums = {"s": [f"state/s/{path.name}"]}, {f"state/s/{path.name}": checksum(path)}
        kept = refused_files.counted(entry, tick, named, sums)
        entry = {**EMPTY, "tick": tick, "refused": named, "sums": sums, "rejected": kept}
        place.journal.commit(tick, entry)
        if tick < ticks[-1]:
            place.show_refused(entry)
    return {int(path.name[:12]): path for path in place.rejected("s", ticks[-1])}


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_deleted_file_of_refused_rows_is_noticed(tmp_path: Path, gone: int) -> None:
    """`rejected` returned the rows of the other ticks, as if they were all."""
    files = refused_in(Checkpoint(tmp_path), range(3))
    assert [*files] == [0, 1, 2]
    assert files[2].parent == tmp_path / "state" / "s"  # the driver died before it was moved
    files[gone].unlink()
    with pytest.raises(rt.Failure, match=f"has 2 of the 3 files.* the file of tick {gone} is missing") as found:
        Checkpoint(tmp_path).rejected("s", 2)
    assert code(found) == "R406"
    refused_in_another_place = Checkpoint(tmp_path / "other").rejected("s", 2)
    assert refused_in_another_place == []


def test_a_file_of_refused_rows_that_took_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    files = refused_in(Checkpoint(tmp_path), range(3))
    files[0].unlink()
    shutil.copy(files[1], files[1].with_name(f"{0:012d}-{files[1].name.partition('-')[2]}"))
    with pytest.raises(rt.Failure, match="R406"):
        Checkpoint(tmp_path).rejected("s", 2)


def test_refused_rows_have_their_checksum_in_their_names(tmp_path: Path) -> None:
    place = journaled(tmp_path, 0)
    path = tmp_path / "state" / "s" / f"{0:012d}-abc.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"v": [1]}), path)
    name = str(path.relative_to(tmp_path))
    entry = {**EMPTY, "tick": 0, "refused": {"s": [name]}, "sums": {name: checksum(path)}}
    place.journal.commit(0, entry)
    place.show_refused(entry)
    place.show_refused(entry)
    (moved,) = place.rejected("s", 0)
    assert moved.parent == tmp_path / "rejected" / "s"
    flip(moved)
    with pytest.raises(rt.Failure, match="checksum") as found:
        Checkpoint(tmp_path).rejected("s", 0)
    assert code(found) == "R406"


# -- a pipeline -------------------------------------------------------------------------


def test_a_pipeline_whose_state_is_damaged_stops_with_the_name_of_the_file(spark: SparkSession, tmp_path: Path) -> None:
    """A changed byte became a result: the join gave JELLY for HELLO."""
    began = datetime(2024, 1, 1, 10, tzinfo=UTC)
    window = "OVER (RANGE INTERVAL '1' MINUTE PRECEDING)"
    join = f"a {window} AS l JOIN a {window} AS r ON l.v + 1 = r.v"
    sql = f"CREATE STREAM a (k STRING, v INT); SELECT STREAM l.k FROM {join};"
    got: list[str] = []

    def run() -> None:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
        pipeline.sink("result", lambda batch: got.extend(batch.table()["k"].to_pylist()) if batch.count else None)
        pipeline.run_available(tmp_path / "check")

    begun = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    for stream in begun.compile().defines:
        begun.home.define(stream.name, stream.as_json())
    with rt.writer("a", home=tmp_path / "home") as writer:
        writer.insert([{"k": "HELLO", "v": 1, "rowtime": began}])
        run()
        state = [path for path in (tmp_path / "check" / "state").rglob("*.parquet") if b"HELLO" in path.read_bytes()]
        assert state
        for path in state:
            path.write_bytes(path.read_bytes().replace(b"HELLO", b"JELLY"))
        writer.insert([{"k": "x", "v": 2, "rowtime": began + timedelta(seconds=5)}])
    with pytest.raises(rt.Failure, match="checksum") as found:
        run()
    assert code(found) == "R406"
    for path in state:
        path.unlink()
    with pytest.raises(rt.Failure, match="is gone") as found:
        run()
    assert code(found) == "R406"
    assert got == []


@pytest.mark.parametrize("target", ["USING parquet OPTIONS (path '{out}')", ""], ids=["directory", "log"])
def test_an_older_copy_of_a_checkpoint_writes_nothing_twice(spark: SparkSession, tmp_path: Path, target: str) -> None:
    """A directory got the rows again, and a log took new rows for repeats."""
    sql = f"""CREATE STREAM a (v INT); CREATE STREAM o (v INT) {target.format(out=tmp_path / "out")};
    CREATE PUMP p AS INSERT INTO o SELECT STREAM v FROM a;"""
    check, copy = tmp_path / "check", tmp_path / "copy"

    def pipeline() -> rt.Pipeline:
        return rt.Pipeline(spark, home=tmp_path / "home").sql(sql)

    for stream in pipeline().compile().defines:
        pipeline().home.define(stream.name, stream.as_json())
    with rt.writer("a", home=tmp_path / "home") as writer:
        for number in range(2):
            writer.insert([{"v": number, "rowtime": datetime(2024, 1, 1, 10, number, tzinfo=UTC)}])
            if number:
                shutil.copytree(check, copy)
            pipeline().run_available(check)
        shutil.rmtree(check)
        copy.rename(check)
        before = sorted(str(path) for folder in ("out", "home") for path in (tmp_path / folder).rglob("*"))
        for _ in range(2):
            with pytest.raises(rt.Failure, match=r"its last entry is that of tick 0, and .* (of|its) ") as found:
                pipeline().run_available(check)
            assert code(found) == "R420"
    after = sorted(str(path) for folder in ("out", "home") for path in (tmp_path / folder).rglob("*"))
    assert after == before


# -- paths that are no checkpoint -------------------------------------------------------


def test_a_folder_of_data_is_not_mistaken_for_a_checkpoint(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(5):
        (data / f"{number}.csv").write_text("1\n")
    with pytest.raises(rt.Refused, match=r"it holds 0.csv, 1.csv, 2.csv and 2 more") as found:
        Checkpoint(data).acquire()
    assert code(found) == "R421"
    assert sorted(path.name for path in data.iterdir()) == [f"{number}.csv" for number in range(5)]
    with pytest.raises(rt.Refused, match="is a file"):
        Checkpoint(data / "0.csv").acquire()


@pytest.mark.parametrize("names", [(), (".lock",), ("last-error.txt", "lost+found"), (".lock", "statements.writer")])
def test_a_new_folder_and_one_of_a_failed_start_are_accepted(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).touch()
    place = Checkpoint(tmp_path)
    place.acquire()
    place.release()


def test_the_traceback_of_a_failure_is_not_left_among_data(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("1\n")
    with pytest.raises(RuntimeError), _traceback_kept(tmp_path):
        raise RuntimeError("it failed")
    assert [path.name for path in tmp_path.iterdir()] == ["1.csv"]
    with pytest.raises(RuntimeError), _traceback_kept(tmp_path / "new"):
        raise RuntimeError("it failed")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["last-error.txt"]
