"""Encodes Arrow rows as Protobuf messages: gives them the form that ptars writes.

Fields that are NULL, and those without presence that have their zero value, are omitted.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import SECOND
from rowtime.kernels.protobuf_descriptors import columns_of, named
from rowtime.kernels.protobuf_types import Field, Form, Message, Repeats, Wanted

_FLOATS: Final = {"float": np.uint32, "double": np.uint64}
_KINDS: Final = {
    **dict.fromkeys(("uint32", "fixed32"), pa.uint32()),
    **dict.fromkeys(("uint64", "fixed64"), pa.uint64()),
    "string": pa.string(),
    "bytes": pa.binary(),
}
"""The types that ptars takes, if rows may have others."""
_NANOS: Final = 1000  # in a µs


class Writer:
    """Encodes structs of a type by the names of their fields; missing columns are in no message."""

    def __init__(self, message: Message, kind: pa.StructType) -> None:
        self._message = message
        self._rows = columns_of(message, _wanted(message, kind))[0]

    def write(self, rows: pa.StructArray) -> pa.BinaryArray:
        """Return rows as messages. Raises ``ValueError`` for a NULL inside of an array or a map."""
        columns = _columns(self._message, rows)
        if not columns:
            return pa.array([b""] * len(rows), pa.binary())
        return self._rows.record_batch_to_array(pa.RecordBatch.from_pydict(columns))


def _wanted(message: Message, kind: pa.DataType) -> Wanted:
    """Return the fields of a message that a struct has."""
    fields = {}
    for field in message.fields:
        place = kind.get_field_index(field.name)
        if place >= 0:
            fields[field.number] = _below(field, kind.field(place).type)
    return Wanted(fields)


def _below(field: Field, kind: pa.DataType) -> Wanted:
    if field.message is None:
        return Wanted()
    if field.repeats is Repeats.MAP:
        key, value = field.message.fields
        return Wanted({key.number: Wanted(), value.number: _inside(value, kind.item_type)})
    return _inside(field, kind.value_type if field.repeats is Repeats.MANY else kind)


def _inside(field: Field, kind: pa.DataType) -> Wanted:
    message = field.message
    if message is not None and message.form is Form.STRUCT:
        return _wanted(message, kind)
    return Wanted({part.number: Wanted() for part in message.fields} if message is not None else {})


def _columns(message: Message, rows: pa.StructArray) -> dict[str, pa.Array]:
    members = {field.name for field in rows.type}
    return {
        named(field.number): _column(field, rows.field(field.name)) for field in message.fields if field.name in members
    }


def _column(field: Field, values: pa.Array) -> pa.Array:
    if field.repeats is Repeats.ONCE:
        if field.kind in _FLOATS and not field.presence and not field.required:
            bits = pc.fill_null(values, 0).to_numpy().view(_FLOATS[field.kind])
            return pc.if_else(pa.array(bits == 0), pa.scalar(None, values.type), values)
        return _values(field, values)
    values = _as_list(values)
    counts = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    elements = values.flatten()
    if field.repeats is Repeats.MANY:
        _without_nulls(field, elements)
        return pa.ListArray.from_arrays(offsets, _values(field, elements))
    assert field.message is not None
    parts = elements.flatten()
    _without_nulls(field, parts[1])
    columns = {
        named(part.number): _values(part, values) for part, values in zip(field.message.fields, parts, strict=True)
    }
    entries = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    return pa.ListArray.from_arrays(offsets, entries)


def _as_list(values: pa.Array) -> pa.ListArray:
    if not pa.types.is_map(values.type):
        return values
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    entries = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])[first:last]
    return pa.ListArray.from_arrays(pc.subtract(values.offsets, first), entries, mask=values.is_null())


def _without_nulls(field: Field, elements: pa.Array) -> None:
    if elements.null_count:
        raise ValueError(f"{field.name} has a NULL inside, which Protobuf cannot have")


def _values(field: Field, values: pa.Array) -> pa.Array:
    """Return values in the form of ptars."""
    message = field.message
    if message is not None:
        if message.form is Form.STRUCT:
            columns = _columns(message, values)
        elif message.form is Form.WRAPPER:
            columns = {named(part.number): _column(part, values) for part in message.fields}
        else:
            columns = _times(message, values)
        return pa.StructArray.from_arrays(list(columns.values()), list(columns), mask=values.is_null())
    if field.kind == "enum":
        return _numbers_of(field, values)
    kind = _KINDS.get(field.kind)
    return values if kind is None else values.cast(kind)


def _numbers_of(field: Field, values: pa.Array) -> pa.Array:
    """Return the numbers of the names of an enum; digits stand for a number without a name."""
    numbers = {name: number for number, name in field.names.items()}
    coded = pc.dictionary_encode(values)
    of_texts = [numbers[text] if text in numbers else int(text) for text in coded.dictionary.to_pylist()]
    return pa.array(of_texts, pa.int32()).take(coded.indices)


def _times(message: Message, values: pa.Array) -> dict[str, pa.Array]:
    """Return seconds and nanoseconds; in a duration both have its sign."""
    micros = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
    if message.form is Form.TIMESTAMP:
        seconds, rest = np.divmod(micros, SECOND)
    else:
        seconds = np.sign(micros) * (np.abs(micros) // SECOND)
        rest = micros - seconds * SECOND
    return {named(1): pa.array(seconds), named(2): pa.array((rest * _NANOS).astype(np.int32))}
