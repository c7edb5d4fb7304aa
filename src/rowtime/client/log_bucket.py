"""A stream log in a bucket: objects that are created only if they are absent.

    <log>/<writer>/<position>               an item: rows, a bound, a leave
    <log>/.index/<writer>/<position>        the labels of the items before this position, since the previous index
    <log>/.packs/<writer>/<position>        the small ones of these items (`log_objects.Packs`)

The writer of an item at position p creates the object p if there is none, so of two processes with one name one loses.
No locks are needed, and objects never change. An index saves readers the requests for single labels, and a pack those
for small objects: a writer adds both after ``SHARD_FILES`` further items. They only save work.

A reader lists the items after the last one that it knows, in one request for up to 1,000 new items.
"""

from __future__ import annotations

import io
import re
import uuid
import zlib
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.client.file_names import escape, unescape
from rowtime.client.log_contract import Item, Listing, damaged, lost, overtaken
from rowtime.client.log_folder import SHARD_FILES, WRITER
from rowtime.client.log_items import Bound, ColumnBound, Entry, Leave, Rows, file_name, link_of, parse_entry
from rowtime.client.parquet_statistics import trusted
from rowtime.core.errors import Failure
from rowtime.core.stores import ObjectPlace
from rowtime.core.time import BEGINNING, SECOND

# The objects of a stream log in a bucket: each describes itself and shows whether it is complete.
#
# The key of an item is only its position, because two items must not have one position. So the data that a file on a
# disk has in its name (`log_items`) are inside the object, with a random number that identifies the writer, and the
# checksum of the object with zeros in place of the checksum. Rows are a Parquet file with this **label** in its footer;
# everything else is a text that begins with it.

_KEY: Final = "rowtime.item"
_LABEL: Final = re.compile(rb"(\S+) [0-9a-f]{32} ([0-9a-f]{8})")
_NO_SUM: Final = b"0" * 8
_PARQUET: Final = b"PAR1"


def packed(entry: Entry, content: pa.Table | bytes) -> tuple[bytes, Entry]:
    """Return the unique object of an entry; and the entry with its checksum."""
    label = b"%s %s %s" % (file_name(entry).encode(), uuid.uuid4().hex.encode(), _NO_SUM)
    data = _with_rows(label, content) if isinstance(content, pa.Table) else label + b"\n" + content
    checksum = zlib.crc32(data)
    return _resealed(data, label, checksum), _summed(entry, checksum)


def label_of(tail: bytes, *, whole: bool) -> bytes | None:
    """Return the label from the last bytes of an object, or from all; ``None`` if more are needed, or without one."""
    if whole and not tail.startswith(_PARQUET):
        label = tail.partition(b"\n")[0]
        return label if _LABEL.fullmatch(label) else None
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail)).metadata or {}
    except (pa.ArrowException, OSError):  # the footer is longer than this
        return None
    return metadata.get(_KEY.encode())


def entry_of(label: bytes, path: str) -> Entry | None:
    """Return the entry that a label describes."""
    match = _LABEL.fullmatch(label)
    entry = parse_entry(match[1].decode(errors="replace")) if match else None
    return None if match is None or entry is None else replace(_summed(entry, int(match[2], 16)), path=path)


def whole(data: bytes) -> bool:
    """Return True if an object is as it was written."""
    label = label_of(data, whole=True)
    match = _LABEL.fullmatch(label or b"")
    if label is None or match is None:
        return False
    return zlib.crc32(_resealed(data, label, 0)) == int(match[2], 16)


def text_of(data: bytes) -> bytes:
    """Return the text after the label of an object."""
    return data.partition(b"\n")[2]


def _summed(entry: Entry, checksum: int) -> Entry:
    return replace(entry, sum=checksum) if isinstance(entry, Rows | ColumnBound) else entry


def _resealed(data: bytes, label: bytes, checksum: int) -> bytes:
    """Return the object with another checksum in its label. Footers are at the end, with the label last."""
    at = (data.rindex(label) if data.startswith(_PARQUET) else 0) + len(label) - len(_NO_SUM)
    return b"%s%08x%s" % (data[:at], checksum, data[at + len(_NO_SUM) :])


