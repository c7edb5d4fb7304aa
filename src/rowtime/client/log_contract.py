"""What a stream log has to do, wherever it is: in a folder (`log_folder`) or in a bucket (`log_bucket`).

A log has a place for each writer, in which items stand by position. An item is there whole or not at all, and never
changes. Of two that are put at one position one is there, and who has put the other one is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import pyarrow as pa

from rowtime.client.log_items import Entry
from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.stores import Place

Made = tuple[Entry, "pa.Table | bytes"]
"""An entry, and what its file or object holds: rows, or a text that is empty but for bounds of columns."""

OPEN_ALREADY: Final = "R204"
OVERTAKEN: Final = "R214"


class Log(Protocol):
    """A stream log as its readers see it; names of writers are those that people gave."""

    doubt: int
    """How much later than it has arrived an item may be seen (µs), so an end that is read lies as far before now."""

    def writers(self) -> list[str]:
        """Those that have a place, sorted."""
        ...

    def entries(self, writer: str, after: int, most: int | None = None) -> tuple[list[Entry], bool]:
        """The entries at positions >= ``after``, at most about ``most`` shards of them, and whether those are all.

        Raises ``Failure`` (R501) if the log ends before ``after``.
        """
        ...

    def last(self, writer: str, kind: type[Entry] | None = None) -> Entry | None:
        """The last entry (of a kind)."""
        ...

    def under_way(self, writer: str) -> bool:
        """True if a living writer has taken an arrival time for what cannot be seen yet."""
        ...

    def settle(self, entries: Iterable[Entry]) -> None:
        """Make what was seen durable."""
        ...

    def check(self, paths: Sequence[str]) -> None:
        """Compare what files hold with their checksums. Raises ``Failure`` (R524) for one that differs or is gone."""
        ...

    def rows(self, paths: Sequence[str]) -> Sequence[pa.Table]:
        """The rows of items, in the order of their paths. Raises what `check` does."""
        ...

    def text(self, path: str) -> bytes:
        """What an item that is a text holds."""
        ...

    def pen(self, writer: str) -> Pen:
        """Open a writer. Raises ``Refused`` (R204) if it can be told that a process has it open."""
        ...


class Pen(Protocol):
    """The place of one writer, to put items there; ``arrival`` is that of its last item when it was opened."""

    arrival: int | None

    @property
    def next(self) -> int:
        """The position of the next item."""
        ...

    def put(self, make: Callable[[], Made]) -> None:
        """Put an item at ``next``, durably. ``make`` is called once readers see that an item is under way.

        Raises ``Refused`` (R214) if another process has put one there.
        """
        ...

    def settle(self) -> None:
        """Find out whether an item is there whose ``put`` has failed; if it is not, it never will be."""
        ...

    def fence(self) -> None:
        """See to it that whoever opened the writer before puts nothing more."""
        ...

    def close(self) -> None:
        """Release the writer."""
        ...


@contextmanager
def reading(log: Place) -> Iterator[None]:
    """Turn the operating system's errors into ``Failure`` (R501), naming the log."""
    try:
        yield
    except OSError as error:
        raise Failure(Problem("R501", f"the stream log {log} cannot be used: {error}")) from error


def lost(log: Place, what: str) -> Failure:
    """R501: items that were there are gone."""
    return Failure(
        Problem(
            "R501",
            f"the stream log {log} is not the one that was read before: {what}",
            hint="Restore the log, or start the reader with a new checkpoint.",
        )
    )


def damaged(log: Place, path: str, what: str) -> Failure:
    """R524: an item is gone or changed."""
    hint = "Restore the file from a copy. Without it the reader cannot go on."
    return Failure(Problem("R524", f"{log / path} {what}", hint=hint))


def overtaken(log: Place, writer: str) -> Refused:
    """R214: two processes write under one name."""
    return refuse(
        OVERTAKEN,
        f"another process has written to {log} as the writer {writer} since this one opened it",
        'Nothing of this call was written. Give each process a name of its own, for example writer="second".',
    )
