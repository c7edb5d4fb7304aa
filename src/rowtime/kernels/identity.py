"""Numbers that distinguish values like Spark: NULL equals NULL, NaN equals NaN, both zeros are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.kernels.frames import Ints

_WORD = 8  # bytes of a number
_CLOSE = 1 << 40


def numbered(column: pa.Array) -> Ints:
    """Return a number for each value, the same for equal ones; NULL has one of its own."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_struct(kind):
        parts = [np.asarray(pc.cast(pc.is_valid(column), pa.int64()))]
        return together([*parts, *map(numbered, column.flatten())])
    if pa.types.is_nested(kind):
        return _of_lists(column)
    column = plain(column)
    return np.asarray(pc.dictionary_encode(column, null_encoding="encode").indices).astype(np.int64)


def compact(column: pa.Array) -> Ints:
    """Return numbers as above; for whole numbers close to each other these are the values, counted from the least."""
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        values = column.to_numpy()
        least, most = int(values.min()), int(values.max())
        if most - least < _CLOSE:
            codes: Ints = values.astype(np.int64) - least
            return codes
    return numbered(column)


def together(parts: Sequence[Ints]) -> Ints:
    """Return a number for each combination of numbers from 0 on."""
    joint = np.zeros(len(parts[0]), np.int64)
    for codes in parts:
        if joint.any():
            _, joint = np.unique(joint * (int(codes.max()) + 1) + codes, return_inverse=True)
        else:
            joint = codes
    return joint


def summed(columns: Sequence[pa.ChunkedArray], weights: Ints) -> tuple[Ints, Ints]:
    """Return the first place of each combination of values whose weights do not cancel out, and their sums.

    It is faster if rows that are equal in the first column with several values are equal in all of them.
    """
    arrays = [column.combine_chunks() for column in columns if only_value(column) is None]
    joint = np.zeros(len(weights), np.int64)
    if arrays and pa.types.is_integer(arrays[0].type) and not arrays[0].null_count:
        joint = arrays[0].to_numpy()
    _, first, of = np.unique(joint, return_index=True, return_inverse=True)
    if not all(_alike(array, array.take(pa.array(first[of]))) for array in arrays):
        joint = together([*map(compact, arrays)])
        _, first, of = np.unique(joint, return_index=True, return_inverse=True)
    sums = np.zeros(len(first), np.int64)
    np.add.at(sums, of, weights)
    left = np.flatnonzero(sums)
    return first[left], sums[left]


def _alike(one: pa.Array, other: pa.Array) -> bool:
    """Return True if values are equal, or both NULL."""
    equal = pc.fill_null(pc.equal(one, other), fill_value=False)
    return bool(pc.all(pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other)))).as_py() is not False)


def only_value(column: pa.ChunkedArray) -> Any:
    """Return the value that all rows have, if they have one; this takes a tenth of the time of counting values."""
    value = column[0] if len(column) and not column.null_count else None
    if value is None or value != column[-1]:
        return None
    return value.as_py() if all(_is_everywhere(value, chunk) for chunk in column.chunks) else None


def _is_everywhere(value: pa.Scalar, values: pa.Array) -> bool:
    """Return True if all of some values equal one; texts of one length are compared at once, as bytes."""
    if not pa.types.is_string(values.type) or not len(values):
        return pc.all(pc.equal(values, value)).as_py() is not False
    _, ends, texts = values.buffers()
    at = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    length = int(at[1] - at[0])
    if values[0] != value or not (at[1:] - at[:-1] == length).all():
        return False
    repeated = np.frombuffer(texts, np.uint8)[at[0] : at[-1]] if length else np.zeros(0, np.uint8)
    return bool((repeated[length:] == repeated[: len(repeated) - length]).all())


def plain(column: pa.Array) -> pa.Array:
    """Return the same values with the same bits for values that Spark considers equal."""
    if not pa.types.is_floating(column.type):
        return column
    zeros = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(zeros), pa.scalar(float("nan"), column.type), zeros)


def _of_lists(column: pa.Array) -> Ints:
    """Return each list as the bytes of the numbers of its elements."""
    ends, values = unfolded(column)
    data = np.ascontiguousarray(numbered(values))
    buffers: list[Any] = [None, pa.py_buffer(np.ascontiguousarray(ends * _WORD)), pa.py_buffer(data)]
    binary = pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    codes = np.asarray(pc.dictionary_encode(binary).indices).astype(np.int64)
    return np.where(np.asarray(pc.is_valid(column)), codes + 1, 0)


def unfolded(column: pa.Array) -> tuple[Ints, pa.Array]:
    """Return the elements of lists (of maps: the entries), one after the other, and where each list begins and ends."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(_as_list(column)), 0)).astype(np.int64)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))), _as_list(column).flatten()


def _as_list(column: pa.Array) -> pa.Array:
    if not pa.types.is_map(column.type):
        return column
    entries = pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)]))
    return column.cast(entries)
