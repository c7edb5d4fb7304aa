"""The examples of the pages on Kafka give the rows that the pages show, with a broker and a schema registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.page_runs import page_is_current
from tests.docs.page_servers import Servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reliability.broker import Broker

PAGES = ("README.md", "docs/kafka.md", "docs/debezium.md", "docs/schema-registry.md")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_what_its_examples_give(
    spark: SparkSession, broker: Broker, name: str, rewrite_goldens: bool
) -> None:
    page_is_current(spark, name, rewrite=rewrite_goldens, servers=Servers(broker=broker))
