"""Hides the lines that Java and Spark write to standard error at each start, which are of no use to users.

The JVM inherits file descriptor 2, so it gets a pipe instead, and a thread copies its other end to the original. Once
Spark has started, everything is copied. If it does not start, nothing is hidden.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import Final

from pyspark import SparkContext

STDERR: Final = 2
NOISE: Final = re.compile(
    rb"WARNING: Using incubator modules: .*"
    rb"|.*WARN NativeCodeLoader: Unable to load native-hadoop library.*"
    rb"|Setting default log level to .*"
    rb"|To adjust logging level use sc\.setLogLevel.*"
    rb"|Using Spark's default log4j profile: .*"
)


@contextmanager
def quiet_start() -> Iterator[None]:
    """Start the JVM inside this; does nothing if there is one, or no standard error."""
    if SparkContext._gateway is not None:  # noqa: SLF001 - PySpark has no public way
        yield
        return
    try:
        out = os.dup(STDERR)
    except OSError:
        yield
        return
    filtered = _Filter(out)
    try:
        yield
    except BaseException:
        filtered.ended(started=False)
        raise
    else:
        filtered.ended(started=True)


class _Filter:
    """A pipe in the place of standard error; ``out``: a copy of the original descriptor."""

    def __init__(self, out: int) -> None:
        self._out, self._starting, self._turn = out, True, Lock()
        self._held: list[bytes] = []
        self._rest = b""
        self._pipe, end = os.pipe()
        os.dup2(end, STDERR)
        os.close(end)
        Thread(target=self._copy, name="rowtime-stderr", daemon=True).start()

    def ended(self, *, started: bool) -> None:
        """Restore standard error; the JVM keeps the pipe."""
        os.dup2(self._out, STDERR)
        with self._turn:
            self._starting = False
            self._write(b"".join([*(() if started else self._held), self._rest]))
            self._held, self._rest = [], b""

    def _copy(self) -> None:
        with suppress(OSError):
            while data := os.read(self._pipe, 1 << 16):
                with self._turn:
                    self._take(data)
        os.close(self._pipe)

    def _take(self, data: bytes) -> None:
        if not self._starting:
            self._write(data)
            return
        *lines, self._rest = (self._rest + data).splitlines(keepends=True) or [b""]
        if self._rest.endswith(b"\n"):
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            if NOISE.fullmatch(line.strip()):
                self._held.append(line)
            else:
                self._write(line)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._out, data) :]
