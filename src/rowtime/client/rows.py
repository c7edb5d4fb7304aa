"""Rows as a client gives them, turned into the declared columns of a stream.

Nothing is lost or guessed: a value that its column cannot hold exactly is refused, with its row and column; so is a
column that the stream does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.client.arrow_types import INSTANT, MOST, PADDED, PLAIN_TYPES
from rowtime.client.given_rows import Given, as_rows
from rowtime.client.text_sizes import NESTED, fitting
from rowtime.core.columns import ARRIVAL, BOUND, MALFORMED, POSITION, ROWTIME, WRITER
from rowtime.core.errors import Refused, RowtimeError, refuse
from rowtime.core.time import MAX_MICROS, MIN_MICROS, to_micros

ROWTIME_NAME: Final = "rowtime"
RESERVED: Final = frozenset({POSITION, ARRIVAL, ROWTIME, WRITER, BOUND, MALFORMED})  # columns a source adds

Values: TypeAlias = list[Any] | pa.ChunkedArray
Converter: TypeAlias = Callable[[Any], Any]

_SHOWN: Final = 60  # characters of a value in an error message
# Errors of Arrow and of the converters below for a value that a type cannot hold.
_UNFIT: Final = (pa.ArrowException, Refused, TypeError, ValueError, ArithmeticError)


@dataclass(frozen=True)
class Batch:
    """Rows ready to be stored: their columns, and the rowtimes given (µs UTC, null if none)."""

    columns: pa.Table
    rowtimes: pa.Array

    def __len__(self) -> int:
        return len(self.rowtimes)


def batch(rows: Given, schema: pa.Schema | None = None, rowtime: str | None = None) -> Batch:
    """Return the rows in the form of ``schema``; without one, with the types that Arrow infers.

    Names of columns are case-insensitive; a missing column is null. ``rowtime`` names the column that gives the
    rowtime: it stays a column if the schema has it. By default that is the key ``rowtime``, which is not a column, and
    may be missing. Raises ``Refused``: R205 for an unknown column, R206 for a value that does not convert, R216 for
    other objects.
    """
    rows = as_rows(rows, exact=schema is not None and any(pa.types.is_decimal(field.type) for field in schema))
    given = _table_columns(rows) if isinstance(rows, pa.Table) else _row_columns(rows)
    times = _rowtimes(given, rowtime, len(rows))
    if RESERVED & given.keys():
        raise refuse("R205", f"{', '.join(sorted(RESERVED & given.keys()))}: these names are reserved for rowtime")
    if schema is None:
        return Batch(_inferred(given), times)
    _check_known(given, schema, (rowtime or ROWTIME_NAME).lower())
    missing = [None] * len(rows)
    arrays = [_column(given.get(field.name.lower(), missing), field) for field in schema]
    return Batch(pa.Table.from_arrays(arrays, schema=pa.schema([field.remove_metadata() for field in schema])), times)


def value_of(value: object, field: pa.Field) -> pa.Scalar:
    """Return one value as its column stores it. Raises ``Refused`` (R206) if it does not convert."""
    return _column([value], field)[0]


def _row_columns(rows: Sequence[Mapping[str, object]]) -> dict[str, list[Any]]:
    """Return the values of each column by its lower-cased name, in the order first seen."""
    spellings: dict[str, list[Any]] = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        spellings.setdefault(str(key).lower(), []).append(key)
    return {name: _values(rows, keys) for name, keys in spellings.items()}


def _values(rows: Sequence[Mapping[str, object]], keys: list[Any]) -> list[Any]:
    if len(keys) == 1:
        return [row.get(keys[0]) for row in rows]
    return [next((row[key] for key in keys if key in row), None) for row in rows]


def _table_columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name.lower(): table.column(i) for i, name in enumerate(table.column_names)}


def _rowtimes(given: Mapping[str, Values], name: str | None, count: int) -> pa.Array:
    values = given.get((name or ROWTIME_NAME).lower())
    if values is None:
        if name is not None and count:
            raise refuse("R205", f"no row has the column {name} that should give the rowtime")
        return pa.nulls(count, INSTANT)
    array = _column(values, pa.field(ROWTIME_NAME, INSTANT))
    _check_years(array)
    return array


def _check_years(times: pa.Array) -> None:
    micros = times.cast(pa.int64())
    outside = pc.or_(pc.less(micros, MIN_MICROS), pc.greater(micros, MAX_MICROS))
    row = pc.index(outside, value=True).as_py()
    if row >= 0:
        raise _unfit(
            row, pa.field(ROWTIME_NAME, INSTANT), f"{micros[row]} µs", "it lies outside the years 0001 to 9999"
        )


def _check_known(given: Iterable[str], schema: pa.Schema, rowtime: str) -> None:
    columns = {name.lower() for name in schema.names}
    unknown = [name for name in given if name not in columns and name != rowtime]
    if unknown:
        raise refuse(
            "R205",
            f"the stream has no column {', '.join(unknown)}",
            f"Its columns are {', '.join(schema.names)}. Use the key rowtime for the rowtime of a row.",
        )


def _inferred(given: Mapping[str, Values]) -> pa.Table:
    """Return columns of inferred types; one without any value is omitted: it reads as null anyway."""
    columns = ((name, values) for name, values in given.items() if name != ROWTIME_NAME)
    arrays = {name: _column(values, pa.field(name, pa.null())) for name, values in columns}
    return pa.table({name: array for name, array in arrays.items() if not pa.types.is_null(array.type)})


def _column(values: Values, field: pa.Field) -> pa.Array:
    """Return one column; if it does not convert, the error names the first bad value."""
    convert = _caster(field.type) if isinstance(values, pa.ChunkedArray) else _builder(field.type)
    try:
        array = convert(values)
    except _UNFIT as error:
        row = _first_unfit(values, convert)
        value = values[row].as_py() if isinstance(values, pa.ChunkedArray) else values[row]
        raise _unfit(row, field, _shown(value), reason(value, field.type, error)) from error
    if array.null_count and not field.nullable:
        raise _unfit(pc.index(array.is_null(), value=True).as_py(), field, "null", "it is declared NOT NULL")
    return _in_size(array, field)


def _in_size(array: pa.Array, field: pa.Field) -> pa.Array:
    """Trim or pad texts of a CHAR or VARCHAR to its length (semantics 10)."""
    sizes = field.metadata or {}
    if NESTED in sizes:
        fit = fitting(sizes[NESTED])
        values = array.to_pylist()
        try:
            return pa.array([fit(value) for value in values], array.type)
        except ValueError as error:
            row = _first_unfit(values, lambda some: [fit(value) for value in some])
            raise _unfit(row, field, _shown(values[row]), str(error)) from error
    if MOST not in sizes:
        return array
    most = int(sizes[MOST])
    rest = pc.utf8_rtrim(pc.utf8_slice_codeunits(array, most), " ")
    row = pc.index(pc.greater(pc.utf8_length(rest), 0), value=True).as_py()
    if row >= 0:
        raise _unfit(row, field, _shown(array[row]), f"it has more than {most} characters")
    array = pc.utf8_slice_codeunits(array, 0, most)
    return pc.utf8_rpad(array, most) if PADDED in sizes else array


def _first_unfit(values: Values, convert: Converter) -> int:
    """Return the row of the first bad value: the longest prefix that converts ends before it."""
    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            convert(values[:middle])
            good = middle
        except _UNFIT:
            bad = middle
    return good


def _shown(value: object) -> str:
    try:
        text = repr(value.as_py() if isinstance(value, pa.Scalar) else value)
    except RecursionError:
        return "a value with too many arrays and objects in each other"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _unfit(row: int, field: pa.Field, value: str, why: str) -> Refused:
    kind = "" if pa.types.is_null(field.type) else f" ({sql_type(field.type)})"
    return refuse(
        "R206",
        f"row {row}, column {field.name}{kind}: {value} does not fit: {why}",
        "Rows count from 0. Nothing of this insert was written.",
    )


def _builder(kind: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    """Return a function that makes an array of this type from a list of Python values."""
    if pa.types.is_null(kind):
        return lambda values: _one_chunk(pa.array(values))
    convert = _converter(kind)
    if convert is None:
        return lambda values: _one_chunk(pa.array(values, kind))
    return lambda values: _one_chunk(pa.array([None if v is None else convert(v) for v in values], kind))


def _caster(kind: pa.DataType) -> Callable[[pa.ChunkedArray], pa.Array]:
    """Return a function that makes an array of this type from a column of an Arrow table.

    Between kinds, Arrow's casts have rules of their own (1 to '1', true to 1): these values are converted as Python
    values, so that both ways accept and refuse the same.
    """
    build = _builder(kind)

    def cast(column: pa.ChunkedArray) -> pa.Array:
        if pa.types.is_null(kind):
            return _one_chunk(column)
        return _one_chunk(column.cast(kind)) if _same_kind(column.type, kind) else build(column.to_pylist())

    return cast


def _one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _same_kind(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return one.tz is None or other.tz is not None
    return one == other or any(kind(one) and kind(other) for kind in _KINDS)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


_KINDS: Final = (_is_number, _is_text, pa.types.is_decimal, pa.types.is_date)


def _converter(kind: pa.DataType) -> Converter | None:
    """Return a converter from a Python value, not null, to one that Arrow converts exactly; ``None``: as it is."""
    if pa.types.is_integer(kind):
        return _whole
    if pa.types.is_floating(kind):
        return _number
    for applies, convert in _CONVERTERS:
        if applies(kind):
            return convert(kind)
    return None


def _whole(value: Any) -> Any:
    """Check an integer: Arrow itself would cut 1.5 to 1."""
    if isinstance(value, float | Decimal) and value != int(value):
        raise ValueError("it has a fraction")
    return int(value) if isinstance(value, Decimal) else value


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError("it is a boolean")
    return float(value) if isinstance(value, Decimal) else value


def _decimal(value: Any) -> Any:
    """Convert through text, so that the float 1.1 is 1.1."""
    if isinstance(value, bool):
        raise TypeError("it is a boolean")
    return Decimal(str(value))


def _instant(value: Any) -> Any:
    """Convert an instant: infinity is a bound, never the time of a row."""
    micros = to_micros(value)
    if not MIN_MICROS <= micros <= MAX_MICROS:
        raise ValueError("it lies outside the years 0001 to 9999")
    return micros


def _local(value: Any) -> Any:
    """Convert a local timestamp, which has no zone: a value with one does not fit."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise ValueError("it has a time zone, and the column has none")
    return _instant(value)


