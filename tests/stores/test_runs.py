"""Runs with a checkpoint on an S3 server: their output, restarts, and the state that others see."""

from __future__ import annotations

import shutil
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

import rowtime as rt
from reliability.stores.proxy import faulty
from rowtime.audit.readmit import readmit
from rowtime.audit.trace import trace
from rowtime.cli.main import app
from rowtime.cli.status import status_of
from rowtime.core.errors import Refused
from rowtime.core.stores import below, place_of
from rowtime.state.checkpoint import Checkpoint
from tests.deaths import Died, dying
from tests.kafka.missing_jars import without_jars
from tests.stores.server import address, jars_missing
from tests.ways import in_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine

SQL = """
CREATE STREAM s (k STRING, v DOUBLE, ev TIMESTAMP);
CREATE STREAM files (k STRING, v DOUBLE) USING parquet OPTIONS (path '{out}/in', rowtime.column 'at');
CREATE STREAM sorted_rows (k STRING, v DOUBLE) USING csv OPTIONS (path '{out}/sorted', header 'true');
CREATE STREAM counts (k STRING, c BIGINT, total DOUBLE) USING parquet OPTIONS (path '{out}/counts');
CREATE STREAM late (k STRING, reason STRING) USING parquet OPTIONS (path '{out}/late');
CREATE STREAM copies (k STRING, v DOUBLE) USING parquet OPTIONS (path '{out}/copies');
CREATE STREAM log (k STRING, v DOUBLE);
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s
  ORDER BY ev WITHIN INTERVAL '20' SECOND EARLY BEYOND INTERVAL '1' DAY;
CREATE PUMP a AS INSERT INTO sorted_rows SELECT STREAM k, v FROM sorted;
CREATE PUMP b AS INSERT INTO counts SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM sorted AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
CREATE PUMP c AS INSERT INTO late SELECT STREAM k, reason FROM sorted.rejected;
CREATE PUMP d AS INSERT INTO log SELECT STREAM k, v FROM sorted;
CREATE PUMP e AS INSERT INTO copies SELECT STREAM k, v FROM files;
"""
POINTS = ("before state", "after state", "before journal", "after journal", "after output")
TICKS = 3


@pytest.fixture(autouse=True)
def _readable(bucket: str) -> None:
    assert bucket
    if jars_missing():
        without_jars(jars_missing())


def at(second: int) -> str:
    return f"2024-01-01 10:{second // 60:02}:{second % 60:02}"


class Run:
    """The pipeline in a folder, with a checkpoint at some place."""

    def __init__(self, spark: SparkSession, folder: Path, checkpoint: str) -> None:
        self.spark, self.folder, self.checkpoint = spark, folder, checkpoint
        (folder / "in").mkdir(parents=True)
        for stream in self.pipeline.compile().defines:
            self.pipeline.home.define(stream.name, stream.as_json())

    @property
    def pipeline(self) -> rt.Pipeline:
        return rt.Pipeline(self.spark, home=self.folder / "home").sql(SQL.format(out=self.folder))

    def write(self, number: int) -> None:
        with rt.writer("s", home=self.folder / "home") as log:
            seconds = [number * 40 + second for second in (0, 15, 5, 15)]
            rows: list[dict[str, Any]] = [{"k": f"k{n % 3}", "v": 0.1 * n, "ev": at(n)} for n in seconds]
            early = {"k": "early", "v": 1.0, "ev": "2024-01-03 00:00:00"}
            log.insert([*rows, {"k": "late", "v": 7.0, "ev": at(0) if number % 2 else None}, early])
        rows = [{"k": "f", "v": float(number), "at": f"2024-01-01 10:{number:02}:00"}]
        table = self.spark.createDataFrame(rows).selectExpr("k", "v", "CAST(at AS TIMESTAMP) AS at").toArrow()
        ds.write_dataset(table, self.folder / "draft", format="parquet", existing_data_behavior="overwrite_or_ignore")
        (self.folder / "draft" / "part-0.parquet").rename(self.folder / "in" / f"{number}.parquet")

    def start(self) -> Engine:
        return self.pipeline._engine(self.checkpoint, rt.Limits(), ends=False)

    def tick(self, number: int) -> None:
        self.write(number)
        engine = self.start()
        engine.tick()
        engine.close()
        engine.stop()

    def outputs(self) -> dict[str, list[Any]]:
        def content(name: str) -> list[Any]:
            files = sorted((self.folder / name).glob("part-*"))
            if name == "sorted":
                return [line for file in files for line in file.read_text().splitlines()[1:]]
            return sorted((row for file in files for row in ds.dataset(file).to_table().to_pylist()), key=repr)

        return {name: content(name) for name in ("sorted", "counts", "late", "copies")}


