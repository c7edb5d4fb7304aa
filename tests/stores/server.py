"""Servers of object stores for tests, on free ports of this machine, each in its own process."""

from __future__ import annotations

import atexit
import functools
import os
import urllib.request
from typing import Final

import pytest

from examples.s3_server import KEYS, REGION, started
from reliability.stores.servers import Server, missing, start
from rowtime.core.errors import Failure
from rowtime.runtime.jars import store_jars

BUCKET: Final = "rowtime-tests"


@functools.cache
def jars_missing() -> str:
    """Return why Spark cannot read from the server; empty if it can."""
    try:
        store_jars()
    except Failure as failure:
        return failure.problems[0].message
    return ""


def spark_jars() -> list[str]:
    """The jars for ``spark.jars``. The server must run before the JVM starts, because the JVM needs its credentials."""
    if jars_missing():
        return []
    address()
    return store_jars()


@functools.cache
def address() -> str:
    """Start moto, once, and give this process and its children its address; the JVM must start afterwards."""
    found, server = started(BUCKET)
    atexit.register(server.wait)
    atexit.register(server.terminate)
    os.environ |= {
        "AWS_ENDPOINT_URL": found,
        "AWS_ACCESS_KEY_ID": KEYS[0],
        "AWS_SECRET_ACCESS_KEY": KEYS[1],
        "AWS_REGION": REGION,
    }
    return found


def make_bucket(name: str) -> None:
    """Make another bucket there: Spark keeps one client per bucket, so a proxy needs its own bucket."""
    request = urllib.request.Request(f"{address()}/{name}", method="PUT")  # noqa: S310 - of this machine
    urllib.request.urlopen(request, timeout=30).close()  # noqa: S310


def server(name: str) -> Server:
    """A server with its own bucket that is not in the environment; skips if it cannot be installed."""
    if missing(name):
        pytest.skip(missing(name))
    return _server(name)


@functools.cache
def _server(name: str) -> Server:
    found = start(name, f"rowtime-{name}")
    atexit.register(found.stop)
    return found
