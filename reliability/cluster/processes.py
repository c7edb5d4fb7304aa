"""A Spark standalone cluster on this machine: a master, and workers that are killed and restarted.

Each worker has an address of its own (127.0.0.2, 127.0.0.3, …), since Spark does not run a task twice on one host. Each
process leads a session of its own, in which its executors and their Python workers stay: so all of them are found,
whoever started them and whoever is dead.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
SECONDS = 60.0  # within which a master listens and a killed process is gone


class Cluster:
    """One master and a number of workers of one core; ``folder`` takes their logs and work directories."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self._port = _free_port()
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes] | None] = [None] * workers
        self._sessions: list[int] = []

    @property
    def url(self) -> str:
        """The URL of the master, for drivers."""
        return f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        try:
            self._master = self._started("master.Master", "master", "127.0.0.1", "--port", str(self._port))
            _await_port(self._port)
            self.revive()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def revive(self) -> None:
        """Start the workers that are not running."""
        for number, worker in enumerate(self._workers):
            if worker is None:
                place = self.folder / f"worker-{number}"
                limits = ("--cores", "1", "--memory", "1g", "--work-dir", str(place))
                self._workers[number] = self._started(
                    "worker.Worker", place.name, f"127.0.0.{number + 2}", *limits, self.url
                )

    def kill_executors(self, number: int) -> int:
        """Kill the executors of a worker. Return how many there were."""
        worker = self._workers[number]
        executors = [] if worker is None else _children(worker.pid)
        for process in executors:
            _kill(process)
        return len(executors)

    def kill_worker(self, number: int) -> int:
        """Kill a worker with its executors. Return how many executors there were."""
        worker = self._workers[number]
        if worker is None:
            return 0
        executors = len(_children(worker.pid))
        end_sessions([worker.pid])
        worker.wait()
        self._workers[number] = None
        return executors

    def close(self) -> None:
        """End every process of the cluster, executors and their Python workers too."""
        end_sessions(self._sessions)
        for process in (self._master, *self._workers):
            if process is not None:
                process.wait()

    def _started(self, name: str, log: str, host: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = ["org.apache.spark.deploy." + name, "--host", host, "--webui-port", "0", *arguments]
        settings = {
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.deploy.maxExecutorRetries=-1",
        }
        with (self.folder / f"{log}.log").open("ab") as out:
            process = started([str(SPARK_HOME / "bin" / "spark-class"), *command], out.fileno(), settings)
        self._sessions.append(process.pid)
        return process


def started(
    command: Sequence[str], log: int, settings: Mapping[str, str], out: int | None = None
) -> subprocess.Popen[bytes]:
    """Start a process that leads a session of its own, bound to this machine."""
    own = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": "/nonexistent", **settings}
    return subprocess.Popen(command, stdout=out or log, stderr=log, start_new_session=True, env={**os.environ, **own})


def end_sessions(sessions: Iterable[int]) -> None:
    """Kill all processes of these sessions, until none is left."""
    wanted, deadline = set(sessions), time.monotonic() + SECONDS
    while left := [process for process, (_, session, state) in _processes().items() if session in wanted and state]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes that cannot be killed: {left}")
        for process in left:
            _kill(process)
        time.sleep(0.05)


def _children(parent: int) -> list[int]:
    return [process for process, (above, _, alive) in _processes().items() if above == parent and alive]


def _processes() -> dict[int, tuple[int, int, bool]]:
    """Return the parent and the session of each process, and whether it is alive, not only waiting to be reaped."""
    found: dict[int, tuple[int, int, bool]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            state, above, _, session = (place / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        found[int(place.name)] = int(above), int(session), state not in "ZX"
    return found


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _await_port(port: int) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"no master listens on port {port}")
