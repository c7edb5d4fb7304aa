"""Decodes Protobuf messages to Arrow arrays, a batch at a time.

Google's package reads a batch as one message that has the others in a field, and writes it again: so the last value of
a field counts, the last member of a oneof and the last entry of a key, and what it refuses is malformed. ptars turns
the result into columns. If a batch has a malformed message, its halves are read, and at last its messages one by one;
so are those of a batch with fields that the schema does not know.

Unlike Google's package it refuses a known field with another wire type, and an entry of a map with unknown fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import SECOND
from rowtime.kernels.protobuf_descriptors import ROWS, classes_of, columns_of, fields_in, frames, named
from rowtime.kernels.protobuf_types import Field, Form, Message, Repeats, Wanted

_NANOS: Final = 1_000_000_000
_LEAST_SECOND, _MOST_SECOND = -62_135_596_800, 253_402_300_799  # of the years 0001 to 9999
_MOST_DURATION: Final = 315_576_000_000
_MOST_BYTES: Final = 1 << 30  # of one batch: Protobuf and Arrow count them in 31 bits
_FEW: Final = 64  # messages that are read one by one, if one of them is malformed
_UNSIGNED: Final = {
    **dict.fromkeys(("uint32", "fixed32"), pa.int64()),
    **dict.fromkeys(("uint64", "fixed64"), pa.decimal128(20, 0)),
}


class Reader:
    """Decodes messages to structs of their wanted fields."""

    def __init__(self, message: Message, wanted: Wanted) -> None:
        self._message, self._wanted = message, wanted
        self._single, self._batch = classes_of(message)
        self._known = _Known(message, {})
        self._requires = any(field.required for field in fields_in(message))
        grouped = any(field.kind == "group" for field in fields_in(message))
        self._ungrouped = classes_of(message, groups=False)[0] if grouped else None
        self._columns, self._frames = columns_of(message, wanted)[1], frames()

    def read(self, bodies: pa.BinaryArray) -> tuple[pa.StructArray, np.ndarray]:
        """Return messages as structs, NULL if malformed, and which are malformed."""
        if len(bodies) > 1 and bodies.nbytes > _MOST_BYTES:
            middle = len(bodies) // 2
            (first, first_bad), (second, second_bad) = self.read(bodies[:middle]), self.read(bodies[middle:])
            return pa.concat_arrays([first, second]), np.concatenate([first_bad, second_bad])
        whole, bad = self._plain(bodies)
        rows = self._columns.array_to_record_batch(pa.array([whole], pa.binary())).column(0).values
        good = np.flatnonzero(~bad)
        structs, wrong = _structs(self._message, self._wanted, rows)
        bad[good[wrong]] = True
        if not bad.any():
            return structs, bad
        places = np.zeros(len(bodies), np.int64)
        places[good] = np.arange(len(good))
        return structs.take(pa.array(places, mask=bad)), bad

    def _plain(self, bodies: pa.BinaryArray) -> tuple[bytes, np.ndarray]:
        """Return the batch of the messages that are not malformed, as Google's package writes it; which are others."""
        whole = self._framed(bodies)
        batch = self._parsed(self._batch, whole)
        if batch is None and len(bodies) > _FEW:
            middle = len(bodies) // 2
            (first, first_bad), (second, second_bad) = self._plain(bodies[:middle]), self._plain(bodies[middle:])
            return first + second, np.concatenate([first_bad, second_bad])
        if batch is not None and self._ungrouped is None:
            data = _rewritten(batch)
            if data == whole or self._batch.FromString(whole).ByteSize() == len(data):  # no unknown fields
                return data, np.zeros(len(bodies), bool)
        alone = [self._alone(body) for body in bodies.to_pylist()]
        good = pa.array([data for data in alone if data is not None], pa.binary())
        return self._framed(good), np.array([data is None for data in alone], bool)

    def _framed(self, bodies: pa.BinaryArray) -> bytes:
        """Return the batch of messages."""
        rows = pa.ListArray.from_arrays(pa.array([0, len(bodies)], pa.int32()), bodies)
        framed = self._frames.record_batch_to_array(pa.RecordBatch.from_arrays([rows], [ROWS]))
        data: bytes = framed[0].as_py()
        return data

    def _parsed(self, kind: Any, data: bytes) -> Any:
        """Return a message of one of Google's classes; ``None`` if it is malformed."""
        from google.protobuf.message import DecodeError  # noqa: PLC0415 - an extra

        try:
            parsed = kind.FromString(data)
        except DecodeError:
            return None
        return None if self._requires and not parsed.IsInitialized() else parsed

    def _alone(self, body: bytes) -> bytes | None:
        """Return one message as Google's package writes it, without groups; ``None`` if it is malformed."""
        row = self._parsed(self._single, body)
        if row is None:
            return None
        size, data = row.ByteSize(), _rewritten(row)
        if len(data) != size and self._known.missed(self._single.FromString(body)):
            return None
        return data if self._ungrouped is None else _rewritten(_copied(row, self._ungrouped()))


def _rewritten(message: Any) -> bytes:
    """Return a message without unknown fields. Only its partial form: with a missing field the other one can crash."""
    message.DiscardUnknownFields()
    data: bytes = message.SerializePartialToString(deterministic=True)
    return data


