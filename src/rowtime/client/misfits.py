"""Why a value does not fit a column, in words and with the types of SQL, as the user declared them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa

from rowtime.client.arrow_types import PLAIN_TYPES
from rowtime.core.errors import RowtimeError

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
        return "it is not a number" if given == "a text" and not _is_number(value) else "it has too many digits"
    return error.problems[0].message if isinstance(error, RowtimeError) else str(error).splitlines()[0]


def _is_number(value: object) -> bool:
    try:
        Decimal(str(value))
    except ArithmeticError:
        return False
    return True
