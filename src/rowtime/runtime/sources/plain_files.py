"""Copies of plain text files in Parquet, which a tick reads instead of them.

A file is plain if Arrow and Spark read it alike, which a decoder for its format proves; Spark reads all other files.
The row numbers of a copy are those of the records in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BLOCK: Final = 1 << 22  # bytes decoded at once, so that memory does not grow with the file
LOOK: Final = 1 << 18  # bytes examined at once, so that intermediate results stay in the cache
END: Final = ord("\n")
MOST: Final = 1 << 30  # bytes of an uncompressed file in memory
_ZIPPED: Final = ".gz"

KINDS: Final[Mapping[str, pa.DataType]] = {
    "BIGINT": pa.int64(), "LONG": pa.int64(), "INT": pa.int32(), "INTEGER": pa.int32(),
    "SMALLINT": pa.int16(), "SHORT": pa.int16(), "TINYINT": pa.int8(), "BYTE": pa.int8(),
    "DOUBLE": pa.float64(), "FLOAT": pa.float32(), "REAL": pa.float32(),
    "STRING": pa.string(), "BOOLEAN": pa.bool_(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"),
}  # fmt: skip
"""The types of columns, in Spark's words, of which text is decoded here."""


class Copies(Protocol):
    """How files are copied for a tick."""

    def decode(self, path: str, target: Path) -> int | None:
        """Write the rows of a file to ``target``; return their number, ``None`` if it is not plain."""
        ...


def copied(
    path: str,
    target: Path,
    endings: Collection[str],
    batches: Callable[[np.ndarray], tuple[pa.Schema, Iterable[pa.RecordBatch]] | None],
) -> int | None:
    """Write the rows that ``batches`` decodes from a file's bytes to ``target``, with their schema.

    Return their number; ``None`` if the file is not plain: ``batches`` gives none, or raises an error of Arrow.
    ``endings``: of the names of files that are not compressed, or to which ``.gz`` is added.
    """
    if Path(path.removesuffix(_ZIPPED)).suffix.lower() not in endings:
        return None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with pa.memory_map(path) as file:
            content = _unzipped(file) if path.endswith(_ZIPPED) else file.read_buffer()
            decoded = batches(np.frombuffer(content, np.uint8)) if content is not None else None
            rows = None if decoded is None else _written(*decoded, target)
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError):
        rows = None
    if rows is None:
        target.unlink(missing_ok=True)
    return rows


def _unzipped(file: pa.NativeFile) -> bytes | None:
    with pa.CompressedInputStream(file, "gzip") as stream:
        content: bytes = stream.read(MOST + 1)
    return content if len(content) <= MOST else None


def _written(schema: pa.Schema, batches: Iterable[pa.RecordBatch], target: Path) -> int:
    number = 0
    with pq.ParquetWriter(target, schema, use_dictionary=False, compression="lz4") as rows:
        for batch in batches:
            rows.write_batch(batch)
            number += batch.num_rows
    return number


def lines_in(path: str) -> int:
    """Return the greatest number of lines that a file has; raises ``OSError`` if it cannot be read."""
    with Path(path).open("rb") as file:
        return 1 + sum(piece.count(b"\n") for piece in iter(partial(file.read, LOOK), b""))


def pieces_of(whole: np.ndarray) -> Iterator[np.ndarray]:
    """Yield a file in pieces."""
    yield from (whole[at : at + LOOK] for at in range(0, len(whole), LOOK))
