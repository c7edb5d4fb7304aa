"""The functions of OVER, over frames of elements (see `kernels.frames`).

A function turns its argument into *parts*, one per row, which it also keeps of rows that are folded into a head: the
parts of a head are those of all its rows. ``fold`` returns the parts of each frame, ``value`` the result. Null
arguments count only in functions that pick a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rowtime.kernels import collated
from rowtime.kernels.exact import LIMB, carried, coded, decimal_sums, fitting_averages, limbs, numbers, whole_sums
from rowtime.kernels.frames import Flags, Frames, Ints, Parts, folded, summed
from rowtime.kernels.identity import numbered

Table = Mapping[str, pa.Array]
Floats = NDArray[np.float64]
_EXACT = 2**53  # whole numbers below it are exact in floating point


class Function(Protocol):
    """One function; it chooses the names of its parts."""

    def seeds(self, argument: pa.Array, times: Ints) -> Table:
        """The parts of rows; ``times`` are their rowtimes (µs)."""
        ...

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        ...

    def value(self, parts: Table) -> Table:
        """Return the columns of the result, by the suffixes of the call's name."""
        ...


def counts(column: pa.Array) -> Ints:
    """Return 1 for each non-null value."""
    return np.asarray(pc.cast(pc.is_valid(column), pa.int64()))


def _floating(argument: pa.Array) -> pa.Array:
    """Return the values as DOUBLE; large whole numbers become the nearest, as in Spark's casts."""
    return argument.cast(pa.float64(), safe=False)


def _shown(values: NDArray[Any], known: Flags) -> pa.Array:
    return pa.array(values, mask=~known)


class Counting:
    """A function whose value is a count."""

    def value(self, parts: Table) -> Table:
        """The result of frames."""
        return {"": parts["n"]}


@dataclass(frozen=True)
class Count(Counting):
    """COUNT(x); COUNT(*) counts an argument that is never null."""

    def seeds(self, argument: pa.Array, times: Ints) -> Table:  # noqa: ARG002
        """The parts of rows."""
        return {"n": pa.array(counts(argument))}

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        return {"n": pa.array(summed(numbers(parts["n"]), frames))}


@dataclass(frozen=True)
class Sum:
    """SUM(x): exact for whole numbers and decimals, to the last digits for floating point."""

    def seeds(self, argument: pa.Array, times: Ints) -> Table:  # noqa: ARG002
        """The parts of rows."""
        kind = argument.type
        wide = (
            pa.decimal128(38, kind.scale)
            if pa.types.is_decimal(kind)
            else pa.float64()
            if pa.types.is_floating(kind)
            else pa.int64()
        )
        values = pc.fill_null(argument.cast(wide), pa.scalar(0).cast(wide))
        if pa.types.is_floating(wide):
            values = pc.add(values, 0.0)  # as in Spark, a sum is never the negative zero
        return {"s": values, "n": pa.array(counts(argument))}

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        total, kind = parts["s"], parts["s"].type
        if pa.types.is_decimal(kind):
            sums = decimal_sums(total, frames)
        elif pa.types.is_floating(kind):
            sums = pa.array(float_sums(np.asarray(total), frames))
        else:
            sums = pa.array(whole_sums(numbers(total), frames))
        return {"s": sums, "n": pa.array(summed(numbers(parts["n"]), frames))}

    def value(self, parts: Table) -> Table:
        """The result of frames."""
        return {"": pc.if_else(pc.greater(parts["n"], 0), parts["s"], pa.scalar(None, parts["s"].type))}


@dataclass(frozen=True)
class Avg:
    """AVG(x); the reader of the two columns divides decimals, by the rules of their type."""

    def seeds(self, argument: pa.Array, times: Ints) -> Table:
        """Return the parts of rows; a BIGINT is two numbers, ``l`` + ``h`` * 2^32, whose sums are exact."""
        if pa.types.is_int64(argument.type):
            low, high = limbs(numbers(argument))
            return {"l": pa.array(low), "h": pa.array(high), "n": pa.array(counts(argument))}
        return Sum().seeds(argument if pa.types.is_decimal(argument.type) else _floating(argument), times)

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        if "h" not in parts:
            return Sum().fold(parts, frames)
        low, high = carried([summed(numbers(parts[name]), frames) for name in "lh"])
        return {"l": pa.array(low), "h": pa.array(high), "n": pa.array(summed(numbers(parts["n"]), frames))}

    def value(self, parts: Table) -> Table:
        """The result of frames."""
        if "h" in parts:
            n = numbers(parts["n"])
            total = numbers(parts["h"]).astype(np.float64) * 2.0**LIMB + numbers(parts["l"])
            return {"": _shown(total / np.where(n > 0, n, 1), n > 0)}
        total = Sum().value(parts)[""]
        if pa.types.is_decimal(total.type):
            fitting_averages(total, numbers(parts["n"]))
            return {"": total, ":n": parts["n"]}
        return {"": pc.divide(total, parts["n"].cast(pa.float64()))}


