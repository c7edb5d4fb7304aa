"""Spark sends rows with chosen numbers to partitions of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowtime.runtime.executors.places import murmur3, places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_hash_is_that_of_spark(spark: SparkSession) -> None:
    numbers = [*range(300), 2**31 - 1, -(2**31), -1]
    rows = spark.createDataFrame([(n,) for n in numbers], "n INT").selectExpr("n", "hash(n) AS h").collect()
    assert [murmur3(row.n & 0xFFFFFFFF) for row in rows] == [row.h for row in rows]


@pytest.mark.parametrize("many", [1, 2, 3, 8, 64])
def test_each_number_has_a_partition_of_its_own(spark: SparkSession, many: int) -> None:
    rows = spark.createDataFrame([(n,) for n in places(many)], "n INT").repartition(many, "n")
    assert sorted(row.p for row in rows.selectExpr("spark_partition_id() AS p").collect()) == [*range(many)]
