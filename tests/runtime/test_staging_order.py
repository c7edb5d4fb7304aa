"""Rows that the driver sorts are in Spark's order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowtime.core.columns import POSITION, ROWTIME, WRITER
from rowtime.runtime.sinks.staging import _sorted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.sampled(4)

WRITERS = ("", "a", "A", "ab", "z", "é", "ü", "zz", "\U0001f600", "\uffff")


def test_the_driver_sorts_by_time_writer_and_place_like_spark(spark: SparkSession) -> None:
    chance = random.Random(1)
    rows = [
        {"__n": chance.randrange(-3, 3), WRITER: chance.choice(WRITERS), POSITION: place - 100, "v": place}
        for place in range(300)
    ]
    chance.shuffle(rows)
    table = pa.Table.from_pylist(rows)
    theirs = spark.createDataFrame(table).sort("__n", WRITER, POSITION).toArrow()
    assert _sorted(table, (ROWTIME, WRITER, POSITION))["v"].to_pylist() == theirs["v"].to_pylist()
    assert _sorted(table, (POSITION,))["v"].to_pylist() == list(range(300))
    assert _sorted(table.slice(0, 0), (ROWTIME, WRITER, POSITION)).num_rows == 0