def float_sums(values: Floats, frames: Frames) -> Floats:
    """Return sums in which no value outside of the frame cancels; by prefixes if these are exact."""
    whole = np.isfinite(values).all() and (values == np.rint(values)).all()
    if whole and np.abs(values).sum() < _EXACT:
        return np.asarray(summed(values, frames))  # type: ignore[arg-type]
    return folded((values,), frames, _added, (0.0,))[0]


def _added(one: Parts, other: Parts) -> Parts:
    with np.errstate(invalid="ignore"):  # two infinities make NaN, as they should
        return (one[0] + other[0],)


@dataclass(frozen=True)
class Extreme:
    """MIN(x) and MAX(x) of any type with an order."""

    greatest: bool

    def seeds(self, argument: pa.Array, times: Ints) -> Table:  # noqa: ARG002
        """The parts of rows."""
        return {"v": argument}

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        filled = counts(parts["v"])
        ranked, edge = coded(parts["v"]), np.iinfo(np.int64)
        empty = edge.min if self.greatest else edge.max
        codes = np.where(filled > 0, ranked.codes, empty)
        further = np.maximum if self.greatest else np.minimum
        (best,) = folded((codes,), frames, lambda one, other: (further(one[0], other[0]),), (empty,))
        has_values = summed(filled, frames) > 0
        return {"v": ranked.back(np.where(has_values, best, 0), has_values)}

    def value(self, parts: Table) -> Table:
        """The result of frames."""
        return {"": collated.values(parts["v"])}


@dataclass(frozen=True)
class Spread:
    """VAR_POP, VAR_SAMP and their roots, from counts, means and squares about the mean."""

    sample: bool
    root: bool

    def seeds(self, argument: pa.Array, times: Ints) -> Table:  # noqa: ARG002
        """The parts of rows."""
        values = pc.fill_null(_floating(argument), 0.0)
        nothing = pa.array(np.abs(np.asarray(values)) * 0.0)  # NaN stays NaN
        return {"n": pa.array(counts(argument).astype(np.float64)), "m": values, "q": nothing}

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        columns = tuple(np.asarray(parts[name]) for name in "nmq")
        return dict(zip("nmq", map(pa.array, folded(columns, frames, _spread, (0.0, 0.0, 0.0))), strict=True))

    def value(self, parts: Table) -> Table:
        """The result of frames."""
        n, squares = np.asarray(parts["n"]), np.asarray(parts["q"])
        enough = n > (1 if self.sample else 0)
        variance = squares / np.where(enough, n - self.sample, 1.0)
        return {"": _shown(np.sqrt(variance) if self.root else variance, enough)}


def _spread(one: Parts, other: Parts) -> Parts:
    (n, mean, squares), (more, its_mean, its_squares) = one, other
    count = n + more
    share = np.divide(more, count, out=np.zeros_like(count), where=count > 0)
    apart = np.where(more > 0, its_mean - mean, 0.0)
    apart = np.where(n > 0, apart, its_mean)
    weight = np.where((n > 0) & (more > 0), n * share, 0.0)
    joint = np.where(weight > 0, apart * apart * weight, 0.0)
    return count, np.where(n > 0, mean + apart * share, its_mean), squares + its_squares + joint


