"""Delta tables on object stores: each row is there once, whatever dies. Spark needs no file system for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import place_of
from rowtime.runtime.lake_targets import optimize
from rowtime.runtime.sinks.delta_log import DeltaLog
from rowtime.runtime.sinks.lake import Ready
from rowtime.runtime.store_access import deltalake_settings
from tests.lakes import deaths
from tests.stores import conftest as stores
from tests.ways import in_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reliability.stores.servers import Server

SQL = """CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT, day DATE) USING delta PARTITIONED BY (day) OPTIONS (path '{url}/out');
CREATE STREAM last (day DATE NOT NULL, n BIGINT) USING delta
  OPTIONS (path '{url}/last', key 'day', rowtime.column '');
CREATE PUMP even AS INSERT INTO o SELECT STREAM n, day FROM a WHERE n % 2 = 0;
CREATE PUMP odd AS INSERT INTO o SELECT STREAM n, day FROM a WHERE n % 2 = 1;
CREATE PUMP newest AS INSERT INTO last SELECT STREAM COALESCE(day, DATE '2000-01-01') AS day, n FROM a;"""
ONE = """CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{url}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;"""


bucket, store, stored = stores.bucket, stores.store, stores.stored


class Run:
    """A pipeline with its home and checkpoint in a folder, and its tables in a bucket."""

    def __init__(self, spark: SparkSession, folder: Path, url: str, sql: str, log: type[Any] = DeltaLog) -> None:
        self.spark, self.folder, self.url, self.sql = spark, folder, url, sql.format(url=url)
        self.log = log
        for stream in self.pipeline.compile().defines:
            self.pipeline.home.define(stream.name, stream.as_json())

    @property
    def pipeline(self) -> rt.Pipeline:
        return rt.Pipeline(self.spark, home=self.folder / "home").sql(self.sql)

    def send(self, numbers: range) -> None:
        with rt.writer("a", home=self.folder / "home") as log:
            log.insert([{"n": n, "day": f"2024-01-0{1 + n % 3}", "rowtime": n * 60_000_000} for n in numbers])

    def dies(self, point: str, patch: pytest.MonkeyPatch) -> None:
        deaths.dies_in(self.pipeline._engine(self.folder / "check", rt.Limits(), ends=False), self.log, point, patch)

    def go(self) -> None:
        self.pipeline.run_available(self.folder / "check")


def table(url: str) -> DeltaTable:
    return DeltaTable(url, storage_options=deltalake_settings(place_of(url)))


def numbers(url: str) -> list[int]:
    return sorted(table(url).to_pyarrow_table()["n"].to_pylist())


@pytest.mark.slow
def test_a_driver_that_dies_at_any_point_loses_and_repeats_no_row_on_a_store(
    spark: SparkSession,
    tmp_path: Path,
    store: Server,
    stored: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(spark, tmp_path, stored, SQL)
    points = ("before journal", "after journal", "first commit", "second commit", "after output")
    for at, point in enumerate(points):
        if at == 2 and store.is_s3:  # tasks of Spark write, and their environment has no settings of Azure
            in_jobs(monkeypatch)
        run.send(range(at * 10, at * 10 + 10))
        run.dies(point, monkeypatch)
        run.go()
        assert numbers(f"{stored}/out") == list(range(at * 10 + 10)), point
        latest = {n % 3: n for n in range(at * 10 + 10)}
        assert numbers(f"{stored}/last") == sorted(latest.values()), point
    left = [str(path) for path in place_of(stored).rglob("*.parquet") if "/_rowtime/" in str(path)]
    assert not left, "VACUUM would pass over them"
    verified = rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert verified.equal, verified
    assert [one.rows for one in verified.outputs if one.kind == "delta"].count(25) == 2
    found = optimize(tmp_path / "check", "even")
    assert [one.table for one in found] == [f"{stored}/out"]
    assert found[0].files > len(points)
    shown = CliRunner().invoke(app, ["optimize", str(tmp_path / "check"), "--json"])
    assert shown.exit_code == 0, shown.output
    assert numbers(f"{stored}/out") == list(range(len(points) * 10))
    removed = table(f"{stored}/out").vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert any("/rowtime-" in f"/{name}" for name in removed), "what a crash has left, too"
    run.send(range(50, 60))
    run.go()
    assert numbers(f"{stored}/out") == list(range(60))


def test_a_commit_of_another_driver_in_between_is_not_repeated(
    spark: SparkSession,
    tmp_path: Path,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(spark, tmp_path, bucket, ONE)
    run.send(range(5))
    run.go()
    real, calls = DeltaLog.commit, []

    def twice(self: DeltaLog, ready: Ready) -> None:
        calls.append(ready)
        if len(calls) == 1:  # the same tick, by a driver that has read the table before
            other = DeltaLog(self._path, self._pump)
            other.look(ready.app)
            real(other, ready)
        real(self, ready)

    monkeypatch.setattr(DeltaLog, "commit", twice)
    run.send(range(5, 10))
    run.go()
    assert len(calls) == 1, "the second look has found the mark"
    assert numbers(f"{bucket}/out") == list(range(10))


def test_what_is_wrong_with_a_store_names_the_pump(
    spark: SparkSession,
    tmp_path: Path,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(spark, tmp_path / "a", "s3://no-such-bucket-at-all", ONE)
    run.send(range(2))
    with pytest.raises(Failure, match="R581 p: the bucket s3://no-such-bucket-at-all"):
        run.go()
    (place_of(bucket) / "out" / "x.parquet").upload(b"no table")
    run = Run(spark, tmp_path / "b", bucket, ONE)
    run.send(range(2))
    with pytest.raises(Refused, match=r"R562 the pump p .*x\.parquet"):
        run.go()
    (place_of(bucket) / "out" / "x.parquet").unlink()
    run.go()
    for path in [*place_of(f"{bucket}/out").rglob()]:
        path.unlink()
    run.send(range(2, 4))
    with pytest.raises(Refused, match="R564 the pump p has written 2 rows"):
        run.go()
