"""Orders to the pumps of a pipeline whose checkpoint is on an S3 server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kafka.missing_jars import without_jars
from tests.stores.server import jars_missing
from tests.upgrades.pumps import Pumps, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def test_a_pipeline_on_a_store_takes_orders_up(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    if jars_missing():
        without_jars(jars_missing())
    pumps = Pumps(tmp_path, spark, bucket)
    pumps.run()
    pumps.order("ALTER PUMP a.files START")
    pumps.send(2)
    pumps.run()
    query = pumps.pipeline().start(bucket)
    try:
        assert pumps.order("ALTER PUMP * START").running
        until(lambda: pumps.orders() == [])
        pumps.send(1)
        until(lambda: pumps.log() == [2])
        pumps.order("ALTER PUMP * STOP")
        until(lambda: pumps.orders() == [])
        pumps.send(1)
        pumps.order("ALTER PUMP a.log, a.files START")
        until(lambda: pumps.log() == [2, 3])
    finally:
        query.stop()
    assert (query.exception, pumps.files()) == (None, [0, 1, 2, 3])
    assert pumps.verified()
