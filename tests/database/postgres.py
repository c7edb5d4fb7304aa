"""A real PostgreSQL for tests: one server with its own folder, on a free port of 127.0.0.1."""

from __future__ import annotations

import functools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from rowtime.core.errors import Failure
from rowtime.runtime.jars import jdbc_jars

SETUP: Final = Path(__file__).parents[2] / "scripts" / "setup_postgres.sh"
START_SECONDS: Final = 60


def server_missing() -> str:
    """Return why there is no server; empty if there is one."""
    return (
        "" if programs().is_dir() else "PostgreSQL is not installed, and scripts/setup_postgres.sh could not install it"
    )


@functools.cache
def driver_missing() -> str:
    """Return why there is no driver; empty if there is one."""
    try:
        jars()
    except Failure as failure:
        return failure.problems[0].message
    return ""


@functools.cache
def jars() -> list[str]:
    """Return the driver's jars, for ``spark.jars``."""
    return jdbc_jars("jdbc:postgresql:")


@functools.cache
def programs() -> Path:
    """Return the folder of ``initdb`` and ``postgres``."""
    found = subprocess.run([str(SETUP)], capture_output=True, text=True, check=False)
    return Path(found.stdout.strip() or "/none")


class Postgres:
    """A server; ``with Postgres() as server`` starts it, and stops it at the end."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="rowtime-postgres-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # The server refuses to run as root; then it runs as the user of the Debian package.
        self._user: dict[str, Any] = {"user": "postgres"} if os.geteuid() == 0 else {}
        if self._user:
            shutil.chown(self._home, "postgres")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL for JDBC."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        data = self._home / "data"
        made = [str(programs() / "initdb"), "-D", str(data), "-U", "rowtime", "--auth=trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(made, check=True, capture_output=True, cwd=self._home, **self._user)
        start = [str(programs() / "postgres"), "-D", str(data), "-p", str(self.port), "-k", str(self._home)]
        start += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        with (self._home / "log").open("wb") as log:
            self._process = subprocess.Popen(start, stdout=log, stderr=log, cwd=self._home, **self._user)
        self._wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.send_signal(2)  # fast shutdown
            self._process.wait(30)
        shutil.rmtree(self._home, ignore_errors=True)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            asked = [str(programs() / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port)]
            if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError((self._home / "log").read_text(encoding="utf-8"))
