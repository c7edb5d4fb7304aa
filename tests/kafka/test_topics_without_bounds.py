"""A topic for other programs can have rows only: bounds 'false'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from reliability.broker import Broker
from rowtime.core.errors import Refused
from tests.kafka.test_avro_sink import insert
from tests.kafka.test_kafka_sink import headers, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(2)

SQL = """CREATE STREAM a (name STRING, n INT);
CREATE STREAM o (name STRING, n INT) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', topic '{topic}'{more});
CREATE PUMP p AS INSERT INTO o SELECT STREAM name, n FROM a;"""


def made(spark: SparkSession, home: Path, broker: Broker, topic: str, bounds: str = "false") -> rt.Pipeline:
    more = f", bounds '{bounds}', key.column 'name'"
    return rt.Pipeline(spark, home=home).sql(SQL.format(servers=broker.bootstrap, topic=topic, more=more))


def names(spark: SparkSession, broker: Broker, topic: str) -> list[str]:
    """The rows in the order of their numbers; the topic contains nothing else."""
    found = {int(headers(one)["rowtime-seq"]): one["value"] for one in records(spark, broker, topic)}
    return [json.loads(bytes(found[number]))["name"] for number in sorted(found)]


def test_the_topic_has_only_rows_and_other_checkpoints_are_refused(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    made(spark, tmp_path, broker, topic).run_available(tmp_path / "check")
    assert records(spark, broker, topic) == []  # not even the record of its owner
    for second in (0, 10):
        insert(tmp_path, ("x", 1), ("y", 2), ("z", 3), second=second)
        made(spark, tmp_path, broker, topic).run_available(tmp_path / "check")
    assert names(spark, broker, topic) == ["x", "y", "z"] * 2
    owners = [one for one in records(spark, broker, topic) if "rowtime-owner" in headers(one)]
    assert [headers(one)["rowtime-seq"] for one in owners] == ["2", "5"]
    with pytest.raises(Refused, match="R440"):
        made(spark, tmp_path, broker, topic).run_available(tmp_path / "other")
    made(spark, tmp_path, broker, topic).run_available(tmp_path / "other", take_over=["p"])
    insert(tmp_path, ("later", 4), second=20)
    made(spark, tmp_path, broker, topic).run_available(tmp_path / "other", take_over=["p"])
    assert names(spark, broker, topic)[-1] == "later"


def test_by_default_bounds_are_among_the_rows(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    insert_into = made(spark, tmp_path, broker, topic, "true")
    insert_into.run_available(tmp_path / "check")
    insert(tmp_path, ("x", 1))
    insert_into.run_available(tmp_path / "check")
    assert {"rowtime-bound" in headers(one) for one in records(spark, broker, topic)} == {True, False}
