"""Files of a directory that are damaged, empty, renamed, appended to, overwritten or deleted."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.cli.status import status_of
from rowtime.runtime.sources import numbering
from rowtime.runtime.sources.file_faults import lasting
from rowtime.runtime.sources.file_list import holds
from rowtime.runtime.sources.files import FilesSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Place:
    """A directory and its source, which reads one range after the other, each time with a new driver by default."""

    def __init__(self, folder: Path, kind: str = "json") -> None:
        self.folder, self.kind = folder / "in", kind
        self.notes = folder / "notes"
        self.folder.mkdir()
        self.start: dict[str, int] = {}
        self.state: dict[str, Any] = {}
        self.source = self.fresh()

    def fresh(self) -> FilesSource:
        return FilesSource(self.kind, {"path": str(self.folder)}, [("n", "INT")], self.notes)

    def write(self, name: str, text: str = '{"n": 1}\n', age: int = 0, mode: str = "w") -> Path:
        path = self.folder / name
        with path.open(mode) as file:
            file.write(text)
        os.utime(path, ns=(0, 1_700_000_000_000_000_123 + age * 10**9))
        return path

    def take(self, *, again: bool = False) -> list[str]:
        """The names of the files that are read next."""
        self.source = self.source if again else self.fresh()
        part, state = self.source.discover(self.start, rt.Limits(), self.state)
        self.start, self.state = dict(part.end), dict(state)
        return [Path(path).name for _, path, _ in part.detail["files"]]

    @property
    def aside(self) -> dict[str, str]:
        return {Path(path).name: code for path, (code, _) in self.state.get("aside", {}).items()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("again", [True, False], ids=["same driver", "after a restart"])
def test_a_renamed_file_is_not_read_twice(place: Place, *, again: bool) -> None:
    path = place.write("a.json")
    assert place.take() == ["a.json"]
    path.rename(place.folder / "z.json")
    assert place.take(again=again) == []
    assert place.aside == {"z.json": "R522"}
    (place.folder / "z.json").rename(place.folder / "a.json")
    assert place.take(again=again) == []


def test_a_renamed_file_is_read_again_by_verify_under_its_new_name(place: Place) -> None:
    path = place.write("a.json")
    place.take()
    path.rename(place.folder / "z.json")
    place.take()
    part = place.fresh().between({"files": 0}, place.start, place.state)
    assert [Path(name).name for _, name, _ in part.detail["files"]] == ["z.json"]
    assert place.start == {"files": 2}


def test_a_copy_of_a_file_and_a_similar_one_are_separate_files(place: Place) -> None:
    first = place.write("a.json")
    assert place.take() == ["a.json"]
    shutil.copy2(first, place.folder / "b.json")
    place.write("c.json", age=1)
    assert place.take() == ["b.json", "c.json"]


@pytest.mark.parametrize("again", [True, False], ids=["same driver", "after a restart"])
def test_rows_added_to_a_file_that_was_read_are_reported_once_and_not_read(place: Place, *, again: bool) -> None:
    place.write("a.json")
    place.take()
    for age in (1, 2):
        place.write("a.json", '{"n": 2}\n', age=age, mode="a")
        assert place.take(again=again) == []
    assert place.aside == {"a.json": "R521"}
    assert place.state["counts"] == {"R521": 1}


def test_an_overwritten_file_counts_as_another_file(place: Place) -> None:
    place.write("a.json")
    place.take()
    place.write("a.json", '{"n": 7}\n{"n": 8}\n', age=1)
    assert place.take() == ["a.json"]
    assert place.aside == {"a.json": "R523"}
    place.write("a.json", '{"n": 9}\n', age=2)  # shorter
    assert place.take(again=True) == ["a.json"]
    assert place.take() == []


def test_a_file_that_was_only_touched_is_the_same_file(place: Place) -> None:
    place.write("a.json")
    place.take()
    place.write("a.json", age=5)
    for again in (True, True, False):
        assert place.take(again=again) == []
    assert place.aside == {}


LONG = '{"n": 1}\n' * 10_000  # the first and last 16 KiB are not the whole file
CHANGED = LONG[:45_000] + LONG[45_000:].replace("1", "7", 1)


@pytest.mark.parametrize("again", [True, False], ids=["same driver", "after a restart"])
def test_a_change_in_the_middle_of_a_file_is_found_at_the_next_look(place: Place, *, again: bool) -> None:
    """Of many files, each range looked at 1,000 again, and read only the first and last bytes of each."""
    for name in "abcde":
        place.write(f"{name}.json", LONG)
    place.take()
    place.write("d.json", CHANGED, age=1)
    assert place.take(again=again) == ["d.json"]
    assert place.aside == {"d.json": "R523"}


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_found(place: Place) -> None:
    place.write("a.json", LONG)
    place.take()
    place.write(".a.json", CHANGED).rename(place.folder / "a.json")
    assert place.take(again=True) == ["a.json"]
    assert place.aside == {"a.json": "R523"}


def test_a_file_moved_over_another_that_was_read_is_not_read_twice(place: Place) -> None:
    place.write("a.json")
    place.write("b.json", '{"n": 2}\n', age=1)
    assert place.take() == ["a.json", "b.json"]
    (place.folder / "b.json").rename(place.folder / "a.json")
    assert place.take(again=True) == []
    assert place.aside == {"a.json": "R522"}


def test_touched_files_are_read_once_to_compare_them(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the directory has new times, so each start read all files again."""
    place.write("a.json", LONG)
    place.take()
    read: list[str] = []
    monkeypatch.setattr(numbering, "holds", lambda file: bool(read.append(Path(file.path).name)) or holds(file))
    place.write("a.json", LONG, age=3)
    for again in (False, True, False):
        assert place.take(again=again) == []
    assert read == ["a.json"]
    notes = place.notes / "touched.jsonl"
    notes.write_bytes(notes.read_bytes().replace(b"0", b"1", 1))
    place.write("a.json", CHANGED, age=3)
    assert place.take() == ["a.json"]


