"""Launches the Java in which Spark runs, and connects PySpark to it.

PySpark's own function launches and waits in one call, and the process cannot be ended from outside before it answers.
The two agree on how Java tells its port and secret, and on how PySpark is told of a Java that runs already.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shlex
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from select import POLLIN, poll
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Lock, Thread
from typing import Final

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

# ruff: noqa: SLF001 - PySpark has no public way to the JVM of the process

_PORT: Final = "PYSPARK_GATEWAY_PORT"
_SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 - a name
_POLL: Final = 0.02  # seconds
_PATIENCE: Final = 5.0  # seconds


class JavaProcess:
    """A Java that is being launched with the settings of a session; it ends when its standard input is closed."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)
        self._noise: StartNoise | None = None
        self._copying = self._ended = False
        with suppress(OSError):  # there is no standard error
            self._noise = StartNoise()
        self._folder = Path(tempfile.mkdtemp(prefix="rowtime-java-"))
        self._answer = self._folder / "answer"
        try:
            self._process = Popen(  # noqa: S603 - Spark's own program
                [*_command(self.settings)],
                stdin=PIPE,
                stderr=None if self._noise is None else self._noise.pipe,
                env={**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._answer)},
                preexec_fn=_ignore_interrupts,  # noqa: PLW1509 - as PySpark does
            )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        finally:
            if self._noise is not None:
                self._noise.passed()

    def connect(self) -> None:
        """Wait until Java answers, and make it the one that PySpark uses.

        Raises ``PySparkRuntimeError`` if Java ends before, and ``InterruptedError`` after `end`.
        """
        if self._noise is not None:
            self._copying = True
            self._noise.copy()
        try:
            while not self._answer.exists():
                if self._ended:
                    raise InterruptedError("Java was ended while it started")
                if self._process.poll() is not None:
                    raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
                time.sleep(_POLL)
            with self._answer.open("rb") as answer:
                port, secret = read_int(answer), UTF8Deserializer().loads(answer)  # type: ignore[no-untyped-call]
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        os.environ |= {_PORT: str(port), _SECRET: secret}
        try:
            gateway = launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            del os.environ[_PORT], os.environ[_SECRET]
        gateway.proc = self._process
        SparkContext._ensure_initialized(gateway=gateway)

    def started(self, *, spark: bool) -> None:
        """Show what Java writes from now on, and its usual messages until now if Spark could not start."""
        if self._noise is not None:
            self._noise.ended(started=spark)

    def end(self) -> None:
        """End the process, in which no session has started yet; a thread that waits for one fails."""
        for logger in ("", "py4j.clientserver", "py4j.java_gateway"):
            logging.getLogger(logger).addFilter(_not_of_py4j)  # it would say that Java does not answer
        if self._noise is not None:
            self._noise.silence()
        self._ended = True
        self._process.terminate()  # Java removes its temporary files
        try:
            self._process.communicate(timeout=_PATIENCE)
        except TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._noise is not None and not self._copying:
            self._noise.dropped()


def _command(settings: Mapping[str, str]) -> list[str]:
    pairs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    more = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    return [str(Path(_find_spark_home(), "bin", "spark-submit")), *pairs, *more]


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _ignore_interrupts() -> None:
    """Let Ctrl-C reach Python alone, which then ends Java in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# Hides the lines that Java and Spark write to standard error at each start, which are of no use to users.
#
# The JVM gets a pipe as its standard error, and a thread copies its other end to that of this process. Once Spark has
# started, everything is copied. If it does not start, nothing is hidden.

STDERR: Final = 2
NOISE: Final = re.compile(
    rb"WARNING: Using incubator modules: .*"
    rb"|.*WARN NativeCodeLoader: Unable to load native-hadoop library.*"
    rb"|Setting default log level to .*"
    rb"|To adjust logging level use sc\.setLogLevel.*"
    rb"|Using Spark's default log4j profile: .*"
)


class StartNoise:
    """What the JVM writes to its standard error, the writing end ``pipe`` of a pipe.

    Raises ``OSError`` if this process has no standard error.
    """

    def __init__(self) -> None:
        self._out = os.dup(STDERR)
        self._starting, self._silent, self._turn = True, False, Lock()
        self._held: list[bytes] = []
        self._rest = b""
        self._open = True
        self._from, self.pipe = os.pipe()

    def passed(self) -> None:
        """Close this process's end of the pipe: the JVM has it."""
        os.close(self.pipe)

    def copy(self) -> None:
        """Begin to show what the JVM writes; until then the pipe keeps it.

        A thread copies it. This process does not wait for that thread when it ends, so it then copies the rest itself.
        """
        atexit.register(self._copy_rest)
        Thread(target=self._copy, name="rowtime-stderr", daemon=True).start()

    def silence(self) -> None:
        """Show nothing more: the JVM is about to be ended, and may complain."""
        with self._turn:
            self._silent, self._held, self._rest = True, [], b""

    def dropped(self) -> None:
        """Close the pipe of a JVM that has ended, with what nobody has copied."""
        os.close(self._from)
        os.close(self._out)

    def ended(self, *, started: bool) -> None:
        """Show everything from now on; the noise until now only if Spark has not started."""
        with self._turn:
            self._starting = False
            self._write(b"".join([*(() if started else self._held), self._rest]))
            self._held, self._rest = [], b""

    def _copy(self) -> None:
        with suppress(OSError):
            while self._open:
                self._is_ready(None)
                self._copy_next()
        with self._turn:
            self._open = False
            os.close(self._from)

    def _copy_rest(self) -> None:
        with suppress(OSError):
            self._copy_next()  # a pipe holds no more than is read at once

    def _copy_next(self) -> None:
        """Show what the JVM has written, if it has."""
        with self._turn:
            if self._open and self._is_ready(0):
                data = os.read(self._from, 1 << 16)
                self._open = bool(data)
                self._take(data)

    def _is_ready(self, wait: int | None) -> bool:
        """Return True if the JVM has written, or has ended; wait for it so long (ms), or for ever."""
        ready = poll()  # two threads must not use the same one
        ready.register(self._from, POLLIN)
        return bool(ready.poll(wait))

    def _take(self, data: bytes) -> None:
        if self._silent:
            return
        if not self._starting:
            self._write(data)
            return
        *lines, self._rest = (self._rest + data).splitlines(keepends=True) or [b""]
        if self._rest.endswith(b"\n"):
            lines, self._rest = [*lines, self._rest], b""
        self._show(lines)

    def _show(self, lines: list[bytes]) -> None:
        for line in lines:
            if NOISE.fullmatch(line.strip()):
                self._held.append(line)
            else:
                self._write(line)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._out, data) :]
