"""The form of the files that a directory sink writes: Parquet or lines of text, and the compression."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal, cast

from rowtime.core.stores import Place
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.plan.bind.sink_options import LakeOptions, partitions_of
from rowtime.plan.formats.files import PARQUET_CODECS, ROWS_PER_FILE, TEXT_CODECS, WRITES
from rowtime.plan.formats.lake import LAKES
from rowtime.sql.generate import literal

FUNCTIONS: Final = {"csv": "to_csv", "json": "to_json"}
LARGEST: Final = 256 << 20  # bytes at which a file in a partition folder is full
_OPENED: Final[Mapping[str, Callable[[Path, str], object]]] = {"": Path.open, ".gz": gzip.open, ".bz2": bz2.open}
# Spark's own defaults truncate times to milliseconds, and trim blanks of a text in CSV.
_TIMES: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_AS_TOLD: Final[Mapping[str, Mapping[str, str]]] = {
    "csv": {**_TIMES, "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"},
    "json": _TIMES,
}


@dataclass(frozen=True)
class FileForm:
    """``kind``: ``parquet``, or the suffix of text files, each of which begins with ``header``.

    ``codec``: Arrow's name for Parquet, empty for its default; the suffix of a compressed text file. ``split``: columns
    in which all rows of a file have the same values; ``required``: columns that the file declares non-null. ``most``:
    the greatest number of rows in a file; 0 for any number. ``folders``: the names of folders have the values of
    ``split``, and the files do not. ``largest``: a file with so many bytes is full, whatever rows follow; 0 for any
    number. ``dictionary``: whether Parquet uses dictionaries for repeated values, which makes a file smaller and takes
    twice as long.
    """

    kind: str = "parquet"
    header: str | None = None
    codec: str = ""
    split: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    most: int = 0
    folders: bool = False
    largest: int = 0
    dictionary: bool = True

    @classmethod
    def of(cls, node: SinkNode, names: Sequence[str]) -> FileForm:
        """Return the form of a sink's files, whose columns have these names."""
        given = {name.lower(): value for name, value in node.options}
        codec = given.get("compression", given.get("codec", given.get("parquet.compression", ""))).lower()
        most = int(given.get(ROWS_PER_FILE.lower(), 0))
        split = partitions_of(node.format, node.options)
        largest = LARGEST if split else 0  # one task has all rows of a folder
        if node.format not in FUNCTIONS:
            parquet_codec = PARQUET_CODECS.get(codec, "")
            return cls(
                codec=parquet_codec, split=split or _split(node), most=most, folders=bool(split), largest=largest
            )
        names = [name for name in names if name not in split]
        header = _header(names, given) if node.format == "csv" and given.get("header", "").lower() == "true" else None
        codec = TEXT_CODECS.get(codec, "")
        return cls(node.format, header, codec, split, most=most, folders=bool(split), largest=largest)

    @property
    def ending(self) -> str:
        """Return the suffix of a file's name."""
        return f".{self.kind}{self.codec if self.kind in FUNCTIONS else ''}"

    def opened(self, path: Path) -> IO[bytes]:
        """Open a new text file, and write the header."""
        file = cast("IO[bytes]", _OPENED[self.codec](path, "wb"))
        if self.header is not None:
            file.write((self.header + "\n").encode())
        return file


def lines_of(file: Place) -> list[str]:
    """Return the lines of a text file, compressed or not."""
    opened = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(file.suffix, bytes)
    return opened(file.read_bytes()).decode().split("\n")[:-1]


def writer_options(kind: str, options: Sequence[tuple[str, str]]) -> str:
    """Return the options of ``to_csv`` or ``to_json``, as a map in SQL."""
    spelled = {name.lower(): name for name in WRITES[kind]}
    given_options = {spelled[name.lower()]: value for name, value in options if name.lower() in spelled}
    if kind == "csv":
        given_options.update(("sep", value) for name, value in options if name.lower() == "delimiter")
    pairs = (f"{literal(name)}, {literal(value)}" for name, value in {**_AS_TOLD[kind], **given_options}.items())
    return f"map({', '.join(pairs)})"


def _split(node: SinkNode) -> tuple[str, ...]:
    """Return the columns that split the files of a lake table, unless its rows are merged."""
    lake = LakeOptions.of(dict(node.options)) if node.format in LAKES else None
    return () if lake is None or lake.key else lake.partitions


def _header(names: Sequence[str], given: Mapping[str, str]) -> str:
    """Return the first line of a CSV file; names are quoted if necessary."""
    line = io.StringIO()
    separator = given.get("sep", given.get("delimiter", ",")).replace("\\t", "\t")
    quote = given.get("quote", '"')
    if not quote:
        return separator.join(names)
    whole = given.get("quoteall", "").lower() == "true"
    style: Literal[0, 1] = csv.QUOTE_ALL if whole else csv.QUOTE_MINIMAL
    csv.writer(line, delimiter=separator, quotechar=quote, quoting=style, lineterminator="").writerow(names)
    return line.getvalue()
