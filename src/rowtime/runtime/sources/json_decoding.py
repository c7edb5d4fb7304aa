"""Decodes plain JSON with Arrow, in a fraction of the time that Spark takes, which reads all other records.

Records are plain if both read them alike. Each is one object in a line of its own, in valid UTF-8, without a column
twice. Its values have the JSON type of their column, so nothing is converted but times: ISO texts with seconds, or
whole numbers. Arrow's parser is stricter than Spark's: it raises an error for anything else, except for what
`_lines_in` looks for: several records in a line, records of several lines, words for numbers, and more than Spark's
parser accepts.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json
from sqlglot import exp

from rowtime.core.time import DAY, MAX_MICROS, MIN_MICROS
from rowtime.expr.store_assignment import type_of
from rowtime.plan.formats.json_values import DECIMALS, PRECISE, RESOLUTION, units_of
from rowtime.runtime.sources.json_numbers import PER_MICRO
from rowtime.runtime.sources.parquet_rows import MICROS
from rowtime.runtime.sources.plain_files import BLOCK, END, KINDS, copied, pieces_of

_ENDINGS: Final = {"", ".json", ".jsonl", ".ndjson", ".txt"}  # other suffixes may mean compression
_SAMPLE: Final = 1 << 13  # bytes by which the forms of times are chosen
_SURE: Final = 1000  # bytes of a record that cannot exceed a limit of Spark's parser
_LONGEST: Final = 50_000  # bytes; a name may have as many
_DEEPEST: Final = 1000  # brackets
_RETURN, _OPEN, _CLOSE, _BRACKET = map(ord, "\r{}[")
_LONG_NUMBER: Final = re.compile(rb"[0-9eE+.-]{1000}")
_NO_NUMBER: Final = (re.compile(rb"NaN\s*[,\]}]"), re.compile(rb"Inf(?:inity)?\s*[,\]}]"))
_OFFSET: Final = "(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])"
_DATE: Final = "^[12][0-9]{3}-[0-9]{2}-[0-9]{2}"
_TIME: Final = f"{_DATE}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?{_OFFSET}?$"

_NO_UNITS: Final[Mapping[str, str]] = {}
_TRIES: Final = 200  # pieces that are not plain, until the rest counts as such
_FEW: Final = 16  # records that are not tried apart

Finish = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class _Column:
    """How a column is decoded: the types that Arrow tries, and what makes its values of them."""

    forms: tuple[pa.DataType, ...]
    finish: Finish


@dataclass(frozen=True)
class PlainJson:
    """How records are decoded, by the names of their columns."""

    columns: Mapping[str, _Column]

    @classmethod
    def of(
        cls, columns: Mapping[str, str], options: Mapping[str, str], other: Mapping[str, str] = _NO_UNITS
    ) -> PlainJson | None:
        """Return the decoder of columns (Spark types by name); ``None`` if a type is not supported.

        ``options``: the stream's (`json_values`); ``other``: units of times without one there, in place of seconds.
        """
        given = {name.lower(): value for name, value in options.items()}
        if not columns or len({name.lower() for name in columns}) < len(columns):
            return None
        units = units_of(given.get(RESOLUTION, ""))
        precise = given.get(DECIMALS, "").lower() == PRECISE
        decoded = {}
        for name, kind in columns.items():
            column = _column(kind, units.get(name.lower(), ""), other.get(name, "SECOND"))
            if column is None or (precise and pa.types.is_decimal(column.forms[0])):
                return None
            decoded[name] = column
        return cls(decoded)

    def decode(self, path: str, target: Path) -> int | None:
        """Write the rows of a file to ``target``; return their number, ``None`` if it is not plain."""
        return copied(path, target, _ENDINGS, self._batches_of)

    def records(self, values: pa.Array) -> tuple[pa.Table | None, np.ndarray]:
        """Return the rows of records (BINARY, without NULLs), and which ones they are; others are not plain."""
        tables, plain, failed = [], np.zeros(len(values), np.bool_), 0
        spans = [(0, len(values))] if len(values) else []
        while spans and failed < _TRIES:
            start, end = spans.pop()
            table = self._table(values.slice(start, end - start))
            if table is not None:
                tables.append(table)
                plain[start:end] = True
                continue
            failed += 1
            if end - start > _FEW:
                middle = (start + end) // 2
                spans += [(middle, end), (start, middle)]  # the earlier half is the next one
        return pa.concat_tables(tables) if tables else None, plain

    def _table(self, values: pa.Array) -> pa.Table | None:
        """Return the rows of records; ``None`` if one of them is not plain."""
        whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        lines = pc.binary_join(whole, b"\n")[0].as_buffer()
        try:
            decoded = self._batches_of(np.frombuffer(lines, np.uint8), len(values))
            return None if decoded is None else pa.Table.from_batches([*decoded[1]], decoded[0])
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None

    def _batches_of(
        self, whole: np.ndarray, records: int | None = None
    ) -> tuple[pa.Schema, Iterable[pa.RecordBatch]] | None:
        lines = _lines_in(whole)
        if lines is None or lines != (lines if records is None else records):
            return None
        forms = self._forms(whole)
        empty = (column.finish(pa.array([], forms.field(name).type)) for name, column in self.columns.items())
        schema = pa.schema([(name, values.type) for name, values in zip(self.columns, empty, strict=True)])
        return schema, self._finished(_opened(whole, forms), schema, lines)

    def _finished(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, lines: int) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lines -= batch.num_rows
            columns = (column.finish(batch.column(name)) for name, column in self.columns.items())
            yield pa.record_batch([*columns], schema=schema)
        if lines:
            raise pa.ArrowInvalid("several records in a line")

    def _forms(self, whole: np.ndarray) -> pa.Schema:
        """Return types with which Arrow parses the first records."""
        sample = whole[:_SAMPLE].tobytes()
        sample = sample if len(whole) <= _SAMPLE else sample[: sample.rfind(b"\n") + 1]
        forms = pa.schema([(name, column.forms[0]) for name, column in self.columns.items()])
        for name, column in self.columns.items():
            if len(column.forms) > 1 and sample:
                forms = _fitting(sample, forms, name, column.forms)
        return forms


def _fitting(sample: bytes, forms: pa.Schema, name: str, tried: Iterable[pa.DataType]) -> pa.Schema:
    """Return ``forms`` with the type of a column with which Arrow parses it alone."""
    for form in tried:
        try:
            for _ in _opened(np.frombuffer(sample, np.uint8), pa.schema([(name, form)])):
                pass
        except pa.ArrowInvalid:
            continue
        return forms.set(forms.get_field_index(name), pa.field(name, form))
    return forms


def _opened(whole: np.ndarray, forms: pa.Schema) -> Iterator[pa.RecordBatch]:
    parse = pa_json.ParseOptions(explicit_schema=forms, unexpected_field_behavior="ignore")
    read = pa_json.ReadOptions(use_threads=False, block_size=BLOCK)
    yield from pa_json.open_json(pa.BufferReader(pa.py_buffer(whole)), read, parse)


def _column(kind: str, unit: str, other: str) -> _Column | None:
    """Return how a column of a type is decoded; ``unit``: of its numbers as declared, ``other``: if none is."""
    form = KINDS.get(kind.strip().upper())
    parsed = type_of(kind)
    if parsed is not None and parsed.this is exp.DType.DECIMAL and len(parsed.expressions) == 2:  # noqa: PLR2004
        form = pa.decimal128(*(int(part.name) for part in parsed.expressions))
    if form is None:
        return None
    if pa.types.is_timestamp(form):
        return _Column((pa.string(), pa.int64()), partial(_instants, unit or other))
    if pa.types.is_date(form):
        return _Column((pa.string(), pa.int64()) if unit else (pa.string(),), _days)
    return _Column((form,), _finite if pa.types.is_floating(form) else _valid)


def _valid(values: pa.Array) -> pa.Array:
    """Return values; raises if one does not fit its type, as a decimal of too many digits."""
    values.validate(full=True)
    return values


def _finite(values: pa.Array) -> pa.Array:
    """Return numbers; Spark reads -0 as 0, but -0.0 as it is."""
    numbers = values.fill_null(1).to_numpy()
    if not np.isfinite(numbers).all() or (np.signbit(numbers) & (numbers == 0)).any():
        raise pa.ArrowInvalid("no finite number, or -0")
    return values


def _instants(unit: str, values: pa.Array) -> pa.Array:
    """Return times from ISO texts, UTC without an offset, or from numbers in a unit."""
    if pa.types.is_string(values.type):
        _all_match(values, _TIME)
        zoned = pc.match_substring_regex(values, f"{_OFFSET}$")
        if not pc.all(zoned).as_py():
            values = pc.if_else(zoned, values, pc.binary_join_element_wise(values, "Z", ""))
        return values.cast(MICROS)
    fewer, more = PER_MICRO[unit]
    _all_within(values, -(-MIN_MICROS * fewer // more), ((MAX_MICROS + 1) * fewer - 1) // more)
    micros = values.fill_null(0).to_numpy() * more // fewer
    return pa.array(micros, pa.int64(), mask=values.is_null().to_numpy(zero_copy_only=False)).cast(MICROS)


def _days(values: pa.Array) -> pa.Array:
    """Return dates from ISO texts, or from days since 1970."""
    if pa.types.is_string(values.type):
        _all_match(values, f"{_DATE}$")
        return values.cast(pa.date32())
    _all_within(values, MIN_MICROS // DAY, MAX_MICROS // DAY)
    return values.cast(pa.int32()).cast(pa.date32())


def _all_match(values: pa.Array, pattern: str) -> None:
    if pc.all(pc.match_substring_regex(values, pattern)).as_py() is False:
        raise pa.ArrowInvalid("a time in another form")


def _all_within(values: pa.Array, least: int, greatest: int) -> None:
    ends = pc.min_max(values).as_py()
    if ends["min"] is not None and not least <= ends["min"] <= ends["max"] <= greatest:
        raise pa.ArrowInvalid("a time outside of the calendar")


def _lines_in(whole: np.ndarray) -> int | None:
    """Return the number of lines, each of which begins and ends as an object; ``None`` if they may not be plain."""
    ends = _line_ends(whole)
    if ends is None:
        return None
    after = ends[ends + 1 < len(whole)] + 1
    before = np.append(ends, len(whole)) if len(after) == len(ends) else ends  # the last line may lack an end
    returns = whole[before - 1] == _RETURN
    before = before - returns
    edges = (whole[before - 1] == _CLOSE).all() and (whole[after] == _OPEN).all() and whole[0] == _OPEN
    if not edges or returns.sum() != sum(np.count_nonzero(piece == _RETURN) for piece in pieces_of(whole)):
        return None
    starts = np.append(0, after)
    return len(starts) if _within_limits(whole, starts, (before - starts).max()) else None


def _line_ends(whole: np.ndarray) -> np.ndarray | None:
    """Return the places of line ends; ``None`` without bytes, or if there may be a word for a number."""
    text, ends, at, words = codecs.getincrementaldecoder("utf-8")(), [], 0, b""
    for piece in pieces_of(whole):
        raw = piece.tobytes()
        text.decode(raw)
        words = words[-len("Infinity") :] + raw
        if any(word in words for word in (b"NaN", b"Inf")) and any(each.search(whole.data) for each in _NO_NUMBER):
            return None
        ends.append(np.flatnonzero(piece == END) + at)
        at += len(piece)
    text.decode(b"", final=True)
    return np.concatenate(ends) if ends else None


def _within_limits(whole: np.ndarray, starts: np.ndarray, longest: int) -> bool:
    """Return True if no record has more than Spark's parser accepts."""
    if longest <= _SURE:
        return True
    opening = (whole == _OPEN) | (whole == _BRACKET)
    deepest = np.add.reduceat(opening, starts, dtype=np.int64).max()
    return bool(longest <= _LONGEST and deepest < _DEEPEST and not _LONG_NUMBER.search(whole.data))
