"""A PostgreSQL server for the tests of the database sink; they are skipped only where it cannot be installed.

A driver that is missing where Maven reaches a repository is a fault, as it is of Kafka's jars.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.database.postgres import Postgres, driver_missing, server_missing
from tests.kafka.missing_jars import without_jars


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests of a process; each has tables of its own."""
    if server_missing():
        pytest.skip(server_missing())
    if driver_missing():
        without_jars(driver_missing())
    with Postgres() as server:
        yield server
