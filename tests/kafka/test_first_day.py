"""A first day with rowtime on Kafka: the example of the page, and a Spark job that is replaced line by line."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the customary name

import rowtime as rt
from reliability.broker import Broker, Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.sampled(8)

PATIENCE = 10  # seconds
DOCS = Path(__file__).parents[2] / "docs" / "kafka.md"
DAY = 1_704_067_200  # 2024-01-01


class Rows:
    """A sink that collects its rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __call__(self, batch: rt.Batch) -> None:
        if batch.count:
            self.rows.extend(batch.table().to_pylist())


def example(broker: Broker, topic: str) -> str:
    """The first example of the Kafka page, with this broker and topic."""
    found = re.search(r"```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    text = found[1].replace("broker-1:9092,broker-2:9092", broker.bootstrap)
    return text.replace("subscribe 'trips'", f"subscribe '{topic}'")


def trips(*seconds: int, partition: int) -> list[Record]:
    return [Record(json.dumps({"vehicle": "v", "km": 1.5, "ended": iso(s)}), partition) for s in seconds]


def iso(second: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(DAY + second))


@contextmanager
def started(spark: SparkSession, tmp_path: Path, sql: str) -> Iterator[tuple[rt.Query, Rows]]:
    """A pipeline that keeps running, as with `rowtime run`."""
    rows = Rows()
    query = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", rows).start(tmp_path / "check")
    try:
        yield query, rows
    finally:
        query.stop()
    assert query.exception is None


def comes(condition: Callable[[], object]) -> bool:
    """Return True if a condition becomes true within ten seconds on an idle machine."""
    until = time.monotonic() + PATIENCE * max(1, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return bool(condition())


# Three partitions, of which the last is empty; event times go back by up to 9 s.
DISORDER = ((5, 20, 11, 40, 58, 50, 130), (0, 30, 21, 59, 61, 125))
PER_MINUTE = {"00:01": 10}


def counted(rows: Rows) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows.rows:
        found[f"{row['rowtime']:%H:%M}"] += row["trips"]
    return dict(found)


@pytest.fixture
def held(broker: Broker, topic: str) -> str:
    for partition, seconds in enumerate(DISORDER):
        broker.send(topic, *trips(*seconds, partition=partition))
    return topic


@pytest.fixture(scope="module")
def warm(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Spark's first jobs take long, which is not rowtime's fault."""
    broker.create_topic("warm")
    broker.send("warm", *trips(1, 100, 200, partition=0), Record("broken"))
    folder = tmp_path_factory.mktemp("warm")
    rt.Pipeline(spark, home=folder).sql(example(broker, "warm")).sink("result", Rows()).run_available(folder / "check")


@pytest.mark.usefixtures("warm")
def test_the_example_says_which_partition_holds_and_what_to_type(
    spark: SparkSession, broker: Broker, held: str, tmp_path: Path
) -> None:
    sql = example(broker, held)
    with started(spark, tmp_path, sql) as (query, rows):
        assert comes(query.waiting)
        (wait,) = query.waiting(timedelta(0))
        ticks = query.engine.entry["tick"]
        time.sleep(1)
        assert query.engine.entry["tick"] == ticks  # a wait costs nothing
    assert rows.rows == []
    assert (wait.stream, wait.writer) == ("trips", f"{held}/00002")
    assert f"partition 2 of topic {held} has sent nothing that counts yet" in str(wait)
    # The statement that the message asks for, added.
    (statement,) = re.findall(r"ALTER STREAM .*?;", wait.release)
    quick = statement.replace("'10' SECOND", "'2' SECOND")
    with started(spark, tmp_path, f"{sql};\n{quick}") as (query, rows):
        assert comes(lambda: rows.rows)
        assert counted(rows) == PER_MINUTE
        # The partition returns where the stream is: rows below are refused, the others count.
        broker.send(held, *trips(10, 200, partition=2))
        broker.send(held, *trips(200, partition=0), *trips(200, partition=1))
        assert comes(lambda: counted(rows).get("00:03"))
        assert counted(rows) == {**PER_MINUTE, "00:02": 1, "00:03": 2}
        assert sum(gate.get("LATE", 0) for gate in query.ledger.values()) == 1


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("way", ["record", "end"])
def test_the_other_offered_remedies_work_too(
    spark: SparkSession, broker: Broker, held: str, tmp_path: Path, way: str
) -> None:
    with started(spark, tmp_path, example(broker, held)) as (query, rows):
        assert comes(query.waiting)
        told = query.waiting(timedelta(0))[0].release
        assert "send it a record with an event time" in told
        assert "send it a record with the header rowtime-bound: end" in told
        if way == "record":
            broker.send(held, *trips(140, partition=2))
        else:
            broker.send(held, Record(None, 2, headers=[("rowtime-bound", "end")]))
        assert comes(lambda: rows.rows)
        assert counted(rows) == PER_MINUTE


@pytest.mark.usefixtures("warm")
def test_a_bound_releases_groups_of_the_given_rowtime(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    sql = f"""CREATE STREAM trips (vehicle STRING) USING kafka OPTIONS (
                kafka.bootstrap.servers '{broker.bootstrap}', subscribe '{topic}', rowtime.column 'ended');
              SELECT STREAM COUNT(*) AS trips FROM trips t GROUP BY FLOOR(t.ROWTIME TO MINUTE)"""
    broker.send(topic, *trips(5, 70, partition=0), *trips(7, 90, partition=1))
    with started(spark, tmp_path, sql) as (query, rows):
        assert comes(query.waiting)
        assert "send it a record with the header rowtime-bound: <time>" in query.waiting(timedelta(0))[0].release
        broker.send(topic, Record(None, 2, headers=[("rowtime-bound", iso(60))]))
        assert comes(lambda: rows.rows)
        assert counted(rows) == {"00:01": 2}


# -- an ordinary Spark job, replaced ----------------------------------------------------

PLAIN = "page STRING, ev TIMESTAMP, id BIGINT"


def clicks(seed: int) -> list[list[Record]]:
    """Seven batches of three partitions over nine minutes.

    Inside a partition times go back by up to 10 s. The last partition is 90 s behind the others. Some rows are later
    than the tolerance, but their minute is still open.
    """
    chance, number = random.Random(seed), 0
    feeds = []
    for feed in range(7):
        records = []
        for step in range(80):
            for partition in range(3):
                second = 75 * feed + step - (90 if partition == 2 else 0)
                late = chance.uniform(0, 10)
                if 30 <= second % 60 <= 50 and chance.random() < 0.02:
                    late = chance.uniform(10, 25)
                at = iso(600 + second - late)
                records.append(Record(json.dumps({"page": "p", "ev": at, "id": number}), partition))
                number += 1
        feeds.append(records)
    return feeds


def decoded(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    """The head of the job, which does not change."""
    raw = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    records = raw.option("subscribe", topic).option("startingOffsets", "earliest").load()
    fields = F.from_json(F.col("value").cast("string"), PLAIN).alias("v")
    return records.select("topic", "partition", "offset", fields).select("topic", "partition", "offset", "v.*")


class SparkJob:
    """``withWatermark``, ``window``, ``count``, Parquet."""

    def __init__(self, spark: SparkSession, broker: Broker, topic: str, folder: Path) -> None:
        self.spark, self.out, self.check = spark, str(folder / "spark-out"), str(folder / "spark-check")
        rows = decoded(spark, broker, topic).withWatermark("ev", "10 seconds")
        counts = rows.groupBy(F.window("ev", "1 minute")).agg(
            F.count("*").alias("n"), F.collect_list("id").alias("ids")
        )
        self.counts = counts.select(F.col("window.end").alias("rowtime"), "n", "ids")

    def run(self) -> None:
        writer = self.counts.writeStream.format("parquet").option("path", self.out)
        writer.option("checkpointLocation", self.check).trigger(availableNow=True).start().awaitTermination()


REPLACED = """
CREATE STREAM counts (n BIGINT, ids ARRAY<BIGINT>) USING parquet OPTIONS (path '{out}');
CREATE PUMP p AS INSERT INTO counts
  SELECT STREAM COUNT(*) AS n, COLLECT_LIST(id) AS ids
  FROM clicks GROUP BY FLOOR(ev TO MINUTE) WITHIN INTERVAL '10' SECOND;
"""


class Job:
    """The same with rowtime: directly from Kafka, or behind the head of the Spark job."""

    def __init__(self, spark: SparkSession, folder: Path, out: str) -> None:
        self.out, self.check = str(folder / out), folder / f"{out}-check"
        self.made = rt.Pipeline(spark, home=folder / f"{out}-home")
        self.query: rt.Query | None = None

    def direct(self, broker: Broker, topic: str) -> Job:
        stream = f"""CREATE STREAM clicks ({PLAIN}) USING kafka
                     OPTIONS (kafka.bootstrap.servers '{broker.bootstrap}', subscribe '{topic}')"""
        self.made.sql(stream).sql(REPLACED.format(out=self.out))
        return self

    def handed(self, frame: DataFrame, **names: str) -> Job:
        self.made.source("clicks", frame, **names).sql(REPLACED.format(out=self.out))
        return self

    def run(self) -> None:
        self.query = self.made.run_available(self.check)

    @property
    def refused(self) -> dict[str, int]:
        assert self.query is not None
        (gate,) = (counts for name, counts in self.query.ledger.items() if name != "clicks")
        return {reason: n for reason, n in gate.items() if reason not in ("in", "accepted")}


def windows(spark: SparkSession, path: str) -> dict[str, Sequence[int]]:
    """The number of counted rows, by the end of their minute."""
    rows = spark.read.parquet(path).selectExpr("date_format(rowtime, 'HH:mm') AS m", "n", "ids").collect()
    assert all(row["n"] == len(set(row["ids"])) for row in rows)
    assert len({row["m"] for row in rows}) == len(rows)
    return {row["m"]: sorted(row["ids"]) for row in rows}


@pytest.mark.slow
def test_a_spark_job_is_replaced_line_for_line_and_no_row_is_lost(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    original = SparkJob(spark, broker, topic, tmp_path)
    direct = Job(spark, tmp_path, "direct").direct(broker, topic)
    names = {"writer": "partition", "position": "offset"}
    handed = Job(spark, tmp_path, "handed").handed(decoded(spark, broker, topic), **names)
    derived = Job(spark, tmp_path, "derived").handed(decoded(spark, broker, topic))
    for number, feed in enumerate(clicks(seed=7)):
        broker.send(topic, *feed)
        original.run()
        if number in {2, 5}:  # the refusals do not depend on the batches
            direct.run()
            handed.run()
            derived.run()
    # The last partition is behind: rowtime waits for it, but Spark drops its rows. At the end each partition sends one
    # more row, so that every minute that Spark has is complete here too.
    broker.send(topic, *(Record(json.dumps({"page": "p", "ev": iso(1800), "id": -1 - n}), n) for n in range(3)))
    direct.run()
    handed.run()
    derived.run()
    theirs, ours = windows(spark, original.out), windows(spark, direct.out)
    assert len(theirs) >= 7
    assert set(theirs) <= set(ours)
    for minute, ids in theirs.items():
        assert set(ids) <= set(ours[minute])
    total, counted = sum(map(len, theirs.values())), sum(len(ours[minute]) for minute in theirs)
    assert counted > total  # the slow partition's rows
    assert direct.refused == {}
    assert windows(spark, handed.out) == ours
    assert handed.refused == {}
    assert windows(spark, derived.out) == ours
    assert derived.refused == {}
    assert derived.query is not None
    assert {*derived.query.engine.entry["sources"]["clicks"]["offsets"]} == {f"{topic}/{n:05}" for n in range(3)}


def test_a_dataframe_of_kafka_without_its_offsets_is_refused_with_the_columns_to_keep(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    records = decoded(spark, broker, topic)
    for frame in (
        records.drop("offset"),
        records.withColumn("offset", F.lit(1)),
        records.selectExpr("*", "explode(array(1))"),
    ):
        with pytest.raises(rt.Refused, match="R224") as refused:
            rt.Pipeline(spark).source("clicks", frame).sql("SELECT STREAM ev FROM clicks").compile()
        assert "Keep Kafka's topic, partition and offset" in refused.value.problems[0].hint
    kept = records.where("ev IS NOT NULL").drop("topic")  # there is only one
    assert (
        not rt.Pipeline(spark).source("clicks", kept).sql("SELECT STREAM ev FROM clicks").compile().streams[0].batched
    )
