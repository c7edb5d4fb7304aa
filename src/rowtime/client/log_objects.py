"""The objects of a stream log in a bucket: what they hold, so that each says itself what it is and whether it is whole.

The key of an item is its position alone, because two items must not be at one position. So what a file of a log on a
disk has in its name (`log_items`) is inside the object, with a random number that tells who has written it, and the
checksum of the object as it is with zeros in place of the checksum: rows are a Parquet file that has this **label** in
its footer, all else is a text that begins with it.
"""

from __future__ import annotations

import io
import re
import uuid
import zlib
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.client.log_items import ColumnBound, Entry, Rows, file_name, parse_entry
from rowtime.client.parquet_statistics import trusted

_KEY: Final = "rowtime.item"
_LABEL: Final = re.compile(rb"(\S+) [0-9a-f]{32} ([0-9a-f]{8})")
_NO_SUM: Final = b"0" * 8
_PARQUET: Final = b"PAR1"


def packed(entry: Entry, content: pa.Table | bytes) -> tuple[bytes, Entry]:
    """The object of an entry, other than any other one; and the entry with its checksum."""
    label = b"%s %s %s" % (file_name(entry).encode(), uuid.uuid4().hex.encode(), _NO_SUM)
    data = _with_rows(label, content) if isinstance(content, pa.Table) else label + b"\n" + content
    known = zlib.crc32(data)
    return _resealed(data, label, known), _summed(entry, known)


def label_of(tail: bytes, *, whole: bool) -> bytes | None:
    """The label of an object by its last bytes, or by all of them; ``None`` where more are needed, or it has none."""
    if whole and not tail.startswith(_PARQUET):
        label = tail.partition(b"\n")[0]
        return label if _LABEL.fullmatch(label) else None
    try:
        said = pq.read_metadata(pa.BufferReader(tail)).metadata or {}
    except (pa.ArrowException, OSError):  # the footer is longer than this
        return None
    return said.get(_KEY.encode())


def entry_of(label: bytes, path: str) -> Entry | None:
    """The entry that a label tells of."""
    found = _LABEL.fullmatch(label)
    entry = parse_entry(found[1].decode(errors="replace")) if found else None
    return None if found is None or entry is None else replace(_summed(entry, int(found[2], 16)), path=path)


def whole(data: bytes) -> bool:
    """True if an object is as it was written."""
    label = label_of(data, whole=True)
    found = _LABEL.fullmatch(label or b"")
    if label is None or found is None:
        return False
    return zlib.crc32(_resealed(data, label, 0)) == int(found[2], 16)


def text_of(data: bytes) -> bytes:
    """What an object of a text holds behind its label."""
    return data.partition(b"\n")[2]


def _summed(entry: Entry, known: int) -> Entry:
    return replace(entry, sum=known) if isinstance(entry, Rows | ColumnBound) else entry


def _resealed(data: bytes, label: bytes, known: int) -> bytes:
    """The object with another checksum in its label. Footers are at the end, and the label last in a footer."""
    at = (data.rindex(label) if data.startswith(_PARQUET) else 0) + len(label) - len(_NO_SUM)
    return b"%s%08x%s" % (data[:at], known, data[at + len(_NO_SUM) :])


def _with_rows(label: bytes, rows: pa.Table) -> bytes:
    into = io.BytesIO()
    said = trusted(rows.schema, rows)
    with pq.ParquetWriter(into, rows.schema, store_schema=False, write_statistics=said) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({_KEY: label.decode()})
    return into.getvalue()
