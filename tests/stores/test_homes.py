"""Pipelines whose home is in a bucket read and write the same as with a home on a disk."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.cli.status import status_of
from rowtime.client import stream_log
from rowtime.client.home import Home
from rowtime.client.log_items import Bound, Rows
from rowtime.client.writer import Writer
from rowtime.core.stores import content_of
from rowtime.core.time import SECOND, to_micros
from tests.deaths import Died, dying
from tests.kafka.missing_jars import without_jars
from tests.stores.server import jars_missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

FIRST = """
CREATE STREAM s (k STRING, v BIGINT, ev TIMESTAMP);
CREATE STREAM pages (k STRING, n BIGINT ASCENDING);
CREATE STREAM sorted_rows (k STRING, v BIGINT NOT NULL);
CREATE STREAM counts (k STRING, c BIGINT);
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s
  ORDER BY ev WITHIN INTERVAL '20' SECOND EARLY BEYOND INTERVAL '1' DAY;
CREATE PUMP a AS INSERT INTO sorted_rows SELECT STREAM k, v FROM sorted;
CREATE PUMP b AS INSERT INTO counts SELECT STREAM k, COUNT(*) AS c FROM sorted AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
INSERT INTO pages (ROWTIME, k, n) VALUES (TIMESTAMP '2024-01-01 10:00:00', 'said', 1);
"""
NEXT = """
CREATE STREAM totals (c BIGINT, n BIGINT);
CREATE PUMP t AS INSERT INTO totals SELECT STREAM SUM(c) AS c, COUNT(*) AS n FROM counts
  GROUP BY FLOOR(counts.ROWTIME TO HOUR);
