"""A broker and a Spark session with the connector; the tests are skipped only if Maven reaches no repository."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reliability.broker import Broker, find_connector
from rowtime.core.errors import Failure
from tests.kafka.missing_jars import without_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
_topics = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def spark(spark: SparkSession) -> SparkSession:
    """The session of the whole run; it starts with the connector if that is available."""
    found = find_connector()
    if found.jars is None:
        without_jars(found.note)
    if found.note:
        warnings.warn(found.note, stacklevel=1)  # users do not get the connector of these tests
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()
    if loader.getResource("org/apache/spark/sql/kafka010/KafkaSourceProvider.class") is None:
        pytest.fail("the connector is there, but the Spark session of this run was started without it")
    return spark


@pytest.fixture(scope="session")
def broker(spark: SparkSession) -> Iterator[Broker]:
    """One broker for all tests of a process; each test has its own topics."""
    try:
        made = Broker()
    except Failure as failure:
        if failure.problems[0].code != "R502":
            raise  # the jars are present, so the broker has to start
        without_jars(failure.problems[0].message)
    with made:
        yield made


@pytest.fixture
def topic(broker: Broker) -> str:
    """A new topic of three partitions."""
    name = f"t{next(_topics)}"
    broker.create_topic(name, 3)
    return name
