"""Decodes plain CSV files with Arrow, several times as fast as Spark, which reads all others.

A file is plain if both read it alike: no control characters in a line, blank lines, or blanks at the edge of a field;
as many fields in each line as there are columns; and values that Arrow's stricter rules accept. Quotes are around whole
fields; what else may be inside of them follows from the options: doubled quotes with ``escape '"'``, line ends with
``multiLine``. If any part of a file is not plain, Spark reads the whole file. Decoded rows are in a Parquet file for
the tick; its row numbers are those of the records.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rowtime.runtime.sources.parquet_rows import MICROS
from rowtime.runtime.sources.plain_files import BLOCK, END, KINDS, LOOK, copied

_OPTIONS = {"header", "sep", "delimiter", "quote", "escape", "multiline", "encoding", "charset"}
_ENDINGS = {"", ".csv", ".tsv", ".txt"}  # other suffixes may mean compression
_ZONED = re.compile(rb"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-]\d\d:\d\d)")  # a time with its time zone
_BLANK, _ZERO, _QUOTE, _ESCAPE, _X, _MARK, _RETURN = map(ord, ' 0"\\xï\r')


@dataclass(frozen=True)
class PlainCsv:
    """How files with ``columns`` (Spark types by name) are decoded, if all of these have a supported type.

    ``header``: the first line has names; ``doubled``: two quotes inside of a field are one; ``lines``: a field in
    quotes may have line ends.
    """

    columns: Mapping[str, pa.DataType]
    separator: str
    header: bool
    doubled: bool
    lines: bool

    @classmethod
    def of(cls, columns: Mapping[str, str], options: Mapping[str, str]) -> PlainCsv | None:
        """Return the decoder; ``None`` if a type or an option is not supported."""
        given = {name.lower(): value for name, value in options.items()}
        separator = given.get("sep", given.get("delimiter", ",")).replace("\\t", "\t")
        flags = [given.get(name, "false").lower() for name in ("header", "multiline")]
        escape = given.get("escape", "\\")
        encodings = {given.get(name, "utf-8").lower() for name in ("encoding", "charset")}
        kinds = {name: KINDS.get(kind.upper()) for name, kind in columns.items()}
        readable = {name: kind for name, kind in kinds.items() if kind is not None}
        if (
            set(given) - _OPTIONS
            or len(separator) != 1
            or {*flags} - {"true", "false"}
            or (given.get("quote", '"'), escape) not in (('"', '"'), ('"', "\\"))
            or encodings != {"utf-8"}
            or len(readable) < len(kinds)
        ):
            return None
        header, lines = (flag == "true" for flag in flags)
        return cls(readable, separator, header, escape == '"', lines) if separator in ",;|\t" else None

    def decode(self, path: str, target: Path) -> int | None:
        """Write the rows of a file to ``target``; return their number, ``None`` if it is not plain."""
        return copied(path, target, _ENDINGS, self._batches_of)

    def _batches_of(self, whole: np.ndarray) -> tuple[pa.Schema, Iterable[pa.RecordBatch]] | None:
        if not self._is_plain(whole):
            return None
        first, rest = [*whole[:LOOK].tobytes().split(b"\n", 1), b""][:2]
        names = self._names(first) if self.header else list(self.columns)
        declared = {name.lower(): name for name in self.columns}
        wanted = {name: declared[name.lower()] for name in names if name.lower() in declared}
        if not wanted or len({name.lower() for name in names}) < len(names):
            return None
        record = rest if self.header else whole[:LOOK].tobytes()
        zoned = bool(_ZONED.search(record if self.lines else record.partition(b"\n")[0]))
        kinds = {name: _zoned(self.columns[own]) if zoned else self.columns[own] for name, own in wanted.items()}
        schema = pa.schema([(own, _zoned(self.columns[own])) for own in wanted.values()])
        return schema, (_finished(batch, schema) for batch in self._opened(whole, names, kinds))

    def _names(self, line: bytes) -> list[str]:
        """Return the names in a header; none if it goes on in the next line."""
        text = line.decode().removesuffix("\r")
        return [] if text.count('"') % 2 else next(csv.reader([text], delimiter=self.separator), [])

    def _opened(
        self, whole: np.ndarray, names: Sequence[str], kinds: Mapping[str, pa.DataType]
    ) -> pa_csv.CSVStreamingReader:
        read = pa_csv.ReadOptions(
            block_size=BLOCK, column_names=list(names), skip_rows=int(self.header), use_threads=False
        )
        parse = pa_csv.ParseOptions(
            delimiter=self.separator, quote_char='"', double_quote=self.doubled, newlines_in_values=self.lines
        )
        convert = pa_csv.ConvertOptions(
            column_types=dict(kinds),
            include_columns=list(kinds),
            null_values=[""],
            strings_can_be_null=True,
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
        )
        return pa_csv.open_csv(pa.BufferReader(pa.py_buffer(whole)), read, parse, convert)

    def _is_plain(self, whole: np.ndarray) -> bool:
        """Return True if a file has only values, whole ones in quotes, separators and line ends."""
        ends_badly = whole[-1:].tobytes() in b" \r" or whole[-2:].tobytes() == b' "'
        if not len(whole) or whole[0] == _MARK or ends_badly:
            return False
        # Each piece begins with the two bytes before it, the first with the end of a line: what follows what matters.
        inside, first = False, np.concatenate((np.array([ord(self.separator), END], np.uint8), whole[:LOOK]))
        for at in range(0, len(whole), LOOK):
            piece = whole[at - 2 : at + LOOK] if at else first
            if not self._is_plain_piece(piece, inside):
                return False
            inside ^= bool(np.count_nonzero(piece[:-2] == _QUOTE) % 2)
        return not inside ^ bool(np.count_nonzero(piece[-2:] == _QUOTE) % 2)

    def _is_plain_piece(self, piece: np.ndarray, inside: bool) -> bool:  # noqa: FBT001 - a part of a file's state
        """``inside``: the first byte is inside of quotes, or closes them."""
        end, blank, half, quote = (piece == sign for sign in (END, _BLANK, _RETURN, _QUOTE))
        separates = piece == ord(self.separator)
        if (not self.doubled and (piece == _ESCAPE).any()) or (self.lines and half.any()):
            return False
        within, quoted = np.zeros(len(piece), bool), inside or bool(quote.any())
        if quoted:
            after = (np.cumsum(quote) + inside) % 2 == 1
            within = after & ~quote
        edge = (end | half | separates) & ~within
        if quoted:
            opens, closes = quote & after, quote & ~after
            doubled = closes[:-1] & opens[1:]
            starts, stops = opens[1:] & ~doubled, closes[:-1] & ~doubled  # of whole fields
            wrong = (starts & ~edge[:-1]) | (stops & ~edge[1:])
            blank_in_quotes = (starts[:-1] & blank[2:]) | (blank[:-2] & stops[1:])
            lines = within & (half if self.lines else half | end)
            if wrong.any() or blank_in_quotes.any() or lines.any() or (not self.doubled and doubled.any()):
                return False
        if ((piece < _BLANK) & ~edge & ~(within & (end | separates))).any():
            return False
        blank_at_edge = (edge[1:] & blank[:-1]) | (blank[1:] & edge[:-1])
        hexadecimal = (piece[:-1] == _ZERO) & (piece[1:] | 32 == _X)
        ends_apart = (half[:-1] & ~end[1:]) | (end[:-1] & ~within[:-1] & (end[1:] | half[1:]))
        return not bool((blank_at_edge | hexadecimal | ends_apart).any())


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
