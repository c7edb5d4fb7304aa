"""A million records of a topic, as JSON and as Avro of a schema registry: finding the ids of schemas, and reading.

    python -m benchmarks.schema_records

starts a broker, fills two topics and prints the seconds of the best of three.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.avro.functions import to_avro

from reliability.broker import Broker, find_connector
from rowtime.runtime.schemas.pinned import PinnedSchemas
from rowtime.runtime.schemas.registry import MockRegistry, Schema
from rowtime.runtime.sources.contract import Limits
from rowtime.runtime.sources.kafka import KafkaSource

ROWS = 1_000_000
TRIES = 3
COLUMNS = [("vehicle", "STRING"), ("km", "DOUBLE"), ("n", "INT")]
FIELDS = [
    {"name": "vehicle", "type": "string"},
    {"name": "km", "type": ["null", "double"]},
    {"name": "n", "type": "int"},
]


def main() -> None:
    """Fill the topics, and measure."""
    jars = ",".join(find_connector().jars or [])
    spark = SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    session = spark.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        home = Path(folder)
        schema = {"type": "record", "name": "Trip", "fields": FIELDS}
        registry = MockRegistry(home / "registry")
        registry.add("avro-value", Schema(json.dumps(schema)))
        for topic in ("json", "avro"):
            broker.create_topic(topic, 2)
            _fill(session, broker, topic, json.dumps(schema))
        for topic in ("json", "avro"):
            options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
            schemas = PinnedSchemas(registry, home / "notes") if topic == "avro" else None
            source = KafkaSource(options, COLUMNS, topic, schemas=schemas)
            found = _best(lambda source=source: source.discover({}, Limits(), {}))  # type: ignore[misc]
            part, _ = source.discover({}, Limits(), {})
            read = _best(lambda source=source, part=part: _drain(session, source, part))  # type: ignore[misc]
            source.close()
            print(f"{topic}: discover {found:.2f} s, read {read:.2f} s")
    session.stop()


def _fill(spark: SparkSession, broker: Broker, topic: str, schema: str) -> None:
    rows = spark.range(ROWS).selectExpr("concat('v', id % 1000) AS vehicle", "id / 10 AS km", "CAST(id AS INT) AS n")
    record = F.struct("vehicle", "km", "n")
    avro = F.concat(F.lit(bytearray(b"\0\0\0\0\1")), to_avro(record, schema))
    value = avro if topic == "avro" else F.to_json(record).cast("binary")
    writer = rows.select(value.alias("value")).write.format("kafka").option("topic", topic)
    writer.option("kafka.bootstrap.servers", broker.bootstrap).save()


def _drain(spark: SparkSession, source: KafkaSource, part: object) -> None:
    source.read(spark, part).write.format("noop").mode("overwrite").save()  # type: ignore[arg-type]


def _best(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(TRIES):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


if __name__ == "__main__":
    main()
