"""Queries that still run when Python exits are stopped first.

Python ends a thread of its own wherever it is. Inside of deltalake the process then dies by a signal (SIGSEGV, or
``terminate called without an active exception``), and whoever started it takes a good run for a crash.
"""

from __future__ import annotations

import atexit
import weakref
from contextlib import suppress
from typing import Final, Protocol

_PATIENCE: Final = 30.0  # seconds, for the tick under way


class Stoppable(Protocol):
    """What runs in a thread of its own."""

    def stop_soon(self) -> None:
        """Let the tick under way be the last."""
        ...

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 - Spark's name
        """Wait for the end."""
        ...


_running: weakref.WeakSet[Stoppable] = weakref.WeakSet()


def stopped_at_exit(query: Stoppable) -> None:
    """Stop a query when Python exits, before Spark and the interpreter end."""
    if not _running:
        atexit.unregister(_stop)  # what is registered last runs first
        atexit.register(_stop)
    _running.add(query)


def _stop() -> None:
    for query in (*_running,):
        query.stop_soon()
    for query in (*_running,):
        with suppress(Exception):  # it is in the log, and whoever would wait for it is gone
            query.awaitTermination(_PATIENCE)
