"""The objects of a stream log in a bucket: each describes itself and shows whether it is complete.

The key of an item is only its position, because two items must not have one position. So the data that a file on a disk
has in its name (`log_items`) are inside the object, with a random number that identifies the writer, and the checksum
of the object with zeros in place of the checksum. Rows are a Parquet file with this **label** in its footer; everything
else is a text that begins with it.
"""

from __future__ import annotations

import io
import re
import uuid
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.client.file_names import escape
from rowtime.client.log_items import ColumnBound, Entry, Rows, file_name, parse_entry
from rowtime.client.parquet_statistics import trusted
from rowtime.core.stores import ObjectPlace

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
