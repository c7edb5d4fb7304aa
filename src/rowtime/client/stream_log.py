"""The embedded stream log on disk: immutable files whose names say what is in them.

    <log>/<writer>/.lock                    held by the process that writes
    <log>/<writer>/.insert                  an insert that is under way
    <log>/<writer>/s-<first position>/      a shard: at most ``SHARD_FILES`` items' files
        r-<first>-<count>-<least>-<greatest>-<order>-<arrival>-<checksum>.parquet      rows
        b-<position>-<time>                 a bound, empty file
        c-<position>-<checksum>.json        a bound of a column (`column_bounds`)
        l-<position>                        the writer leaves, empty file

Every row, bound and leave of a writer has a position, counted from 0 without gaps.
Positions in names have 20 digits; times are µs UTC, ``END`` for infinity. Rows have the
columns ``__p``, ``__a``, ``__t`` (position, arrival, rowtime given), then the declared
ones. A file that has its name is complete and durable soon after; it never changes. Older
versions wrote names without checksums.

A writer exists from its first item. A reader at position p lists one shard that holds
items before p, and those after it: the cost is that of what is new.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from rowtime.client.file_names import escape, unescape
from rowtime.core.checksums import checksum
from rowtime.core.errors import Failure, Problem
from rowtime.core.shared_paths import sync

SHARD_FILES: Final = 512
LOCK: Final = ".lock"
UNDER_WAY: Final = ".insert"

_NAME: Final = re.compile(
    r"r-(?P<rows>\d{20})-(?P<count>\d+)-(?P<least>-?\d+)-(?P<greatest>-?\d+)"
    r"-(?P<order>[oun])-(?P<arrival>-?\d+)(?:-(?P<sum>[0-9a-f]{8}))?\.parquet"
    r"|b-(?P<bound>\d{20})-(?P<at>-?\d+)(?:-(?P<said>-?\d+))?"
    r"|l-(?P<leave>\d{20})"
    r"|c-(?P<column>\d{20})(?:-(?P<column_sum>[0-9a-f]{8}))?\.json"
)
_AT_ONCE: Final = 16  # folders that are synced, files that are read
_A_TASK: Final = 64  # files: a thread for each costs more than to read it
_WRITER: Final = re.compile(r"(?:[a-z0-9_-]|%[0-9A-F]{2})+")
_SHARD: Final = re.compile(r"s-(\d{20})")


class Order(StrEnum):
    """What a file of rows says about the rowtimes that its writer gave."""

    ORDERED = "o"  # every row has one, and they do not decrease
    UNORDERED = "u"  # some go back, or some are missing
    NONE = "n"  # no row has one


@dataclass(frozen=True)
class Rows:
    """A file of rows: positions [first, first + count); rowtimes given in [least, greatest], µs.

    ``least`` and ``greatest`` are 0 where no row has one; ``arrival`` is that of the last row; ``sum`` the checksum
    of the file, ``None`` where an older version wrote it.
    """

    first: int
    count: int
    least: int
    greatest: int
    order: Order
    arrival: int
    path: str = ""  # relative to the log
    sum: int | None = None

    @property
    def end(self) -> int:
        """The position after the last row."""
        return self.first + self.count


@dataclass(frozen=True)
class Bound:
    """A bound: no later row of this writer is earlier than ``at``; when it arrived, if that is known (µs UTC)."""

    first: int
    at: int
    path: str = ""
    arrival: int | None = None

    @property
    def end(self) -> int:
        """The position after the bound."""
        return self.first + 1


@dataclass(frozen=True)
class Leave:
    """The writer leaves: it no longer holds the stream, and says nothing about others."""

    first: int
    path: str = ""

    @property
    def end(self) -> int:
        """The position after the leave."""
        return self.first + 1


@dataclass(frozen=True)
class ColumnBound:
    """A bound of a column of declared order, behind what the writer has sent; the file says which."""

    first: int
    path: str = ""
    sum: int | None = None

    @property
    def end(self) -> int:
        """The position after the bound."""
        return self.first + 1


Entry = Rows | Bound | Leave | ColumnBound


@dataclass(frozen=True)
class Seen:
    """What a reader sees of one writer: entries in order, and whether they reach its present end.

    Law: if ``to_end``, every later row and bound of the writer arrives at or after the moment at
    which the survey began. (Whoever writes one shows itself before it takes its arrival time, and until
    its file has its name; one that is under way means that the end is not seen.)
    """

    entries: list[Entry]
    to_end: bool


def file_name(entry: Entry) -> str:
    """The name of an entry's file: everything about it but the rows themselves."""
    match entry:
        case Rows(first, count, least, greatest, order, arrival, _, known):
            return f"r-{first:020}-{count}-{least}-{greatest}-{order}-{arrival}{_sum_in_name(known)}.parquet"
        case Bound(first, at, _, arrival):
            return f"b-{first:020}-{at}" + ("" if arrival is None else f"-{arrival}")
        case Leave(first):
            return f"l-{first:020}"
        case ColumnBound(first, _, known):
            return f"c-{first:020}{_sum_in_name(known)}.json"


