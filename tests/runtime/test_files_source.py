"""Directories of CSV, JSON and Parquet files as streams."""

from __future__ import annotations

import errno
import gzip
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from reliability.crash.writes import failing, watched
from rowtime.runtime.clock_pass import clock_pass
from rowtime.runtime.sources import files as files_source
from rowtime.runtime.sources.files import FilesSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

SQL = """
CREATE STREAM clicks (page STRING, n INT, ev TIMESTAMP) USING {kind} OPTIONS (path '{path}'{more});
CREATE VIEW timed AS SELECT STREAM ev AS ROWTIME, page, n FROM clicks ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE STREAM minutes (minute TIMESTAMP, page STRING, total BIGINT) USING parquet OPTIONS (path '{out}');
CREATE PUMP p AS INSERT INTO minutes
  SELECT STREAM FLOOR(t.ROWTIME TO MINUTE) AS minute, page, SUM(n) AS total
  FROM timed AS t GROUP BY FLOOR(t.ROWTIME TO MINUTE), page;
"""


def run(spark: SparkSession, tmp_path: Path, kind: str, more: str = "", **options: object) -> rt.Query:
    sql = SQL.format(kind=kind, path=tmp_path / "in", out=tmp_path / "out", more=more)
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    return pipeline.run_available(tmp_path / "check", end=True, **options)


