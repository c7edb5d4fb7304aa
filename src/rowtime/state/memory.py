"""What the driver remembers of segments: a file never changes, so what was read once need not be read again."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MOST = 256 << 20  # bytes


class Memory:
    """The tables of segments used last, ``most`` bytes of them."""

    def __init__(self, folder: Path, most: int = MOST) -> None:
        self._folder, self._most = folder, most
        self._tables: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0

    def put(self, path: str, table: pa.Table) -> None:
        """Remember the rows of the file at ``path``."""
        self.drop(path)
        self._tables[path] = table
        self._bytes += table.nbytes
        while self._bytes > self._most and len(self._tables) > 1:
            self.drop(next(iter(self._tables)))

    def get(self, path: str) -> pa.Table:
        """The rows of the file at ``path``, read if they are not remembered."""
        if path in self._tables:
            self._tables.move_to_end(path)
            return self._tables[path]
        table = pq.read_table(self._folder / path, partitioning=None)
        self.put(path, table)
        return table

    def drop(self, path: str) -> None:
        """Forget a file."""
        known = self._tables.pop(path, None)
        self._bytes -= known.nbytes if known is not None else 0
