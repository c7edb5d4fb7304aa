"""Parquet files as pandas, Polars and Arrow write them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.runtime.sources.nanoseconds import Nanoseconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

AT = ["2026-01-01T10:00:00", "2026-01-01T10:09:00.123456"]
DAYS = [date(2026, 1, 1), date(2026, 1, 2)]
SQL = (
    "CREATE STREAM r (d STRING, at TIMESTAMP, day DATE) USING parquet OPTIONS (path '{path}', rowtime.column 'at'); "
    "SELECT STREAM d, at, day FROM r"
)


def _pandas(path: Path) -> None:
    import pandas as pd

    times = pd.to_datetime(AT, format="ISO8601").astype("datetime64[ns]")
    pd.DataFrame({"d": pd.Categorical(["a", "b"]), "at": times, "day": DAYS}).to_parquet(path)


def _polars(path: Path) -> None:
    import polars as pl

    times = pl.Series(AT).str.to_datetime(time_unit="ns", time_zone="UTC")
    pl.DataFrame({"d": pl.Series(["a", "b"], dtype=pl.Categorical), "at": times, "day": DAYS}).write_parquet(path)


def _arrow(kind: pa.DataType, text: pa.DataType) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        times = pa.array([datetime.fromisoformat(at) for at in AT], pa.timestamp("us")).cast(kind)
        columns = {"d": pa.array(["a", "b"]).cast(text), "at": times, "day": pa.array(DAYS, pa.date64())}
        pq.write_table(pa.table(columns), path)

    return write


WRITERS = {
    "pandas": _pandas,
    "polars": _polars,
    "nanoseconds elsewhere": _arrow(pa.timestamp("ns", "America/New_York"), pa.large_string()),
    "microseconds": _arrow(pa.timestamp("us", "UTC"), pa.dictionary(pa.int32(), pa.string())),
    "no zone": _arrow(pa.timestamp("us"), pa.string_view()),
}


@pytest.mark.parametrize("name", WRITERS)
def test_times_and_texts_of_others_are_read(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    WRITERS[name](tmp_path / "in/1.parquet")
    got: list[dict[str, Any]] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(path=tmp_path / "in"))
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist()))
    pipeline.run_available(tmp_path / "ck", end=True)
    times = [datetime.fromisoformat(at).replace(tzinfo=UTC) for at in AT]
    assert [(row["d"], row["at"], row["day"]) for row in got] == list(zip("ab", times, DAYS, strict=True))
    assert [row["rowtime"] for row in got] == times
    for path in (tmp_path / "ck/sources/r/decoded").glob("*"):
        pytest.fail(f"{path} is left")


@pytest.mark.parametrize(("nanos", "micros"), [(1_999, 1), (-1, -1), (-1_000, -1), (-1_001, -2), (0, 0), (None, None)])
def test_digits_beyond_microseconds_are_cut_off(tmp_path: Path, nanos: int | None, micros: int | None) -> None:
    path, copy = tmp_path / "in.parquet", tmp_path / "copy.parquet"
    for kind, declared in ((pa.timestamp("ns"), "TIMESTAMP_NTZ"), (pa.timestamp("ns", "Asia/Kolkata"), "TIMESTAMP")):
        table = pa.table({"At": pa.array([nanos], pa.int64()).cast(kind), "n": [1], "other": [2]})
        pq.write_table(table, path)
        reader = Nanoseconds.of({"at": declared, "n": "INT"})
        assert reader is not None
        assert reader.decode(str(path), copy) == 1
        got = pq.read_table(copy)
        assert got.column_names == ["At", "n"]
        assert got.schema.field("At").type == pa.timestamp("us", "UTC" if declared == "TIMESTAMP" else None)
        assert got["At"].cast(pa.int64()).to_pylist() == [micros]


def test_files_without_nanoseconds_are_not_copied(tmp_path: Path) -> None:
    _arrow(pa.timestamp("us"), pa.string())(tmp_path / "in.parquet")
    reader = Nanoseconds.of({"at": "TIMESTAMP"})
    assert reader is not None
    assert reader.decode(str(tmp_path / "in.parquet"), tmp_path / "copy.parquet") is None
    assert not (tmp_path / "copy.parquet").exists()
    assert Nanoseconds.of({"n": "BIGINT"}) is None
