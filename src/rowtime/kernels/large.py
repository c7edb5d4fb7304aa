"""Steps over large arrays, divided among the processors: numpy lets other threads run meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rowtime.core.threads import LARGE, at_once, processors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rowtime.kernels.frames import Ints

_HALF = np.uint64(1 << 63)


def taken(values: NDArray[Any], places: Ints) -> NDArray[Any]:
    """Return the values at some places, which are from 0 on."""
    if len(places) < LARGE:
        return values[places]
    values_taken = np.empty(len(places), values.dtype)
    edges = np.linspace(0, len(places), processors() + 1).astype(np.int64)

    def take(part: slice) -> None:
        np.take(values, places[part], out=values_taken[part], mode="clip")

    at_once(take, [slice(start, end) for start, end in zip(edges[:-1], edges[1:], strict=True)])
    return values_taken


def in_order(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers in ascending order; two threads sort the lower and the upper half of all numbers."""
    if len(numbers) < LARGE:
        return np.sort(numbers)
    upper = numbers >= _HALF
    return np.concatenate(at_once(lambda chosen: np.sort(numbers[chosen]), [~upper, upper]))
