"""Iceberg tables in a bucket as sources: pyiceberg reads the snapshots, and Spark's file system the rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import place_of
from rowtime.runtime.iceberg_catalog import opened
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from tests.deaths import Died, dying
from tests.lakes import deaths
from tests.lakes.test_iceberg_tables_on_stores import CATALOG
from tests.stores import conftest as stores

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("n", pa.int64()), ("day", pa.string())])
SQL = f"""CREATE STREAM clicks (n BIGINT, day STRING) USING iceberg OPTIONS (table 'db.t'{{options}}, {CATALOG});
CREATE TABLE days (day STRING, name STRING) USING iceberg OPTIONS (table 'db.days', {CATALOG});
CREATE STREAM o (n BIGINT, name STRING) USING delta OPTIONS (path '{{folder}}/out_of_{{check}}', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n, name FROM clicks LEFT JOIN days ON clicks.day = days.day;"""
VISITS = f"""CREATE STREAM visits (page STRING NOT NULL, seen TIMESTAMP);
CREATE VIEW by_time AS SELECT STREAM seen AS ROWTIME, page FROM visits ORDER BY seen WITHIN INTERVAL '5' MINUTE;
CREATE STREAM hourly (hour TIMESTAMP, page STRING NOT NULL, n BIGINT) USING iceberg PARTITIONED BY (page)
  OPTIONS (table 'db.hourly', {CATALOG}, commit.interval '1 hour', optimize.files '3', rowtime.column '');
CREATE PUMP to_hourly AS INSERT INTO hourly
  SELECT STREAM FLOOR(by_time.ROWTIME TO HOUR) AS hour, page, COUNT(*) AS n FROM by_time
  GROUP BY FLOOR(by_time.ROWTIME TO HOUR), page;"""
READERS = f"""CREATE STREAM hourly (hour TIMESTAMP, page STRING, n BIGINT)
  USING iceberg OPTIONS (table 'db.hourly', {CATALOG});
CREATE STREAM seen (hour TIMESTAMP, page STRING, n BIGINT) USING delta
  OPTIONS (path '{{folder}}/seen', rowtime.column '');
CREATE PUMP to_seen AS INSERT INTO seen SELECT STREAM hour, page, n FROM hourly;"""
bucket = stores.bucket


def catalog(folder: Path, url: str) -> Catalog:
    found: Catalog = opened("here", {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": url})
    return found


def table(folder: Path, url: str, name: str = "t") -> Table:
    return catalog(folder, url).load_table(f"db.{name}")


def append(folder: Path, url: str, numbers: range) -> None:
    """A snapshot with one file for each of two days; their names need escapes."""
    there = catalog(folder, url)
    if not there.table_exists("db.t"):
        there.create_namespace_if_not_exists("db")
        with there.create_table_transaction("db.t", SCHEMA) as made, made.update_spec() as spec:
            spec.add_identity("day")
        days = there.create_table("db.days", pa.schema([("day", pa.string()), ("name", pa.string())]))
        days.append(pa.table({"day": ["d 0/ä:#%"], "name": ["even"]}))
    rows = [{"n": n, "day": f"d {n % 2}/ä:#%"} for n in numbers]
    table(folder, url).append(pa.Table.from_pylist(rows, schema=SCHEMA))


class Reader:
    """A pipeline that reads tables of a bucket into one on a disk."""

    def __init__(self, spark: SparkSession, folder: Path, url: str, sql: str = SQL) -> None:
        self.spark, self.folder, self.url, self.sql = spark, folder, url, sql

    def pipeline(self, options: str = "", check: str = "check") -> rt.Pipeline:
        text = self.sql.format(folder=self.folder, url=self.url, options=options, check=check)
        return rt.Pipeline(self.spark, home=self.folder / f"home of {check}").sql(text)

    def go(self, check: str = "check", files: int | None = None, options: str = "") -> list[dict[str, Any]]:
        self.pipeline(options, check).run_available(self.folder / check, limits=rt.Limits(files=files))
        return self.found(f"out_of_{check}")

    def found(self, name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = DeltaTable(str(self.folder / name)).to_pyarrow_table().to_pylist()
        return sorted(rows, key=str)

    def refused(self, check: str = "check", options: str = "") -> str:
        with pytest.raises((Refused, Failure)) as raised:
            self.go(check, options=options)
        return str(raised.value)


def expected(numbers: range) -> list[dict[str, Any]]:
    return sorted(({"n": n, "name": None if n % 2 else "even"} for n in numbers), key=str)


def test_a_stream_over_a_table_of_a_bucket_has_its_rows(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    reader = Reader(spark, tmp_path, bucket)
    append(tmp_path, bucket, range(4))
    assert reader.go() == expected(range(4))


@pytest.mark.slow
def test_a_stream_over_a_table_of_a_bucket_has_each_row_once(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    reader = Reader(spark, tmp_path, bucket)
    append(tmp_path, bucket, range(4))
    append(tmp_path, bucket, range(4, 8))
    assert reader.go(files=1) == expected(range(8))
    append(tmp_path, bucket, range(8, 12))
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": bucket}
    assert IcebergTable("here", given, "db.t", "p").compact() == 6
    append(tmp_path, bucket, range(12, 14))
    engine = reader.pipeline()._engine(tmp_path / "check", rt.Limits(files=1), ends=False)
    engine.hook = dying("after journal")
    with pytest.raises(Died):
        engine.tick()
    engine.stop()
    assert reader.go() == expected(range(14))
    again = verify(tmp_path / "check", spark=spark, home=tmp_path / "home of check")
    assert again.equal, again


@pytest.mark.slow
def test_missing_and_unfit_tables_are_reported_with_what_to_do(
    spark: SparkSession, tmp_path: Path, bucket: str
) -> None:
    reader = Reader(spark, tmp_path, bucket)
    append(tmp_path, bucket, range(4))
    append(tmp_path, bucket, range(4, 6))
    second = table(tmp_path, bucket).snapshots()[1].snapshot_id
    assert reader.go("late", options=f", startingVersion '{second}'") == expected(range(4, 6))
    assert "R578" in reader.refused("none", options=", startingVersion '12'")
    append(tmp_path, bucket, range(6, 8))
    table(tmp_path, bucket).delete("n = 6")
    begun = f", startingVersion '{second}'"
    assert "R574" in reader.refused("late", options=begun)
    append(tmp_path, bucket, range(8, 10))
    old = timedelta(days=1)
    table(tmp_path, bucket).maintenance.expire_snapshots().older_than(datetime.now(UTC) + old).commit()
    assert "R576" in reader.refused("late", options=f"{begun}, skipChangeCommits 'true'")
    # The first start reads the present files; then a file that is next is removed.
    append(tmp_path, bucket, range(10, 12))
    reader.go("new")
    append(tmp_path, bucket, range(12, 14))
    newest = table(tmp_path, bucket).current_snapshot()
    assert newest is not None
    paths = table(tmp_path, bucket).inspect.files(newest.snapshot_id)["file_path"].to_pylist()
    before = set(table(tmp_path, bucket).inspect.files(newest.parent_snapshot_id)["file_path"].to_pylist())
    [lost, _] = sorted(set(paths) - before)
    content = (place_of(bucket) / lost.removeprefix(f"{bucket}/")).read_bytes()
    (place_of(bucket) / lost.removeprefix(f"{bucket}/")).unlink()
    assert "R576" in reader.refused("new")
    (place_of(bucket) / lost.removeprefix(f"{bucket}/")).upload(content)
    rows = reader.go("new")
    assert [row for row in rows if row["n"] > 11] == expected(range(12, 14)), "nothing is lost once it is back"
    catalog(tmp_path, bucket).drop_table("db.t")
    assert "R576" in reader.refused("new")
    elsewhere = Reader(spark, tmp_path / "x", "s3://no-such-bucket-at-all")
    (tmp_path / "x").mkdir()
    assert "R501" in elsewhere.refused(), "the catalog has no such table"


@pytest.mark.slow
def test_one_pipeline_fills_a_table_that_another_one_reads(
    spark: SparkSession, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stream log, T-sort, groups, pump, Iceberg in a bucket: whichever process dies, each row is read once."""
    text = VISITS.format(folder=tmp_path, url=bucket)

    def pipeline() -> rt.Pipeline:
        return rt.Pipeline(spark, home=tmp_path / "home").sql(text)

    for stream in pipeline().compile().defines:
        pipeline().home.define(stream.name, stream.as_json())
    counts: dict[tuple[int, str], int] = {}
    reader = Reader(spark, tmp_path, bucket, READERS)
    points = ("", "after journal", "files in place", "first commit", "after output", "")
    for at, point in enumerate(points):
        rows = []
        for n in range(at * 40, at * 40 + 40):
            minute, page = n * 3 + (4 if n % 2 else 0) * (n % 5 != 0), f"p {n % 3}"
            counts[minute // 60, page] = counts.get((minute // 60, page), 0) + 1
            rows.append({"page": page, "seen": minute * 60_000_000})
        with rt.writer("visits", home=tmp_path / "home") as log:
            log.insert(rows)
            if at == len(points) - 1:
                log.end()
        if point:
            engine = pipeline()._engine(tmp_path / "check", rt.Limits(), ends=False)
            with monkeypatch.context() as patch:
                patch.setattr("rowtime.runtime.sinks.lake.LakeSink.waits", lambda _: False)
                deaths.dies_in(engine, IcebergTable, point, patch)
        pipeline().run_available(tmp_path / "check")
        reader.pipeline(check="readers").run_available(tmp_path / "readers")
        shown = table(tmp_path, bucket, "hourly").scan().to_arrow().to_pylist()
        assert sorted(shown, key=str) == reader.found("seen"), point
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    wanted = [{"hour": epoch + timedelta(hours=h), "page": page, "n": n} for (h, page), n in counts.items()]
    assert reader.found("seen") == sorted(wanted, key=str)
    operations = [one.summary.operation.value for one in table(tmp_path, bucket, "hourly").snapshots() if one.summary]
    assert "replace" in operations, "it was compacted meanwhile"
    compared = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert compared.equal, compared
    again = verify(tmp_path / "readers", spark=spark, home=tmp_path / "home of readers")
    assert again.equal, again
