"""The flights in a Delta table of a bucket, read by polars, equal the independent computation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from examples.flights import bucket, independent
from examples.flights.feed import feed
from examples.s3_server import started

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_polars_finds_the_busiest_hours(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path / "home")
    url, server = started(bucket.BUCKET)
    try:
        bucket.run(tmp_path / "home", tmp_path / "checkpoint", url, spark)
        found = bucket.busiest(url, size=3)
        assert rt.verify(
            tmp_path / "checkpoint", spark=spark, home=tmp_path / "home", variables={"output": bucket.TABLE}
        ).equal
    finally:
        server.terminate()
        server.wait()
        rt.configure_stores({})
    expected: Counter[object] = Counter()
    for (_, hour, _), departures in independent.count(independent.deliveries()).departures.items():
        expected[hour] += departures
    assert [row["departures"] for row in found.to_dicts()] == [n for _, n in expected.most_common(3)]
    assert all(expected[row["hour"]] == row["departures"] for row in found.to_dicts())
