"""Which of many texts are UTF-8."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_ASCII = 0x80
_TWO, _THREE, _FOUR, _BEYOND = 0xC2, 0xE0, 0xF0, 0xF5
"""The least first bytes of characters of so many bytes, and of invalid ones."""
_LEAST = {0xE0: 0xA0, 0xF0: 0x90}
"""By the first byte: the least second one that is not an overlong form."""
_MOST = {0xED: 0x9F, 0xF4: 0x8F}
"""By the first byte: the greatest second one before surrogates and too great numbers."""


def as_texts(column: pa.BinaryArray) -> tuple[pa.StringArray, np.ndarray | None]:
    """Return bytes as texts, and which of them are invalid (their texts are empty then); ``None`` if all are valid."""
    offsets, data = _parts(column)
    if not len(data) or data.max() < _ASCII:
        return _texts(column), None
    texts = _texts(column)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        wrong = _wrong(data, offsets)
        none = pa.array([None, b""], pa.binary()).take(pa.array(np.where(wrong, 1, 0)))
        return _texts(pa.compute.if_else(pa.array(wrong), none, column)), wrong
    return texts, None


def _parts(column: pa.BinaryArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the elements, from zero, and their bytes."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    if not len(column):
        return np.zeros(1, np.int32), np.zeros(0, np.uint8)
    held = column.buffers()[2]
    data = np.frombuffer(held, np.uint8) if held is not None else np.zeros(0, np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]


def _texts(column: pa.BinaryArray) -> pa.StringArray:
    return column.view(pa.string())


def _wrong(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return whether the bytes of each element are invalid."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    follows = (data & 0xC0) == _ASCII
    needs = np.select([data >= _FOUR, data >= _THREE, data >= _TWO], [3, 2, 1], 0)
    bad = (data >= _BEYOND) | (~follows & (data >= _ASCII) & (data < _TWO))
    padded, same = np.append(data, [0] * 3), np.append(owners, [-1] * 3)
    expected = np.zeros(len(data) + 3, bool)
    for more in (1, 2, 3):
        at = np.flatnonzero(needs >= more)
        follows_on = (same[at + more] == owners[at]) & ((padded[at + more] & 0xC0) == _ASCII)
        bad[at[~follows_on]] = True
        expected[at[follows_on] + more] = True
    bad |= follows & ~expected[: len(data)]
    second = padded[1 : len(data) + 1]
    for first, least in _LEAST.items():
        bad |= (data == first) & (second < least)
    for first, most in _MOST.items():
        bad |= (data == first) & (second > most)
    wrong = np.zeros(len(offsets) - 1, bool)
    wrong[owners[bad]] = True
    return wrong
