"""The forms of rows that clients may give: mappings, tables of Arrow, pandas and Polars, lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from rowtime.core.errors import refuse


@runtime_checkable
class ArrowStream(Protocol):
    """A table that Arrow can read without a copy, as in Polars, DuckDB and pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the capsule of the Arrow C stream interface."""


Given: TypeAlias = Iterable[Mapping[str, object]] | ArrowStream | str | bytes
Rows: TypeAlias = Sequence[Mapping[str, object]] | pa.Table

CODE: Final = "R216"
_HINT: Final = (
    "Give a list of dicts, one per row: insert([{…}]); or a table of Arrow, pandas or Polars; "
    "or a text with a JSON object in each line."
)


def as_rows(given: Given, *, exact: bool = False) -> Rows:
    """Return the rows as mappings or as a table; ``exact``: numbers of JSON with a fraction as decimals, not as floats.

    In pandas, NaN and NaT are null, and an index becomes columns if it has names. Raises ``Refused``: R216 for other
    objects, R206 for a DataFrame that Arrow cannot convert and for lines that are not JSON.
    """
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, str | bytes):
        return _lines(given, exact=exact)
    if isinstance(given, Mapping):
        raise refuse(CODE, "insert takes a list of rows, not a single dict", _HINT)
    try:
        if type(given).__module__.partition(".")[0] == "pandas":
            return _of_pandas(given)
        if isinstance(given, ArrowStream | pa.RecordBatch):
            return pa.table(given)
    except pa.ArrowException as error:
        if _is_column(given):
            raise refuse(
                CODE, f"a single column was given ({type(given).__name__}), but insert takes rows", _HINT
            ) from error
        what = f"Arrow rejects the columns: {str(error).splitlines()[0]}"
        raise refuse("R206", what, "Nothing of this insert was written.") from error
    if not isinstance(given, Iterable):
        raise refuse(CODE, f"a value of the type {type(given).__name__} was given, but insert takes rows", _HINT)
    rows = [*given]
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise refuse(CODE, f"row {number} is not a dict but a value of the type {type(row).__name__}", _HINT)
    return rows


def _is_column(given: object) -> bool:
    """Return True for a column of Polars or Arrow; Arrow reads one of structs as a table."""
    return isinstance(given, pa.ChunkedArray) or type(given).__name__ == "Series"


def _of_pandas(given: Any) -> pa.Table:
    """Return a pandas DataFrame as a table, without an index that has no name."""
    if not hasattr(given, "columns"):
        raise refuse(CODE, f"a {type(given).__name__} of pandas was given, but insert takes rows", _HINT)
    return pa.Table.from_pandas(given, preserve_index=any(name is not None for name in given.index.names))


def _lines(text: str | bytes, *, exact: bool) -> list[Mapping[str, object]]:
    """Return the rows of lines of JSON; empty lines are skipped."""
    try:
        lines = (text.decode("utf-8-sig") if isinstance(text, bytes) else text).split("\n")
    except UnicodeDecodeError as error:
        raise refuse("R206", f"the text is not UTF-8: {error}") from None
    return [row_of(line, number, "the text", exact=exact) for number, line in enumerate(lines, 1) if line.strip()]


def row_of(line: str, number: int, source: str, *, exact: bool) -> Mapping[str, Any]:
    """Return the row in a line of JSON. Raises ``Refused`` (R206)."""
    try:
        row = json.loads(line, parse_float=Decimal if exact else float)
    except ValueError as error:
        raise refuse("R206", f"line {number} of {source} is not JSON: {error}") from None
    except RecursionError:
        what = f"line {number} of {source} has more arrays and objects in each other than can be read"
        raise refuse("R206", what, "Leave the nested part out, or send it as a text.") from None
    if not isinstance(row, dict):
        raise refuse("R206", f"line {number} of {source} is not a JSON object")
    return row
