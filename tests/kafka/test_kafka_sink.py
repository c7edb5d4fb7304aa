"""The Kafka sink against a real broker: rows, headers, bounds, and back through the source."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from reliability.broker import Broker, free_ports
from rowtime.core.errors import Failure, Refused
from rowtime.core.time import BEGINNING, END
from rowtime.runtime.sinks.kafka import write_bound, write_kafka
from rowtime.runtime.sources.contract import Limits
from rowtime.runtime.sources.kafka import KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.sampled(8)


def rows_of(spark: SparkSession, count: int) -> DataFrame:
    """Rows in many partitions, not in order, numbered from 0."""
    numbers = spark.range(count - 1, -1, -1)
    return numbers.selectExpr(
        "id AS __seq",
        "timestamp_micros(1704067200000001 + id) AS __t",
        "concat('k', id % 3) AS name",
        "IF(id = 1, NULL, id * 10) AS n",
    )


def target(broker: Broker, topic: str, **options: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, **options}


def records(spark: SparkSession, broker: Broker, topic: str) -> list[Row]:
    """All records of a topic; partition by partition, in the order of offsets."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    frame = reader.option("subscribe", topic).option("includeHeaders", "true").load()
    return sorted(frame.collect(), key=lambda row: (row["partition"], row["offset"]))


def headers(record: Row) -> dict[str, str]:
    return {h.key: bytes(h.value).decode() for h in record["headers"]}


def test_rows_are_json_with_stream_and_number(spark: SparkSession, broker: Broker, topic: str) -> None:
    write_kafka(
        rows_of(spark, 3),
        target(broker, topic, **{"key.column": "name"}),
        stream="out",
        first_sequence=0,
        columns=["name", "n"],
    )
    found = {headers(r)["rowtime-seq"]: r for r in records(spark, broker, topic)}
    assert sorted(found) == ["0", "1", "2"]
    assert {headers(r)["rowtime-stream"] for r in found.values()} == {"out"}
    assert json.loads(found["1"]["value"]) == {"name": "k1", "n": None, "rowtime": "2024-01-01T00:00:00.000002Z"}
    assert {bytes(r["key"]).decode() for r in found.values()} == {"k0", "k1", "k2"}


def test_each_partition_is_in_stream_order(spark: SparkSession, broker: Broker, topic: str) -> None:
    options = target(broker, topic, **{"key.column": "name"})
    write_kafka(rows_of(spark, 500).repartition(7), options, stream="s", first_sequence=100, columns=["n"])
    numbers: dict[int, list[int]] = {}
    for record in records(spark, broker, topic):
        numbers.setdefault(record["partition"], []).append(int(headers(record)["rowtime-seq"]))
    assert sorted(n for found in numbers.values() for n in found) == list(range(100, 500))
    assert all(found == sorted(found) for found in numbers.values())


def test_the_rowtime_may_be_left_out(spark: SparkSession, broker: Broker, topic: str) -> None:
    write_kafka(
        rows_of(spark, 1), target(broker, topic), stream="s", first_sequence=0, columns=["n"], rowtime_column=None
    )
    (record,) = records(spark, broker, topic)
    assert (json.loads(record["value"]), record["key"]) == ({"n": 0}, None)


def test_raw_values_and_keys_are_columns(spark: SparkSession, broker: Broker, topic: str) -> None:
    rows = rows_of(spark, 1).selectExpr("__seq", "__t", "X'FF00' AS value", "7 AS key")
    write_kafka(rows, target(broker, topic, **{"value.format": "raw"}), stream="s", first_sequence=0, columns=["value"])
    (record,) = records(spark, broker, topic)
    assert (bytes(record["value"]), bytes(record["key"])) == (b"\xff\x00", b"7")


def test_a_bound_goes_to_every_partition_after_the_rows(spark: SparkSession, broker: Broker, topic: str) -> None:
    options = target(broker, topic)
    write_kafka(rows_of(spark, 50), options, stream="s", first_sequence=0, columns=["n"])
    for at in (BEGINNING, 5, END):
        write_bound(spark, options, "s", at)
    everything = records(spark, broker, topic)
    for number in range(3):
        found = [r for r in everything if r["partition"] == number]
        assert [headers(r).get("rowtime-bound") for r in found[-2:]] == ["5", "end"]
        assert all("rowtime-seq" in headers(r) for r in found[:-2])
        assert found[-1]["value"] is None


def test_the_source_reads_what_the_sink_writes(spark: SparkSession, broker: Broker, topic: str) -> None:
    options = target(broker, topic, **{"key.column": "name"})
    rows = rows_of(spark, 20)
    write_kafka(rows, options, stream="s", first_sequence=0, columns=["name", "n"])
    write_bound(spark, options, "s", 1_704_067_200_000_100)
    at = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "rowtime.column": "rowtime"}
    src = KafkaSource(at, [("name", "STRING"), ("n", "BIGINT")])
    items = src.read(spark, src.discover({}, Limits(), {})[0])
    src.close()
    chosen = ["name", "n", "unix_micros(__t)"]
    assert items.where("__m IS NOT NULL").count() == 0
    back = items.where("__b IS NULL").selectExpr(*chosen).collect()
    assert len(back) == 20
    assert set(back) == set(rows.selectExpr(*chosen).collect())
    bounds = items.where("__b IS NOT NULL").selectExpr("__w", "unix_micros(__b)").collect()
    assert sorted(map(tuple, bounds)) == [(f"{topic}/{n:05d}", 1_704_067_200_000_100) for n in range(3)]


def test_an_unreachable_broker_is_reported_within_seconds(spark: SparkSession) -> None:
    (port,) = free_ports(1)
    options = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "topic": "t", "kafka.default.api.timeout.ms": "1000"}
    begun = time.monotonic()
    with pytest.raises(Failure, match=r"R501"):
        write_kafka(rows_of(spark, 1), options, stream="s", first_sequence=0, columns=["n"])
    with pytest.raises(Failure, match=r"R501"):
        write_bound(spark, options, "s", 5)
    assert time.monotonic() - begun < 12


def test_a_record_that_is_too_large_is_a_failure_of_kafka(spark: SparkSession, broker: Broker, topic: str) -> None:
    options = target(broker, topic, **{"kafka.max.request.size": "100"})
    rows = rows_of(spark, 1).selectExpr("__seq", "__t", "repeat('x', 1000) AS n")
    with pytest.raises(Failure, match=r"R501 .*RecordTooLarge"):
        write_kafka(rows, options, stream="s", first_sequence=0, columns=["n"])


@pytest.mark.parametrize(
    "options",
    [{}, {"kafka.bootstrap.servers": "h:1"}, {"kafka.bootstrap.servers": "h:1", "topic": "t", "key.column": "none"}],
)
def test_options_that_do_not_fit_are_refused(spark: SparkSession, options: dict[str, str]) -> None:
    with pytest.raises(Refused, match=r"R504"):
        write_kafka(rows_of(spark, 1), options, stream="s", first_sequence=0, columns=["n"])
