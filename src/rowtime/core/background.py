"""Requests to an object store that run in the background.

A request to a distant store takes some tens of milliseconds, so requests that do not depend on each other run at the
same time. Code that depends on them waits for all of them: a tick before its journal entry, a reader before it reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as ended
from functools import cache
from typing import Final

AT_ONCE: Final = 16  # requests
_here = threading.local()


class Background:
    """The running requests to one bucket, by key. Requests for the same key run one after the other."""

    def __init__(self) -> None:
        self._under_way: dict[str, Future[None]] = {}

    def begin(self, key: str, work: Callable[[], None]) -> Future[None]:
        """Start some work on an object; `wait` and the future raise its error."""
        before = self._under_way.get(key)

        def run() -> None:
            _here.busy = True
            if before is not None:
                ended([before])  # the pool has already begun it
            work()

        try:
            future = _pool().submit(run)
        except RuntimeError:  # Python exits and starts no more work
            work()
            future = Future()
            future.set_result(None)
        self._under_way[key] = future
        return future

    def wait(self, key: str) -> None:
        """Wait for the work on an object, or on the objects of a folder. Work itself waits for nothing."""
        if self._under_way and not getattr(_here, "busy", False):
            below = f"{key}/" if key else ""
            ended([future for name, future in [*self._under_way.items()] if name == key or name.startswith(below)])

    def wait_for_all(self) -> None:
        """Wait for all running work; raises the first error."""
        futures, self._under_way = [*self._under_way.values()], {}
        ended(futures)
        for future in futures:
            future.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, "rowtime-store")
