"""The copies of a tick's files from which its rows are read: plain text, and times in nanoseconds for Spark.

They are made when the files are taken, or by the process that reads them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rowtime.runtime.sources.attempts import Attempts
from rowtime.runtime.sources.csv_decoding import PlainCsv
from rowtime.runtime.sources.json_decoding import PlainJson
from rowtime.runtime.sources.nanoseconds import Nanoseconds
from rowtime.runtime.sources.plain_files import Copies


class TickCopies:
    """The copies of one source; ``copies``: how they are made, ``folder``: where, if another place is not given.

    ``late``: they are not made until someone asks for them, which may be another process.
    """

    def __init__(self, copies: Copies | None, folder: Path, *, late: bool) -> None:
        self.copies, self._folder, self.late = copies, folder, late
        self._attempts = Attempts()
        self._waiting: Mapping[int, str] = {}
        self._copied: dict[str, tuple[str, int]] = {}
        self._files = 0

    @property
    def waiting(self) -> bool:
        """True if copies are still to be made."""
        return bool(self._waiting)

    @property
    def complete(self) -> bool:
        """True if each file of the tick has a copy."""
        return len(self._copied) == self._files

    @property
    def count(self) -> int:
        """The number of rows of all copies."""
        return sum(rows for _, rows in self._copied.values())

    @property
    def places(self) -> frozenset[str]:
        """The paths of the copies."""
        return frozenset(place for place, _ in self._copied.values())

    def take(self, files: Mapping[int, str]) -> None:
        """Begin a tick with these files, by number."""
        self.clear()
        self._files, self._copied = len(files), {}
        if self.copies is not None and (not self.late or self._attempts.worth()):
            self._waiting = dict(files)
            if not self.late:
                self.make()

    def share(self, paths: Collection[str]) -> TickCopies:
        """Return the copies of some of the files."""
        share = TickCopies(self.copies, self._folder, late=self.late)
        share._files = len(paths)
        share._waiting = {number: path for number, path in self._waiting.items() if path in paths}
        share._copied = {path: copied for path, copied in self._copied.items() if path in paths}
        return share

    def make(self, folder: Path | None = None) -> bool:
        """Make copies that are waiting, several concurrently; return True if each file has one."""
        files, self._waiting = self._waiting, {}
        if self.copies is not None and files:
            with ThreadPoolExecutor(min(len(files), os.cpu_count() or 1)) as pool:
                targets = [(folder or self._folder) / f"{number}.parquet" for number in files]
                rows = pool.map(self.copies.decode, files.values(), targets)
                copied = zip(files.values(), targets, rows, strict=True)
                self._copied = {path: (str(target), count) for path, target, count in copied if count is not None}
        return self.complete

    def leave(self) -> None:
        """Make none for this tick: some files cannot be copied."""
        if self._waiting:
            self._attempts.failed()
            self._waiting = {}

    def place(self, path: str) -> str:
        """Return the path at which the rows of a file are read."""
        return self._copied[path][0] if path in self._copied else path

    def rows(self, path: str) -> int | None:
        """Return the number of rows of a file's copy."""
        return self._copied[path][1] if path in self._copied else None

    def clear(self) -> None:
        """Remove the copies of the tick; how many rows they had is known until the next one."""
        self._waiting = {}
        if self.copies is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def copies_of(
    kind: str, columns: Mapping[str, str], passed: Mapping[str, str], options: Mapping[str, str]
) -> Copies | None:
    """Return how files are copied; ``passed``: the options of Spark's reader, of all ``options``."""
    if kind == "parquet":
        return Nanoseconds.of(columns)
    if kind == "csv":
        return PlainCsv.of(columns, passed)
    return None if passed else PlainJson.of(columns, options)
