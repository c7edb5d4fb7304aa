"""Rows that the driver puts in order stand as Spark would put them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.operators.contract import P, T, W
from rowtime.runtime.sinks.staging import _sorted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITERS = ("", "a", "A", "ab", "z", "é", "ü", "zz", "\U0001f600", "\uffff")


def test_the_driver_sorts_by_time_writer_and_place_as_spark_does(spark: SparkSession) -> None:
    chance = random.Random(1)
    rows = [
        {"__n": chance.randrange(-3, 3), W: chance.choice(WRITERS), P: place - 100, "v": place} for place in range(300)
    ]
    chance.shuffle(rows)
    table = pa.Table.from_pylist(rows)
    theirs = spark.createDataFrame(table).sort("__n", W, P).toArrow()
    assert _sorted(table, (T, W, P))["v"].to_pylist() == theirs["v"].to_pylist()
    assert _sorted(table, (P,))["v"].to_pylist() == list(range(300))
    assert _sorted(table.slice(0, 0), (T, W, P)).num_rows == 0