def _sum_in_name(known: int | None) -> str:
    return "" if known is None else f"-{known:08x}"


def _sum_of_name(text: str | None) -> int | None:
    return None if text is None else int(text, 16)


def parse_entry(path: str) -> Entry | None:
    """The entry of a file, by its path in the log; ``None`` for a file that is none."""
    found = _NAME.fullmatch(path.rpartition("/")[2])
    if found is None:
        return None
    if found["rows"]:
        first, count, least, greatest, arrival = map(int, found.group("rows", "count", "least", "greatest", "arrival"))
        return Rows(first, count, least, greatest, Order(found["order"]), arrival, path, _sum_of_name(found["sum"]))
    if found["bound"]:
        said = found["said"]
        return Bound(int(found["bound"]), int(found["at"]), path, None if said is None else int(said))
    if found["column"]:
        return ColumnBound(int(found["column"]), path, _sum_of_name(found["column_sum"]))
    return Leave(int(found["leave"]), path)


def shard_name(first: int) -> str:
    """The name of the shard whose items start at a position."""
    return f"s-{first:020}"


def wall_clock() -> int:
    """Now, in µs since 1970 UTC."""
    return time.time_ns() // 1000


def scan(log: Path, after: Mapping[str, int], exclude: Collection[str] = ()) -> dict[str, list[Entry]]:
    """Per writer the entries at positions >= ``after`` (0 for a writer not named), in order.

    A writer without new entries is there with none. Raises ``Failure`` (R501) where the
    log cannot be read, or where entries that the reader needs are gone.
    """
    return {writer: seen.entries for writer, seen in survey(log, after, exclude).items()}


def survey(
    log: Path, after: Mapping[str, int], exclude: Collection[str] = (), most: int | None = None
) -> dict[str, Seen]:
    """What ``scan`` finds, from at most ``most`` shards of each writer, and if that is all.

    A reader that takes a backlog in small steps need not list all of it at every step.
    """
    with reading(log):
        found = {writer: _look(log, writer, after.get(writer, 0), most) for writer in writers(log, exclude)}
        gone = [name for name, at in after.items() if at > 0 and name not in found and name not in exclude]
        if gone:
            raise _lost(log, f"the writers {', '.join(gone)} are gone")
    return {writer: seen for writer, seen in found.items() if seen.entries or after.get(writer, 0) > 0}


def settle(log: Path, entries: Iterable[Entry]) -> None:
    """Make what was seen durable, before a reader notes that it has it.

    A writer names a file and syncs its folder then; a machine that dies in between would lose the file, and the
    reader would hold a position that the writer gives to something else. Only the last entry of a writer may be in
    between. Many are synced at once: each waits for the disk, not for the processor.
    """
    folders = {(log / entry.path).parent for entry in entries}
    with reading(log), ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(sync, folders))


def check(log: Path, paths: Sequence[str]) -> None:
    """Compare files of a log with the checksums in their names. Those of older versions only have to be there.

    Raises ``Failure`` (R524) for one that differs or is gone.
    """

    def check_one(path: str) -> None:
        entry = parse_entry(path)
        known = entry.sum if isinstance(entry, Rows | ColumnBound) else None
        try:
            found = checksum(f"{log}/{path}") if known is not None else (log / path).stat() and None
        except FileNotFoundError:
            raise _damaged(log, path, "is gone") from None
        if found != known:
            raise _damaged(log, path, "is not as its writer wrote it: its checksum differs")

    def check_some(some: Sequence[str]) -> None:
        for path in some:
            check_one(path)

    with reading(log), ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(check_some, [paths[n : n + _A_TASK] for n in range(0, len(paths), _A_TASK)]))


def last(log: Path, exclude: Collection[str] = ()) -> dict[str, Entry]:
    """The last entry of each writer, in O(1) for each: where a reader ``FROM NOW`` starts."""
    with reading(log):
        found = {writer: last_entry(log, writer) for writer in writers(log, exclude)}
    return {writer: entry for writer, entry in found.items() if entry is not None}


