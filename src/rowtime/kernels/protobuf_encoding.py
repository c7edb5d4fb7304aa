"""Encodes Arrow rows as Protobuf messages: each field as one column of bytes, and the columns joined.

It writes what Protobuf's own writers write, in the order of the numbers: fields that are NULL, and those without
presence that have their zero value, are omitted.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import SECOND
from rowtime.kernels.protobuf_types import WIRE_OF, Field, Form, Message, Repeats
from rowtime.kernels.varints import written_varints, zigzag
from rowtime.kernels.wire_tokens import LENGTH

_EMPTY: Final = pa.scalar(b"", pa.binary())
_WIDTHS: Final = {"float": 4, "sfixed32": 4, "fixed32": 4, "double": 8, "sfixed64": 8, "fixed64": 8}
_FORMS: Final = {
    "float": "<f4", "sfixed32": "<i4", "fixed32": "<u4", "double": "<f8", "sfixed64": "<i8", "fixed64": "<u8"
}  # fmt: skip
_NANOS: Final = 1000  # in a µs


def encode(message: Message, rows: pa.StructArray) -> pa.BinaryArray:
    """Return rows as messages, by the names of their fields; missing columns are in no message.

    Raises ``ValueError`` for a NULL inside of an array or a map.
    """
    members = {field.name for field in rows.type}
    fields = sorted((one for one in message.fields if one.name in members), key=lambda one: one.number)
    pieces = [_field(one, rows.field(one.name)) for one in fields]
    if not pieces:
        return pa.array([b""] * len(rows), pa.binary())
    return pc.binary_join_element_wise(*pieces, _EMPTY) if len(pieces) > 1 else pieces[0]


def _field(field: Field, values: pa.Array) -> pa.BinaryArray:
    """Return the bytes of a field in each message."""
    if field.repeats is Repeats.ONCE:
        absent = values.is_null().to_numpy(zero_copy_only=False)
        bodies, zero = _bodies(field, values)
        if not field.presence and not field.required and not field.filled and zero is not None:
            absent = absent | zero
        whole = _tagged(field, field.wire, bodies)
        return pc.if_else(pa.array(absent), _EMPTY, whole) if absent.any() else whole
    counts = pc.fill_null(pc.list_value_length(_as_list(values)), 0).to_numpy().astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(counts)])
    elements = _as_list(values).flatten()
    _without_nulls(field, elements)
    if field.repeats is Repeats.MANY and field.packed and _is_number(field):
        bodies, _ = _bodies(field, elements)
        whole = _tagged(field, LENGTH, _sized(_grouped(bodies, ends)))
        return pc.if_else(pa.array(counts == 0), _EMPTY, whole)
    if field.repeats is Repeats.MAP:
        assert field.message is not None
        _without_nulls(field, elements.field(1))
        bodies = _sized(encode(field.message, elements))
    else:
        bodies, _ = _bodies(field, elements)
    return _grouped(_tagged(field, field.wire, bodies), ends)


def _as_list(values: pa.Array) -> pa.ListArray:
    if not pa.types.is_map(values.type):
        return values
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    entries = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])[first:last]
    offsets = pc.subtract(values.offsets, first)
    return pa.ListArray.from_arrays(offsets, entries, mask=values.is_null())


def _without_nulls(field: Field, elements: pa.Array) -> None:
    if elements.null_count:
        raise ValueError(f"{field.name} has a NULL inside, which Protobuf cannot have")


def _is_number(field: Field) -> bool:
    return WIRE_OF[field.kind] != LENGTH and field.message is None


def _bodies(field: Field, values: pa.Array) -> tuple[pa.BinaryArray, np.ndarray | None]:
    """Return the values after the tags (anything for NULL), and which are zero, if they have a zero value."""
    message = field.message
    if message is not None and message.form in (Form.TIMESTAMP, Form.DURATION):
        return _sized(_time(message, values)), None
    if message is not None and message.form is Form.WRAPPER:
        return _sized(encode(message, pa.StructArray.from_arrays([values], [message.fields[0].name]))), None
    if message is not None:
        return _sized(encode(message, values)), None
    if field.kind in ("string", "bytes"):
        texts = pc.fill_null(values, "" if field.kind == "string" else b"")
        bodies = texts.cast(pa.binary())
        return _sized(bodies), np.diff(_offsets(bodies)) == 0
    return _numbers(field.kind, _of_names(field, values) if field.kind == "enum" else values)


def _of_names(field: Field, values: pa.Array) -> pa.Array:
    """Return the numbers of the names of an enum; digits stand for a number without a name."""
    numbers = {name: number for number, name in field.names.items()}
    given = pc.dictionary_encode(pc.fill_null(values, next(iter(numbers))))
    values_of_names = [numbers[text] if text in numbers else int(text) for text in given.dictionary.to_pylist()]
    taken = pa.array(values_of_names, pa.int64()).take(given.indices)
    return pc.if_else(values.is_null(), pa.scalar(0, pa.int64()), taken)


def _numbers(kind: str, values: pa.Array) -> tuple[pa.BinaryArray, np.ndarray]:
    plain = values.cast(pa.uint64()) if kind in ("uint64", "fixed64") else values
    filled = pc.fill_null(plain, False if kind == "bool" else 0)
    numbers = filled.to_numpy(zero_copy_only=False)
    if kind in _WIDTHS:
        width = _WIDTHS[kind]
        data = numbers.astype(_FORMS[kind])
        offsets = np.arange(len(data) + 1) * width
        return _binary(offsets, data.view(np.uint8)), data.view(f"<u{width}") == 0
    if kind in ("sint32", "sint64"):
        unsigned = zigzag(numbers.astype(np.int64))
    else:
        unsigned = numbers if numbers.dtype == np.uint64 else numbers.astype(np.int64).view(np.uint64)
    data, offsets = written_varints(unsigned)
    return _binary(offsets, data), unsigned == 0


def _time(message: Message, values: pa.Array) -> pa.BinaryArray:
    """Return seconds and nanoseconds; in a duration both have its sign."""
    micros = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
    if message.form is Form.TIMESTAMP:
        seconds, rest = np.divmod(micros, SECOND)
    else:
        seconds = np.sign(micros) * (np.abs(micros) // SECOND)
        rest = micros - seconds * SECOND
    parts = [pa.array(seconds), pa.array((rest * _NANOS).astype(np.int32))]
    return encode(message, pa.StructArray.from_arrays(parts, [field.name for field in message.fields]))


def _tagged(field: Field, wire: int, bodies: pa.BinaryArray) -> pa.BinaryArray:
    """Return bodies after the tag of their field."""
    data, _ = written_varints(np.array([field.number << 3 | wire], np.uint64))
    return pc.binary_join_element_wise(pa.scalar(data.tobytes(), pa.binary()), bodies, _EMPTY)


def _sized(bodies: pa.BinaryArray) -> pa.BinaryArray:
    """Return bodies after their lengths."""
    data, offsets = written_varints(np.diff(_offsets(bodies)))
    return pc.binary_join_element_wise(_binary(offsets, data), bodies, _EMPTY)


def _grouped(elements: pa.BinaryArray, ends: np.ndarray) -> pa.BinaryArray:
    """Return the bytes of several elements as one; ``ends`` separate them."""
    return pa.BinaryArray.from_buffers(
        pa.binary(),
        len(ends) - 1,
        [None, pa.py_buffer(_offsets(elements)[ends]), elements.buffers()[2] or pa.py_buffer(b"")],
    )


def _offsets(column: pa.BinaryArray) -> np.ndarray:
    if not len(column):
        return np.zeros(1, np.int32)
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]


def _binary(offsets: np.ndarray, data: np.ndarray) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)