def _with_rows(label: bytes, rows: pa.Table) -> bytes:
    into = io.BytesIO()
    with_statistics = trusted(rows.schema, rows)
    with pq.ParquetWriter(into, rows.schema, store_schema=False, write_statistics=with_statistics) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({_KEY: label.decode()})
    return into.getvalue()


PACKS: Final = ".packs"
SMALL: Final = 1 << 16  # bytes of an item that is packed
MOST: Final = 16 << 20  # bytes of a pack
_REMEMBERED: Final = 4  # packs: a reader reads them one after the other


class Packs:
    """The packs of one log: copies of its small objects, many in one object, for readers of a backlog.

        <log>/.packs/<writer>/<position>        the small items before this position, since the previous pack

    The items stay where they are, so positions, and the paths in journals, do not change, and no writer waits for
    another. A pack only saves requests, like an index; an item that is in none is read by itself.
    """

    def __init__(self, log: ObjectPlace) -> None:
        self._log = log
        self._known: OrderedDict[tuple[str, int], Mapping[int, bytes]] = OrderedDict()

    def write(self, writer: str, end: int, items: Mapping[int, bytes]) -> None:
        """Write items, by their positions before ``end``, into one object: as many as fit."""
        room, fit = MOST, dict[int, bytes]()
        for at, data in items.items():
            room -= len(data)
            if room >= 0:
                fit[at] = data
        table, buffer = pa.table({"position": [*fit], "content": pa.array(fit.values(), pa.binary())}), io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        (self._folder(writer) / f"{end:020}").upload(buffer.getvalue())

    def contents(self, writer: str, firsts: Sequence[int]) -> dict[int, bytes]:
        """Return the items at some positions, in order, if packs have them: a listing, and a request per pack."""
        contents: dict[int, bytes] = {}
        ends = sorted(int(name) for name in self._folder(writer).names() if name.isdecimal())
        for end in dict.fromkeys(ends[at] for at in (bisect_right(ends, first) for first in firsts) if at < len(ends)):
            packed = self._pack(writer, end)
            contents |= {first: packed[first] for first in firsts if first in packed}
        return contents

    def _pack(self, writer: str, end: int) -> Mapping[int, bytes]:
        if (writer, end) not in self._known:
            self._known[writer, end] = self._read(writer, end)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return self._known[writer, end]

    def _read(self, writer: str, end: int) -> Mapping[int, bytes]:
        with suppress(FileNotFoundError, pa.ArrowException):  # it only saves requests
            table = pq.read_table(pa.BufferReader((self._folder(writer) / f"{end:020}").read_bytes()))
            return dict(zip(table["position"].to_pylist(), table["content"].to_pylist(), strict=True))
        return {}

    def _folder(self, writer: str) -> ObjectPlace:
        return self._log / PACKS / escape(writer)


INDEX: Final = ".index"
DROPPED: Final = ".dropped"
DOUBT: Final = 2 * SECOND  # µs: longer than a store takes to write an object, as a rule
_GONE: Final = b"dropped\n"  # in the place of the next item of a removed log
_AT_ONCE: Final = 16  # requests
_FEW: Final = 32  # items that are requested one by one although an index may have them
_MOST: Final = 200_000  # items that are cached
_TAIL: Final = SMALL  # bytes: a small object as a whole, the footer of a larger one
_KEPT: Final = 64 << 20  # bytes of small objects that were read with their labels
_NAME: Final = re.compile(r"\d{20}")