def writers(log: Path, exclude: Collection[str] = ()) -> list[str]:
    """The names of the writers that have a directory, sorted."""
    try:
        components = [name for name in _names(log) if _WRITER.fullmatch(name)]
    except FileNotFoundError:
        return []
    return sorted({unescape(component) for component in components} - set(exclude))


def last_entry(log: Path, writer: str, kind: type[Entry] | None = None) -> Entry | None:
    """The last entry of a writer (of a kind), from its newest shards only."""
    for shard in reversed(shards(log / escape(writer))):
        found = shard_entries(log, writer, shard)
        matching = [entry for entry in found if kind is None or isinstance(entry, kind)]
        if matching:
            return matching[-1]
    return None


def shards(directory: Path) -> list[int]:
    """The first positions of a writer's shards, in order."""
    return sorted(int(found[1]) for name in _names(directory) if (found := _SHARD.fullmatch(name)))


def shard_entries(log: Path, writer: str, shard: int) -> list[Entry]:
    """The entries of one shard, in order."""
    relative = f"{escape(writer)}/{shard_name(shard)}"
    found = (parse_entry(f"{relative}/{name}") for name in _names(log / relative))
    return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.first)


def _names(directory: Path) -> list[str]:
    return os.listdir(directory)  # noqa: PTH208 - a Path for each of 512 names costs more than the listing


def _look(log: Path, writer: str, after: int, most: int | None) -> Seen:
    # Asked before the listing: an insert that ends in between is in the listing then.
    under_way = _insert_under_way(log / escape(writer))
    found, all_of_them = _entries(log, writer, after, most)
    if _run(found, after) < len(found):
        found = _listed_again(log, writer, after, most, found)
    return Seen(found, all_of_them and not under_way)


def _entries(log: Path, writer: str, after: int, most: int | None) -> tuple[list[Entry], bool]:
    """The entries listed in the shards from ``after`` on, and if those were all shards."""
    present = shards(log / escape(writer))
    needed = present[max(0, bisect_right(present, after) - 1) :]
    listed = [entry for shard in needed[:most] for entry in shard_entries(log, writer, shard)]
    reached = max([entry.end for entry in listed[-1:]] + present[-1:], default=0)
    if reached < after:
        raise _lost(log, f"the writer {writer} is at position {reached}, the reader at {after}")
    return [entry for entry in listed if entry.first >= after], needed[:most] == needed


def _run(entries: Sequence[Entry], start: int) -> int:
    """How many of the entries follow on ``start`` and on each other."""
    for number, entry in enumerate(entries):
        if entry.first != start:
            return number
        start = entry.end
    return len(entries)


def _listed_again(log: Path, writer: str, after: int, most: int | None, before: Sequence[Entry]) -> list[Entry]:
    """The entries up to the first gap, once a second listing has told what the gap is.

    A listing may miss a file that is created while it runs and yet show a later one. A
    second listing misses nothing that was there when the first one ended, so a gap below
    an entry of the first is a loss. A new reader starts at what is retained.
    """
    found, _ = _entries(log, writer, after, most)
    start = after if after > 0 or not found else found[0].first
    whole = _run(found, start)
    if whole < len(found) and found[whole].first <= before[-1].first:
        raise _lost(log, f"items of the writer {writer} before position {found[whole].first} are missing")
    return found[:whole]


def _insert_under_way(directory: Path) -> bool:
    """True if a living writer is between taking an arrival time and showing its rows."""
    return (directory / UNDER_WAY).exists() and _held(directory / LOCK)


def _held(lock: Path) -> bool:
    """True unless nobody holds the lock; a crashed writer's leftovers stop nobody's clock."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


@contextmanager
def reading(log: Path) -> Iterator[None]:
    """Turn the operating system's errors into ``Failure`` (R501), naming the log."""
    try:
        yield
    except OSError as error:
        raise Failure(Problem("R501", f"the stream log {log} cannot be used: {error}")) from error


def _damaged(log: Path, path: str, what: str) -> Failure:
    hint = "Restore the file from a copy. Without it the reader cannot go on."
    return Failure(Problem("R524", f"{log / path} {what}", hint=hint))


def _lost(log: Path, what: str) -> Failure:
    return Failure(
        Problem(
            "R501",
            f"the stream log {log} is not the one that was read before: {what}",
            hint="Restore the log, or start the reader with a new checkpoint.",
        )
    )
