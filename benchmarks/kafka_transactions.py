"""A tick of a million rows into a topic of Kafka: by Spark's writer, and as a transaction.

    python -m benchmarks.kafka_transactions

starts a broker and prints the seconds of the best of three, and those of a tick of ten rows.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from reliability.broker import Broker, find_connector
from rowtime.plan.program import compile_script
from rowtime.runtime.sinks.contract import Batch
from rowtime.runtime.sinks.kafka_exactly_once import TransactionalSink
from rowtime.runtime.sinks.kafka_topic import KafkaSink
from rowtime.runtime.sinks.ownership import Claim
from rowtime.state.memory import read_table

ROWS = 1_000_000
FEW = 10
TRIES = 3
SQL = """CREATE STREAM a (vehicle STRING, km DOUBLE, n INT);
CREATE STREAM o (vehicle STRING, km DOUBLE, n INT) USING kafka OPTIONS (kafka.bootstrap.servers '{}', topic '{}');
CREATE PUMP p AS INSERT INTO o SELECT STREAM vehicle, km, n FROM a;"""
DAY = 1_704_067_200_000_000


def main() -> None:
    """Write, and measure."""
    jars = ",".join(find_connector().jars or [])
    spark = SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    session = spark.config("spark.driver.memory", "3g").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        for kind in (KafkaSink, TransactionalSink):
            broker.create_topic(kind.__name__, 2)
            _measure(session, Path(folder) / kind.__name__, broker, kind)
    session.stop()


def _measure(spark: SparkSession, folder: Path, broker: Broker, kind: type[KafkaSink]) -> None:
    sql = SQL.format(broker.bootstrap, kind.__name__)
    node = compile_script(sql).sinks[0]
    sink = kind(dict(node.options), "o")
    place = sink.folder(folder)
    place.mkdir(parents=True)
    sink.record(sink.claim(Claim("p", kind.__name__, str(folder), 0)))
    first, found = 0, []
    for count in (FEW, *[ROWS] * TRIES, *[FEW] * TRIES):
        file = place / f"{first}.parquet"
        pq.write_table(_rows(count), file)
        bound = DAY + first + count
        batch = Batch(first, first, count, bound, [file], lambda file=file: read_table(file), lambda: None)  # type: ignore[misc,arg-type,return-value]
        begun = time.perf_counter()
        sink.publish(spark, node, batch)
        found.append(time.perf_counter() - begun)
        first += count
    sink.close()
    print(f"{kind.__name__}: {min(found[1 : 1 + TRIES]):.2f} s, of {FEW} rows {min(found[1 + TRIES :]):.3f} s")


def _rows(count: int) -> pa.Table:
    numbers = pa.array(range(count), pa.int32())
    names = pc.binary_join_element_wise("v", pc.cast(pc.bit_wise_and(numbers, 1023), pa.string()), "")
    at = pc.cast(pc.add(pc.cast(numbers, pa.int64()), DAY), pa.timestamp("us", "UTC"))
    return pa.table(
        {"rowtime": at, "vehicle": names, "km": pc.divide(pc.cast(numbers, pa.float64()), 10), "n": numbers}
    )


if __name__ == "__main__":
    main()
