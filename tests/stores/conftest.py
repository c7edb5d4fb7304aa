"""Places of every kind, and actions of a test between two requests of a store."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

import rowtime as rt
from reliability.stores.proxy import Faults, faulty
from reliability.stores.servers import Server
from rowtime.core import stores
from rowtime.core.stores import Place, place_of
from tests.stores.server import BUCKET, address, server

STORES: Final = ("moto", *(pytest.param(name, marks=pytest.mark.slow) for name in ("versitygw", "azurite", "google")))
"""The servers; all but one have slow tests."""


@pytest.fixture
def bucket() -> str:
    """The URL of an empty folder on the S3 server whose address is in the environment."""
    address()
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Server:
    """A server of each kind."""
    return server(request.param)


@pytest.fixture
def stored(store: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty folder on each server."""
    with _reached(store, store.address, monkeypatch) as url:
        yield url


@pytest.fixture
def faults(store: Server, stored: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """The failures of the test's requests to that folder."""
    assert stored
    with faulty(store.address) as (proxy, found), _reached(store, proxy, monkeypatch):
        yield found


@pytest.fixture(params=["local", "memory", *STORES])
def anew(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Place]]:
    """Opens one and the same empty folder, each time as another process would."""
    with folder_of(request.param, tmp_path, monkeypatch) as url:
        yield lambda: place_of(url)


@pytest.fixture
def place(anew: Callable[[], Place]) -> Place:
    """An empty folder."""
    return anew()


@contextmanager
def folder_of(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The path or URL of an empty folder: local, in memory, or on a server."""
    if kind == "local":
        yield str(folder)
    elif kind == "memory":
        yield f"memory://{uuid.uuid4().hex}/a"
    else:
        found = server(kind)
        with _reached(found, found.address, monkeypatch) as url:
            yield url


@contextmanager
def _reached(store: Server, at: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in store.environment(at).items():
        monkeypatch.setenv(name, value)
        stores._client.cache_clear()  # otherwise the environment of a process does not change
    rt.configure_stores(store.settings(at))
    yield f"{store.bucket}/{uuid.uuid4().hex}"
    rt.configure_stores({})
