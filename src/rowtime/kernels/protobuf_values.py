"""Values of Protobuf's fields as arrays: numbers from the wire, texts from their places, times from messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from rowtime.core.time import SECOND
from rowtime.kernels.protobuf_types import Field, Form, Message
from rowtime.kernels.varints import Memory, read_varints, unzigzag
from rowtime.kernels.wire_tokens import FIXED32, FIXED64

_NANOS: Final = 1_000_000_000
_LEAST_SECOND, _MOST_SECOND = -62_135_596_800, 253_402_300_799  # of the years 0001 to 9999
_MOST_DURATION: Final = 315_576_000_000
TIME_FORMS: Final = (Form.TIMESTAMP, Form.DURATION)


def numbers_of(kind: str, memory: Memory, at: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return the numbers of tokens, in the type of the kind; uint64 and fixed64 stay unsigned."""
    match kind:
        case "float" | "fixed32" | "sfixed32":
            bits = memory.words[at].astype(np.uint32)  # the lower half
        case "double" | "fixed64" | "sfixed64":
            bits = np.ascontiguousarray(memory.words[at])
        case _:
            bits = more.astype(np.uint64)
    return _typed(kind, bits)


def _typed(kind: str, bits: np.ndarray) -> np.ndarray:  # noqa: PLR0911 - one per kind
    match kind:
        case "int32" | "enum" | "sfixed32":
            return bits.astype(np.uint32).view(np.int32)
        case "int64" | "sfixed64":
            return bits.astype(np.int64)
        case "uint32" | "fixed32":
            return bits.astype(np.uint32).astype(np.int64)
        case "sint32":
            return unzigzag(bits.astype(np.uint32))
        case "sint64":
            return unzigzag(bits)
        case "bool":
            return bits.astype(bool)
        case "float" | "double":
            return bits.view(np.float32 if kind == "float" else np.float64)
    return bits


def packed_values(
    field: Field, memory: Memory, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the numbers of packed fields: their places, their fields, the numbers; and which fields are broken."""
    sizes, broken = ends - starts, np.zeros(len(starts), bool)
    width = {FIXED32: 4, FIXED64: 8}.get(field.wire)
    if width is not None:
        broken = sizes % width != 0
        counts = np.where(broken, 0, sizes // width)
        which = np.repeat(np.arange(len(starts)), counts)
        places = starts[which] + width * (np.arange(len(which)) - _before(counts)[which])
        return places, which, numbers_of(field.kind, memory, places, places), broken
    which = np.repeat(np.arange(len(starts)), sizes)
    flat = starts[which] + np.arange(len(which)) - _before(sizes)[which]
    stops = memory.bytes[flat] < 0x80  # noqa: PLR2004 - the continuation bit
    first = np.ones(len(flat), bool)
    first[1:] = stops[:-1] | (which[1:] != which[:-1])
    places, which = flat[first], which[first]
    values, _, good = read_varints(memory, places, ends[which])
    broken[which[~good]] = True
    return places, which, numbers_of(field.kind, memory, places, values), broken


def _before(sizes: np.ndarray) -> np.ndarray:
    before: np.ndarray = np.cumsum(sizes) - sizes
    return before


def defaults_of(field: Field, count: int, kind: np.dtype) -> np.ndarray:
    """Return the value of a missing field, ``count`` times."""
    return np.full(count, 0 if field.default is None else field.default, kind)


def arrow_of(field: Field, values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
    """Return numbers as Arrow arrays, NULL where ``absent``."""
    if field.kind == "enum":
        return _named(field.names, values, absent)
    if values.dtype == np.uint64:
        return _decimals(values, absent)
    return pa.array(values, mask=absent)


def _named(names: Mapping[int, str], values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
    """Return numbers of an enum as names; one without a name is its digits."""
    listed = np.array(sorted(names), np.int32)
    other = np.setdiff1d(values, listed)
    numbers = np.concatenate([listed, other])
    order = np.argsort(numbers)
    texts = pa.array([names.get(number, str(number)) for number in numbers[order].tolist()], pa.string())
    return texts.take(pa.array(np.searchsorted(numbers[order], values), mask=absent))


def _decimals(values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
    """Return unsigned 64-bit numbers as decimals of 20 digits."""
    halves = np.zeros(2 * len(values), np.uint64)
    halves[::2] = values
    valid = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(20, 0), len(values), [valid, pa.py_buffer(halves)])


def gathered(memory: Memory, starts: np.ndarray, ends: np.ndarray) -> pa.BinaryArray:
    """Return the bytes between successive places."""
    if not len(starts):
        return pa.array([], pa.binary())
    bounds = np.column_stack([starts, ends]).ravel().astype(np.int32)
    whole = pa.BinaryArray.from_buffers(
        pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(memory.bytes)]
    )
    return whole.take(pa.array(np.arange(0, len(bounds), 2)))


def times_of(message: Message, fields: Mapping[int, pa.Array], absent: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    """Return timestamps or durations from seconds and nanoseconds, in whole µs, and which are invalid."""
    seconds, nanos = (fields[number].to_numpy().astype(np.int64) for number in (1, 2))
    if message.form is Form.TIMESTAMP:
        wrong = (seconds < _LEAST_SECOND) | (seconds > _MOST_SECOND) | (nanos < 0) | (nanos >= _NANOS)
        kind, parts = pa.timestamp("us", "UTC"), nanos // 1000
    else:
        wrong = (np.abs(seconds) > _MOST_DURATION) | (np.abs(nanos) >= _NANOS)
        wrong |= ((seconds > 0) & (nanos < 0)) | ((seconds < 0) & (nanos > 0))
        kind, parts = pa.duration("us"), np.sign(nanos) * (np.abs(nanos) // 1000)  # towards zero
    wrong &= ~absent
    micros = np.where(wrong, 0, seconds) * SECOND + parts
    return pa.array(micros, mask=absent if absent.any() else None).view(kind), wrong
