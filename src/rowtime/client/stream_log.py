"""The embedded stream log, as its readers see it: of each writer the items from a position on.

A log is a folder (`log_folder`) or is in a bucket (`log_bucket`); `log_items` says what is in it. A writer exists
from its first item.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from rowtime.client.log_bucket import LogBucket
from rowtime.client.log_contract import Log, lost, reading
from rowtime.client.log_folder import LogFolder
from rowtime.client.log_items import Entry
from rowtime.core.store_settings import StoreSettings
from rowtime.core.stores import Place

_buckets: dict[tuple[str, StoreSettings], LogBucket] = {}
_MOST = 64  # logs in buckets whose items are remembered


def opened(log: Place) -> Log:
    """A log by its place; one in a bucket remembers in this process what it has seen."""
    if isinstance(log, Path):
        return LogFolder(log)
    if len(_buckets) > _MOST:
        _buckets.clear()
    return _buckets.setdefault((str(log), log.bucket.settings.here), LogBucket(log))


@dataclass(frozen=True)
class Seen:
    """What a reader sees of one writer: entries in order, and whether they reach its present end.

    Law: if ``to_end``, every later row and bound of the writer arrives at or after the moment at
    which the survey began. (Whoever writes one shows itself before it takes its arrival time, and until
    its file has its name; one that is under way means that the end is not seen. In a bucket nothing shows itself
    before it is there, so an item may arrive up to ``Log.doubt`` earlier, as a rule.)
    """

    entries: list[Entry]
    to_end: bool


def scan(log: Place, after: Mapping[str, int], exclude: Collection[str] = ()) -> dict[str, list[Entry]]:
    """Per writer the entries at positions >= ``after`` (0 for a writer not named), in order.

    A writer without new entries is there with none. Raises ``Failure`` (R501) where the
    log cannot be read, or where entries that the reader needs are gone.
    """
    return {writer: seen.entries for writer, seen in survey(log, after, exclude).items()}


def survey(
    log: Place, after: Mapping[str, int], exclude: Collection[str] = (), most: int | None = None
) -> dict[str, Seen]:
    """What ``scan`` finds, from at most ``most`` shards of each writer, and if that is all.

    A reader that takes a backlog in small steps need not list all of it at every step.
    """
    with reading(log):
        found = {writer: _look(log, writer, after.get(writer, 0), most) for writer in writers(log, exclude)}
        gone = [name for name, at in after.items() if at > 0 and name not in found and name not in exclude]
        if gone:
            raise lost(log, f"the writers {', '.join(gone)} are gone")
    return {writer: seen for writer, seen in found.items() if seen.entries or after.get(writer, 0) > 0}


def settle(log: Place, entries: Iterable[Entry]) -> None:
    """Make what was seen durable, before a reader notes that it has it.

    A writer names a file and syncs its folder then; a machine that dies in between would lose the file, and the
    reader would hold a position that the writer gives to something else. Only the last entry of a writer may be in
    between.
    """
    with reading(log):
        opened(log).settle(entries)


def check(log: Place, paths: Sequence[str]) -> None:
    """Compare items of a log with their checksums.

    Raises ``Failure`` (R524) for one that differs or is gone.
    """
    with reading(log):
        opened(log).check(paths)


def rows(log: Place, paths: Sequence[str]) -> Sequence[pa.Table]:
    """The rows of items of a log. Raises what `check` does."""
    with reading(log):
        return opened(log).rows(paths)


def last(log: Place, exclude: Collection[str] = ()) -> dict[str, Entry]:
    """The last entry of each writer, in O(1) for each: where a reader ``FROM NOW`` starts."""
    with reading(log):
        found = {writer: last_entry(log, writer) for writer in writers(log, exclude)}
    return {writer: entry for writer, entry in found.items() if entry is not None}


def writers(log: Place, exclude: Collection[str] = ()) -> list[str]:
    """The names of the writers that have a place in the log, sorted."""
    return sorted({*opened(log).writers()} - set(exclude))


def last_entry(log: Place, writer: str, kind: type[Entry] | None = None) -> Entry | None:
    """The last entry of a writer (of a kind)."""
    return opened(log).last(writer, kind)


def entries_of(log: Place, writer: str) -> list[Entry]:
    """All entries of one writer, in order; none if it has no place in the log."""
    with reading(log):
        return _look(log, writer, 0, None).entries if writer in writers(log) else []


def _look(log: Place, writer: str, after: int, most: int | None) -> Seen:
    there = opened(log)
    # Asked before the listing: an insert that ends in between is in the listing then.
    under_way = there.under_way(writer)
    found, all_of_them = there.entries(writer, after, most)
    if _run(found, after) < len(found):
        found = _listed_again(log, writer, after, most, found)
    return Seen(found, all_of_them and not under_way)


def _run(entries: Sequence[Entry], start: int) -> int:
    """How many of the entries follow on ``start`` and on each other."""
    for number, entry in enumerate(entries):
        if entry.first != start:
            return number
        start = entry.end
    return len(entries)


def _listed_again(log: Place, writer: str, after: int, most: int | None, before: Sequence[Entry]) -> list[Entry]:
    """The entries up to the first gap, once a second listing has told what the gap is.

    A listing may miss a file that is created while it runs and yet show a later one. A
    second listing misses nothing that was there when the first one ended, so a gap below
    an entry of the first is a loss. A new reader starts at what is retained.
    """
    found, _ = opened(log).entries(writer, after, most)
    start = after if after > 0 or not found else found[0].first
    whole = _run(found, start)
    if whole < len(found) and found[whole].first <= before[-1].first:
        raise lost(log, f"items of the writer {writer} before position {found[whole].first} are missing")
    return found[:whole]