def _day(value: Any) -> Any:
    if isinstance(value, datetime):
        raise TypeError("it is a timestamp, and the column is a date")
    return date.fromisoformat(value.strip()) if isinstance(value, str) else value


def _list(kind: pa.DataType) -> Converter:
    convert = _or_null(kind.value_type)
    return lambda values: [convert(value) for value in values]


def _map(kind: pa.DataType) -> Converter:
    key, item = _or_null(kind.key_type), _or_null(kind.item_type)
    return lambda value: [(key(k), item(v)) for k, v in (value.items() if isinstance(value, Mapping) else value)]


def _struct(kind: pa.DataType) -> Converter:
    fields = {field.name: _or_null(field.type) for field in kind}

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise TypeError("it has no fields")
        unknown = value.keys() - fields.keys()
        if unknown:
            raise ValueError(f"it has no field {', '.join(sorted(map(str, unknown)))}")
        return {name: into(value.get(name)) for name, into in fields.items()}

    return convert


def _or_null(kind: pa.DataType) -> Converter:
    convert = _converter(kind)
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


_CONVERTERS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Converter]], ...]] = (
    (pa.types.is_decimal, lambda _: _decimal),
    (pa.types.is_timestamp, lambda kind: _instant if kind.tz else _local),
    (pa.types.is_date, lambda _: _day),
    (pa.types.is_list, _list),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
)


