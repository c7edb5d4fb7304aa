"""Packs: copies of the small objects of a stream log in a bucket, many in one object, for readers of a backlog.

    <log>/.packs/<writer>/<position>        the small items before this position, since the previous pack

The items stay where they are, so positions, and the paths in journals, do not change, and no writer waits for another.
A pack only saves requests, like an index; an item that is in none is read by itself.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.client.file_names import escape
from rowtime.core.stores import ObjectPlace

PACKS: Final = ".packs"
SMALL: Final = 1 << 16  # bytes of an item that is packed
MOST: Final = 16 << 20  # bytes of a pack
_REMEMBERED: Final = 4  # packs: a reader reads them one after the other


class Packs:
    """The packs of one log."""

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