def minutes(tmp_path: Path) -> list[tuple[str, str, int]]:
    files = sorted((tmp_path / "out").glob("part-*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    return sorted((f"{row['minute']:%H:%M}", row["page"], row["total"]) for row in rows)


def write(tmp_path: Path, name: str, text: str, age: int) -> None:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(text)
    os.utime(folder / name, (1_700_000_000 + age, 1_700_000_000 + age))


CSV = "a,1,2024-01-01 10:00:05\nb,2,2024-01-01 10:00:50\na,oops,2024-01-01 10:00:55\n"
JSON = '{"page":"a","n":3,"ev":"2024-01-01 10:01:10"}\nnot json\n{"page":"b","n":4,"ev":null}\n'


def test_csv_files_are_read_in_the_order_of_their_times_and_bad_lines_are_malformed(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, "z.csv", CSV, age=1)
    write(tmp_path, "a.csv", "a,10,2024-01-01 10:02:00\nc,1,2024-01-01 10:00:01\n", age=2)
    query = run(spark, tmp_path, "csv")
    assert minutes(tmp_path) == [("10:00", "a", 1), ("10:00", "b", 2), ("10:02", "a", 10)]
    assert query.ledger["clicks"] == {"in": 5, "accepted": 4, "MALFORMED": 1}
    assert sum(tick["numInputRows"] for tick in query.recentProgress) == 5, "rows are counted, not bytes"
    assert query.ledger["timed"] == {"in": 4, "accepted": 3, "LATE": 1}


def test_json_lines_that_do_not_decode_keep_their_text_in_the_ledger(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "x.json", JSON, age=1)
    query = run(spark, tmp_path, "json")
    (file,) = query.rejected("clicks")
    (row,) = pq.read_table(file).to_pylist()
    assert (row["reason"], row["raw_record"], row["position"]) == ("MALFORMED", "not json", 1)
    assert query.ledger["timed"] == {"in": 2, "accepted": 1, "NULL_ROWTIME": 1}
    query.rejected("timed")[0].unlink()
    with pytest.raises(rt.Failure, match=r"has 0 of the 1 files .* timed"):
        query.rejected("timed")
    assert [source["numInputRows"] for tick in query.recentProgress for source in tick["sources"]] == [3]


def test_the_rows_of_compressed_files_are_counted_however_small_the_files_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, "x.csv.gz", "", age=1)
    (tmp_path / "in" / "x.csv.gz").write_bytes(gzip.compress(b"a,1,2024-01-01 10:00:05\n" * 5_000))
    query = run(spark, tmp_path, "csv")
    assert query.ledger["clicks"] == {"in": 5_000, "accepted": 5_000}
    assert minutes(tmp_path) == [("10:00", "a", 5_000)]
    assert sum(tick["numInputRows"] for tick in query.recentProgress) == 5_000


@pytest.mark.parametrize("files", [None, 1])
def test_the_positions_of_rows_do_not_depend_on_the_cut(spark: SparkSession, tmp_path: Path, files: int | None) -> None:
    for number in range(12):
        late = "2024-01-01 09:00:00" if number % 2 else f"2024-01-01 10:{number:02}:00"
        write(tmp_path, f"f{number:02}.csv", f"a,1,2024-01-01 10:{number:02}:00\nb,1,{late}\n", age=number)
    query = run(spark, tmp_path, "csv", limits=rt.Limits(files=files))
    found = [
        (row["position"], row["refused_time"].hour)
        for file in query.rejected("timed")
        for row in pq.read_table(file, columns=["position", "refused_time"]).to_pylist()
    ]
    assert sorted(found) == [((number << 40) + 1, 9) for number in range(1, 12, 2)]


@pytest.mark.parametrize("few", [64, pytest.param(1, marks=pytest.mark.slow)], ids=["looked up", "joined"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("folder", ["plain", "a 100%25+é [x]{y} 'q'"])
def test_rows_know_their_file_in_any_place(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, kind: str, folder: str
) -> None:
    monkeypatch.setattr(files_source, "FEW_FILES", few)
    for number in range(3):
        lines = f"a,1,2024-01-01 10:0{number}:00\nb,1,2024-01-01 09:00:00\n"
        write(tmp_path / folder, f"é{number} .{kind}" if folder != "plain" else f"{number}.{kind}", lines, age=number)
        if kind == "parquet":
            to_parquet(tmp_path / folder / "in", lines, age=number)
    place = str(tmp_path / folder / "in").replace("'", "''")
    sql = SQL.format(kind=kind, path=place, out=tmp_path / "out", more="")
    query = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(tmp_path / "check", end=True)
    places = [row["position"] for f in query.rejected("timed") for row in pq.read_table(f).to_pylist()]
    assert sorted(places) == [(number << 40) + 1 for number in range(3)]
    assert query.ledger["timed"] == {"in": 6, "accepted": 3, "LATE": 3}


def test_the_columns_of_csv_files_with_a_header_go_by_its_names(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "1.csv", 'n,"PAGE",more,ev\n1,a,x,2024-01-01 10:00:05\nno,a,x,2024-01-01 10:00:06\n', age=1)
    write(tmp_path, "2.csv", "ev,page,n\n2024-01-01 10:00:07,b,2\n", age=2)
    write(tmp_path, "3.csv", "\ufeffpage,ev\nc,2024-01-01 10:00:08\n", age=3)
    query = run(spark, tmp_path, "csv", ", header 'true'")
    assert minutes(tmp_path) == [("10:00", "a", 1), ("10:00", "b", 2), ("10:00", "c", None)]
    assert query.ledger["clicks"] == {"in": 4, "accepted": 3, "MALFORMED": 1}


def test_csv_files_without_any_of_the_columns_have_rows_without_values(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "1.csv", 'x,__row,v\n1,2,3\n"4",5,6\n7,8,9,10\n', age=1)
    write(tmp_path, "2.csv", "k\n5\n", age=2)
    sql = f"CREATE STREAM s (k INT, w INT) USING csv OPTIONS (path '{tmp_path}/in', header 'true');"
    query = rt.Pipeline(spark, home=tmp_path / "home").sql(sql + " SELECT STREAM k, w FROM s")
    found: list[dict[str, object]] = []
    query.sink("result", lambda batch: found.extend(batch.table().to_pylist()))
    ran = query.run_available(tmp_path / "check", end=True)
    assert [(row["k"], row["w"]) for row in found] == [(None, None), (None, None), (5, None)]
    assert ran.ledger["s"] == {"in": 4, "accepted": 3, "MALFORMED": 1}


def test_a_rowtime_column_of_csv_files_is_found_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "1.csv", "at,v,k\n2024-01-01 10:00:05,1,7\n2024-01-01 10:00:01,2,7\n", age=1)
    sql = (
        f"CREATE STREAM s (k INT, v INT) USING csv OPTIONS (path '{tmp_path}/in', header 'true', rowtime.column 'at');"
    )
    query = rt.Pipeline(spark, home=tmp_path / "home").sql(sql + " SELECT STREAM k, v FROM s")
    found: list[dict[str, object]] = []
    query.sink("result", lambda batch: found.extend(batch.table().to_pylist()))
    ran = query.run_available(tmp_path / "check", end=True)
    assert [(row["k"], row["v"], f"{row['rowtime']:%H:%M:%S}") for row in found] == [(7, 1, "10:00:05")]
    assert ran.ledger["s"] == {"in": 2, "accepted": 1, "OUT_OF_ORDER": 1}


def test_a_file_that_appears_later_follows_whatever_its_name_and_time(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "b.csv", "b,1,2024-01-01 10:00:00\n", age=100)
    sql = SQL.format(kind="csv", path=tmp_path / "in", out=tmp_path / "out", more="")
    query = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).start(tmp_path / "check")
    wait_for(lambda: query.ledger.get("timed", {}).get("accepted") == 1)
    write(tmp_path, "a.csv", "a,1,2024-01-01 10:00:30\nb,1,2024-01-01 10:05:00\n", age=1)
    wait_for(lambda: query.ledger["timed"]["accepted"] == 3)
    query.stop()
    assert minutes(tmp_path) == [("10:00", "a", 1), ("10:00", "b", 1)]


def test_parquet_rowtimes_that_go_back_are_out_of_order_which_takes_no_job_to_see(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_pass, "items_of", None)
    (tmp_path / "in").mkdir()
    times = pa.array([10, 30, 20, 30], pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"v": pa.array([1, 2, 3, 4], pa.int32()), "at": times}), tmp_path / "in" / "x.parquet")
    got: list[tuple[int, int]] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(
        f"CREATE STREAM s (v INT) USING parquet OPTIONS (path '{tmp_path / 'in'}', rowtime.column 'at');"
        "SELECT STREAM v FROM s"
    )
    pipeline.sink("result", lambda batch: got.extend((row["rowtime"].microsecond, row["v"]) for row in rows(batch)))
    query = pipeline.run_available(tmp_path / "check", end=True)
    assert got == [(10, 1), (30, 2), (30, 4)]
    assert query.ledger["s"] == {"in": 4, "accepted": 3, "OUT_OF_ORDER": 1}


