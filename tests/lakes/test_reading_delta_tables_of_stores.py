"""Delta tables in a bucket as sources: the driver reads the log, and Spark's file system reads the rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.core.errors import Refused
from rowtime.core.stores import place_of
from rowtime.runtime.store_access import deltalake_settings
from tests.deaths import Died, dying
from tests.stores import conftest as stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2024, 1, 1, tzinfo=UTC)
SQL = """CREATE STREAM clicks (n BIGINT, day STRING, at TIMESTAMP) USING delta OPTIONS (path '{url}/in'{options});
CREATE TABLE days (day STRING, name STRING) USING delta OPTIONS (path '{url}/days', versionAsOf '0');
CREATE STREAM o (n BIGINT, name STRING) USING delta OPTIONS (path '{folder}/{out}', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n, name FROM clicks{now} LEFT JOIN days ON clicks.day = days.day;"""

bucket = stores.bucket


def append(url: str, numbers: range, **how: Any) -> None:
    """A version with one file for each of two days; their names need escapes."""
    at = [START + timedelta(seconds=10 * n) for n in numbers]
    days = [f"d {n % 2}/ä:#%" for n in numbers]
    write(f"{url}/in", {"n": [*numbers], "day": days, "at": pa.array(at, pa.timestamp("us", "UTC"))}, ["day"], **how)


def write(url: str, columns: dict[str, Any], partitions: list[str] | None = None, **how: Any) -> None:
    settings = deltalake_settings(place_of(url))
    write_deltalake(url, pa.table(columns), mode="append", partition_by=partitions, storage_options=settings, **how)


def table(url: str) -> DeltaTable:
    return DeltaTable(url, storage_options=deltalake_settings(place_of(url)))


class Run:
    """A pipeline that reads tables of a bucket into one on a disk."""

    def __init__(self, spark: SparkSession, folder: Path, url: str) -> None:
        self.spark, self.folder, self.url = spark, folder, url
        write(f"{url}/days", {"day": ["d 0/ä:#%"], "name": ["even"]})
        write(f"{url}/days", {"day": ["d 1/ä:#%"], "name": ["odd"]})

    def pipeline(self, out: str, options: str = "", now: str = "") -> rt.Pipeline:
        text = SQL.format(folder=self.folder, url=self.url, out=out, options=options, now=now)
        return rt.Pipeline(self.spark, home=self.folder / f"home of {out}").sql(text)

    def go(self, out: str = "out", *, files: int | None = None, check: str = "", **given: Any) -> list[int]:
        end = given.pop("end", False)
        place = check or self.folder / f"check of {out}"
        self.pipeline(out, **given).run_available(place, limits=rt.Limits(files=files), end=end)
        rows = DeltaTable(str(self.folder / out)).to_pyarrow_table().to_pylist()
        assert all(row["name"] == (None if row["n"] % 2 else "even") for row in rows), "as the table was in version 0"
        return sorted(row["n"] for row in rows)


@pytest.mark.slow
def test_a_stream_over_a_table_of_a_bucket_has_its_rows(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    run = Run(spark, tmp_path, bucket)
    append(bucket, range(4))
    assert run.go() == [*range(4)]


@pytest.mark.slow
def test_a_stream_over_a_table_of_a_bucket_has_each_row_once(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    run = Run(spark, tmp_path, bucket)
    append(bucket, range(4))
    append(bucket, range(4, 8))
    assert run.go(files=1) == [*range(8)]
    append(bucket, range(8, 12))
    table(f"{bucket}/in").optimize.compact()
    append(bucket, range(12, 14))
    engine = run.pipeline("out")._engine(tmp_path / "check of out", rt.Limits(files=1), ends=False)
    engine.hook = dying("after journal")
    with pytest.raises(Died):
        engine.tick()
    engine.stop()
    assert run.go() == [*range(14)]
    again = verify(tmp_path / "check of out", spark=spark, home=tmp_path / "home of out")
    assert again.equal, again


@pytest.mark.slow
def test_starts_changes_and_missing_versions_work_like_on_a_disk(
    spark: SparkSession, tmp_path: Path, bucket: str
) -> None:
    run, place = Run(spark, tmp_path, bucket), f"{bucket}/in"
    append(bucket, range(4))
    append(bucket, range(4, 6))
    late = {"options": ", startingVersion '1'", "check": f"{bucket}/check"}
    assert run.go("late", **late) == [4, 5]
    new = {"now": " FROM NOW"}
    run.pipeline("new", **new).run_available(tmp_path / "check of new")
    append(bucket, range(6, 8))
    assert run.go("new", **new) == [6, 7]
    assert run.go("late", **late) == [4, 5, 6, 7], "also with the checkpoint in the bucket"
    with pytest.raises(Refused, match=r"R578 .*has no version 9"):
        run.go("none", options=", startingVersion '9'")
    table(place).delete("n = 1")
    with pytest.raises(Refused, match=r"R574 .*the stream clicks: version 3 DELETE removed or replaced 1 files"):
        run.go("new", **new)
    assert run.go("new", **new, options=", skipChangeCommits 'true'") == [6, 7]
    append(bucket, range(8, 10))
    table(place).optimize.compact()
    assert table(place).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(Refused, match=r"R576 .*of version 4 is gone \(VACUUM\?\)"):
        run.go("new", **new, options=", skipChangeCommits 'true'")
    for path in [*place_of(place).rglob()]:
        path.unlink()
    with pytest.raises(Refused, match=r"R576 .*the table is gone"):
        run.go("new", **new)
