"""Stops running queries before Python exits.

At exit, Python ends daemon threads wherever they are. A thread inside deltalake then kills the process with a signal
(SIGSEGV, or ``terminate called without an active exception``), and a good run looks like a crash.
"""

from __future__ import annotations

import atexit
import weakref
from contextlib import suppress
from typing import Final, Protocol

_PATIENCE: Final = 30.0  # seconds to wait for the current tick


class Stoppable(Protocol):
    """Something that runs in a thread of its own."""

    def stop_soon(self) -> None:
        """Stop after the current tick."""
        ...

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 - Spark's name
        """Wait until it has ended."""
        ...


_running: weakref.WeakSet[Stoppable] = weakref.WeakSet()


def stopped_at_exit(query: Stoppable) -> None:
    """Stop a query when Python exits, before Spark and the interpreter end."""
    if not _running:
        atexit.unregister(_stop)  # handlers run in reverse order, so this one runs early
        atexit.register(_stop)
    _running.add(query)


def _stop() -> None:
    for query in (*_running,):
        query.stop_soon()
    for query in (*_running,):
        with suppress(Exception):  # the error is in the log, and nobody waits for it any more
            query.awaitTermination(_PATIENCE)
