"""A sample of hashes by their own value: how many rows have a hash that an earlier row has.

All copies of a row have one hash, so they are all in the sample, or none is. Up to 262,144 rows a task all are in it,
and the number is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST: Final = 262_144


@dataclass
class HashSample:
    """The hashes whose last ``bits`` are 0."""

    bits: int = 0
    hashes: list[NDArray[np.int64]] = field(default_factory=list)
    _size: int = 0

    def add(self, hashes: NDArray[np.int64]) -> None:
        """Add rows by their hashes."""
        self.put(hashes)
        while self._size > MOST:
            self._thin(self.bits + 1)

    def put(self, hashes: NDArray[np.int64]) -> None:
        """Add rows without making the sample thinner."""
        some = hashes[(hashes & ((1 << self.bits) - 1)) == 0]
        self.hashes.append(some)
        self._size += len(some)

    def _thin(self, bits: int) -> None:
        before, self.bits, self.hashes, self._size = self.hashes, bits, [], 0
        for hashes in before:
            self.put(hashes)


def duplicates(samples: Iterable[HashSample]) -> tuple[int, bool]:
    """Return how many rows have the hash of another one before them, and True if the number is exact."""
    samples = [*samples]
    bits = max((sample.bits for sample in samples), default=0)
    union = HashSample(bits)
    for sample in samples:
        for hashes in sample.hashes:
            union.put(hashes)
    rows = np.concatenate([*union.hashes, np.empty(0, np.int64)])
    return (len(rows) - len(np.unique(rows))) << bits, bits == 0