@pytest.mark.slow
def test_a_run_on_a_store_writes_what_a_run_on_a_disk_writes(
    spark: SparkSession, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = Run(spark, tmp_path / "remote", bucket)
    here = Run(spark, tmp_path / "here", str(tmp_path / "check"))
    for number in range(TICKS):
        if number == TICKS - 1:  # Spark's tasks write the files of the last tick
            in_jobs(monkeypatch)
        remote.tick(number)
        here.tick(number)
    monkeypatch.undo()
    assert remote.outputs() == here.outputs()
    assert all(remote.outputs().values())
    assert not [path for path in tmp_path.rglob("*") if "s3:" in path.name]
    told, same = status_of(Path(bucket)), status_of(tmp_path / "check")
    assert (told["tick"], told["ledger"], told["held"]) == (same["tick"], same["ledger"], same["held"])
    verified = rt.verify(bucket, spark=spark, home=tmp_path / "remote" / "home")
    assert verified.equal, verified
    found = trace(remote.pipeline, bucket, "k = 'k0'", sink="b")
    assert {"b.sink", "s"} <= {item.operator for item in found}
    [admitted] = readmit(bucket, home=tmp_path / "remote" / "home")
    assert (admitted.admitted, admitted.early) == (0, TICKS)
    shown = CliRunner().invoke(app, ["status", bucket, "--waiting"])
    assert (shown.exit_code, bucket in CliRunner().invoke(app, ["status", bucket]).stdout) == (0, True)
    home = ["--home", str(tmp_path / "remote" / "home")]
    for command, status, words in (
        (["readmit", bucket, *home], 0, "sorted"),
        (["status", bucket, "--json"], 0, bucket),
        (["skip", bucket, "a", "0", *home], 1, "R"),
        (["optimize", bucket], 1, "R571"),
        (["verify", bucket, *home], 0, "equal"),
        (["trace", bucket, "--sink", "b", "--where", "k = 'k0'", *home], 0, "b.sink"),
        (["bound", "sorted", "2024-01-02 00:00:00", "--checkpoint", bucket], 0, "is set to 2024-01-02"),
    ):
        done = CliRunner().invoke(app, command)
        assert (done.exit_code, words in done.output) == (status, True), (command, done.output)
    before = status_of(Path(bucket))["ledger"]["sorted"]
    remote.tick(TICKS)
    after = status_of(Path(bucket))["ledger"]["sorted"]
    assert after["accepted"] == before["accepted"] + 1, "of the new rows those of the first day are late"
    assert after["LATE"] >= before["LATE"] + 4


@pytest.mark.slow
def test_driver_workers_and_spark_use_the_settings_of_a_bucket(
    spark: SparkSession, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"own-{tmp_path.name.replace('_', '-')}".lower()[:60]
    assert bucket
    urllib.request.urlopen(urllib.request.Request(f"{address()}/{own}", method="PUT")).close()  # noqa: S310 - our own
    in_jobs(monkeypatch)
    with faulty(address()) as (endpoint, faults):
        rt.configure_stores(
            {f"s3://{own}": {"endpoint": endpoint, "access_key_id": "said", "secret_access_key": "not-shown"}}
        )
        try:
            remote = Run(spark, tmp_path / "remote", f"s3://{own}/checkpoint")
            remote.tick(0)
            remote.tick(1)
            assert remote.outputs()["sorted"]
            assert faults.keys == {"said"}
            assert any("Hadoop" in agent for agent in faults.agents)
            objects = [*place_of(f"s3://{own}/checkpoint").rglob()]
            assert objects
            assert not [path for path in objects if b"not-shown" in path.read_bytes()]
        finally:
            rt.configure_stores({})


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_that_dies_or_only_sleeps_loses_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path, bucket: str, point: str
) -> None:
    remote = Run(spark, tmp_path / "remote", bucket)
    here = Run(spark, tmp_path / "here", str(tmp_path / "check"))
    remote.tick(0)
    remote.write(1)
    sleeping = remote.start()
    sleeping.hook = dying(point)
    with pytest.raises(Died):
        sleeping.tick()
    for stage in sleeping.stages.values():  # the locks of its machine, which is gone
        stage.close()
    remote.tick(2)
    sleeping.hook = lambda _point: None
    with pytest.raises(Refused, match="R403"):  # it continues
        sleeping.tick()
    here.tick(0)
    here.tick(1) if point.startswith("after ") and point != "after state" else here.write(1)
    here.tick(2)
    assert remote.outputs() == here.outputs()
    assert rt.verify(bucket, spark=spark, home=tmp_path / "remote" / "home").equal
    assert Checkpoint(place_of(bucket)).journal.check() >= 1
    shutil.rmtree(tmp_path)


@pytest.mark.slow
def test_a_driver_whose_successor_removed_its_state_reports_the_successor(
    spark: SparkSession, tmp_path: Path, bucket: str
) -> None:
    remote = Run(spark, tmp_path / "remote", bucket)
    remote.tick(0)

    def send(second: int) -> None:  # without a file, whose number a driver records before anything else
        with rt.writer("s", home=tmp_path / "remote" / "home") as log:
            log.insert([{"k": "k0", "v": 1.0, "ev": at(second)}])

    send(40)
    sleeping = remote.start()
    for stage in sleeping.stages.values():  # the locks of its machine, which is gone
        stage.close()
    for second in (80, 120):
        send(second)
        successor = remote.start()
        successor.tick()
        successor.close()
        successor.stop()
    known = {row[0] for log in sleeping.entry["segments"].values() for row in log}
    there = {below(path, place_of(bucket)) for path in place_of(bucket).rglob()}
    assert known - there, "the successor needs them no more"
    with pytest.raises(Refused, match="R403"):
        sleeping.tick()
