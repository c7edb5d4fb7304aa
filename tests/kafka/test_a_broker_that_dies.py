"""A broker dies within a tick: the tick fails with a code, and in the end each row is in the topic once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.core.errors import Failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM s (n INT) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', subscribe 's',
  kafkaConsumer.pollTimeoutMs '2000', kafka.default.api.timeout.ms '2000', kafka.request.timeout.ms '2000');
CREATE STREAM kept (n INT) USING parquet OPTIONS (path '{folder}/kept');
CREATE STREAM told (n INT) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', topic 'told',
  kafka.max.block.ms '2000', kafka.request.timeout.ms '1000', kafka.delivery.timeout.ms '2000');
CREATE PUMP p1 AS INSERT INTO kept SELECT STREAM n FROM s;
CREATE PUMP p2 AS INSERT INTO told SELECT STREAM n FROM s;
"""


@pytest.fixture
def mortal(spark: SparkSession, broker: Broker) -> Iterator[Broker]:
    """A broker for this test alone; the shared one shows that brokers can run here."""
    with Broker() as made:
        made.create_topic("s")
        made.create_topic("told")
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before state", "after journal"])
def test_a_tick_whose_broker_dies_fails_with_a_code(
    point: str, spark: SparkSession, mortal: Broker, tmp_path: Path
) -> None:
    mortal.send("s", *(Record(f'{{"n": {n}}}') for n in range(5)))
    sql = SQL.format(servers=mortal.bootstrap, folder=tmp_path)
    engine = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)._engine(tmp_path / "check", rt.Limits(), ends=True)
    engine.hook = lambda here: mortal.crash() if here == point else None
    with pytest.raises(Failure, match="R501"):
        engine.tick()
    mortal.restart()
    engine.hook = lambda _here: None
    engine.tick()
    files = sorted((tmp_path / "kept").glob("*.parquet"))
    assert sorted(n for file in files for n in pq.read_table(file)["n"].to_pylist()) == list(range(5))
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", mortal.bootstrap)
    written = reader.option("subscribe", "told").load().where("value IS NOT NULL").count()
    assert written == 5, "nothing was in the topic before the broker died"
    engine.close()
    engine.stop()