"""


@pytest.fixture(autouse=True)
def _readable(bucket: str) -> None:
    assert bucket
    if jars_missing():
        without_jars(jars_missing())


def at(second: int) -> str:
    return f"2024-01-01 {10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


class Chain:
    """Two pipelines, of which the second one reads the log that the first one writes."""

    def __init__(self, spark: SparkSession, home: str, checkpoints: str) -> None:
        self.spark, self.home, self.checkpoints = spark, home, checkpoints

    def define(self) -> None:
        for text in (FIRST, NEXT):
            made = rt.Pipeline(self.spark, home=self.home).sql(text)
            for stream in made.compile().defines:
                made.home.define(stream.name, stream.as_json())

    def send(self, number: int) -> None:
        with rt.writer("s", home=self.home, writer=f"w {number % 2}") as log:
            seconds = [number * 40 + second for second in (0, 15, 5, 15)]
            rows: list[dict[str, Any]] = [{"k": f"k{n % 3}", "v": n, "ev": at(n)} for n in seconds]
            early = {"k": "early", "v": 1, "ev": "2024-01-03 00:00:00"}
            late = {"k": "late", "v": 7, "ev": at(0)} if number % 2 else {"k": "no time", "v": None, "ev": None}
            log.insert([*rows, late, early])
            if number == 2:
                log.insert([{"k": "null", "v": None, "ev": at(130)}])
        CliRunner().invoke(app, ["bound", "s", at(number * 40), "--home", self.home])

    def run(self, **how: Any) -> None:
        for name, text in (("first", FIRST), ("second", NEXT)):
            made = rt.Pipeline(self.spark, home=self.home).sql(text)
            made.run_available(f"{self.checkpoints}/{name}", **how)

    def die(self, point: str) -> None:
        made = rt.Pipeline(self.spark, home=self.home).sql(FIRST)
        engine = made._engine(f"{self.checkpoints}/first", rt.Limits(), ends=False)
        engine.hook = dying(point)
        with pytest.raises(Died):
            engine.tick()
        for stage in engine.stages.values():  # the locks of its machine, which is gone
            stage.close()
        for source in engine.sources.values():
            getattr(source, "close", lambda: None)()

    def outputs(self) -> dict[str, Any]:
        """The content of logs, by stream and writer; refused rows; counts."""
        found: dict[str, Any] = {}
        stream_log._buckets.clear()
        for stream in ("sorted_rows", "counts", "totals"):
            log = Home(self.home).log_path(stream)
            for writer, entries in stream_log.scan(log, {}).items():
                rows = [entry for entry in entries if isinstance(entry, Rows)]
                tables = [pq.read_table(content_of(log / entry.path), partitioning=None) for entry in rows]
                hidden = {"__a"}
                found[f"{stream} {writer}"] = [
                    {name: value for name, value in row.items() if name not in hidden}
                    for table in tables
                    for row in table.to_pylist()
                ]
                found[f"{stream} {writer} bounds"] = [
                    (entry.first, entry.at) for entry in entries if isinstance(entry, Bound)
                ]
        for name in ("first", "second"):
            status = status_of(f"{self.checkpoints}/{name}")
            found[f"{name} ledger"] = status["ledger"]
            found[f"{name} outputs"] = status["outputs"]
        return found


def test_the_same_script_and_items_give_the_same_as_on_a_disk(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    remote = Chain(spark, f"{bucket}/home", f"{bucket}/home/checkpoints")
    here = Chain(spark, str(tmp_path / "home"), str(tmp_path / "home" / "checkpoints"))
    for chain in (remote, here):
        chain.define()
        for numbers in ((0, 1), (2, 3)):
            for number in numbers:
                chain.send(number)
            chain.run(limits=rt.Limits(files=2))
    there, wanted = remote.outputs(), here.outputs()
    assert there == wanted
    assert all(wanted[f"{stream} pump.{pump}"] for stream, pump in (("sorted_rows", "a"), ("counts", "b")))
    assert {"LATE", "EARLY", "NULL_ROWTIME"} <= wanted["first ledger"]["sorted"].keys()
    assert wanted["first ledger"]["a"]["MALFORMED"] == 1
    for name in ("first", "second"):
        assert rt.verify(f"{remote.checkpoints}/{name}", spark=spark, home=remote.home).equal


@pytest.mark.parametrize("point", ["before journal", "after journal", "after output"])
def test_a_driver_that_dies_loses_and_repeats_nothing_in_a_log_in_a_bucket(
    spark: SparkSession, tmp_path: Path, bucket: str, point: str
) -> None:
    remote = Chain(spark, f"{bucket}/home", f"{bucket}/checkpoints")
    here = Chain(spark, str(tmp_path / "home"), str(tmp_path / "checkpoints"))
    for chain in (remote, here):
        chain.define()
        chain.send(0)
        chain.run()
        chain.send(1)
    remote.die(point)
    for chain in (remote, here):
        chain.run()
        chain.send(2)
        chain.run()
    assert remote.outputs() == here.outputs()


def test_many_writers_and_a_start_from_now(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    """With more writers than `FEW_WRITERS`, their names are read from the URLs of objects."""
    text = (
        "CREATE STREAM m (v BIGINT); CREATE STREAM o (v BIGINT); CREATE PUMP p AS INSERT INTO o SELECT STREAM v FROM m"
    )
    found = []
    for home in (f"{bucket}/home", str(tmp_path / "home")):
        made = rt.Pipeline(spark, home=home).sql(text)
        for stream in made.compile().defines:
            made.home.define(stream.name, stream.as_json())
        for number in range(12):
            with rt.writer("m", home=home, writer=f"é {number}/%20") as log:
                log.insert([{"v": number, "rowtime": at(number % 4)}, {"v": -number, "rowtime": at(60)}])
        checkpoint = f"{home}/check"
        made.run_available(checkpoint)
        later = rt.Pipeline(spark, home=home).sql(
            "CREATE STREAM n (v BIGINT); CREATE PUMP q AS INSERT INTO n SELECT STREAM v FROM m FROM NOW"
        )
        later.run_available(f"{home}/later")
        with rt.writer("m", home=home, writer="é 0/%20") as log:
            log.insert([{"v": 99, "rowtime": at(99)}])
        for number in range(12):
            with rt.writer("m", home=home, writer=f"é {number}/%20") as log:
                log.end()
        later.run_available(f"{home}/later")
        made.run_available(checkpoint)
        rows = []
        for stream, writer in (("o", "pump.p"), ("n", "pump.q")):
            log = Home(home).log_path(stream)
            files = [log / e.path for e in stream_log.entries_of(log, writer) if isinstance(e, Rows)]
            rows.append(
                [v for one in files for v in pq.read_table(content_of(one), partitioning=None)["v"].to_pylist()]
            )
        found.append(rows)
    assert found[0] == found[1]
    assert found[0][1] == [99]
    assert len(found[0][0]) == 25


def test_a_row_whose_insert_took_long_is_raised_and_not_late(spark: SparkSession, bucket: str) -> None:
    text = (
        "CREATE STREAM s (n BIGINT); CREATE STREAM o (n BIGINT); CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM s"
    )
    made = rt.Pipeline(spark, home=f"{bucket}/home").sql(text)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    noon, log = to_micros("2024-01-01 12:00:00"), made.home.log_path("s")
    columns = pa.schema([pa.field("n", pa.int64())])
    with Writer(log, schema=columns, clock=lambda: noon) as writer:
        writer.insert([{"n": 0}])
    engine = made._engine(f"{bucket}/check", rt.Limits(), ends=False)
    engine.sources["s"]._clock = lambda: noon + 10 * SECOND  # type: ignore[attr-defined]  # a log has one
    engine.tick()
    with Writer(log, schema=columns, clock=lambda: noon + SECOND) as writer:
        writer.insert([{"n": 1}])
    engine.tick()
    engine.close()
    engine.stop()
    target = made.home.log_path("o")
    entries = [entry for entry in stream_log.entries_of(target, "pump.p") if isinstance(entry, Rows)]
    assert [entry.least - noon for entry in entries] == [0, 8 * SECOND]
    assert status_of(f"{bucket}/check")["ledger"]["s"]["accepted"] == 2
    assert rt.verify(f"{bucket}/check", spark=spark, home=f"{bucket}/home").equal


def test_a_home_without_its_bucket_is_reported(tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("CREATE STREAM s (v INT);")
    for command in (["streams"], ["check", str(tmp_path / "s.sql")], ["bound", "s", "end"]):
        done = CliRunner().invoke(app, [*command, "--home", f"s3://no-{uuid.uuid4().hex}/home"])
        assert (done.exit_code, "R581" in done.output) == (3, True), (command, done.output)