def test_a_long_list_is_written_once(place: Place) -> None:
    """Each tick that set a file aside wrote the whole list again."""
    for age in range(4):
        place.write(f"{age}.json", "" if age == 1 else '{"n": 1}\n', age=age)
    place.source = place.fresh()
    node = 0
    for end in range(1, 5):
        part, place.state = place.source.discover(place.start, rt.Limits(files=1), place.state)
        place.start = dict(part.end)
        facts = (place.notes / "files.jsonl").stat()
        assert node in (0, facts.st_ino)
        node = facts.st_ino
        assert len((place.notes / "files.jsonl").read_text().splitlines()) == end
    assert place.aside == {"1.json": "R520"}


@pytest.mark.parametrize("again", [True, False], ids=["same driver", "after a restart"])
@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_an_empty_file_is_set_aside_and_read_when_it_has_rows(tmp_path: Path, kind: str, *, again: bool) -> None:
    place = Place(tmp_path, kind)
    place.write("a", "")
    assert place.take() == []
    assert place.aside == {"a": "R520"}
    assert place.take(again=again) == []
    assert place.start == {"files": 1}
    to_parquet(place.folder / "a", pa.int32()) if kind == "parquet" else place.write("a", '{"n": 1}\n', age=1)
    assert place.take(again=again) == ["a"]
    assert place.aside == {}
    assert place.state["counts"] == {"R520": 1}


def test_a_removed_unreadable_file_is_not_named_any_more(place: Place) -> None:
    place.write("a", "").unlink()
    place.write("b", "")
    place.take()
    assert place.aside == {"b": "R520"}
    (place.folder / "b").unlink()
    place.take(again=True)
    assert place.aside == {}
    place.write("b")
    assert place.take(again=True) == ["b"]