@dataclass(frozen=True)
class Decayed:
    """EXP_AVG(x, half_life): a row counts half as much for each ``half_life`` (µs) that has passed."""

    half_life: int

    def seeds(self, argument: pa.Array, times: Ints) -> Table:
        """The parts of rows."""
        values = pc.add(pc.fill_null(_floating(argument), 0.0), 0.0)
        return {"s": values, "w": pa.array(counts(argument).astype(np.float64)), "t": pa.array(times)}

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        columns = np.asarray(parts["s"]), np.asarray(parts["w"]), np.asarray(parts["t"]).astype(np.int64)
        columns_of = folded(columns, frames, self._joined, (0.0, 0.0, np.iinfo(np.int64).min // 2))
        return dict(zip("swt", map(pa.array, columns_of), strict=True))

    def _joined(self, one: Parts, other: Parts) -> Parts:
        (total, weight, at), (more, added, later) = one, other
        past = np.maximum(later - at, 0)
        fade = np.exp2(-past / self.half_life)
        # After so many half-lives nothing is left, but NaN stays NaN.
        return total * fade + more, weight * fade + added, np.maximum(at, later)

    def value(self, parts: Table) -> Table:
        """The result of frames."""
        total, weight = np.asarray(parts["s"]), np.asarray(parts["w"])
        weighted = weight > 0
        return {"": _shown(total / np.where(weighted, weight, 1.0), weighted)}


@dataclass(frozen=True)
class Nth:
    """The ``n``-th row of the frame (from its end: ``last``), or the n-th whose value is not null."""

    n: int = 1
    last: bool = False
    ignore_nulls: bool = False

    def seeds(self, argument: pa.Array, times: Ints) -> Table:  # noqa: ARG002
        """The parts of rows."""
        present = counts(argument) if self.ignore_nulls else np.ones(len(argument), np.int64)
        return {"v": argument, "c": pa.array(present)}

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        index, has_value, number = self._chosen(numbers(parts["c"]), frames)
        return {"v": parts["v"].take(pa.array(index, mask=~has_value)), "c": pa.array(number)}

    def _chosen(self, count: Ints, frames: Frames) -> tuple[Ints, Flags, Ints]:
        """Return the element of each frame, whether there is one, and how many rows of the frame count.

        A head counts for several rows: it has the value of its n-th, or of its last one.
        """
        whole = np.concatenate((np.zeros(1, np.int64), np.cumsum(count)))
        before, past = whole[frames.lo], whole[frames.hi]
        wanted = past - self.n if self.last else before + self.n - 1
        inside = (wanted >= before) & (wanted < past)
        index = np.searchsorted(whole[1:], np.where(inside, wanted, 0), "right")
        return np.where(inside, index, 0), inside, past - before

    def value(self, parts: Table) -> Table:
        """The result of frames."""
        return {"": parts["v"]}


@dataclass(frozen=True)
class Distinct(Counting):
    """COUNT(DISTINCT x), over frames whose ends never fall from row to row and that contain no head."""

    def seeds(self, argument: pa.Array, times: Ints) -> Table:  # noqa: ARG002
        """The parts of rows."""
        return {"v": argument}

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames.

        An element counts where it is the first of its value: in the frames that contain it but not the previous one of
        the same value. Because ends never fall, these frames are consecutive, and each element adds one at their
        beginning and subtracts it at their end.
        """
        column = parts["v"]
        places = np.flatnonzero(np.asarray(pc.is_valid(column)))
        before = _previous(numbered(column)[places], places)
        begins = np.maximum(np.searchsorted(frames.hi, places, "right"), np.searchsorted(frames.lo, before, "right"))
        ends = np.searchsorted(frames.lo, places, "right")
        some, count = ends > begins, len(frames.lo) + 1
        steps = np.bincount(begins[some], minlength=count) - np.bincount(ends[some], minlength=count)
        return {"n": pa.array(np.cumsum(steps)[: count - 1])}


def _previous(codes: NDArray[Any], places: Ints) -> Ints:
    """Return for each place the previous one with the same code; -1 if there is none."""
    order = np.argsort(codes, kind="stable")
    same = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    previous = np.full(len(places), -1, np.int64)
    previous[order[same + 1]] = places[order[same]]
    return previous


@dataclass(frozen=True)
class Levels(Counting):
    """How many different values a BIGINT that never falls has had: DENSE_RANK, of the window's order."""

    def seeds(self, argument: pa.Array, times: Ints) -> Table:  # noqa: ARG002
        """The parts of rows: how many values, the first and the last."""
        return {"n": pa.array(counts(argument)), "a": pc.fill_null(argument, 0), "b": pc.fill_null(argument, 0)}

    def fold(self, parts: Table, frames: Frames) -> Table:
        """The parts of frames."""
        columns = tuple(numbers(parts[name]) for name in "nab")
        return dict(zip("nab", map(pa.array, folded(columns, frames, _levels, (0, 0, 0))), strict=True))


def _levels(one: Parts, other: Parts) -> Parts:
    (n, first, last), (more, its_first, its_last) = one, other
    shared = (n > 0) & (more > 0) & (last == its_first)
    return n + more - shared, np.where(n > 0, first, its_first), np.where(more > 0, its_last, last)