class _Known:
    """The numbers of a message's fields, and the fields that are messages themselves."""

    def __init__(self, message: Message, others: dict[Message, _Known]) -> None:
        others[message] = self
        self._numbers = {field.number for field in message.fields}
        self._inner: list[tuple[str, Repeats, _Known]] = []
        for field in message.fields:
            below = field.message
            if below is not None and field.repeats is Repeats.MAP:
                below = below.fields[1].message
            if below is not None:
                self._inner.append((named(field.number), field.repeats, others.get(below) or _Known(below, others)))

    def missed(self, row: Any) -> bool:
        """Return whether Google's package did not read a known field, at any depth: it has another wire type."""
        from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: PLC0415 - an extra

        if any(one.field_number in self._numbers for one in UnknownFieldSet(row)):
            return True
        for name, repeats, below in self._inner:
            if repeats is Repeats.ONCE:
                values = [getattr(row, name)] if row.HasField(name) else []
            else:
                values = getattr(row, name).values() if repeats is Repeats.MAP else getattr(row, name)
            if any(map(below.missed, values)):
                return True
        return False


def _copied(row: Any, into: Any) -> Any:
    """Return a message with the values of another one, whose groups are messages here."""
    into.SetInParent()
    for field, value in row.ListFields():
        if field.message_type is None:
            if field.is_repeated:
                getattr(into, field.name).extend(value)
            else:
                setattr(into, field.name, value)
        elif field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_number[2].message_type is None:
                getattr(into, field.name).update(value)
            else:
                for key in value:
                    _copied(value[key], getattr(into, field.name)[key])
        elif field.is_repeated:
            for one in value:
                _copied(one, getattr(into, field.name).add())
        else:
            _copied(value, getattr(into, field.name))
    return into


# -- columns -------------------------------------------------------------------------------


def _structs(message: Message, wanted: Wanted, rows: pa.StructArray) -> tuple[pa.StructArray, np.ndarray]:
    """Return messages as structs, NULL where ptars has NULL, and which have a time that is none."""
    wrong = np.zeros(len(rows), bool)
    arrays = {}
    for field in message.fields:
        if field.number in wanted.fields:
            column = rows.field(named(field.number))
            arrays[field.name] = _column(field, wanted.fields[field.number], column, wrong)
    members = [pa.field(name, array.type) for name, array in arrays.items()]
    return pa.StructArray.from_arrays(list(arrays.values()), fields=members, mask=rows.is_null()), wrong


def _column(field: Field, wanted: Wanted, column: pa.Array, wrong: np.ndarray) -> pa.Array:
    """Return the values of a field; mark the messages that have a time that is none in ``wrong``."""
    if field.repeats is Repeats.ONCE:
        values, faults = _values(field, wanted, column)
        wrong |= faults
        if field.default is None or not values.null_count:
            return values
        default = field.names.get(field.default, str(field.default)) if field.kind == "enum" else field.default
        return pc.fill_null(values, pa.scalar(default, values.type))
    faults = np.zeros(len(column.values), bool)
    if field.repeats is Repeats.MANY:
        values, faults = _values(field, wanted, column.values)
        lists = pa.ListArray.from_arrays(column.offsets, values)
    else:
        assert field.message is not None
        parts = (
            _column(part, wanted.fields[part.number], column.values.field(named(part.number)), faults)
            for part in field.message.fields
        )
        lists = pa.MapArray.from_arrays(column.offsets, *parts)
    owners = np.repeat(np.arange(len(column)), np.diff(column.offsets.to_numpy()))
    wrong[owners[faults]] = True
    return lists


def _values(field: Field, wanted: Wanted, values: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Return values in their Arrow form, and which are a time that is none."""
    message, right = field.message, np.zeros(len(values), bool)
    if message is not None:
        if message.form is Form.STRUCT:
            return _structs(message, wanted, values)
        if message.form is not Form.WRAPPER:
            return _times(message, values)
        (part,) = message.fields
        inner = _column(part, wanted.fields[part.number], values.field(0), right)
        return pc.if_else(values.is_valid(), inner, pa.scalar(None, inner.type)), right
    if field.kind == "enum":
        return _of_numbers(field.names, values), right
    kind = _UNSIGNED.get(field.kind)
    return values if kind is None else values.cast(kind), right


def _of_numbers(names: Mapping[int, str], values: pa.Array) -> pa.Array:
    """Return the names of an enum's numbers; a number without a name is its digits."""
    coded = pc.dictionary_encode(values)
    texts = [names.get(number, str(number)) for number in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _times(message: Message, values: pa.StructArray) -> tuple[pa.Array, np.ndarray]:
    """Return timestamps or durations in whole µs, and which are none."""
    seconds, nanos = (values.field(named(part.number)).to_numpy().astype(np.int64) for part in message.fields)
    if message.form is Form.TIMESTAMP:
        wrong = (seconds < _LEAST_SECOND) | (seconds > _MOST_SECOND) | (nanos < 0) | (nanos >= _NANOS)
        kind, parts = pa.timestamp("us", "UTC"), nanos // 1000
    else:
        wrong = (seconds < -_MOST_DURATION) | (seconds > _MOST_DURATION) | (np.abs(nanos) >= _NANOS)
        wrong |= ((seconds > 0) & (nanos < 0)) | ((seconds < 0) & (nanos > 0))
        kind, parts = pa.duration("us"), np.sign(nanos) * (np.abs(nanos) // 1000)  # towards zero
    absent = values.is_null().to_numpy(zero_copy_only=False)
    wrong &= ~absent
    micros = np.where(wrong, 0, seconds) * SECOND + parts
    return pa.array(micros, mask=absent if absent.any() else None).view(kind), wrong
