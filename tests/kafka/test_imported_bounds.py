"""Topics of events that import the bounds of other topics: records arrive at their timestamps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from reliability.broker import Broker, Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM data (at TIMESTAMP, k INT) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', subscribe '{data}')
  EVENT SHAPE POINT (at);
CREATE STREAM prices (since TIMESTAMP, k INT, price INT)
  USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', subscribe '{prices}')
  EVENT SHAPE POINT (since) BOUND FROM data;
CREATE VIEW lasting AS SELECT STREAM k, price FROM EXTEND(prices, INTERVAL '1' HOUR);
SELECT STREAM d.k AS k, p.price AS price FROM data AS d JOIN lasting AS p ON d.k = p.k EMIT INTERVALS (start, stop);
"""


START = 1_704_067_200_000  # ms


def _point(minute: int, partition: int = 0) -> Record:
    return Record(json.dumps({"at": f"2024-01-01T10:{minute:02}:00Z", "k": 1}), partition)


def _price(minute: int, price: int) -> Record:
    return Record(json.dumps({"since": f"2024-01-01T10:{minute:02}:00Z", "k": 1, "price": price}), 0)


def _bound(minute: int, partition: int = 0) -> Record:
    return Record(None, partition, headers=[("rowtime-bound", f"2024-01-01 10:{minute:02}:00")])


@pytest.mark.slow
def test_prices_are_late_by_the_bounds_that_arrived_before_them(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    prices = f"{topic}-prices"
    broker.create_topic(prices, 1)
    rows: list[tuple[int, int]] = []

    def keep(batch: rt.Batch) -> None:
        rows.extend((row["start"].minute, row["price"]) for row in batch.table().to_pylist())

    sql = SQL.format(servers=broker.bootstrap, data=topic, prices=prices)
    made = rt.Pipeline(spark, home=tmp_path).sql(sql).sink("result", keep)
    data = [_point(5), _bound(6), _bound(20, 1), _bound(20, 2)]
    late = [_bound(30), _price(3, 20), _price(6, 30)]  # its own bound has no effect
    sent = [(prices, [_price(0, 10)]), (topic, data), (prices, late), (topic, [_point(8), _bound(12)])]
    for at, (name, records) in enumerate(sent, START):
        broker.send(name, *(record._replace(at=at) for record in records))
    query = made.run_available(tmp_path / "check")
    query = made.run_available(tmp_path / "check")
    assert query.ledger["prices.events"] == {"in": 3, "accepted": 2, "LATE": 1}
    assert sorted(rows) == [(5, 10), (8, 10), (8, 30)]
