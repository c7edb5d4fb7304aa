"""A PostgreSQL server for the tests of the database sink; they are skipped only where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres import Postgres, missing


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests of a process; each has tables of its own."""
    if missing():
        pytest.skip(missing())
    with Postgres() as server:
        yield server
