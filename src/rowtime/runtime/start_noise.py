"""Hides the lines that Java and Spark write to standard error at each start, which are of no use to users.

The JVM gets a pipe as its standard error, and a thread copies its other end to that of this process. Once Spark has
started, everything is copied. If it does not start, nothing is hidden.
"""

from __future__ import annotations

import atexit
import os
import re
from contextlib import suppress
from select import POLLIN, poll
from threading import Lock, Thread
from typing import Final

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
