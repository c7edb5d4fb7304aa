"""A pulse: a driver's sign of life, so that others see the current tick, and in a bucket that the driver lives.

In a folder the lock says who lives, so a sign is written only while a tick takes longer than a second: quick ticks cost
nothing. A bucket has no locks: there the driver writes a sign every ten seconds, and one when it stops.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Self

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types

from rowtime.core.time import wall_clock
from rowtime.runtime.session import page_of
from rowtime.state.liveness import Sign, give_sign, take_sign_back
from rowtime.state.under_way import UnderWay

if TYPE_CHECKING:
    from rowtime.runtime.engine import Engine

IN_A_FOLDER: Final = 1.0  # seconds between two signs
IN_A_BUCKET: Final = 10.0


class Pulse:
    """A context manager around the run of an engine; ``page``: the address of Spark's page."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._place = engine, engine.checkpoint.folder
        self._locked = isinstance(self._place, Path)
        self._over, self._signed = Event(), False
        self._page = "" if self._locked else page_of(engine.spark) or ""

    def __enter__(self) -> Self:
        self._beat()
        self._thread = Thread(target=self._beats, name="rowtime-pulse", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._locked:
            take_sign_back(self._place)
        else:
            give_sign(self._place, self._sign(None, ended=True))

    def _beats(self) -> None:
        while not self._over.wait(IN_A_FOLDER if self._locked else IN_A_BUCKET):
            with suppress(Py4JError, OSError):  # Spark is shutting down
                self._beat()

    def _beat(self) -> None:
        doing = self._engine.watch.slow
        if doing is not None or not self._locked:
            give_sign(self._place, self._sign(doing))
            self._signed = True
        elif self._signed:
            take_sign_back(self._place)
            self._signed = False

    def _sign(self, doing: UnderWay | None, *, ended: bool = False) -> Sign:
        every = 0.0 if self._locked else IN_A_BUCKET
        return Sign(wall_clock(), os.getpid(), every, self._page, ended, doing)
