"""Only one checkpoint writes a stream to a Kafka topic (semantics 10)."""

from __future__ import annotations

import datetime as dt
import json
import logging
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.errors import Failure, Refused
from rowtime.runtime.sinks.kafka_topic import KNOWN, KafkaSink
from rowtime.runtime.sinks.ownership import Record
from rowtime.runtime.sinks.topic_owner import TopicState

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from reliability.broker import Broker

BEGIN = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
BACK = """CREATE STREAM s (n INT) USING kafka OPTIONS
  (kafka.bootstrap.servers '{}', subscribe '{}', rowtime.column 'rowtime')"""


class Topic:
    """Pumps of a stream into a topic, run with one of two checkpoints."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, name: str, partitions: int = 1) -> None:
        broker.create_topic(name, partitions)
        self.spark, self.broker, self.folder, self.name, self.stream = spark, broker, folder, name, "o"
        self.servers = broker.bootstrap

    def pipeline(self, pumps: tuple[str, ...] = ("p",)) -> rt.Pipeline:
        options = f"(kafka.bootstrap.servers '{self.servers}', topic '{self.name}')"
        sql = f"CREATE STREAM a (n INT); CREATE OR REPLACE STREAM {self.stream} (n INT) USING kafka OPTIONS {options};"
        for pump in pumps:
            half = {"even": " WHERE n % 2 = 0", "odd": " WHERE n % 2 = 1"}.get(pump, "")
            sql += f"CREATE PUMP {pump} AS INSERT INTO {self.stream} SELECT STREAM n FROM a{half};"
        return rt.Pipeline(self.spark, home=self.folder / "home").sql(sql)

    def run(self, check: str, *pumps: str, **how: Any) -> rt.Query:
        return self.pipeline(pumps or ("p",)).run_available(self.folder / check, **how)

    def send(self, *numbers: int) -> None:
        with rt.writer("a", home=self.folder / "home", writer="w") as writer:
            writer.insert([{"n": n, "rowtime": BEGIN + dt.timedelta(minutes=n)} for n in numbers])
            writer.set_rowtime_bound(BEGIN + dt.timedelta(minutes=numbers[-1], milliseconds=1))

    def written(self, check: str, *numbers: int, pumps: tuple[str, ...] = ()) -> Topic:
        """The topic after a new checkpoint has written these numbers."""
        self.run(check, *pumps)
        self.send(*numbers)
        self.run(check, *pumps)
        return self

    def records(self) -> list[tuple[int, int]]:
        """The number and value of each row in the topic."""
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.broker.bootstrap)
        found = reader.option("subscribe", self.name).option("includeHeaders", "true").load().collect()
        told = [({h.key: bytes(h.value).decode() for h in record["headers"]}, record["value"]) for record in found]
        return sorted((int(h["rowtime-seq"]), json.loads(value)["n"]) for h, value in told if "rowtime-seq" in h)

    def read(self) -> tuple[list[int], object]:
        """The rows that a pipeline reads by rowtime."""
        found: list[int] = []
        pipeline = rt.Pipeline(self.spark, home=self.folder / "back")
        pipeline.sql(BACK.format(self.broker.bootstrap, self.name) + "; SELECT STREAM n FROM s")
        pipeline.sink("result", lambda batch: found.extend(batch.table()["n"].to_pylist()) if batch.count else None)
        return found, pipeline.run_available(self.folder / "back" / "check").ledger["s"]


def write_without_a_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KafkaSink, "claim", lambda _, asked: Record(asked.pump, "", "", 0))
    patch.setattr(KafkaSink, "record", lambda *_: None)


def test_late_writes_of_an_old_pipeline_do_not_reclaim_the_topic() -> None:
    old = Record("p", "old", "/old", 0)
    new = Record("p", "new", "/new", 1, before=({"identity": "old"},))
    third = Record("p", "third", "/third", 2, before=({"identity": "old"}, {"identity": "new"}))
    for records, owner in (((old,), old), ((old, new, old), new), ((old, new, old, third, new), third), ((), None)):
        assert TopicState([(record, 0) for record in records]).owner() == owner
    assert TopicState([(old, 0)]).owner(new) == new, "known from before"
    assert TopicState([(third, 0), (new, 7)]).next_row_of("new") == 7


@pytest.mark.slow
def test_a_new_checkpoint_wrote_the_rows_of_a_topic_twice(
    spark: SparkSession, broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic(spark, broker, tmp_path, "twice", 2).written("check1", 0, 1)
    said = (
        r"R440 the stream o of the topic twice is written by another pump p: there are 2 rows, by the pipeline of .*1\."
    )
    with pytest.raises(Refused, match=said):
        topic.run("check2")
    with pytest.raises(Refused, match="R440"):
        topic.run("check2", "even", "odd")
    assert topic.records() == [(0, 0), (1, 1)]

    # After a takeover, numbers and times continue behind those in the topic.
    old = topic.pipeline()._engine(tmp_path / "check1", rt.Limits(), ends=False)
    query = topic.run("check2", "even", "odd", take_over=["odd"])
    assert query.ledger["o.takeover"] == {"in": 2, "accepted": 0, "OUT_OF_ORDER": 2}
    topic.send(2)
    with pytest.raises(Refused, match=r"R441 the pipeline of .*check2 has taken over the stream o of the topic twice"):
        old.tick()
    old.stop()
    (tmp_path / "check1" / "handover" / "kafka-o" / KNOWN).unlink()
    with pytest.raises(Refused, match="R441") as told:
        topic.run("check1", take_over=["p"])
    assert told.value.problems[0].hint.endswith("or write to another topic with a new --checkpoint.")
    topic.run("check2", "even", "odd")
    assert topic.records() == [(0, 0), (1, 1), (2, 2)]
    assert topic.read() == ([0, 1, 2], {"in": 3, "accepted": 3})
    assert rt.verify(tmp_path / "check2", spark=spark, home=tmp_path / "home").equal

    topic.stream = "other"
    with caplog.at_level(logging.WARNING, "rowtime"):
        topic.run("check3")
    assert "check2 writes the stream o into the topic of other" in caplog.text

    another = Topic(spark, broker, tmp_path, "another")  # as the hint of R441 says
    another.run("check4")
    assert another.records() == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.slow
def test_a_checkpoint_whose_topic_has_no_record_of_it_continues(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        write_without_a_record(patch)
        topic = Topic(spark, broker, tmp_path, "unrecorded").written("check1", 0, 1)
    with pytest.raises(Refused, match=r"R440 .*there are 2 rows, by a pipeline that left no record"):
        topic.run("check2")
    topic.send(2)
    topic.run("check1")
    assert topic.records() == [(0, 0), (1, 1), (2, 2)]
    with pytest.raises(Refused, match=r"R440 .*there are 3 rows, by the pipeline of .*check1"):
        topic.run("check2")


@pytest.mark.slow
def test_a_pump_comes_to_a_topic_with_a_new_checkpoint(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = Topic(spark, broker, tmp_path, "added").written("check1", 0, 1, 2, pumps=("even",))
    with pytest.raises(Refused, match="R446 even wrote into the topic of o, which now has other pumps"):
        topic.run("check1", "even", "odd")
    # As the hint says: the bound and the numbers of the topic continue.
    topic.send(3, 4)
    topic.run("check2", "even", "odd", take_over=["even"])
    assert topic.records() == [(0, 0), (1, 2), (2, 3), (3, 4)]
    with pytest.raises(Refused, match="R446 o wrote into the topic of even"):
        topic.run("check2", "even")


@pytest.mark.slow
def test_an_older_copy_of_a_checkpoint_wrote_numbers_again(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = Topic(spark, broker, tmp_path, "copied").written("check", 0)
    shutil.copytree(tmp_path / "check", tmp_path / "copy")
    topic.send(1, 2)
    topic.run("check")
    with pytest.raises(Failure, match=r"R420 .*the stream o of the topic copied has 2 more of its rows"):
        topic.run("copy")


@pytest.mark.slow
def test_a_pump_that_wrote_before_starts_while_the_brokers_are_away(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = Topic(spark, broker, tmp_path, "away").written("check", 0)
    topic.send(1)
    topic.servers = "127.0.0.1:1"
    engine = topic.pipeline()._engine(tmp_path / "check", rt.Limits(), ends=False)
    with pytest.raises(Failure, match="R501"):
        engine.tick()
    engine.stop()
    topic.servers = broker.bootstrap
    topic.run("check")
    assert topic.records() == [(0, 0), (1, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("running", [False, True])
def test_rows_were_missing_from_a_topic_that_was_created_again(
    spark: SparkSession, broker: Broker, tmp_path: Path, *, running: bool
) -> None:
    topic = Topic(spark, broker, tmp_path, f"again-{running}").written("check", 0, 1)
    engine = topic.pipeline()._engine(tmp_path / "check", rt.Limits(), ends=False) if running else None
    if engine is not None:
        topic.send(2)
        engine.tick()
    broker.delete_topic(topic.name)
    for _ in range(100):  # the name is free when the broker has released it
        try:
            broker.create_topic(topic.name, 1)
        except Exception:  # noqa: BLE001 - the client's error says that the topic is still there
            time.sleep(0.1)
        else:
            break
    topic.send(3)
    said = rf"R564 the pump p has written {2 + running} rows to the stream o .*, which was deleted and created again"
    with pytest.raises(Refused, match=said):
        topic.run("check") if engine is None else engine.tick()
    if engine is not None:
        engine.stop()
    assert topic.records() == []
