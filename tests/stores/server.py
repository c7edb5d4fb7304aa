"""A server that speaks S3, on a free port of this machine: moto of the dev extra, in a process of its own."""

from __future__ import annotations

import atexit
import functools
import os
from typing import Final

from examples.s3_server import KEYS, REGION, started
from rowtime.core.errors import Failure
from rowtime.runtime.jars import store_jars

BUCKET: Final = "rowtime-tests"


@functools.cache
def jars_missing() -> str:
    """Why Spark cannot read from the server; empty if it can."""
    try:
        store_jars()
    except Failure as failure:
        return failure.problems[0].message
    return ""


def spark_jars() -> list[str]:
    """The jars for ``spark.jars``; the server runs once the JVM does, which has to know its credentials."""
    if jars_missing():
        return []
    address()
    return store_jars()


@functools.cache
def address() -> str:
    """Start the server, once, and tell this process and its children where it is; the JVM must start afterwards."""
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
