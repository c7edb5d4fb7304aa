"""A PostgreSQL server for the tests of the database sink.

The tests are skipped only if the server cannot be installed. If Maven reaches a repository, a missing driver is an
error, like missing jars of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.database.postgres import Postgres, driver_missing, server_missing
from tests.kafka.missing_jars import without_jars


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests of a process; each test has its own tables."""
    if server_missing():
        pytest.skip(server_missing())
    if driver_missing():
        without_jars(driver_missing())
    with Postgres() as server:
        yield server