def test_a_file_that_is_removed_before_it_is_read_is_not_awaited(place: Place) -> None:
    """The list always named the file, and each tick failed."""
    place.write("a.json")
    place.write("b.json", age=1)
    source = place.fresh()
    part, state = source.discover({}, rt.Limits(files=1), {})
    (place.folder / "b.json").unlink()
    place.write("c.json", age=2)
    part, _ = source.discover(part.end, rt.Limits(), state)
    assert [Path(name).name for _, name, _ in part.detail["files"]] == ["c.json"]


def to_parquet(path: Path, kind: pa.DataType, *values: object, name: str = "n") -> None:
    pq.write_table(pa.table({name: pa.array(values or [1], kind)}), path)


TYPES: dict[str, tuple[str, pa.DataType, bool]] = {
    "text for a number": ("INT", pa.string(), False),
    "a wider number": ("INT", pa.int64(), False),
    "a narrower number": ("BIGINT", pa.int32(), True),
    "nanoseconds": ("TIMESTAMP", pa.timestamp("ns", "UTC"), True),
    "nanoseconds for a date": ("DATE", pa.timestamp("ns", "UTC"), False),
    "milliseconds": ("TIMESTAMP", pa.timestamp("ms", "UTC"), True),
    "a number for a time": ("TIMESTAMP", pa.int64(), False),
    "a number for text": ("STRING", pa.int64(), False),
    "a number for a fraction": ("DOUBLE", pa.float32(), True),
}


@pytest.mark.parametrize("name", TYPES)
def test_a_parquet_file_of_another_type_is_set_aside_and_named(tmp_path: Path, name: str) -> None:
    declared, kind, reads = TYPES[name]
    (tmp_path / "in").mkdir()
    to_parquet(tmp_path / "in" / "a", kind, None)
    source = FilesSource("parquet", {"path": str(tmp_path / "in")}, [("N", declared)], tmp_path / "notes")
    part, state = source.discover({}, rt.Limits(), {})
    assert len(part.detail["files"]) == reads
    if not reads:
        assert state["aside"][f"{tmp_path}/in/a"] == [
            "R520",
            f"its column n has type {kind}, and the stream declares {declared}",
        ]


GIVES_NO_ROWTIME: dict[str, tuple[dict[str, str], str, str]] = {
    "csv": ({"header": "true"}, "n,RT\n1,2024-01-01 00:00:00\n", "n\n1\n"),
    "csv without names": ({}, "1,2024-01-01 00:00:00\n", ""),
    "parquet": ({}, "", ""),
}


@pytest.mark.parametrize("name", GIVES_NO_ROWTIME)
def test_a_file_without_the_column_of_the_rowtime_is_set_aside(tmp_path: Path, name: str) -> None:
    """Its rows had the time of the file, and the rows of all later files were OUT_OF_ORDER."""
    more, good, bad = GIVES_NO_ROWTIME[name]
    place = Place(tmp_path, name.partition(" ")[0])
    if name == "parquet":
        pq.write_table(rows(1).rename_columns(["n", "Rt"]), place.folder / "a")
        to_parquet(place.folder / "b", pa.int32())
    else:
        place.write("a", good)
        place.write("b", bad or "1\n", age=1)
    options = {"path": str(place.folder), "rowtime.column": "rt", **more}
    source = FilesSource(place.kind, options, [("n", "BIGINT")], place.notes)
    part, state = source.discover({}, rt.Limits(), {})
    names = [Path(path).name for _, path, _ in part.detail["files"]]
    if name == "csv without names":  # columns are identified by position: a missing column is NULL in that row
        assert (names, state.get("aside")) == (["a", "b"], None)
        return
    assert names == ["a"]
    why = "it has no column rt, which gives the rowtime; it has n"
    assert state["aside"] == {f"{place.folder}/b": ["R520", why]}


