"""The embedded stream log for its readers: the items of each writer from a position on.

A log is a folder (`log_folder`) or is in a bucket (`log_bucket`); `log_items` describes its content. A writer exists
from its first item.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from rowtime.client.log_bucket import LogBucket
from rowtime.client.log_contract import Listing, Log, lost, reading
from rowtime.client.log_folder import LogFolder
from rowtime.client.log_items import Entry, link_of
from rowtime.core.errors import Failure
from rowtime.core.store_settings import StoreSettings
from rowtime.core.stores import Place

_buckets: dict[tuple[str, StoreSettings], LogBucket] = {}
_MOST = 64  # logs in buckets whose items are cached


def opened(log: Place) -> Log:
    """Return the log at a place; one in a bucket caches in this process what it has seen."""
    if isinstance(log, Path):
        return LogFolder(log)
    if len(_buckets) > _MOST:
        _buckets.clear()
    return _buckets.setdefault((str(log), log.bucket.settings.here), LogBucket(log))


@dataclass(frozen=True)
class Seen:
    """What a reader sees of one writer: entries in order, and whether they reach its present end.

    Law: if ``to_end``, every later row and bound of the writer arrives at or after the time at which the survey began.
    (A writer shows that an item is coming before it takes the arrival time, and until the file has its name; while an
    item is coming, the end is not seen. In a bucket nothing is visible before it exists, so an item may have arrived up
    to ``Log.doubt`` earlier, as a rule.)
    """

    entries: list[Entry]
    to_end: bool


def scan(log: Place, after: Mapping[str, int], exclude: Collection[str] = ()) -> dict[str, list[Entry]]:
    """Return, per writer, the entries at positions >= ``after`` (0 for a writer not named), in order.

    A writer without new entries has an empty list. Raises ``Failure`` (R501) if the log cannot be read, or if required
    entries are missing.
    """
    return {writer: seen.entries for writer, seen in survey(log, after, exclude).items()}


def survey(
    log: Place,
    after: Mapping[str, int],
    exclude: Collection[str] = (),
    most: int | None = None,
    links: Mapping[str, str] | None = None,
) -> dict[str, Seen]:
    """Do the same as ``scan``, from at most ``most`` shards of each writer, and say if that is all.

    A reader that takes a backlog in small steps need not list all of it at every step. ``links``: those of the last
    items that the reader has read, by writer; R501 if the log has another item in one of their places.
    """
    with reading(log):
        looks = {
            writer: _look(log, writer, after.get(writer, 0), most, (links or {}).get(writer, ""))
            for writer in writers(log, exclude)
        }
        gone = [name for name, at in after.items() if at > 0 and name not in looks and name not in exclude]
        if gone:
            raise lost(log, f"the writers {', '.join(gone)} are gone")
    return {writer: seen for writer, seen in looks.items() if seen.entries or after.get(writer, 0) > 0}


def settle(log: Place, entries: Iterable[Entry]) -> None:
    """Make visible entries durable, before a reader records that it has read them.

    A writer names a file and then syncs its folder. If the machine crashes in between, the file is lost, and the reader
    would have a position that the writer gives to another item. Only the last entry of a writer may be in this state.
    """
    with reading(log):
        opened(log).settle(entries)


def check(log: Place, paths: Sequence[str]) -> None:
    """Compare items of a log with their checksums.

    Raises ``Failure`` (R524) for one that differs or is missing.
    """
    with reading(log):
        opened(log).check(paths)


def rows(log: Place, paths: Sequence[str]) -> Sequence[pa.Table]:
    """Return the rows of items of a log. Raises what `check` does."""
    with reading(log):
        return opened(log).rows(paths)


def last(log: Place, exclude: Collection[str] = ()) -> dict[str, Entry]:
    """Return the last entry of each writer, in O(1) for each: where a reader ``FROM NOW`` starts."""
    with reading(log):
        entries = {writer: last_entry(log, writer) for writer in writers(log, exclude)}
    return {writer: entry for writer, entry in entries.items() if entry is not None}


def writers(log: Place, exclude: Collection[str] = ()) -> list[str]:
    """Return the names of the writers that have a place in the log, sorted."""
    return sorted({*opened(log).writers()} - set(exclude))


def last_entry(log: Place, writer: str, kind: type[Entry] | None = None) -> Entry | None:
    """Return the last entry of a writer (of a kind)."""
    return opened(log).last(writer, kind)


def entries_of(log: Place, writer: str) -> list[Entry]:
    """Return all entries of one writer, in order; none if it has no place in the log."""
    with reading(log):
        return _look(log, writer, 0, None, "").entries if writer in writers(log) else []


def _look(log: Place, writer: str, after: int, most: int | None, link: str) -> Seen:
    reader = opened(log)
    # Asked before the listing: the listing contains an insert that ends in between.
    under_way = reader.under_way(writer)
    listing = reader.entries(writer, after, most)
    if _run(listing.entries, after) < len(listing.entries):
        listing = _listed_again(log, writer, after, most, listing.entries)
    _check_chain(log, writer, after, link, listing)
    return Seen(listing.entries, listing.whole and not under_way)


def _run(entries: Sequence[Entry], start: int) -> int:
    """Return how many of the entries follow ``start`` and each other without a gap."""
    for number, entry in enumerate(entries):
        if entry.first != start:
            return number
        start = entry.end
    return len(entries)


def _listed_again(log: Place, writer: str, after: int, most: int | None, before: Sequence[Entry]) -> Listing:
    """Return the entries up to the first gap, after a second listing has shown what the gap is.

    A listing may miss a file that is created while it runs and yet show a later one. A second listing misses nothing
    that existed when the first one ended, so a gap below an entry of the first is a loss. A new reader starts at the
    first retained entry.
    """
    listing = opened(log).entries(writer, after, most)
    entries = listing.entries
    start = after if after > 0 or not entries else entries[0].first
    whole = _run(entries, start)
    if whole < len(entries) and entries[whole].first <= before[-1].first:
        raise lost(log, f"items of the writer {writer} before position {entries[whole].first} are missing")
    return listing._replace(entries=entries[:whole])


def _check_chain(log: Place, writer: str, after: int, link: str, listing: Listing) -> None:
    """Raise R501 if items do not follow each other, or the first one does not follow the item with a ``link``.

    What was read may be removed: then the next item tells what it follows. Items of older versions do not.
    """
    entries, before = listing.entries, listing.before
    if before is not None and (before.end > after or (link and before.end == after and link_of(before) != link)):
        raise _another(log, writer, after)
    if entries and link and entries[0].follows not in ("", link):
        raise _another(log, writer, after)
    for entry, following in pairwise(entries):
        if following.follows and following.follows != link_of(entry):
            raise _another(log, writer, following.first)


def _another(log: Place, writer: str, at: int) -> Failure:
    return lost(log, f"the writer {writer} has other items than before, up to position {at}")
