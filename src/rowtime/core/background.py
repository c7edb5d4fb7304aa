"""Requests to an object store, and syncs of files, that run in the background.

A request to a distant store takes some tens of milliseconds, and a sync of a file some milliseconds, so those that do
not depend on each other run at the same time. Code that depends on them waits for all of them: a tick before its
journal entry, a reader of an object before it reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as ended
from functools import cache
from typing import Final

AT_ONCE: Final = 16  # requests or syncs
_here = threading.local()


class Background:
    """Running requests to a bucket by key, or syncs of files by path; those of one key run one after the other."""

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
            ended([future for name, future in [*self._under_way.items()] if _inside(name, key)])

    def wait_for_all(self, key: str = "") -> list[str]:
        """Wait for all running work, or that on a folder; raises the first error. Returns the keys of the work."""
        names = [name for name in [*self._under_way] if _inside(name, key)]
        futures = [future for name in names if (future := self._under_way.pop(name, None)) is not None]
        ended(futures)
        for future in futures:
            future.result()
        return names


def _inside(name: str, key: str) -> bool:
    return not key or name == key or name.startswith(f"{key}/")


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, "rowtime-files")