def test_parquet_rows_without_a_rowtime_are_raised_to_the_row_before(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    times = pa.array([10, None, 20, 5], pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"v": pa.array([1, 2, 3, 4], pa.int32()), "at": times}), tmp_path / "in" / "x.parquet")
    os.utime(tmp_path / "in" / "x.parquet", (0, 0))
    got: list[tuple[int, int]] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(
        f"CREATE STREAM s (v INT) USING parquet OPTIONS (path '{tmp_path / 'in'}', rowtime.column 'at');"
        "SELECT STREAM v FROM s"
    )
    pipeline.sink("result", lambda batch: got.extend((row["rowtime"].microsecond, row["v"]) for row in rows(batch)))
    query = pipeline.run_available(tmp_path / "check", end=True)
    assert got == [(10, 1), (10, 2), (20, 3)]
    assert query.ledger["s"] == {"in": 4, "accepted": 3, "OUT_OF_ORDER": 1}


def to_parquet(folder: Path, lines: str, age: int) -> None:
    """The text file that was just written, as Parquet with the same name."""
    found = max(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    page, n, ev = zip(*(line.split(",") for line in lines.splitlines()), strict=True)
    times = pa.array([datetime.fromisoformat(t).replace(tzinfo=UTC) for t in ev], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"page": page, "n": pa.array(map(int, n), pa.int32()), "ev": times}), found)
    os.utime(found, (1_700_000_000 + age, 1_700_000_000 + age))


def rows(batch: rt.Batch) -> list[dict[str, object]]:
    return batch.table().to_pylist() if batch.count else []


def wait_for(condition: object, seconds: float = 60.0) -> None:
    import time

    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


LIST_WRITES = 7  # of the number file, its folder and their syncs


@pytest.mark.parametrize("number", range(LIST_WRITES + 1))
def test_each_file_is_taken_once_whichever_write_of_the_numbers_fails(tmp_path: Path, number: int) -> None:
    """A driver whose disk was full for a moment has more numbers on its disk than committed, or none yet."""
    for name in "abc":
        write(tmp_path, f"{name}.json", '{"n": 1}\n', age=1)
    given: dict[str, str] = {"path": str(tmp_path / "in")}
    notes, limit = tmp_path / "check" / "sources" / "clicks", rt.Limits(files=1)
    first, state = FilesSource("json", given, [("n", "INT")], notes).discover({}, limit, {})
    again, failed = FilesSource("json", given, [("n", "INT")], notes), False
    for committed, taken in (({}, "a"), (state, "b")):
        start = first.end if committed else {}
        try:
            with watched(tmp_path, failing(number, errno.ENOSPC)):
                again.discover(start, limit, committed)
        except OSError:
            failed = True
        part, _ = again.discover(start, limit, committed)
        assert [Path(path).name for _, path, _ in part.detail["files"]] == [f"{taken}.json"]
        again = FilesSource("json", given, [("n", "INT")], notes)
    assert failed == (number < LIST_WRITES)


def test_a_full_disk_at_the_very_start_leaves_a_source_that_can_be_asked_again(tmp_path: Path) -> None:
    write(tmp_path, "a.json", '{"n": 1}\n', age=1)
    options = {"path": str(tmp_path / "in")}
    source = FilesSource("json", options, [("n", "INT")], tmp_path / "check" / "sources" / "clicks")
    with watched(tmp_path, failing(0, errno.ENOSPC)), pytest.raises(OSError, match="No space"):
        source.discover({}, rt.Limits(), {})
    part, _ = source.discover({}, rt.Limits(), {})
    assert part.end == {"files": 1}
