"""Debian's Prometheus for tests: its tool, and a server with its own folder on a free port of 127.0.0.1."""

from __future__ import annotations

import functools
import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

SETUP: Final = Path(__file__).parents[2] / "scripts" / "setup_prometheus.sh"
START_SECONDS: Final = 60


@functools.cache
def programs() -> str:
    """The folder of ``prometheus`` and ``promtool``; empty if they cannot be installed."""
    found = subprocess.run([str(SETUP)], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def promtool(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """The output of the tool."""
    command = [f"{programs()}/promtool", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)


class Prometheus:
    """A server that scrapes a port five times per second."""

    def __init__(self, folder: Path, page: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._address = f"127.0.0.1:{probe.getsockname()[1]}"
        config = folder / "prometheus.yml"
        scraped = [{"job_name": "rowtime", "static_configs": [{"targets": [f"127.0.0.1:{page}"]}]}]
        config.write_text(json.dumps({"global": {"scrape_interval": "200ms"}, "scrape_configs": scraped}))
        self._command = [
            f"{programs()}/prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self._address}",
        ]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(30)

    def wait_for(self, query: str) -> list[dict[str, Any]]:
        """The series of a query, as soon as there are any."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if found := self.ask(query):
                return found
            time.sleep(0.2)
        raise AssertionError(f"no series of {query} in {START_SECONDS} s")

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The present series of a query; none while the server starts."""
        url = f"http://{self._address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except OSError:
            return []
        return found
