"""A stream log in a folder: files whose names describe their content.

    <log>/<writer>/.lock                    held by the process that writes
    <log>/<writer>/.insert                  an item that is being written
    <log>/<writer>/s-<first position>/      a shard: at most ``SHARD_FILES`` items' files (`log_items`)

A file with its final name is complete, and durable soon after. A reader at position p lists one shard that has items
before p, and those after it: the cost depends only on new items.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.client.file_names import escape, unescape
from rowtime.client.log_contract import OPEN_ALREADY, Item, Listing, damaged, lost, reading
from rowtime.client.log_items import Bound, ColumnBound, Entry, Rows, file_name, link_of, parse_entry
from rowtime.client.parquet_statistics import trusted
from rowtime.core.checksums import checksum
from rowtime.core.errors import refuse
from rowtime.core.shared_paths import sync

SHARD_FILES: Final = 512
LOCK: Final = ".lock"
UNDER_WAY: Final = ".insert"
PRIVATE: Final = 0o700
WRITER: Final = re.compile(r"(?:[a-z0-9_-]|%[0-9A-F]{2})+")

_AT_ONCE: Final = 16  # folders synced, or files read, at once
_A_TASK: Final = 64  # files: a thread for each costs more than reading it
_SHARD: Final = re.compile(r"s-(\d{20})")
_TRIES: Final = 5
_PAUSE: Final = 0.02  # seconds


class LogFolder:
    """A stream log for its readers (`log_contract.Log`)."""

    doubt = 0

    def __init__(self, log: Path) -> None:
        self._log = log

    def writers(self) -> list[str]:
        """Return the writers that have a directory, sorted."""
        try:
            return sorted(unescape(name) for name in _names(self._log) if WRITER.fullmatch(name))
        except FileNotFoundError:
            return []

    def entries(self, writer: str, after: int, most: int | None = None) -> Listing:
        """Return the entries listed in the shards from ``after`` on, and the one before."""
        present = shards(self._log / escape(writer))
        at = max(0, bisect_right(present, after) - 1)
        needed = present[at:]
        listed = [entry for shard in needed[:most] for entry in shard_entries(self._log, writer, shard)]
        reached = max([entry.end for entry in listed[-1:]] + present[-1:], default=0)
        if reached < after:
            raise lost(self._log, f"the writer {writer} is at position {reached}, the reader at {after}")
        earlier = bisect_left(listed, after, key=lambda entry: entry.first)
        entries, before = listed[earlier:], listed[:earlier]
        if not before and at and not (entries and entries[0].follows):
            before = shard_entries(self._log, writer, present[at - 1])
        return Listing(entries, before[-1] if before else None, needed[:most] == needed)

    def last(self, writer: str, kind: type[Entry] | None = None) -> Entry | None:
        """Return the last entry (of a kind), from the newest shards only."""
        for shard in reversed(shards(self._log / escape(writer))):
            entries = shard_entries(self._log, writer, shard)
            matching = [entry for entry in entries if kind is None or isinstance(entry, kind)]
            if matching:
                return matching[-1]
        return None

    def under_way(self, writer: str) -> bool:
        """Return True if a living writer has taken an arrival time and its rows are not visible yet."""
        directory = self._log / escape(writer)
        return (directory / UNDER_WAY).exists() and _held(directory / LOCK)

    def settle(self, entries: Iterable[Entry]) -> None:
        """Sync the folders of entries, many concurrently: each waits for the disk, not for the processor."""
        folders = {(self._log / entry.path).parent for entry in entries}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(sync, folders))

    def check(self, paths: Sequence[str]) -> None:
        """Compare files with the checksums in their names. Those of older versions only have to exist."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._check_some, [paths[n : n + _A_TASK] for n in range(0, len(paths), _A_TASK)]))

    def _check_some(self, paths: Sequence[str]) -> None:
        for path in paths:
            entry = parse_entry(path)
            expected = entry.sum if isinstance(entry, Rows | ColumnBound) else None
            try:
                actual = checksum(f"{self._log}/{path}") if expected is not None else (self._log / path).stat() and None
            except FileNotFoundError:
                raise damaged(self._log, path, "is gone") from None
            if actual != expected:
                raise damaged(self._log, path, "has changed since it was written: its checksum differs")

    def rows(self, paths: Sequence[str]) -> Sequence[pa.Table]:
        """Return the rows of files, compared with their checksums."""
        self.check(paths)
        return [pq.read_table(f"{self._log}/{path}", partitioning=None) for path in paths]

    def text(self, path: str) -> bytes:
        """Return the content of a file without rows."""
        return (self._log / path).read_bytes()

    def pen(self, writer: str) -> FolderPen:
        """Open a writer. Raises ``Refused`` (R204) if another process has it open."""
        return FolderPen(self._log, writer)