def test_times_written_by_an_old_spark_are_not_nanoseconds(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    times = pa.table({"n": pa.array([1], pa.timestamp("us"))})
    pq.write_table(times, tmp_path / "in" / "a", use_deprecated_int96_timestamps=True)
    source = FilesSource("parquet", {"path": str(tmp_path / "in")}, [("n", "TIMESTAMP")], tmp_path / "notes")
    assert len(source.discover({}, rt.Limits(), {})[0].detail["files"]) == 1


def test_a_name_that_is_not_utf8_is_set_aside_until_it_is_renamed(place: Place) -> None:
    place.write("b.json")
    odd = os.fsencode(place.folder) + b"/\xff.json"
    Path(os.fsdecode(odd)).write_text('{"n": 2}\n')
    assert place.take() == ["b.json"]
    assert place.aside == {"\ufffd.json": "R520"}
    json.dumps(place.state).encode()
    os.rename(odd, os.fsencode(place.folder) + b"/c.json")  # noqa: PTH104 - its name is bytes
    assert place.take() == ["c.json"]


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        ("org.apache.spark.sql.AnalysisException: Invalid Spark read type", "Spark: Invalid Spark read type"),
        ("java.io.IOException: Input/output error", None),
        ("java.net.SocketTimeoutException: timed out", None),
    ],
)
def test_a_file_is_set_aside_for_an_error_that_spark_would_repeat(cause: str, why: str | None) -> None:
    read = "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file:///in/a."
    text = f"Exception thrown in awaitResult:\nCaused by: {read}\n\tat x\nCaused by: {cause}\n\tat y"
    assert lasting(text) == why
    assert lasting(f"Caused by: {cause}") is None


# -- the list ---------------------------------------------------------------------------

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a name": lambda data: data.replace(b"/a.json", b"/x.json"),
    "half of it": lambda data: data[: len(data) // 2],
    "its last line": lambda data: data[: data.rstrip().rindex(b"\n") + 1],
    "all of it": lambda _: b"",
    "no text": lambda data: b"\xff" + data[1:],
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_list_of_files_is_refused(place: Place, what: str) -> None:
    for age, name in enumerate("abc"):
        place.write(f"{name}.json", age=age)
    place.take()
    path = place.notes / "files.jsonl"
    path.write_bytes(DAMAGE[what](path.read_bytes()))
    with pytest.raises(rt.Failure) as found:
        place.take()
    assert found.value.problems[0].code == "R406"
    with pytest.raises(rt.Failure, match="R406"):
        place.fresh().between({}, place.start, place.state)


def test_a_list_of_an_older_version_continues_without_checksums(place: Place) -> None:
    paths = [place.write(f"{name}.json", age=age) for age, name in enumerate("ab")]
    place.notes.mkdir()
    lines = [json.dumps([str(path), 1_700_000_000_000_000, path.stat().st_size]) + "\n" for path in paths]
    (place.notes / "files.jsonl").write_text("".join(lines))
    place.start, place.state = {"files": 2}, {"listed": 2}
    assert place.take() == []
    place.write("c.json", age=3)
    assert place.take() == ["c.json"]
    part = place.fresh().between({"files": 0}, place.start, place.state)
    assert [Path(name).name for _, name, _ in part.detail["files"]] == ["a.json", "b.json", "c.json"]
    place.write("a.json", '{"n": 2}\n{"n": 3}\n', age=4)
    assert (place.take(), place.aside) == ([], {"a.json": "R521"})  # its content is not known


# -- a pipeline -------------------------------------------------------------------------


@pytest.fixture
def running(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[rt.Query, list[int]]]:
    (tmp_path / "in").mkdir()
    sql = f"CREATE STREAM a (n BIGINT) USING parquet OPTIONS (path '{tmp_path}/in', rowtime.column 'rt');"
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql + "SELECT STREAM n FROM a;")
    got: list[int] = []
    pipeline.sink("result", lambda batch: got.extend(batch.table()["n"].to_pylist()) if batch.count else None)
    query = pipeline.start(tmp_path / "check", interval=0.05)
    yield query, got
    query.stop()


