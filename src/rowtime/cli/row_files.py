"""Files of rows, read in chunks that fit in memory: CSV with a header, JSON lines, Parquet."""

from __future__ import annotations

import csv
import queue
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from rowtime.client.given_rows import row_of
from rowtime.core.errors import refuse

FORMATS: Final = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
CHUNK: Final = 100_000  # rows: one file of the log per chunk
BLOCK: Final = 1 << 24  # bytes of CSV parsed at a time
PAUSE: Final = 0.2  # seconds without a line after which a pipe's rows are written

Chunk: TypeAlias = pa.Table | list[Mapping[str, Any]]


def chunks_of(file: Path, kind: str, schema: pa.Schema) -> Iterator[Chunk]:
    """Yield the rows of a file in chunks; ``schema`` is that of the stream. ``-`` is standard input.

    Raises ``Refused`` (R206) if the file is not in its format.
    """
    if str(file) == "-":
        return _json_rows(_lines_as_they_come(sys.stdin), "standard input", schema)
    readers = {"csv": _csv, "json": _json, "parquet": _parquet}
    return _refusing(file, readers[kind](file, schema))


def _refusing(file: Path, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    try:
        yield from chunks
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise refuse("R206", f"{file} cannot be read: {str(error).splitlines()[0]}") from None


# -- CSV ------------------------------------------------------------------------------


def _csv(file: Path, schema: pa.Schema) -> Iterator[pa.Table]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        header = next(csv.reader(lines), [])
    if not header:
        return
    declared = {field.name.lower(): field.type for field in schema}
    kinds = {name: _parsed_as(declared.get(name.lower())) for name in header}
    options = pa_csv.ConvertOptions(column_types=kinds, strings_can_be_null=False)
    texts = {name for name in header if pa.types.is_string(declared.get(name.lower(), pa.null()))}
    with pa_csv.open_csv(file, pa_csv.ReadOptions(block_size=BLOCK), convert_options=options) as batches:
        for batch in batches:
            for start in range(0, batch.num_rows, CHUNK):
                yield _nulls(pa.Table.from_batches([batch.slice(start, CHUNK)]), texts)


def _parsed_as(kind: pa.DataType | None) -> pa.DataType:
    """Return the type for numbers and truth values; other values stay text, and the writer converts them."""
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return kind if kind is not None and any(test(kind) for test in plain) else pa.string()


def _nulls(table: pa.Table, texts: set[str]) -> pa.Table:
    """Replace empty cells by null, except in a column of text."""
    columns = [
        pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        if pa.types.is_string(column.type) and name not in texts
        else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


# -- JSON lines -----------------------------------------------------------------------


def _json(file: Path, schema: pa.Schema) -> Iterator[Chunk]:
    with file.open(encoding="utf-8-sig") as lines:
        yield from _json_rows(lines, str(file), schema)


def _json_rows(lines: Iterable[str | None], source: str, schema: pa.Schema) -> Iterator[Chunk]:
    """Yield rows of JSON lines; ``None`` among the lines means that there are no more for now."""
    # With Decimal, so that 1.10 in a DECIMAL column is the file's value.
    exact = any(pa.types.is_decimal(field.type) for field in schema)
    rows: list[Mapping[str, Any]] = []
    number = 0
    for line in lines:
        if line is not None:
            number += 1
            if line.strip():
                rows.append(row_of(line, number, source, exact=exact))
        if rows and (line is None or len(rows) >= CHUNK):
            yield rows
            rows = []
    if rows:
        yield rows


def _lines_as_they_come(pipe: Iterable[str]) -> Iterator[str | None]:
    """Yield the lines of a pipe, and ``None`` whenever it pauses, so that ``tail -f`` is passed on."""
    waiting: queue.Queue[str | None] = queue.Queue(maxsize=CHUNK)

    def read() -> None:
        for line in pipe:
            waiting.put(line)
        waiting.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while True:
        try:
            line = waiting.get(timeout=PAUSE)
        except queue.Empty:
            yield None
            continue
        if line is None:
            return
        yield line


# -- Parquet --------------------------------------------------------------------------


def _parquet(file: Path, schema: pa.Schema) -> Iterator[pa.Table]:  # noqa: ARG001 - the file has its own types
    with pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(batch_size=CHUNK):
            yield pa.Table.from_batches([batch])