class FolderPen:
    """The directory of one writer, locked (`log_contract.Pen`)."""

    def __init__(self, log: Path, writer: str) -> None:
        self._log, self._writer, self._directory = log, writer, log / escape(writer)
        with reading(log):
            make_directory(self._directory)
            self._lock = _locked(self._directory / LOCK, writer)
            try:
                self._recover()
            except BaseException:
                self._lock.close()
                raise

    @property
    def next(self) -> int:
        """Return the position of the next item."""
        return self._next

    @property
    def link(self) -> str:
        """Return the link of the last item; empty if there is none."""
        return link_of(self._last)

    def _recover(self) -> None:
        """Find where the last writer of this name stopped, from the names of its files."""
        (self._directory / UNDER_WAY).unlink(missing_ok=True)
        opened = LogFolder(self._log)
        last, present = opened.last(self._writer), shards(self._directory)
        self._last = last
        timed = [opened.last(self._writer, kind) for kind in (Rows, Bound)]
        arrivals = [entry.arrival for entry in timed if isinstance(entry, Rows | Bound)]
        self._next = last.end if last else 0
        self.arrival = max((at for at in arrivals if at is not None), default=None)
        self._shard = present[-1] if present else None
        self._in_shard = len(shard_entries(self._log, self._writer, present[-1])) if present else 0

    def put(self, make: Callable[[], Item]) -> None:
        """Write a file that gets its final name when it is complete."""
        staged = self._directory / UNDER_WAY
        if self._last is not None and not (self._log / self._last.path).exists():
            raise lost(
                self._log, f"the last item of the writer {self._writer}, at position {self._last.first}, is gone"
            )
        shard = self._room()
        try:
            with staged.open("wb") as file:
                # Only now, with the file visible: see the law of ``stream_log.survey``.
                entry, content = make()
                if isinstance(content, pa.Table):
                    pq.write_table(content, file, store_schema=False, write_statistics=trusted(content.schema, content))
                else:
                    file.write(content)
                file.flush()
                if file.tell():
                    os.fsync(file.fileno())
            if isinstance(entry, Rows | ColumnBound):
                entry = replace(entry, sum=checksum(staged))
            entry = replace(entry, follows=link_of(self._last))
            name = file_name(entry)
            staged.rename(shard / name)
            # From here on it is visible to readers, durable or not.
            self._last = replace(entry, path=f"{self._directory.name}/{shard.name}/{name}")
            self._next = entry.end
            self._in_shard += 1
            sync(shard)
        finally:
            staged.unlink(missing_ok=True)

    def settle(self) -> None:
        """Do nothing: a rename that failed was not executed."""

    def fence(self) -> None:
        """Do nothing: the lock excludes others."""

    def close(self) -> None:
        """Unlock the directory."""
        self._lock.close()

    def _room(self) -> Path:
        """Return the shard for the next file: a new one if the last one is full."""
        if self._shard is None or self._in_shard >= SHARD_FILES:
            make_directory(self._directory / shard_name(self._next))
            self._shard, self._in_shard = self._next, 0
        return self._directory / shard_name(self._shard)


def shard_name(first: int) -> str:
    """Return the name of the shard whose items start at a position."""
    return f"s-{first:020}"


def shards(directory: Path) -> list[int]:
    """Return the first positions of a writer's shards, in order."""
    return sorted(int(match[1]) for name in _names(directory) if (match := _SHARD.fullmatch(name)))


def shard_entries(log: Path, writer: str, shard: int) -> list[Entry]:
    """Return the entries of one shard, in order."""
    relative = f"{escape(writer)}/{shard_name(shard)}"
    entries = (parse_entry(f"{relative}/{name}") for name in _names(log / relative))
    return sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.first)


def make_directory(directory: Path) -> None:
    """Create a directory and its missing parents, durably, private to their owner."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(mode=PRIVATE, exist_ok=True)
    sync(directory.parent)


def _names(directory: Path) -> list[str]:
    return os.listdir(directory)  # noqa: PTH208 - a Path for each of 512 names costs more than the listing


def _held(lock: Path) -> bool:
    """Return True if somebody holds the lock; files of a crashed writer do not hold the clock."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _locked(path: Path, name: str) -> IO[str]:
    """Return the open lock file; a reader may hold it for a moment (``stream_log.survey``)."""
    file = path.open("a")
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        else:
            return file
    file.close()
    raise refuse(
        OPEN_ALREADY,
        f"the writer {name} is already open, in this process or another",
        'Give this one a name of its own, for example writer="second".',
    )
