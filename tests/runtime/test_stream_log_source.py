"""The stream log as a source: slices of whole files, clocks without reading rows, the rows."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.client import log_folder
from rowtime.client.arrow_types import arrow_schema
from rowtime.client.writer import EVERYONE, Writer
from rowtime.core.errors import Failure
from rowtime.core.time import END
from rowtime.runtime.sources.contract import BoundItem, Limits, Slice, Source
from rowtime.runtime.sources.stream_log import FEW_WRITERS, StreamLogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = [("x", "INT"), ("Odd `name`", "VARCHAR(5)")]
SCHEMA = arrow_schema({"columns": [{"name": name, "type": kind} for name, kind in COLUMNS]})
NO_LIMITS = Limits()
NOW = 10_000


@pytest.fixture
def log(tmp_path: Path) -> Path:
    # A directory whose name is a pattern for Spark's readers, and has a space.
    return tmp_path / "a [b] {c}*" / "log"


def source(log: Path, exclude: tuple[str, ...] = ()) -> StreamLogSource:
    return StreamLogSource(log, COLUMNS, clock=lambda: NOW, exclude=exclude)


def writer(log: Path, name: str = "main", at: int = 100) -> Writer:
    return Writer(log, name, SCHEMA, clock=lambda: at)


def take(log: Path, start: dict[str, int] | None = None, limits: Limits = NO_LIMITS) -> Slice:
    part, state = source(log).discover(start or {}, limits, {"kept": 1})
    assert {**state, "links": 0} == {"kept": 1, "links": 0}
    assert json.loads(json.dumps(asdict(part))), "a slice is plain JSON"
    return part


def rows_of(spark: SparkSession, log: Path, part: Slice) -> list[tuple[Any, ...]]:
    return sorted((row["__w"], row["__p"], row["x"]) for row in source(log).read(spark, part).collect())


def insert(out: Writer, *values: int) -> None:
    out.insert([{"x": value, "rowtime": value} for value in values])


def test_it_is_a_source(log: Path) -> None:
    found: Source = source(log)
    assert (found.in_band, found.decodes, found.gives_rowtime, found.steady) == (False, False, True, True)


def test_a_missing_log_gives_an_empty_slice(spark: SparkSession, log: Path) -> None:
    part = take(log)
    assert part.empty
    frame = source(log).read(spark, part)
    assert frame.collect() == []
    assert frame.columns == ["x", "Odd `name`", "__t", "__w", "__p", "__a"]
    assert source(log).finished({}) is False


def test_a_slice_knows_positions_bounds_and_runs_without_reading(log: Path) -> None:
    with writer(log, "a") as a, writer(log, "b", at=200) as b:
        insert(a, 1, 2)
        a.set_rowtime_bound(5)
        insert(a, 7)
        b.end()
    part = take(log)
    assert part.start == {"a": 0, "b": 0}
    assert part.end == {"a": 4, "b": 1}
    assert part.bounds == (BoundItem("a", 2, 5, 100), BoundItem("b", 0, END, 200))
    assert part.arrived == {"a": NOW, "b": NOW}
    assert (part.rows, part.left, part.detail["ordered"]) == (3, (), True)
    assert part.detail["runs"] == {"a": [[0, 2, 1, 2, "o"], [3, 1, 7, 7, "o"]]}


def test_an_empty_slice_still_moves_the_arrival_clock(log: Path) -> None:
    with writer(log) as out:
        insert(out, 1)
    part = take(log, {"main": 1})
    assert part.empty
    assert part.end == {"main": 1}
    assert part.arrived == {"main": NOW}


def test_the_arrival_clock_waits_for_a_running_insert(log: Path) -> None:
    with writer(log) as out:
        insert(out, 1)
    (log / "main" / log_folder.UNDER_WAY).touch()
    with (log / "main" / log_folder.LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert take(log).arrived == {"main": 100}
        assert take(log, {"main": 1}).arrived == {}


def test_the_arrival_clock_is_not_behind_a_row_that_arrived_later_than_now(log: Path) -> None:
    with writer(log, at=NOW + 5) as out:
        insert(out, 1)
    assert take(log).arrived == {"main": NOW + 5}


def test_ordered_needs_every_rowtime_given_and_none_going_back(log: Path) -> None:
    with writer(log) as out:
        insert(out, 1)
        insert(out, 3, 2)
        out.insert([{"x": 1}])
    assert [take(log, {"main": at}).detail["ordered"] for at in (0, 1, 3)] == [False, False, False]
    assert take(log, limits=Limits(files=1)).detail["ordered"] is True


@pytest.mark.parametrize(
    ("limits", "ends"),
    [
        (Limits(files=2), [4, 6]),
        (Limits(rows=5), [4, 6]),
        (Limits(rows=1), [2, 4, 6]),
        (Limits(bytes=1), [2, 4, 6]),
        (Limits(rows=6), [6]),
        (Limits(rows=100, files=100, bytes=10**9), [6]),
    ],
)
def test_a_slice_keeps_its_limits_by_whole_files_but_takes_one(log: Path, limits: Limits, ends: list[int]) -> None:
    with writer(log) as out:
        for _ in range(3):
            insert(out, 1, 2)
    reached = [0]
    while not (part := take(log, {"main": reached[-1]}, limits)).empty:
        reached.append(part.end["main"])
        assert part.arrived == {"main": NOW if reached[-1] == 6 else 100}
    assert reached[1:] == ends


def test_writers_advance_together_in_order_of_arrival(log: Path) -> None:
    with writer(log, "a", at=300) as a, writer(log, "b", at=100) as b, writer(log, "c", at=200) as c:
        for out in (a, b, c):
            insert(out, 1)
    part = take(log, limits=Limits(files=2))
    assert part.end == {"b": 1, "c": 1}
    assert take(log, dict(part.end), Limits(files=2)).end == {"a": 1, "b": 1, "c": 1}


def test_bounds_do_not_count_for_a_limit_of_rows(log: Path) -> None:
    with writer(log) as out:
        out.set_rowtime_bound(1)
        insert(out, 1)
        out.set_rowtime_bound(2)
        insert(out, 2)
    assert take(log, limits=Limits(rows=1)).end == {"main": 3}


def test_a_range_ends_where_a_writer_that_has_left_comes_back(log: Path) -> None:
    for name in ("gone", "back"):
        with writer(log, name) as out:
            insert(out, 1)
            out.close(leave=True)
    with writer(log, "back") as out:
        insert(out, 2)
    part = take(log)
    assert "back" in part.left
    rest, _ = source(log).discover(part.end, NO_LIMITS, {})
    assert rest.start["back"] == part.end["back"]
    assert (rest.left, part.rows + rest.rows) == (("gone",), 3), "whose rows arrived at the same time"


def test_a_stream_is_finished_when_every_writer_has_ended_and_all_is_read(log: Path) -> None:
    with writer(log, "a") as a, writer(log, "b") as b:
        a.end()
        insert(b, 1)
        assert not source(log).finished({"a": 1, "b": 1})
        b.end()
    assert not source(log).finished({"a": 1, "b": 1})
    assert source(log).finished({"a": 1, "b": 2})
    assert source(log, exclude=("b",)).finished({"a": 1})


def test_an_excluded_writer_is_not_read(log: Path) -> None:
    for name in ("a", "b"):
        with writer(log, name) as out:
            insert(out, 1)
    part, _ = source(log, exclude=("a",)).discover({}, NO_LIMITS, {})
    assert part.end == {"b": 1}


def test_a_log_that_vanished_is_a_failure(log: Path) -> None:
    with pytest.raises(Failure, match="main are gone"):
        take(log, {"main": 3})


def test_rows_are_read_with_the_columns_of_the_contract(spark: SparkSession, log: Path) -> None:
    with writer(log) as out:
        out.insert([{"x": 1, "odd `NAME`": "a", "rowtime": "0001-01-01"}, {"x": 2}])
    frame = source(log).read(spark, take(log))
    kinds = ["int", "string", "timestamp", "string", "bigint", "timestamp"]
    assert [kind for _, kind in frame.dtypes] == kinds
    told = frame.selectExpr("x", "`Odd ``name```", "unix_micros(__t)", "__w", "__p", "unix_micros(__a)").collect()
    least = int((datetime(1, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
    assert [tuple(row) for row in told] == [(1, "a", least, "main", 0, 100), (2, None, None, "main", 1, 100)]


@pytest.mark.parametrize("more", [0, FEW_WRITERS])
def test_every_row_has_the_name_of_its_writer(spark: SparkSession, log: Path, more: int) -> None:
    names = ["it's", "50%", "a/b c", "Ü+\\n", *(f"w{number}" for number in range(more))]
    for name in names:
        with writer(log, name) as out:
            insert(out, 1, 2)
    rows = rows_of(spark, log, take(log))
    assert rows == sorted((name, position, position + 1) for name in names for position in (0, 1))


def test_slices_of_any_size_give_the_same_rows_every_time(spark: SparkSession, log: Path) -> None:
    for name in ("a", "b"):
        with writer(log, name) as out:
            for number in range(3):
                insert(out, number, number + 1)
    whole = take(log)
    at: dict[str, int] = {}
    pieces: list[tuple[Any, ...]] = []
    while not (part := take(log, at, Limits(files=2))).empty:
        at = dict(part.end)
        pieces += rows_of(spark, log, part)
        assert rows_of(spark, log, part) == rows_of(spark, log, part)
    assert sorted(pieces) == rows_of(spark, log, whole)
    assert at == whole.end


def test_a_filter_on_a_column_is_pushed_down_to_the_files(spark: SparkSession, log: Path) -> None:
    with writer(log) as out:
        insert(out, 1, 2)
    frame = source(log).read(spark, take(log)).where("x > 1").select("x", "__w")
    plan = frame._jdf.queryExecution().toString()
    assert "GreaterThan(x,1)" in plan
    assert "ReadSchema: struct<x:int>" in plan


def test_nested_and_precise_types_are_read_back_unchanged(spark: SparkSession, log: Path) -> None:
    columns = [
        ("i", "TINYINT"),
        ("d", "DECIMAL(38, 18)"),
        ("n", "TIMESTAMP_NTZ"),
        ("day", "DATE"),
        ("raw", "BINARY"),
        ("a", "ARRAY<STRUCT<k: STRING, v: DOUBLE>>"),
        ("m", "MAP<STRING, ARRAY<INT>>"),
    ]
    schema = arrow_schema({"columns": [{"name": name, "type": kind} for name, kind in columns]})
    row = {"i": -1, "d": "1.5", "n": "1500-01-01 00:00:00", "day": "1500-01-01", "raw": b"\xff",
           "a": [{"k": "x", "v": 0.5}], "m": {"y": [1, None]}}  # fmt: skip
    with Writer(log, "main", schema) as out:
        out.insert([row])
    found = StreamLogSource(log, columns)
    part, _ = found.discover({}, NO_LIMITS, {})
    told = found.read(spark, part).selectExpr("to_json(struct(i, d, n, day, a, m))", "hex(raw)").first()
    assert told is not None
    assert json.loads(told[0]) == {
        "i": -1, "d": 1.5, "n": "1500-01-01T00:00:00.000", "day": "1500-01-01",
        "a": [{"k": "x", "v": 0.5}], "m": {"y": [1, None]},
    }  # fmt: skip
    assert told[1] == "FF"


def test_items_are_durable_before_they_are_recorded_as_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash of the machine must not lose items that a checkpoint has read, or that a writer continued from."""
    synced: set[str] = set()

    def note(descriptor: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(log)))

    shard, everyone_shard = f"s-{0:020}", f"%2A/s-{0:020}"
    with writer(log, "a") as a, writer(log, "b") as b, writer(log, EVERYONE) as everyone:
        for out in (a, b):
            insert(out, 1)
            insert(out, 2)
        everyone.set_rowtime_bound(1)
        monkeypatch.setattr(os, "fsync", note)
        part = take(log, limits=Limits(files=3))
        assert (part.end, synced) == ({"a": 2, "b": 1}, {f"a/{shard}"})  # a row is unread that was before the bound
        synced.clear()
        part = take(log, dict(part.end))
        assert (part.end, synced) == ({"a": 2, "b": 2, EVERYONE: 1}, {f"b/{shard}", everyone_shard})
        synced.clear()
        assert take(log, dict(part.end)).empty
        assert not synced
        from_now = StreamLogSource(log, COLUMNS, clock=lambda: NOW, from_now=True)
        assert from_now.discover({}, NO_LIMITS, {})[0].end == part.end
        assert synced == {f"a/{shard}", f"b/{shard}", everyone_shard}


