"""Iceberg tables on an S3 server: each row is there once, whatever dies; a bucket is configured once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import rowtime as rt
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import place_of
from rowtime.runtime.iceberg_catalog import opened
from rowtime.runtime.lake_targets import optimize
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from rowtime.runtime.sinks.lake import Ready
from tests.lakes.test_delta_tables_on_stores import Run
from tests.stores import conftest as stores
from tests.stores.server import BUCKET, server
from tests.stores.test_settings import SECRET, proxy
from tests.ways import in_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reliability.stores.proxy import Faults
    from reliability.stores.servers import Server

CATALOG = """catalog 'here', catalog.type 'sql', catalog.uri 'sqlite:///{folder}/catalog.db',
  catalog.warehouse '{url}'"""
SQL = f"""CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT, day DATE NOT NULL) USING iceberg PARTITIONED BY (day) OPTIONS (table 'db.o', {CATALOG});
CREATE STREAM last (day DATE NOT NULL, n BIGINT, change STRING) USING iceberg
  OPTIONS (table 'db.last', {CATALOG}, key 'day', mode 'changes', rowtime.column '');
CREATE PUMP even AS INSERT INTO o SELECT STREAM n, day FROM a WHERE n % 2 = 0;
CREATE PUMP odd AS INSERT INTO o SELECT STREAM n, day FROM a WHERE n % 2 = 1;
CREATE PUMP newest AS INSERT INTO last SELECT STREAM COALESCE(day, DATE '2000-01-01') AS day, n,
  CASE WHEN n % 10 = 9 THEN 'RETRACT' ELSE 'INSERT' END AS change FROM a;"""
ONE = f"""CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT) USING iceberg OPTIONS (table 'db.o', {CATALOG}{{more}});
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;"""

bucket, stored, proxy = stores.bucket, stores.stored, proxy  # noqa: PLW0127 - fixtures


@pytest.fixture(params=["moto", "versitygw"])
def store(request: pytest.FixtureRequest) -> Server:
    """A server of each kind that speaks S3."""
    return server(request.param)


def made(spark: SparkSession, folder: Path, url: str, sql: str = ONE, more: str = "") -> Run:
    return Run(spark, folder, url, sql.replace("{folder}", str(folder)).replace("{more}", more), IcebergTable)


def table(folder: Path, url: str, name: str = "o") -> Any:
    found = opened("here", {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": url})
    return found.load_table(f"db.{name}")


def numbers(folder: Path, url: str, name: str = "o") -> list[int]:
    return sorted(table(folder, url, name).scan().to_arrow()["n"].to_pylist())


@pytest.mark.slow
def test_a_driver_that_dies_at_any_point_loses_and_repeats_no_row_on_a_store(
    spark: SparkSession, tmp_path: Path, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(spark, tmp_path, stored, SQL)
    points = ("before journal", "after journal", "files in place", "first commit", "second commit", "after output")
    left: dict[int, int] = {}
    for at, point in enumerate(points):
        if at == 2:  # tasks of Spark write
            in_jobs(monkeypatch)
        given = range(at * 10, at * 10 + 10)
        run.send(given)
        run.dies(point, monkeypatch)
        run.go()
        assert numbers(tmp_path, stored) == list(range(at * 10 + 10)), point
        left |= {n % 3: n for n in given}
        left = {key: n for key, n in left.items() if n % 10 != 9}
        assert numbers(tmp_path, stored, "last") == sorted(left.values()), point
    found = table(tmp_path, stored)
    assert len(found.inspect.partitions()) == 3
    files = found.inspect.files()["file_path"].to_pylist()
    assert all(file.startswith(f"{stored}/db/o/data/rowtime-") for file in files)
    verified = rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert verified.equal, verified
    assert [one.rows for one in verified.outputs if one.kind == "iceberg"] == [30, 30, len(left)]
    # The marks of the pumps outlive their snapshots.
    found.maintenance.expire_snapshots().older_than(datetime.now(UTC) + timedelta(days=1)).commit()
    run.send(range(60, 64))
    run.go()
    assert numbers(tmp_path, stored) == list(range(64))


def test_a_commit_of_another_driver_in_between_is_not_repeated(
    spark: SparkSession, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(spark, tmp_path, bucket, more=", commit.interval '1 hour'")
    run.send(range(5))
    run.go()
    real, calls = IcebergTable.commit, []

    def twice(self: IcebergTable, ready: Ready) -> None:
        calls.append(ready)
        if len(calls) == 1:  # the same tick, by a driver that has read the table before, and a row of another program
            other = IcebergTable(self._called, self._given, self._name, self._pump)
            other.look(ready.app)
            real(other, ready)
            row = {"rowtime": pa.array([0], pa.timestamp("us", "UTC")), "n": pa.array([1000], pa.int64())}
            table(tmp_path, bucket).append(pa.table(row))
        real(self, ready)

    monkeypatch.setattr(IcebergTable, "commit", twice)
    run.send(range(5, 10))
    run.go()
    assert len(calls) == 1, "the second look has found the mark"
    assert numbers(tmp_path, bucket) == [*range(10), 1000]


def test_what_is_wrong_with_a_store_names_the_pump(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    run = made(spark, tmp_path / "a", "s3://no-such-bucket-at-all")
    run.send(range(2))
    with pytest.raises(Failure, match="R581 p: the bucket s3://no-such-bucket-at-all"):
        run.go()
    run = made(spark, tmp_path / "b", "hdfs://server/lake")
    with pytest.raises(Refused, match=r"R572 the Iceberg table db\.o is at hdfs://server/lake/db/o"):
        run.go()
    (place_of(bucket) / "db" / "o" / "data" / "x.parquet").upload(b"no table")
    run = made(spark, tmp_path, bucket)
    run.send(range(2))
    with pytest.raises(Refused, match=r"R562 the pump p .*x\.parquet"):
        run.go()
    (place_of(bucket) / "db" / "o" / "data" / "x.parquet").unlink()
    run.go()
    run.send(range(2, 4))
    for path in [*place_of(f"{bucket}/db/o/metadata").rglob("*.json")]:
        path.unlink()
    with pytest.raises(Failure, match=r"R565 the pump p cannot reach the Iceberg table db\.o.*metadata"):
        run.go()
    found = opened("here", {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": bucket})
    found.drop_table("db.o")
    with pytest.raises(Refused, match=r"R564 the pump p has written 2 rows.*is gone"):
        run.go()


@pytest.mark.parametrize("how", ["configured", pytest.param("by the catalog", marks=pytest.mark.slow)])
def test_a_bucket_is_configured_once_and_no_key_of_it_is_written(
    spark: SparkSession,
    tmp_path: Path,
    bucket: str,
    proxy: tuple[str, Faults],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    endpoint, faults = proxy
    more = ""
    told = {"endpoint": endpoint, "region": "eu-west-9", "access_key_id": how, "secret_access_key": SECRET}
    if how == "configured":
        rt.configure_stores({f"s3://{BUCKET}": told})
    else:
        rt.configure_stores({f"s3://{BUCKET}": {**told, "access_key_id": "other", "endpoint": "http://127.0.0.1:1"}})
        keys = f"'catalog.s3.access-key-id' '{how}', 'catalog.s3.secret-access-key' '{SECRET}'"
        more = f", catalog.s3.endpoint '{endpoint}', {keys}"
    run = made(spark, tmp_path, bucket, more=more)
    run.send(range(5))
    run.go()
    assert faults.keys == {how}
    assert any("pyarrow" in agent or "aws-sdk-cpp" in agent for agent in faults.agents), faults.agents
    assert any("object_store" in agent for agent in faults.agents), faults.agents
    monkeypatch.setattr(faults, "ask", lambda *_: (403, {}, b"<Error><Code>SignatureDoesNotMatch</Code></Error>"))
    run.send(range(5, 8))
    with pytest.raises(Failure, match=r"R582 p: the bucket(.|\n)*rowtime\.toml") as failed:
        run.go()
    monkeypatch.undo()  # the environment has the address of the store
    rt.configure_stores({})
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    kept += [path.read_bytes() for path in place_of(bucket).rglob()]
    assert len(kept) > 10
    assert not [one for one in [*kept, str(failed.value).encode()] if SECRET.encode() in one]
    run.go()
    assert numbers(tmp_path, bucket) == list(range(8))
    # A checkpoint does not store the keys of a script: the command to compact takes them as options.
    keys = {"secret_o_catalog_s3_access_key_id": how, "secret_o_catalog_s3_secret_access_key": SECRET} if more else {}
    faults.keys.clear()
    assert [one.files for one in optimize(tmp_path / "check", home=tmp_path / "home", variables=keys)] == [2]
    assert faults.keys == ({how} if more else set())
    assert numbers(tmp_path, bucket) == list(range(8))
