"""Places of every kind, and what a test does between two requests of a store."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from rowtime.core.stores import Place, place_of
from tests.stores.server import BUCKET, address


@pytest.fixture
def bucket() -> str:
    """The URL of an empty folder on the S3 server."""
    address()
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture(params=["local", "memory", "s3"])
def anew(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Place]:
    """Gives one and the same empty folder, each time as another process would open it."""
    url = {"local": lambda: str(tmp_path), "memory": lambda: f"memory://{uuid.uuid4().hex}/a"}.get(
        request.param, lambda: request.getfixturevalue("bucket")
    )()
    return lambda: place_of(url)


@pytest.fixture
def place(anew: Callable[[], Place]) -> Place:
    """An empty folder."""
    return anew()
