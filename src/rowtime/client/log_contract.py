"""The contract of a stream log, wherever it is: in a folder (`log_folder`) or in a bucket (`log_bucket`).

A log has a place for each writer, with items by position. An item is there completely or not at all, and never changes.
If two are added at one position, one succeeds and the other writer gets an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from rowtime.client.log_items import Entry
from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.machine import limit_of
from rowtime.core.stores import Place

Item = tuple[Entry, "pa.Table | bytes"]
"""An entry, and the content of its file or object: rows, or a text that is empty except for bounds of columns."""

OPEN_ALREADY: Final = "R204"
OVERTAKEN: Final = "R214"


class Listing(NamedTuple):
    """Entries of a writer from a position on; the one ``before`` them, if seen; whether that is the ``whole``."""

    entries: list[Entry]
    before: Entry | None
    whole: bool


class Log(Protocol):
    """A stream log for its readers; names of writers are those that people gave."""

    doubt: int
    """How much later than its arrival an item may become visible (µs); a read end is that much in the past."""

    def writers(self) -> list[str]:
        """Return the writers that have a place, sorted."""
        ...

    def entries(self, writer: str, after: int, most: int | None = None) -> Listing:
        """Return the entries at positions >= ``after``, from about ``most`` shards.

        The entry before them is needed if none follows it, or if the next one does not name its link.

        Raises ``Failure`` (R501) if the log ends before ``after``.
        """
        ...

    def last(self, writer: str, kind: type[Entry] | None = None) -> Entry | None:
        """Return the last entry (of a kind)."""
        ...

    def under_way(self, writer: str) -> bool:
        """Return True if a living writer has taken an arrival time for an item that is not visible yet."""
        ...

    def settle(self, entries: Iterable[Entry]) -> None:
        """Make visible entries durable."""
        ...

    def check(self, paths: Sequence[str]) -> None:
        """Compare files with their checksums. Raises ``Failure`` (R524) for one that differs or is missing."""
        ...

    def rows(self, paths: Sequence[str]) -> Sequence[pa.Table]:
        """Return the rows of items, in the order of their paths. Raises what `check` does."""
        ...

    def text(self, path: str) -> bytes:
        """Return the content of an item that is a text."""
        ...

    def pen(self, writer: str) -> Pen:
        """Open a writer. Raises ``Refused`` (R204) if another process is known to have it open."""
        ...


class Pen(Protocol):
    """The place of one writer, for adding items; ``arrival`` is that of its last item when it was opened."""

    arrival: int | None

    @property
    def next(self) -> int:
        """Return the position of the next item."""
        ...

    @property
    def link(self) -> str:
        """Return the link of the last item; empty if there is none."""
        ...

    def put(self, make: Callable[[], Item]) -> None:
        """Add an item at ``next``, durably. ``make`` is called once readers see that an item is coming.

        Raises ``Refused`` (R214) if another process has added one there.
        """
        ...

    def settle(self) -> None:
        """Find out whether an item exists whose ``put`` has failed; if not, it never will."""
        ...

    def fence(self) -> None:
        """Make sure that a process which opened the writer before adds nothing more."""
        ...

    def close(self) -> None:
        """Release the writer."""
        ...


@contextmanager
def reading(log: Place) -> Iterator[None]:
    """Turn the operating system's errors into ``Failure`` (R501; R422 for a limit of the machine), naming the log."""
    try:
        yield
    except OSError as error:
        what = f"the stream log {log} cannot be used"
        problem = limit_of(error, what)
        raise Failure(problem or Problem("R501", f"{what}: {error}")) from error


class LostItems(Failure):
    """Items of a log that existed are missing, or others are in their places: no other try finds them."""


def lost(log: Place, what: str) -> Failure:
    """Return R501: items that existed are missing."""
    return LostItems(
        Problem(
            "R501",
            f"the stream log {log} is not the one that was read before: {what}",
            hint="Restore the log, or start the reader with a new checkpoint.",
        )
    )


def damaged(log: Place, path: str, what: str) -> Failure:
    """Return R524: an item is missing or changed."""
    hint = "Restore the file from a copy. Without it the reader cannot continue."
    return Failure(Problem("R524", f"{log / path} {what}", hint=hint))


def overtaken(log: Place, writer: str) -> Refused:
    """Return R214: two processes write under one name."""
    return refuse(
        OVERTAKEN,
        f"another process has written to {log} as the writer {writer} since this one opened it",
        'Nothing of this call was written. Give each process a name of its own, for example writer="second".',
    )
