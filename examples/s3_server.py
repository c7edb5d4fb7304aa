"""A server that speaks S3, on a free port of this machine: moto, in a process of its own, which keeps all in memory."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from typing import Final

KEYS: Final = ("tests", "of-no-use-elsewhere")
"""The access key and its secret; the server takes any."""
REGION: Final = "us-east-1"
PATIENCE: Final = 60.0  # seconds


def started(bucket: str) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a server that has a bucket; its URL, and its process, which the caller ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = f"http://127.0.0.1:{port}"
    # A process of its own: some calls of deltalake keep the interpreter for themselves until they have their answer.
    asked = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(f"{found}/moto-api/").close()  # noqa: S310 - our own
            break
        except OSError:
            if server.poll() is not None or time.monotonic() > end:
                server.terminate()
                raise RuntimeError("the S3 server does not start; it is in the dev extra (moto[s3], flask)") from None
            time.sleep(0.1)
    made = urllib.request.Request(f"{found}/{bucket}", method="PUT")  # noqa: S310 - our own
    urllib.request.urlopen(made).close()  # noqa: S310
    return found, server
