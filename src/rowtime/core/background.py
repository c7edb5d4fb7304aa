"""Requests to an object store that are under way while whoever made them does something else.

A request of a distant store takes some tens of milliseconds. Requests that do not depend on each other are made at
once. Whoever depends on them waits for all of them: a tick before its journal entry, a reader before it reads.
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
    """What is under way in one bucket, by key. Requests of one key are made one after the other."""

    def __init__(self) -> None:
        self._under_way: dict[str, Future[None]] = {}

    def begin(self, key: str, work: Callable[[], None]) -> Future[None]:
        """Begin some work on an object; its error comes back by `wait`, and by the future."""
        before = self._under_way.get(key)

        def run() -> None:
            _here.busy = True
            if before is not None:
                ended([before])  # the pool has begun it before this one
            work()

        try:
            found = _pool().submit(run)
        except RuntimeError:  # Python exits and begins nothing more
            work()
            found = Future()
            found.set_result(None)
        self._under_way[key] = found
        return found

    def wait(self, key: str) -> None:
        """Wait for what is under way on an object, or on those of a folder. Work that is under way waits for nobody."""
        if self._under_way and not getattr(_here, "busy", False):
            below = f"{key}/" if key else ""
            ended([one for name, one in [*self._under_way.items()] if name == key or name.startswith(below)])

    def wait_for_all(self) -> None:
        """Wait for all that is under way; raises the first error."""
        found, self._under_way = [*self._under_way.values()], {}
        ended(found)
        for one in found:
            one.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, "rowtime-store")
