"""Touched files: files with unchanged content, but another time or another place on the disk.

A copy of a directory gives new times to all of its files. Each is then compared with what was read, once: the result is
in a file beside the list, so that the next start need not read them again. It only saves work, so a line that is
damaged, or of a tick that did not commit, is ignored. On a store nothing is kept.
"""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from pathlib import Path

from rowtime.core.stores import Place

Facts = tuple[int, int, int]
"""Size, time of the last change (ns), and place in the file system."""


class Touched:
    """The results for touched files, in the folder ``notes`` of a source."""

    def __init__(self, notes: Place) -> None:
        self._path = notes / "touched.jsonl"
        self._facts: dict[int, Facts] = {}

    def load(self) -> None:
        """Read the results."""
        lines = self._path.read_bytes().split(b"\n") if self._path.exists() else []
        for line in lines:
            text, _, checksum = line.rpartition(b" ")
            if text and checksum == _sum(text):
                number, *facts = json.loads(text)
                self._facts[number] = (facts[0], facts[1], facts[2])

    def facts(self, number: int) -> Facts | None:
        """Return the facts under which the file of a number was last found unchanged."""
        return self._facts.get(number)

    def add(self, number: int, facts: Facts) -> None:
        """Record that the file of a number is unchanged under these facts."""
        self._facts[number] = facts
        text = json.dumps([number, *facts]).encode()
        if not isinstance(self._path, Path):
            return  # the whole object would be written again for each of them
        with suppress(OSError), self._path.open("ab") as file:
            file.write(text + b" " + _sum(text) + b"\n")


def _sum(text: bytes) -> bytes:
    return b"%08x" % zlib.crc32(text)