_NAMES: Final = {kind: name for name, kind in [*PLAIN_TYPES.items()][::-1]}  # of several names, the first one

_GIVEN: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (bool, "a boolean"),
    ((int, float, Decimal), "a number"),
    (str, "a text"),
    ((bytes, bytearray), "bytes"),
    (datetime, "a timestamp"),
    (date, "a date"),
    ((list, tuple), "a list"),
    (dict, "a mapping"),
)
_TAKEN: Final[tuple[tuple[Callable[[pa.DataType], bool], tuple[str, ...]], ...]] = (
    (pa.types.is_integer, ("a number",)),
    (pa.types.is_floating, ("a number",)),
    (pa.types.is_decimal, ("a number", "a text")),
    (pa.types.is_boolean, ("a boolean",)),
    (pa.types.is_string, ("a text",)),
    (pa.types.is_binary, ("bytes",)),
)


def sql_type(kind: pa.DataType) -> str:
    """Return the SQL name of an Arrow type."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_map(kind):
        return f"MAP<{sql_type(kind.key_type)}, {sql_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {sql_type(field.type)}' for field in kind)}>"
    return _NAMES.get(kind, str(kind))


def reason(value: object, kind: pa.DataType, error: BaseException) -> str:
    """Return why a value does not fit a type, after ``error`` was raised for it."""
    given = next((name for types, name in _GIVEN if isinstance(value, types)), "")
    taken = next((names for applies, names in _TAKEN if applies(kind)), ())
    if given and taken and given not in taken:
        return f"it is {given}, and the column takes {taken[0]}"
    if pa.types.is_timestamp(kind) and isinstance(value, str) and isinstance(error, RowtimeError):
        return "it is not a timestamp, such as 2024-01-31 23:59:59.123456"
    if pa.types.is_date(kind) and isinstance(value, str):
        return "it is not a date, such as 2024-01-31"
    if isinstance(error, pa.ArrowException) and pa.types.is_integer(kind):
        return "it has a fraction" if isinstance(value, float) and value % 1 else "it is out of range"
    if isinstance(error, pa.ArrowException | ArithmeticError) and pa.types.is_decimal(kind):
        return "it is not a number" if given == "a text" and not _is_numeral(value) else "it has too many digits"
    return error.problems[0].message if isinstance(error, RowtimeError) else str(error).splitlines()[0]


def _is_numeral(value: object) -> bool:
    try:
        Decimal(str(value))
    except ArithmeticError:
        return False
    return True
