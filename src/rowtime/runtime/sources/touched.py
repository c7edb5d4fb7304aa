"""Touched files: those that hold what they held, under another time or at another place of the disk.

A copy of a directory gives new times to all of its files. Each is then compared with what was read, once: what was
found is in a file beside the list, so that the next start need not read them again. It only saves work, so a line
that is damaged, or of a tick that did not commit, is passed over. In a store nothing is kept of it.
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
    """What was found of touched files, in the folder ``notes`` of a source."""

    def __init__(self, notes: Place) -> None:
        self._path = notes / "touched.jsonl"
        self._facts: dict[int, Facts] = {}

    def load(self) -> None:
        """Read what was found."""
        lines = self._path.read_bytes().split(b"\n") if self._path.exists() else []
        for line in lines:
            text, _, known = line.rpartition(b" ")
            if text and known == _sum(text):
                number, *facts = json.loads(text)
                self._facts[number] = (facts[0], facts[1], facts[2])

    def facts(self, number: int) -> Facts | None:
        """The facts under which the file of a number was last found to be the same."""
        return self._facts.get(number)

    def add(self, number: int, facts: Facts) -> None:
        """Note that the file of a number is the same under these facts."""
        self._facts[number] = facts
        text = json.dumps([number, *facts]).encode()
        if not isinstance(self._path, Path):
            return  # an object would be written again for each of them
        with suppress(OSError), self._path.open("ab") as file:
            file.write(text + b" " + _sum(text) + b"\n")


def _sum(text: bytes) -> bytes:
    return b"%08x" % zlib.crc32(text)