class LogBucket:
    """A stream log for its readers (`log_contract.Log`); caches the items that it has seen."""

    doubt = DOUBT

    def __init__(self, log: ObjectPlace) -> None:
        self._log = log
        self._entries: dict[tuple[str, int], Entry] = {}
        self._before: dict[tuple[str, int], int] = {}  # by the position after an item, its own position
        self._read: set[tuple[str, int]] = set()  # indexes
        self._whole: dict[str, bytes] = {}  # small objects that were valid when their labels were read
        self._size = 0  # of these
        self.packs = Packs(log)

    def writers(self) -> list[str]:
        """Return the writers that have a place, sorted."""
        names = [place.name for place in self._log.iterdir()]
        return sorted(unescape(name) for name in names if WRITER.fullmatch(name))

    def entries(self, writer: str, after: int, most: int | None = None) -> Listing:
        """Return the entries at positions >= ``after``: one listing, and a request for each new one."""
        if len(self._entries) > _MOST:
            for cache in (self._entries, self._before, self._read):
                cache.clear()
        limit = None if most is None else most * SHARD_FILES
        firsts: list[int] = []
        for first in _numbers(self._log / escape(writer), self._start(writer, after)):
            firsts.append(first)
            if limit is not None and len(firsts) - bisect_left(firsts, after) > limit:
                break  # a backlog is not listed completely for each step
        at = bisect_left(firsts, after)
        new = firsts[at:][:limit]
        entries = self.described(writer, new)
        chained = bool(entries and entries[0].follows)
        [before] = self.described(writer, firsts[at - 1 : at]) if at and not chained else [None]
        reached = entries[-1].end if entries else before.end if before is not None else 0
        if reached < after:
            raise lost(self._log, f"the writer {writer} is at position {reached}, the reader at {after}")
        return Listing(entries, before, len(new) == len(firsts) - at)

    def _start(self, writer: str, after: int) -> int:
        """Return a position from which a listing has the item before ``after`` and few others."""
        start = self._before.get((writer, after))
        if start is not None or not after:
            return start or 0
        indexes = self.indexes(writer)
        return [0, *indexes][bisect_left(indexes, after)]

    def last(self, writer: str, kind: type[Entry] | None = None) -> Entry | None:
        """Return the last entry (of a kind): two listings, and a request for each examined item."""
        indexes = self.indexes(writer)
        for first, end in reversed([*zip([0, *indexes], [*indexes, None], strict=True)]):
            firsts = self.firsts(writer, first)
            for at in reversed(firsts[: None if end is None else bisect_left(firsts, end)]):
                [entry] = self.described(writer, [at], near=end)
                if kind is None or isinstance(entry, kind):
                    return entry
        return None

    def under_way(self, writer: str) -> bool:  # noqa: ARG002 - the contract's
        """Return False: it cannot be known, hence the ``doubt``."""
        return False

    def settle(self, entries: Iterable[Entry]) -> None:
        """Do nothing: an object that is seen is durable."""

    def check(self, paths: Sequence[str]) -> None:
        """Compare objects with the checksums in their labels; those read completely have been compared."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._sound, [path for path in paths if path not in self._whole]))

    def rows(self, paths: Sequence[str]) -> Sequence[pa.Table]:
        """Return the rows of objects, compared with their checksums; many small ones come from packs."""
        data_of = {path: self._forget(path) for path in paths if path in self._whole}
        data_of |= self._packed([path for path in paths if path not in data_of])

        def table(path: str) -> pa.Table:
            data = data_of.get(path, b"")
            return pq.read_table(pa.BufferReader(data if whole(data) else self._sound(path)))

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(table, paths))

    def _packed(self, paths: Sequence[str]) -> dict[str, bytes]:
        firsts: dict[str, list[int]] = {}
        for path in paths:
            writer, _, first = path.partition("/")
            firsts.setdefault(writer, []).append(int(first))
        many = {writer: positions for writer, positions in firsts.items() if len(positions) > _FEW}
        packs = {writer: self.packs.contents(unescape(writer), positions) for writer, positions in many.items()}
        return {f"{writer}/{at:020}": data for writer, positions in packs.items() for at, data in positions.items()}

    def _sound(self, path: str) -> bytes:
        try:
            content = (self._log / path).read_bytes()
        except FileNotFoundError:
            raise damaged(self._log, path, "is gone") from None
        if not whole(content):
            raise damaged(self._log, path, "has changed since it was written: its checksum differs")
        return content

    def _remember(self, path: str, data: bytes) -> None:
        if self._size > _KEPT:
            self._whole.clear()
            self._size = 0
        self._whole[path] = data
        self._size += len(data)

    def _forget(self, path: str) -> bytes:
        data = self._whole.pop(path)
        self._size -= len(data)
        return data

    def text(self, path: str) -> bytes:
        """Return the text after the label of an object without rows."""
        return text_of((self._log / path).read_bytes())

    def pen(self, writer: str) -> BucketPen:
        """Open a writer; if another process has it open, the first item reports that."""
        return BucketPen(self._log, writer, self)

    def drop(self) -> None:
        """Remove the log; readers and writers that have it open get R501.

        First the place of the next item of each writer is taken, so that no further item can be added. A writer that
        comes now sees the mark. The newest items are removed first, so that readers see a former state.
        """
        (self._log / DROPPED).upload(_GONE)
        for writer in self.writers():
            self._bury(writer)
        for place in sorted(self._log.rglob(), reverse=True):
            if place.name != DROPPED and place.tail(len(_GONE))[0] != _GONE:
                place.unlink(missing_ok=True)

    def _bury(self, writer: str) -> None:
        folder = self._log / escape(writer)
        while True:
            last = self.firsts(writer)[-1:]
            if last and (folder / f"{last[0]:020}").tail(len(_GONE))[0] == _GONE:
                return  # the process that began to remove the log has died
            end = self.described(writer, last)[0].end if last else 0
            with suppress(FileExistsError):  # of an item that has come in the meantime
                (folder / f"{end:020}").create(_GONE)
                return

    # -- positions --------------------------------------------------------------------

    def firsts(self, writer: str, start: int = 0) -> list[int]:
        """Return the positions of items from one on, in order."""
        return [*_numbers(self._log / escape(writer), start)]

    def indexes(self, writer: str) -> list[int]:
        """Return the positions up to which there are indexes."""
        return [*_numbers(self._log / INDEX / escape(writer), 0)]

    def described(self, writer: str, firsts: Sequence[int], near: int | None = None) -> list[Entry]:
        """Return the entries at some positions; ``near``: an index that may have them."""
        missing = [at for at in firsts if (writer, at) not in self._entries]
        if len(missing) > _FEW or (missing and near is not None):
            indexes = self.indexes(writer) if near is None else [near]
            for end in indexes[bisect_right(indexes, missing[0]) :]:
                self._read_index(writer, end)
                if end > missing[-1]:
                    break
            missing = [at for at in missing if (writer, at) not in self._entries]
        if len(missing) == 1:
            self._learn(writer, self._entry_of_object(writer, missing[0]))
        elif missing:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for entry in pool.map(lambda at: self._entry_of_object(writer, at), missing):
                    self._learn(writer, entry)
        return [self._entries[writer, at] for at in firsts]

    def write_index(self, writer: str, start: int, end: int) -> None:
        """Write an index of the labels of items before a position."""
        firsts = [at for at in self.firsts(writer, start) if at < end]
        names = [file_name(entry) for entry in self.described(writer, firsts)]
        (self._log / INDEX / escape(writer) / f"{end:020}").upload("\n".join(names).encode())

    def write_pack(self, writer: str, start: int, end: int, given: Mapping[int, bytes]) -> None:
        """Write a pack of the small items before a position; ``given``: those that need not be requested."""

        def content(at: int) -> bytes:
            data, size = given.get(at), 0
            if data is None:
                data, size = (self._log / escape(writer) / f"{at:020}").tail(_TAIL)
            return data if len(data) >= size else b""

        firsts = [at for at in self.firsts(writer, start) if at < end]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            contents = zip(firsts, pool.map(content, firsts), strict=True)
            self.packs.write(writer, end, {at: data for at, data in contents if 0 < len(data) <= SMALL})

    def _read_index(self, writer: str, end: int) -> None:
        if (writer, end) in self._read:
            return
        with suppress(FileNotFoundError):
            for name in (self._log / INDEX / escape(writer) / f"{end:020}").read_text().split("\n"):
                entry = parse_entry(name)
                if entry is not None:
                    self._learn(writer, replace(entry, path=f"{escape(writer)}/{entry.first:020}"))
            self._read.add((writer, end))

    def _entry_of_object(self, writer: str, at: int) -> Entry:
        """Return an entry from its object."""
        path = f"{escape(writer)}/{at:020}"
        place = self._log / path
        try:
            tail, size = place.tail(_TAIL)
            if tail == _GONE:
                raise _dropped(self._log)
            label = label_of(tail, whole=len(tail) == size)
            if len(tail) == size and whole(tail):
                self._remember(path, tail)
            if label is None and len(tail) < size:
                label = label_of(place.read_bytes(), whole=True)
        except FileNotFoundError:
            raise lost(self._log, f"the item of the writer {writer} at position {at} is gone") from None
        entry = None if label is None else entry_of(label, path)
        if entry is None or entry.first != at:
            raise damaged(self._log, path, "has changed since it was written: it has no label")
        return entry

    def _learn(self, writer: str, entry: Entry) -> None:
        self._entries[writer, entry.first] = entry
        self._before[writer, entry.end] = entry.first


class BucketPen:
    """The place of one writer (`log_contract.Pen`). It loses the place to a process that adds the next item first."""

    def __init__(self, log: ObjectPlace, writer: str, seen: LogBucket) -> None:
        self._log, self._writer, self._seen = log, writer, seen
        self._indexed = [0, *seen.indexes(writer)][-1]
        firsts = seen.firsts(writer, self._indexed)
        self._last = seen.described(writer, firsts[-1:])[0] if firsts else seen.last(writer)
        self._next = self._last.end if self._last else 0
        self._since = len(firsts)  # items after the last index
        self._own: dict[int, bytes] = {}  # the small ones of these that this process has written
        self.arrival = self._arrival()
        self._doubt: list[tuple[bytes, Entry]] = []  # what may have been written at the next position
        self._lost = False

    def _arrival(self) -> int | None:
        """Return the arrival of the last item that has one."""
        if self._last is None or isinstance(self._last, Rows | Bound):
            return None if self._last is None else self._last.arrival
        timed = [self._seen.last(self._writer, kind) for kind in (Rows, Bound)]
        arrivals = [entry.arrival for entry in timed if isinstance(entry, Rows | Bound)]
        return max((at for at in arrivals if at is not None), default=None)

    @property
    def next(self) -> int:
        """Return the position of the next item."""
        return self._next

    @property
    def link(self) -> str:
        """Return the link of the last item; empty if there is none."""
        return link_of(self._last)

    def put(self, make: Callable[[], Item]) -> None:
        """Create the object of an item. After a ``Failure`` `settle` finds out whether it exists."""
        if self._lost:
            raise overtaken(self._log, self._writer)
        self._create(*make())
        if self._since >= SHARD_FILES:
            with suppress(Failure):  # the next item tries again
                self._seen.write_index(self._writer, self._indexed, self._next)
                self._seen.write_pack(self._writer, self._indexed, self._next, self._own)
                self._indexed, self._since, self._own = self._next, 0, {}

    def settle(self) -> None:
        """Put an item without effect in the place of one whose answer is missing, unless that exists."""
        if self._doubt:
            self._create(self._nothing(), b"")

    def fence(self) -> None:
        """Take the next position with an item without effect."""
        self.put(lambda: (self._nothing(), b""))

    def close(self) -> None:
        """Do nothing: the place is not locked."""

    def _nothing(self) -> Entry:
        """Return an item without effect: a leave if the writer is away; else a bound weaker than any other."""
        away = self._last is None or isinstance(self._last, Leave)
        return Leave(self._next) if away else Bound(self._next, BEGINNING, arrival=self.arrival)

    def _create(self, entry: Entry, content: pa.Table | bytes) -> None:
        data, entry = packed(replace(entry, follows=link_of(self._last)), content)
        place = self._log / escape(self._writer) / f"{self._next:020}"
        self._doubt.append((data, entry))
        try:
            place.create(data)
        except FileExistsError:
            stored = place.read_bytes()
            if stored == _GONE:
                raise _dropped(self._log) from None
            mine = [written for content, written in self._doubt if content == stored]
            if not mine:
                self._lost, self._doubt = True, []
                raise overtaken(self._log, self._writer) from None
            [entry], data = mine, stored
        if len(data) <= SMALL:
            self._own[entry.first] = data
        self._doubt, self._last, self._next = [], entry, entry.end
        self._since += 1
        if entry.first == 0 and (self._log / DROPPED).exists():
            raise _dropped(self._log)


def _dropped(log: ObjectPlace) -> Failure:
    return lost(log, "its stream was dropped")


def _numbers(folder: ObjectPlace, start: int) -> Iterator[int]:
    """Yield the names below a folder that are positions, from one on."""
    names = folder.names(after=f"{start - 1:020}" if start else "")
    return (int(name) for name in names if _NAME.fullmatch(name))
