"""Leases: objects that a process renews as long as it holds them, because a bucket has no locks.

A process that has not renewed one for `LASTS` counts as dead, and another process may take the lease. The clock of the
store decides, because those of machines differ. Writes are conditional, so if two processes take a lease, only one
succeeds.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import ObjectPlace

LASTS: Final = 60.0  # seconds
_RENEWED: Final = 10.0  # seconds between two renewals
_MEMBERS: Final = ("holder", "renewed")


class Taken(Exception):
    """Another process holds the lease."""


class Lease:
    """An object with a content, and the mark of its holder: this process. ``taken``: another process has it."""

    def __init__(self, place: ObjectPlace, content: Mapping[str, Any]) -> None:
        self.place, self.taken = place, False
        self._content, self._holder, self._number = dict(content), uuid.uuid4().hex, 0
        self._written = b""
        self._done = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name=f"lease of {place.name}", daemon=True)

    @classmethod
    def new(cls, place: ObjectPlace, content: Mapping[str, Any]) -> Lease:
        """Create the object, and hold it."""
        lease = cls(place, content)
        lease._written = lease._text()
        place.create(lease._written)
        lease._renewer.start()
        return lease

    @classmethod
    def of(cls, place: ObjectPlace, *, dead: bool = False) -> Lease | None:
        """Take over a lease that nobody holds, or whose holder is known to be ``dead``; ``None`` if it is held.

        Nobody holds a lease whose object is missing.
        """
        with suppress(FileNotFoundError, Taken):
            if dead or _age(place) > LASTS:
                before = place.read_bytes()
                lease = cls(place, {name: value for name, value in json.loads(before).items() if name not in _MEMBERS})
                lease._write(before)
                lease._renewer.start()
                return lease
        return None

    def close(self) -> None:
        """Stop renewing it."""
        self._done.set()
        if self._renewer.is_alive():
            self._renewer.join()

    def _renew(self) -> None:
        while not self._done.wait(_RENEWED):
            try:
                self._write(self._written)
            except (Taken, FileNotFoundError, Refused):
                self.taken = True
                return
            except Failure:  # the store does not answer
                continue

    def _write(self, before: bytes) -> None:
        """Write the object again, if it is unchanged."""
        self._number += 1
        after = self._text()

        def same() -> None:
            if self.place.read_bytes() not in (before, after):
                raise Taken

        self.place.replace(after, judge=same)
        self._written = after

    def _text(self) -> bytes:
        return json.dumps({**self._content, "holder": self._holder, "renewed": self._number}).encode()


def _age(place: ObjectPlace) -> float:
    """Return how many seconds ago an object was written, by the clock of its store."""
    now = place.parent / ".now"
    now.upload(uuid.uuid4().bytes)
    return (now.size()[1] - place.size()[1]).total_seconds()