def rows(*numbers: int) -> pa.Table:
    times = pa.array([datetime(2024, 1, 1, 10, 0, n, tzinfo=UTC) for n in numbers], pa.timestamp("us", "UTC"))
    return pa.table({"n": pa.array(numbers, pa.int64()), "rt": times})


def wait_for(query: rt.Query, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert query.isActive, query.exception
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_a_run_skips_damaged_files_and_reads_them_when_they_are_replaced(
    running: tuple[rt.Query, list[int]], tmp_path: Path
) -> None:
    """The message named a damaged file forever, also after its removal."""
    query, got = running

    def put(name: str, data: bytes) -> None:
        (tmp_path / f".{name}").write_bytes(data)
        (tmp_path / f".{name}").rename(tmp_path / "in" / name)

    def whole(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="none", use_dictionary=False)
        return sink.getvalue().to_pybytes()

    put("a", whole(rows(1, 2)))
    wait_for(query, lambda: got == [1, 2])
    data = bytearray(whole(rows(3, 4)))
    data[4:40] = b"\xff" * 36  # only a reader of the page can find it: the footer is intact
    put("b", bytes(data))
    put("c", b"")
    put("d", whole(rows(5, 6)))
    wait_for(query, lambda: got == [1, 2, 5, 6])
    named = {Path(path).name: code for path, (code, _) in query.engine.entry["sources"]["a"]["state"]["aside"].items()}
    assert named == {"b": "R520", "c": "R520"}
    found = status_of(tmp_path / "check")
    assert found["streams"][0]["files"]["counts"] == {"R520": 2}
    shown = CliRunner().invoke(app, ["status", str(tmp_path / "check")]).output
    assert "a, files: 2 R520" in shown
    assert f"R520 {tmp_path}/in/c: it is empty" in shown
    said = [file for tick in query.recentProgress for source in tick["sources"] for file in source.get("files", ())]
    assert {"file": f"{tmp_path}/in/c", "code": "R520", "why": "it is empty"} in said
    (tmp_path / "in" / "c").unlink()
    put("b", whole(rows(7, 8)))
    wait_for(query, lambda: got == [1, 2, 5, 6, 7, 8])
    query.stop()
    assert query.exception is None


@pytest.mark.slow
def test_a_compressed_file_that_is_cut_off_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    text = gzip.compress(b"".join(b"%d\n" % n for n in range(10_000)))
    (tmp_path / "in" / "a.csv.gz").write_bytes(text[: len(text) // 2])
    (tmp_path / "in" / "b.csv.gz").write_bytes(text)
    sql = f"CREATE STREAM s (n INT) USING csv OPTIONS (path '{tmp_path}/in'); SELECT STREAM n FROM s;"
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    pipeline.sink("result", lambda _: None)
    query = pipeline.run_available(tmp_path / "check")
    assert query.ledger["s"]["in"] == 10_000
    state = query.engine.entry["sources"]["s"]["state"]
    assert [(Path(path).name, code) for path, (code, _) in state["aside"].items()] == [("a.csv.gz", "R520")]


@pytest.mark.slow
def test_a_type_that_only_spark_finds_wrong_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    to_parquet(tmp_path / "in" / "a", pa.string(), "x", name="d")
    to_parquet(tmp_path / "in" / "b", pa.decimal128(10, 2), Decimal("1.50"), name="d")
    to_parquet(tmp_path / "in" / "c", pa.list_(pa.int32()), [1], name="d")
    sql = f"CREATE STREAM s (d DECIMAL(10, 2)) USING parquet OPTIONS (path '{tmp_path}/in'); SELECT STREAM d FROM s;"
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    got: list[object] = []
    pipeline.sink("result", lambda batch: got.extend(batch.table()["d"].to_pylist()) if batch.count else None)
    query = pipeline.run_available(tmp_path / "check")
    assert got == [Decimal("1.50")]
    state = query.engine.entry["sources"]["s"]["state"]
    assert {Path(path).name: code for path, (code, _) in state["aside"].items()} == {"a": "R520", "c": "R520"}