def test_a_disk_that_fails_to_sync_is_reported(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    with writer(log) as out:
        insert(out, 1)
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(Failure, match="Input/output error") as caught:
        take(log)
    assert caught.value.problems[0].code == "R422"


@pytest.mark.parametrize("lost", range(4))
def test_a_range_is_refused_if_any_of_its_items_is_gone(log: Path, lost: int) -> None:
    """The first item too: a new reader begins at the first present item, but this range was read before."""
    with writer(log, "a") as a, writer(log, "b") as b:
        insert(a, 1, 2)
        insert(a, 3)
        a.set_rowtime_bound(3)
        insert(a, 4)
        insert(b, 5)
    part = take(log)
    items = sorted((log / "a").rglob("[rb]-*"))
    assert len(items) == 4
    assert source(log).between({}, part.end, {}).end == part.end
    items[lost].unlink()
    with pytest.raises(Failure, match="R501"):
        source(log).between({"a": 0, "b": 0}, part.end, {})
    with pytest.raises(Failure, match="R501"):
        source(log).between(part.start, part.end, {})


def test_a_range_begins_where_the_log_began_when_it_was_read(log: Path) -> None:
    with writer(log, "a") as a:
        insert(a, 1)
        insert(a, 2)
        insert(a, 3)
    items = sorted((log / "a").rglob("r-*"))
    items[0].unlink()
    part = take(log)
    assert part.start == {"a": 1}
    assert source(log).between(part.start, part.end, {}).rows == 2
    items[1].unlink()
    with pytest.raises(Failure, match="R501"):
        source(log).between(part.start, part.end, {})
