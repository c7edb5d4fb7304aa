"""A server that speaks S3, on a free port of this machine: moto, in a process of its own."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from typing import Final

from rowtime.core.errors import Failure
from rowtime.runtime.jars import store_jars

BUCKET: Final = "rowtime-tests"
_NEEDED: Final = ("obstore", "moto", "flask", "flask_cors")


def missing() -> str:
    """Why there can be no server; empty if there can."""
    gone = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(gone)}" if gone else ""


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
    if missing() or jars_missing():
        return []
    address()
    return store_jars()


@functools.cache
def address() -> str:
    """Start the server, once, and tell this process and its children where it is; the JVM must start afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = f"http://127.0.0.1:{port}"
    # A process of its own: some calls of deltalake keep the interpreter for themselves until they have their answer.
    asked = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(server.wait)
    atexit.register(server.terminate)
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{found}/moto-api/").close()  # noqa: S310 - our own
            break
        except OSError:
            assert server.poll() is None, "the S3 server did not start"
            assert time.monotonic() < end, "the S3 server does not answer"
            time.sleep(0.1)
    os.environ |= {
        "AWS_ENDPOINT_URL": found,
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "of-no-use-elsewhere",
        "AWS_REGION": "us-east-1",
    }
    urllib.request.urlopen(urllib.request.Request(f"{found}/{BUCKET}", method="PUT")).close()  # noqa: S310 - our own
    return found
