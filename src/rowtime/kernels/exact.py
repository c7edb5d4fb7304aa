"""Exact sums of whole numbers and decimals over frames, and values of any type as whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.kernels import collated
from rowtime.kernels.frames import Flags, Frames, Ints, summed

LIMB = 32  # bits; sums of as many as 2^31 limbs fit in 64 bits
_MASK = np.int64(2**LIMB - 1)
_SAFE = 2**62
_DIGITS = 10**38  # the first number with more digits than a decimal


class Overflow(ArithmeticError):
    """Sums that overflow their type; ``beyond``: of which frames, later of which new rows. ``name``: of the call."""

    def __init__(self, what: str, beyond: Flags, name: str = "") -> None:
        super().__init__(what)
        self.beyond, self.name = beyond, name


def numbers(column: pa.Array, kind: str = "int64") -> Ints:
    """Return the values as a numpy array; 0 for null."""
    typed = column.cast(pa.type_for_alias(kind)) if not pa.types.is_boolean(column.type) else column.cast(pa.int64())
    return np.asarray(pc.fill_null(typed, 0))


def whole_sums(values: Ints, frames: Frames) -> Ints:
    """Return sums of 64-bit numbers; raises ``Overflow`` for one beyond 64 bits."""
    greatest = max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
    if greatest * max(len(values), 1) < _SAFE:
        return summed(values, frames)
    low, high = carried([summed(limb, frames) for limb in limbs(values)])
    beyond = (high < -(2**31)) | (high >= 2**31)
    if beyond.any():
        raise Overflow("a sum is beyond BIGINT", beyond)
    return (high << LIMB) | low


def decimal_sums(column: pa.Array, frames: Frames) -> pa.Array:
    """Return sums of decimals, with 38 digits and the scale of the column; null counts as 0."""
    wide = pc.fill_null(column.cast(pa.decimal128(38, column.type.scale)), 0)
    words = np.frombuffer(wide.buffers()[1], np.int64).reshape(-1, 2)[wide.offset : wide.offset + len(wide)]
    limbs = [word & _MASK if part == 0 else word >> LIMB for word in words.T for part in range(2)]
    limbs[1] &= _MASK  # the low word has no sign
    parts = carried([summed(limb, frames) for limb in limbs])
    low, high = parts[0] | (parts[1] << LIMB), parts[2] | (parts[3] << LIMB)
    beyond = (parts[3] < -(2**31)) | (parts[3] >= 2**31) | _too_long(low, high)
    if beyond.any():
        raise Overflow("a sum is beyond DECIMAL(38)", beyond)
    halves = np.stack([low, high], axis=1)
    return pa.Array.from_buffers(wide.type, len(halves), [None, pa.py_buffer(np.ascontiguousarray(halves))])


def _too_long(low: Ints, high: Ints) -> Flags:
    """Return which numbers of 128 bits have more than 38 digits."""
    unsigned = low.view(np.uint64)
    (top, rest), (bottom, other) = (divmod(limit, 2**64) for limit in (_DIGITS, -_DIGITS))
    above = (high > top) | ((high == top) & (unsigned >= np.uint64(rest)))
    below = (high < bottom) | ((high == bottom) & (unsigned <= np.uint64(other)))
    return np.asarray(above | below)


def fitting_averages(totals: pa.Array, counts: Ints) -> None:
    """Raise ``Overflow`` for averages beyond their type: 38 digits, 4 more after the point than the sums have.

    No average of decimals of up to 34 digits overflows; for others, those of sums with too many digits are checked one
    by one. Halves are rounded away from zero.
    """
    scale = totals.type.scale
    more = min(scale + 4, 38) - scale
    if not more:  # as many digits as the sum itself
        return
    limit = Decimal(10 ** (38 - more)).scaleb(-scale)
    large = pc.greater_equal(pc.abs(totals), pa.scalar(limit, totals.type))
    beyond = np.array(pc.fill_null(large, fill_value=False).to_numpy(zero_copy_only=False), np.bool_)
    for at in np.flatnonzero(beyond):
        total = int(abs(totals[int(at)].as_py()).scaleb(scale, Context(prec=80)))
        count = int(counts[at])
        beyond[at] = (2 * total * 10**more + count) // (2 * count) >= 10**38
    if beyond.any():
        raise Overflow("an average is beyond its type", beyond)


def limbs(values: Ints) -> tuple[Ints, Ints]:
    """Return the low bits and the others: each has a sum over many values that fits in 64 bits."""
    return values & _MASK, values >> LIMB


def carried(limbs: list[Ints]) -> list[Ints]:
    """Move what a limb has above its bits to the next one; the last keeps its sign."""
    carried_limbs: list[Ints] = []
    rest = limbs[0]
    for limb in limbs[1:]:
        carried_limbs.append(rest & _MASK)
        rest = limb + (rest >> LIMB)
    return [*carried_limbs, rest]


@dataclass(frozen=True)
class Coded:
    """Values as 64-bit numbers of the same order, and the way back; null can be any number."""

    codes: Ints
    back: Callable[[Ints, Flags], pa.Array]


def coded(column: pa.Array) -> Coded:
    """Return numbers of the same order: for floating point, NaN is the greatest; other types are ranked."""
    kind = column.type
    if pa.types.is_floating(kind):
        return Coded(_float_codes(column), lambda codes, known: _floats(codes, known).cast(kind, safe=False))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return Coded(numbers(column), lambda codes, known: _array(codes, known).cast(kind))
    if pa.types.is_temporal(kind):
        bits = pa.int32() if kind.bit_width == LIMB else pa.int64()
        codes = np.asarray(pc.fill_null(column.cast(bits), 0)).astype(np.int64)
        return Coded(codes, lambda codes, known: _array(codes, known).cast(bits).cast(kind))
    if collated.is_collated(column):
        places, ranked = collated.ranked(column)
        return Coded(places, lambda codes, known: ranked.take(pa.array(codes, mask=~known)))
    return _ranked(column)


def _ranked(column: pa.Array) -> Coded:
    distinct = pc.drop_null(pc.unique(column))
    distinct = distinct.take(pc.sort_indices(distinct))
    codes = np.asarray(pc.fill_null(pc.index_in(column, distinct), 0)).astype(np.int64)

    def back(chosen: Ints, known: Flags) -> pa.Array:
        return distinct.take(pa.array(chosen, mask=~known))

    return Coded(codes, back)


def _float_codes(column: pa.Array) -> Ints:
    values = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0)) + 0.0  # both zeros are equal
    bits = np.where(np.isnan(values), np.float64("nan"), values).view(np.int64)
    return np.asarray(bits ^ ((bits >> 63) & np.int64(2**63 - 1)))


def _floats(codes: Ints, known: Flags) -> pa.Array:
    return _array((codes ^ ((codes >> 63) & np.int64(2**63 - 1))).view(np.float64), known)


def _array(values: Any, known: Flags) -> pa.Array:
    return pa.array(values, mask=~known)
