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


KAFKA_TESTS, DATABASE_TESTS = (Path(__file__).parent / name for name in ("kafka", "database"))


def _jars(session: pytest.Session) -> list[str]:
    """Kafka's connector and the driver of PostgreSQL, where tests of this run want them and they can be had.

    A JVM cannot be given them later.
    """
    found: list[str] = []
    if any(KAFKA_TESTS in item.path.parents for item in session.items):
        from broker import connector_jars_or_none

        found += connector_jars_or_none() or []
    if any(DATABASE_TESTS in item.path.parents for item in session.items):
        from postgres import driver_missing, jars, server_missing

        found += [] if server_missing() or driver_missing() else jars()
    return found


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
