"""Bounds of columns of declared order, as items of a stream log.

An item is a JSON object: the ``column``, and ``at``, the value that no later row is behind: whole numbers as they are,
times in µs, decimals as text. A strict bound is stored as a plain one at the next value of the column's type.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from rowtime.client.rows import value_of
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.ordered_columns import OrderedColumn
from rowtime.core.time import BEGINNING, END

_DAY: Final = 86_400_000_000  # µs


def item(column: OrderedColumn, kind: pa.DataType, at: object, *, strict: bool) -> str:
    """Return the text of an item. Raises ``Refused`` (R206) for a value that does not fit the column."""
    value = value_of(at, pa.field(column.name, kind))
    if not value.is_valid or (pa.types.is_floating(kind) and math.isnan(value.as_py())):
        raise _unfit(column, at, "it has no place in an order")
    bound = _next(column, value, at) if strict else _plain(value)
    if pa.types.is_integer(kind) and not BEGINNING < bound < END:
        raise _unfit(column, at, "orders are checked between -2^62 and 2^62")
    return json.dumps({"column": column.name, "at": bound})


def item_text(data: bytes, place: object) -> str:
    """Return the text of an item in a log; ``place``: where it is. Raises ``Failure`` (R501) if it is invalid."""
    text, content = "", None
    with suppress(ValueError):
        text = data.decode()
        content = json.loads(text)
    if not isinstance(content, dict) or content.keys() != {"column", "at"} or not isinstance(content["column"], str):
        raise Failure(Problem("R501", f"{place} is not a valid bound of a column"))
    return text


def from_text(text: str, column: str, schema: pa.Schema) -> object:
    """Return a value that is given as text: numbers and truth values as such, others as text."""
    kind = next((field.type for field in schema if field.name.lower() == column.lower()), pa.string())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        try:
            return pa.scalar(text.strip()).cast(kind).as_py()
        except ValueError:  # Arrow's error is one, and that of invalid Unicode
            return text
    return text


def _plain(value: pa.Scalar) -> Any:
    if pa.types.is_timestamp(value.type):
        return value.cast(pa.int64()).as_py()
    if pa.types.is_date(value.type):
        return value.cast(pa.int32()).as_py() * _DAY
    plain = value.as_py()
    if isinstance(plain, float):
        return plain + 0.0  # both zeros are equal
    return str(plain) if isinstance(plain, Decimal) else plain


def _next(column: OrderedColumn, value: pa.Scalar, at: object) -> Any:
    """Return the next value in the direction of the order."""
    kind, plain, step = value.type, _plain(value), -1 if column.descending else 1
    if pa.types.is_date(kind):
        return plain + step * _DAY
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return plain + step
    if pa.types.is_decimal(kind):
        return str(Decimal(plain) + Decimal(step).scaleb(-kind.scale))
    if pa.types.is_floating(kind) and not math.isinf(plain):
        return _neighbour(plain, kind, step)
    if pa.types.is_string(kind) and not column.descending:
        return f"{plain}\0"
    if pa.types.is_boolean(kind) and plain == column.descending:
        return not plain
    raise _unfit(column, at, "no value follows it, so STRICT means nothing")


def _neighbour(value: float, kind: pa.DataType, step: int) -> float:
    if pa.types.is_float64(kind):
        return math.nextafter(value, step * math.inf)
    import numpy as np  # noqa: PLC0415 - only for this

    return float(np.nextafter(np.float32(value), np.float32(step * math.inf)))


def _unfit(column: OrderedColumn, at: object, why: str) -> Exception:
    return refuse("R206", f"the bound {at!r} does not fit {column.name} ({column.type}): {why}", "Use another value.")
