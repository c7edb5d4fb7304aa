"""Fixtures that every test may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


KAFKA_TESTS = Path(__file__).parent / "kafka"


def _jars(session: pytest.Session) -> list[str]:
    """Kafka's connector, where tests of this run want it and it can be had: a JVM cannot be given it later."""
    if not any(KAFKA_TESTS in item.path.parents for item in session.items):
        return []
    from broker import connector_jars_or_none

    return connector_jars_or_none() or []


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A small local Spark session in UTC and ANSI mode, one for the whole run."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = _jars(request.session)
    builder = SparkSession.builder.master("local[2]")
    if jars:
        builder = builder.config("spark.jars", ",".join(jars))
    session = (
        builder.appName("rowtime-tests")
        .config("spark.ui.enabled", "false")
        # Thousands of ticks of a few rows: the second compiler would take more than it gives.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.enabled", "true")
        .getOrCreate()
    )
    yield session
    session.stop()
