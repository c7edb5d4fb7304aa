"""Rows of Parquet files that are read without Spark are the rows that Spark reads, or none."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.columns import ARRIVAL, POSITION, ROWTIME, WRITER
from rowtime.core.errors import Failure
from rowtime.runtime.executors.executor import InProcess
from rowtime.runtime.executors.tasks import Tasks
from rowtime.runtime.session import derive
from rowtime.runtime.sources import parquet_rows
from rowtime.runtime.sources.contract import Limits, Slice
from rowtime.runtime.sources.csv_decoding import PlainCsv
from rowtime.runtime.sources.file_faults import damage_of
from rowtime.runtime.sources.files import FilesSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES = pa.array([datetime(2024, 1, 1, 10, 0, n, tzinfo=UTC) for n in range(4)], pa.timestamp("ms", "Europe/Berlin"))
VALUES: dict[str, tuple[str, pa.Array]] = {
    "f": ("BOOLEAN", pa.array([True, None, False, True])),
    "b": ("TINYINT", pa.array([1, None, -3, 4], pa.int8())),
    "i": ("INT", pa.array([1, None, -3, 4], pa.int32())),
    "L": ("bigint", pa.array([2**62, None, -3, 4])),
    "x": ("FLOAT", pa.array([0.5, None, float("nan"), -0.0], pa.float32())),
    "d": ("DOUBLE", pa.array([0.5, None, float("inf"), -0.0])),
    "m": ("DECIMAL(20, 2)", pa.array([Decimal("1.50"), None, Decimal("-0.01"), Decimal(2**50)], pa.decimal128(20, 2))),
    "s": ("STRING", pa.array(["", None, "ä", "x"])),
    "o d.d": ("BINARY", pa.array([b"", None, b"\0", b"x"])),
    "y": ("DATE", pa.array([date(1500, 1, 1), None, date(9999, 1, 1), date(1970, 1, 1)])),
    "z": ("TIMESTAMP", pa.array([0, None, -(10**16), 1], pa.timestamp("us", "UTC"))),
    "n": ("TIMESTAMP_NTZ", pa.array([0, None, -(10**16), 1], pa.timestamp("us"))),
    "no zone": ("TIMESTAMP", pa.array([0, None, -6 * 10**16, 253402300799999999], pa.timestamp("us"))),
    "no zone, ms": ("TIMESTAMP", pa.array([0, None, -6 * 10**13, 1], pa.timestamp("ms"))),
    "ns": ("TIMESTAMP", pa.array([1_999, None, -1, -62 * 10**17], pa.timestamp("ns"))),
    "ns, zone": ("TIMESTAMP", pa.array([1_999, None, -1_001, 0], pa.timestamp("ns", "Asia/Kolkata"))),
    "ns, local": ("TIMESTAMP_NTZ", pa.array([1_999, None, -1_000, 0], pa.timestamp("ns", "Asia/Kolkata"))),
    "days of ms": ("DATE", pa.array([0, None, -86_400_000 * 300_000, 86_400_000], pa.date64())),
    "widest": ("BIGINT", pa.array([2**31 - 1, None, -(2**31), 4], pa.int32())),
    "wide": ("INT", pa.array([2**15 - 1, None, -(2**15), 4], pa.int16())),
    "small": ("SMALLINT", pa.array([127, None, -128, 4], pa.int8())),
    "exact": ("DOUBLE", pa.array([0.1, None, float("nan"), -0.0], pa.float32())),
}
TYPES = [(name, kind) for name, (kind, _) in VALUES.items()]
TABLE = pa.table({"AT": TIMES, **{name: column for name, (_, column) in VALUES.items()}})


def taken(place: Path, columns: list[tuple[str, str]], kind: str = "parquet", **more: str) -> tuple[FilesSource, Slice]:
    options = {"path": str(place / "in"), "rowtime.column": "at", **more}
    source = FilesSource(kind, options, columns, place / "notes")
    return source, source.discover({}, Limits(), {})[0]


@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_rows_equal_those_that_spark_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str | None
) -> None:
    monkeypatch.setattr(parquet_rows, "ROWS", 3)
    (tmp_path / "in").mkdir()
    table = TABLE.set_column(0, "AT", TIMES.cast(pa.timestamp("ms", zone)))
    for number in range(3):
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet", row_group_size=1)
    source, part = taken(tmp_path, TYPES)
    wanted = {name: name for name in (*VALUES, ROWTIME, WRITER, POSITION, ARRIVAL)} | {"again": "s"}
    pieces = list(source.rows(part, wanted) or [])
    names = [f"`{column}` AS `{name}`" for name, column in wanted.items()]
    theirs = source.read(derive(spark), part).selectExpr(*names).orderBy(POSITION).toArrow()
    assert [piece.num_rows for piece in pieces] == [3, 1] * 3
    assert pa.concat_tables(pieces).to_pylist().__repr__() == theirs.to_pylist().__repr__()
    assert pa.concat_tables(pieces).schema.types == theirs.schema.types


def test_rows_without_a_rowtime_have_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(TABLE, tmp_path / "in" / "0.parquet")
    source = FilesSource("parquet", {"path": str(tmp_path / "in")}, TYPES, tmp_path / "notes")
    part = source.discover({}, Limits(), {})[0]
    wanted = {"i": "i", "times": "z", POSITION: POSITION}
    theirs = source.read(derive(spark), part).selectExpr("i", "z AS times", POSITION).orderBy(POSITION).toArrow()
    assert pa.concat_tables(source.rows(part, wanted) or []).to_pylist() == theirs.to_pylist()
    assert source.rows(part, {"t": ROWTIME}) is None


LINES = ["2024-01-01 10:00:00,1,a,0.5", "2024-01-01 10:00:01.250,,,", "2024-01-01 10:00:02,-3,ä b,-0.0"]
TEXT = [("at", "TIMESTAMP"), ("v", "INT"), ("s", "STRING"), ("d", "DOUBLE")]


def test_text_rows_decoded_by_arrow_equal_those_that_spark_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.csv").write_text("\n".join(LINES) + "\n")
    wanted = {name: name for name in ("v", "s", "d", ROWTIME, POSITION)}
    source, part = taken(tmp_path, TEXT, "csv")
    ours = pa.concat_tables(source.rows(part, wanted) or [])
    monkeypatch.setattr(PlainCsv, "of", lambda *_: None)
    source, part = taken(tmp_path, TEXT, "csv")
    assert source.rows(part, wanted) is None
    theirs = source.read(derive(spark), part).selectExpr(*wanted).orderBy(POSITION).toArrow()
    assert ours.to_pylist() == theirs.to_pylist()
    assert ours.schema.types == theirs.schema.types


PLAIN = pa.table({"at": TIMES, "v": pa.array([1, 2, 3, 4])})
OTHERS: dict[str, tuple[pa.Table, str, dict[str, str]]] = {
    "a number for a DECIMAL": (PLAIN, "DECIMAL(20, 0)", {}),
    "no such column": (PLAIN.rename_columns(["at", "w"]), "BIGINT", {}),
    "a list": (PLAIN.set_column(1, "v", pa.array([[1]] * 4, pa.list_(pa.int64()))), "ARRAY<BIGINT>", {}),
    "a type that no stream stores": (PLAIN, "INTERVAL DAY", {}),
    "another calendar": (PLAIN.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}), "BIGINT", {}),
    "an early Spark": (PLAIN.replace_schema_metadata({"org.apache.spark.version": "2.4.8"}), "BIGINT", {}),
    "an option": (PLAIN, "BIGINT", {"mergeSchema": "true"}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_files_that_spark_may_read_differently_are_left_to_it(tmp_path: Path, name: str) -> None:
    table, kind, options = OTHERS[name]
    (tmp_path / "in").mkdir()
    pq.write_table(PLAIN, tmp_path / "in" / "0.parquet")
    pq.write_table(table, tmp_path / "in" / "1.parquet")
    source, part = taken(tmp_path, [("v", kind)], **options)
    assert source.rows(part, {"v": "v", POSITION: POSITION}) is None


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_row_without_a_rowtime_needs_no_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """It has the time of its file, raised to the rows before it."""
    monkeypatch.setattr(FilesSource, "scan", None)
    (tmp_path / "in").mkdir()
    times = pa.array([TIMES[0].as_py(), None, TIMES[2].as_py(), None], TIMES.type)
    for number in range(2):
        pq.write_table(PLAIN.set_column(0, "at", times), tmp_path / "in" / f"{number}.parquet", row_group_size=2)
        os.utime(tmp_path / "in" / f"{number}.parquet", (TIMES[1].as_py().timestamp(),) * 2)
    got: list[Any] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home", small_ticks="driver")
    options = f"path '{tmp_path / 'in'}', rowtime.column 'at'"
    pipeline.sql(f"CREATE STREAM s (v BIGINT) USING parquet OPTIONS ({options}); SELECT STREAM v FROM s")
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist()))
    engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=True)
    engine.tasks = Tasks(InProcess(parts)) if parts else None
    while engine.tick() is not None:
        pass
    engine.stop()
    wanted = [(1, 0), (2, 1), (3, 2), (4, 2), (2, 2), (3, 2), (4, 2)]
    assert [(row["v"], row["rowtime"]) for row in got] == [(v, TIMES[n].as_py()) for v, n in wanted]
    assert engine.entry["totals"]["s"] == {"in": 8, "accepted": 7, "OUT_OF_ORDER": 1}


def test_a_stream_of_arrival_times_is_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(PLAIN, tmp_path / "in" / "0.parquet")
    source, part = taken(tmp_path, [("v", "BIGINT")], **{"rowtime.column": ""})
    assert source.rows(part, {"v": "v", "t": ROWTIME}) is None


def test_a_footer_with_a_name_that_is_no_text_is_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table({"at": TIMES, "name_of_it": [1, 2, 3, 4]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"name_of_it", b"name_\xb1f_it"))
    file = (0, "w", str(path))
    with pytest.raises(Failure, match=r"R501 .*1\.parquet cannot be read"):
        parquet_rows.columns([parquet_rows.FileRows(*file, 0, {})], {"at": "at"}, {"at": parquet_rows.MICROS})
    assert "codec" in (damage_of("parquet", str(path)) or "")
