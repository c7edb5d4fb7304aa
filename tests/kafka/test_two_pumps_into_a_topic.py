"""Two pumps into one topic, a crash between commit and publish, and a topic that was created again."""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from reliability.broker import Broker, Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(2)

BEGIN = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
SQL = """
CREATE STREAM a (n INT);
CREATE STREAM o (n INT) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', topic '{topic}');
CREATE PUMP even AS INSERT INTO o SELECT STREAM n FROM a WHERE n % 2 = 0;
CREATE PUMP odd AS INSERT INTO o SELECT STREAM n FROM a WHERE n % 2 = 1;
"""
BACK = """CREATE STREAM s (n INT) USING kafka OPTIONS
  (kafka.bootstrap.servers '{servers}', subscribe '{topic}', rowtime.column 'rowtime');
SELECT STREAM n FROM s;"""


class DiedError(BaseException):
    """Ends a tick at a point where a process could die."""


def made(spark: SparkSession, home: Path, text: str, broker: Broker, topic: str) -> rt.Pipeline:
    return rt.Pipeline(spark, home=home).sql(text.format(servers=broker.bootstrap, topic=topic))


def write(home: Path, numbers: list[int]) -> None:
    """Rows, and a bound after them: a row of one pump waits until the other cannot have an earlier one."""
    with rt.writer("a", home=home, writer="w") as writer:
        writer.insert([{"n": n, "rowtime": BEGIN + dt.timedelta(seconds=n)} for n in numbers])
        writer.set_rowtime_bound(BEGIN + dt.timedelta(seconds=numbers[-1], milliseconds=1))


def read(spark: SparkSession, home: Path, broker: Broker, topic: str) -> tuple[list[int], object]:
    """The numbers in a topic, as a pipeline reads them by rowtime, and their counts in the ledger."""
    found: list[int] = []
    pipeline = made(spark, home, BACK, broker, topic)
    pipeline.sink("result", lambda batch: found.extend(batch.table()["n"].to_pylist()) if batch.count else None)
    query = pipeline.run_available(home / "check")
    return found, query.ledger["s"]


@pytest.mark.slow
def test_two_pumps_into_one_topic_lost_rows_for_readers_by_rowtime(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("two", 1)
    made(spark, tmp_path / "home", SQL, broker, "two").run_available(tmp_path / "check")
    for first in (0, 4, 8):
        write(tmp_path / "home", [*range(first, first + 4)])
        made(spark, tmp_path / "home", SQL, broker, "two").run_available(tmp_path / "check")
    numbers, ledger = read(spark, tmp_path / "back", broker, "two")
    assert numbers == [*range(12)]
    assert ledger == {"in": 12, "accepted": 12}
    frame = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    records = frame.option("subscribe", "two").option("includeHeaders", "true").load().collect()
    headers = [{h.key: bytes(h.value).decode() for h in record["headers"]} for record in records]
    assert sorted(int(h["rowtime-seq"]) for h in headers if "rowtime-seq" in h) == [*range(12)]


def test_a_crash_between_commit_and_publish_of_two_pumps_lost_rows(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("died", 1)
    made(spark, tmp_path / "home", SQL, broker, "died").run_available(tmp_path / "check")
    write(tmp_path / "home", [*range(6)])
    engine = made(spark, tmp_path / "home", SQL, broker, "died")._engine(tmp_path / "check", rt.Limits(), ends=False)

    def die(point: str) -> None:
        if point == "after journal":
            raise DiedError

    engine.hook = die
    with pytest.raises(DiedError):
        engine.tick()
    engine.checkpoint.release()
    made(spark, tmp_path / "home", SQL, broker, "died").run_available(tmp_path / "check")
    assert sorted(read(spark, tmp_path / "back", broker, "died")[0]) == [*range(6)]


@pytest.mark.slow
@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_recreated_topic_with_as_many_records_was_mistaken_for_the_old_one(
    spark: SparkSession, broker: Broker, tmp_path: Path, strict: str
) -> None:
    topic = f"anew-{strict}"
    text = BACK.replace(", rowtime.column 'rowtime'", f", failOnDataLoss '{strict}'")
    broker.create_topic(topic, 1)
    broker.send(topic, *(Record(json.dumps({"n": n})) for n in range(3)))
    made(spark, tmp_path / "home", text, broker, topic).run_available(tmp_path / "check")
    made(spark, tmp_path / "home", text, broker, topic).run_available(tmp_path / "check")
    broker.delete_topic(topic)
    for _ in range(100):  # the name is free when the broker has released it
        try:
            broker.create_topic(topic, 1)
        except Exception:  # noqa: BLE001 - the client's error says that the topic is still there
            time.sleep(0.1)
        else:
            break
    broker.send(topic, *(Record(json.dumps({"n": 100 + n})) for n in range(5)))
    with pytest.raises(rt.Failure, match=rf"R503 .*{topic} was deleted and created again"):
        made(spark, tmp_path / "home", text, broker, topic).run_available(tmp_path / "check")


@pytest.mark.slow
def test_a_record_that_kafka_refuses_stopped_the_pipeline_for_good(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("big", 1)
    options = "(kafka.bootstrap.servers '{servers}', topic '{topic}', key.columns 's')"
    text = f"""CREATE STREAM a (s STRING, n INT); CREATE STREAM o (s STRING, n INT) USING kafka OPTIONS {options};
      CREATE PUMP p AS INSERT INTO o SELECT STREAM * FROM a"""
    made(spark, tmp_path / "home", text, broker, "big").run_available(tmp_path / "check")
    sizes = [3_000_000, 10, 600_000, 500_000, 150_000, 100_000]
    with rt.writer("a", home=tmp_path / "home", writer="w") as writer:
        writer.insert([{"s": "x" * size, "n": size, "rowtime": BEGIN} for size in sizes])
        writer.insert([{"s": "\1" * 90_000, "n": 90_000, "rowtime": BEGIN}, {"s": None, "n": 0, "rowtime": BEGIN}])
    query = made(spark, tmp_path / "home", text, broker, "big").run_available(tmp_path / "check")
    back = "CREATE STREAM s (n INT) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', subscribe '{topic}'"
    found: list[int] = []
    pipeline = made(spark, tmp_path / "back", f"{back}, format 'json'); SELECT STREAM n FROM s", broker, "big")
    pipeline.sink("result", lambda batch: found.extend(batch.table()["n"].to_pylist()) if batch.count else None)
    pipeline.run_available(tmp_path / "back/check")
    # A record contains a row twice, as key and as value; a control character takes six bytes in JSON.
    assert found == [10, 500_000, 150_000, 100_000, 0]
    assert query.ledger["p"] == {"in": 8, "accepted": 5, "MALFORMED": 3}
