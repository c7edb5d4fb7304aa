"""Hashes of keys: equal keys have equal ones, in every tick and process.

They find the rows of a key among others and spread keys over slices; they never tell two keys apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rowtime.kernels.exact import coded
from rowtime.kernels.frames import Ints
from rowtime.kernels.identity import unfolded

Words = NDArray[np.uint64]
_NULL = np.uint64(0x9E3779B97F4A7C15)
_PRIME = np.uint64(0x100000001B3)
_MIXERS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))  # the finalizer of MurmurHash3
_HALF = np.uint64(33)


def hashes(columns: Sequence[pa.Array]) -> Ints:
    """Return one number for each row of some columns; NULL equals NULL, as in GROUP BY."""
    mixed: Words = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        words = np.where(np.asarray(pc.is_valid(column)), _words(column), _NULL)
        mixed = _mixed(mixed * _PRIME + words)
    return mixed.view(np.int64)


def _mixed(words: Words) -> Words:
    for mixer in _MIXERS:
        words = (words ^ (words >> _HALF)) * mixer
    return np.asarray(words ^ (words >> _HALF))


def _words(column: pa.Array) -> Any:
    """Return a number for each non-null value."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        encoded = pc.dictionary_encode(column)
        return _text(encoded.dictionary)[np.asarray(pc.fill_null(encoded.indices, 0))] if len(encoded.dictionary) else 0
    if pa.types.is_decimal(kind):
        low, high = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)[column.offset :][: len(column)].T
        return low ^ _mixed(high)
    if pa.types.is_struct(kind):
        return hashes(column.flatten()).view(np.uint64) if kind.num_fields else 0
    if pa.types.is_null(kind):
        return 0
    if pa.types.is_nested(kind):
        return _lists(column)
    return coded(column).codes.view(np.uint64)


def _lists(column: pa.Array) -> Words:
    """Return, for each list, the sum of its elements' numbers, each times a power of its place."""
    edges, values = unfolded(column)
    lengths = np.diff(edges)
    powers = np.cumprod(np.full(int(lengths.max(initial=0)) + 1, _PRIME))
    places = np.arange(len(values)) - np.repeat(edges[:-1], lengths)
    words = hashes([values]).view(np.uint64) if len(values) else np.zeros(0, np.uint64)
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum((words + np.uint64(1)) * powers[places])))
    return np.asarray(sums[edges[1:]] - sums[edges[:-1]] + powers[lengths])


def _text(values: pa.Array) -> Words:
    """Return, for each text, the sum of its bytes, each times a power of its place."""
    wide = values.cast(pa.large_binary())
    ends = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset :][: len(wide) + 1]
    lengths = np.diff(ends)
    powers = np.cumprod(np.full(int(lengths.max()) + 1, _PRIME))
    data = np.frombuffer(wide.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
    places = np.arange(len(data)) - np.repeat(ends[:-1] - ends[0], lengths)
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum((data + np.uint64(1)) * powers[places])))
    return np.asarray(sums[ends[1:] - ends[0]] - sums[ends[:-1] - ends[0]] + powers[lengths])
