"""The book of a ledger source: its lines in the order in which they were given, in the checkpoint.

A tick's journal entry is removed some ticks later, but `verify` and `trace` read a query's input again. The book is a
sequence of files of `LINES` lines each. Only the last one grows, so that a store need not write everything again. A
checksum covers all lines; the journal has it, with their number. Later lines belong to a tick that did not commit, and
are overwritten.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from rowtime.core.stores import Place
from rowtime.state.files import append, begin, damaged, make_folder, write_over

LINES: Final = 1_000


class LedgerBook:
    """The lines of one stream, in the folder ``notes`` of its checkpoint; a line has no line feed."""

    def __init__(self, notes: Place) -> None:
        self._folder = notes
        self._known: tuple[int, list[bytes]] | None = None  # the number of the last file, and its content

    def add(self, count: int, checksum: int, lines: Sequence[bytes]) -> tuple[int, int]:
        """Write lines after the first ``count``, which have the ``checksum``; return their number and checksum.

        Raises ``Failure`` (R406) if the last file does not have the lines that should be there.
        """
        make_folder(self._folder)
        while lines:
            number, before = divmod(count, LINES)
            new, lines = lines[: LINES - before], lines[LINES - before :]
            self._extend(number, before, [line + b"\n" for line in new])
            count, checksum = count + len(new), _sum(new, checksum)
        return count, checksum

    def read(self, number_of_lines: int, checksum: int) -> Iterator[bytes]:
        """The first lines of the book. Raises ``Failure`` (R406) at the end if they do not have the checksum."""
        left, total = number_of_lines, 0
        for number in count():
            lines = self._lines(number)[:left]
            left, total = left - len(lines), _sum([line[:-1] for line in lines], total)
            yield from (line[:-1] for line in lines)
            if len(lines) < LINES:
                break
        if left or total != checksum:
            raise damaged(f"{self._folder}, the book of a ledger, is not as rowtime wrote it")

    def _extend(self, number: int, before: int, new: Sequence[bytes]) -> None:
        stored = self._known[1] if self._known is not None and self._known[0] == number else self._lines(number)
        if len(stored) < before:
            raise damaged(f"{self._path(number)} has {len(stored)} of the {before} lines that were read")
        path, lines = self._path(number), [*stored[:before], *new]
        more = bool(before) and len(stored) == before
        self._known = number, lines
        begin(path, lambda: self._written(path, b"".join(new if more else lines), more=more))

    def _written(self, path: Place, data: bytes, *, more: bool) -> None:
        try:
            (append if more else write_over)(path, data)
        except BaseException:
            self._known = None  # the content is unknown
            raise

    def _lines(self, number: int) -> list[bytes]:
        """Return the whole lines of a file."""
        path = self._path(number)
        content = path.read_bytes() if path.exists() else b""
        return [line + b"\n" for line in content.split(b"\n")[:-1]]

    def _path(self, number: int) -> Place:
        return self._folder / f"ledger-{number:06d}.jsonl"


def _sum(lines: Sequence[bytes], at: int) -> int:
    for line in lines:
        at = zlib.crc32(line, at)
    return at
