"""The examples of the pages on buckets give the rows that the pages show, with an S3 server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.page_runs import page_is_current
from tests.docs.page_servers import Servers
from tests.stores.server import address, make_bucket

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = ("docs/lakes.md", "docs/stores.md")


@pytest.mark.slow
@pytest.mark.usefixtures("bucket")  # Spark starts with the jars of S3
@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_what_its_examples_give(spark: SparkSession, name: str, rewrite_goldens: bool) -> None:
    make_bucket("bucket")
    page_is_current(spark, name, rewrite=rewrite_goldens, servers=Servers(store=address()))
