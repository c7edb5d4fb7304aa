"""Decodes plain CSV files with Arrow, several times as fast as Spark, which reads all others.

A file is plain if both read it alike: no quotes, escapes, control characters in a line, blank lines, or blanks at the
edge of a field; as many fields in each line as there are columns; and values that Arrow's stricter rules accept. If any
part of a file is not plain, Spark reads the whole file. Decoded rows are in a Parquet file for the tick; its row
numbers are those of the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rowtime.runtime.sources.peek import MICROS
from rowtime.runtime.sources.plain_files import BLOCK, END, KINDS, LOOK, copied

_OPTIONS = {"header", "sep", "delimiter"}
_ENDINGS = {"", ".csv", ".tsv", ".txt"}  # other suffixes may mean compression
_ZONED = re.compile(rb"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-]\d\d:\d\d)")  # a time with its time zone
_BLANK, _ZERO, _QUOTE, _ESCAPE, _X, _MARK, _RETURN = map(ord, ' 0"\\xï\r')


@dataclass(frozen=True)
class PlainCsv:
    """How files with ``columns`` (Spark types by name) are decoded, if all of these have a supported type.

    ``header``: the first line has names.
    """

    columns: Mapping[str, pa.DataType]
    separator: str
    header: bool

    @classmethod
    def of(cls, columns: Mapping[str, str], options: Mapping[str, str]) -> PlainCsv | None:
        """Return the decoder; ``None`` if a type or an option is not supported."""
        given = {name.lower(): value for name, value in options.items()}
        separator = given.get("sep", given.get("delimiter", ",")).replace("\\t", "\t")
        header = given.get("header", "false").lower()
        kinds = {name: KINDS.get(kind.upper()) for name, kind in columns.items()}
        readable = {name: kind for name, kind in kinds.items() if kind is not None}
        if (
            set(given) - _OPTIONS
            or len(separator) != 1
            or header not in ("true", "false")
            or len(readable) < len(kinds)
        ):
            return None
        return cls(readable, separator, header == "true") if separator in ",;|\t" else None

    def decode(self, path: str, target: Path) -> int | None:
        """Write the rows of a file to ``target``; return their number, ``None`` if it is not plain."""
        return copied(path, target, _ENDINGS, self._batches_of)

    def _batches_of(self, whole: np.ndarray) -> tuple[pa.Schema, Iterable[pa.RecordBatch]] | None:
        if not _is_plain(whole, ord(self.separator)):
            return None
        first, second = [*whole[:LOOK].tobytes().split(b"\n", 2), b""][:2]
        names = first.decode().removesuffix("\r").split(self.separator) if self.header else list(self.columns)
        declared = {name.lower(): name for name in self.columns}
        wanted = {name: declared[name.lower()] for name in names if name.lower() in declared}
        if not wanted or len({name.lower() for name in names}) < len(names):
            return None
        zoned = bool(_ZONED.search(second if self.header else first))
        kinds = {name: _zoned(self.columns[own]) if zoned else self.columns[own] for name, own in wanted.items()}
        schema = pa.schema([(own, _zoned(self.columns[own])) for own in wanted.values()])
        return schema, (_finished(batch, schema) for batch in self._opened(whole, names, kinds))

    def _opened(
        self, whole: np.ndarray, names: Sequence[str], kinds: Mapping[str, pa.DataType]
    ) -> pa_csv.CSVStreamingReader:
        read = pa_csv.ReadOptions(
            block_size=BLOCK, column_names=list(names), skip_rows=int(self.header), use_threads=False
        )
        parse = pa_csv.ParseOptions(delimiter=self.separator, quote_char=False, double_quote=False)
        convert = pa_csv.ConvertOptions(
            column_types=dict(kinds),
            include_columns=list(kinds),
            null_values=[""],
            strings_can_be_null=True,
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
        )
        return pa_csv.open_csv(pa.BufferReader(pa.py_buffer(whole)), read, parse, convert)


def _zoned(kind: pa.DataType) -> pa.DataType:
    return MICROS if pa.types.is_timestamp(kind) else kind


def _finished(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return decoded rows; raises if Spark spells a number differently (NaN, Infinity)."""
    for column in batch.columns:
        if (
            pa.types.is_floating(column.type)
            and not pc.all(pc.is_finite(column)).as_py()
            and len(column) > column.null_count
        ):
            raise pa.ArrowInvalid("not a finite number")
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.record_batch(columns, schema=schema)


def _is_plain(whole: np.ndarray, separator: int) -> bool:
    """Return True if a file has only values, separators and line ends."""
    if not len(whole) or whole[0] == _MARK or whole[-1] in (_BLANK, _RETURN):
        return False
    # Each piece begins with the byte before it, the first with a line end: pairs of bytes matter.
    before = np.concatenate((np.array([END], np.uint8), whole[:LOOK]))
    pieces = (before if not at else whole[at - 1 : at + LOOK] for at in range(0, len(whole), LOOK))
    return all(_is_plain_piece(piece, separator) for piece in pieces)


def _is_plain_piece(piece: np.ndarray, separator: int) -> bool:
    end, blank, half = piece == END, piece == _BLANK, piece == _RETURN
    edge = end | half | (piece == separator)
    if (((piece < _BLANK) & ~edge) | (piece == _QUOTE) | (piece == _ESCAPE)).any():
        return False
    blank_at_edge = (edge[1:] & blank[:-1]) | (blank[1:] & edge[:-1])
    hexadecimal = (piece[:-1] == _ZERO) & (piece[1:] | 32 == _X)
    ends_apart = (half[:-1] & ~end[1:]) | (end[:-1] & (end[1:] | half[1:]))
    return not (blank_at_edge | hexadecimal | ends_apart).any()
