"""How late the rows are that a gate refuses as late, in a fixed number of counters.

The lateness of a row is how far it is below its writer's mark: with a tolerance of at least so much it is accepted.
Refused rows do not move the mark, so the lateness does not depend on the tolerance.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rowtime.core.time import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TENS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
_UNITS: Final[Mapping[int, tuple[int, ...]]] = {
    1: tuple(n * ten for ten in (1, 10, 100) for n in (1, 2, 5)),
    SECOND // 1000: tuple(n * ten for ten in (1, 10, 100) for n in (1, 2, 3, 5)),
    SECOND: _TENS,
    MINUTE: _TENS,
    HOUR: (1, 2, 3, 4, 6, 8, 10, 12, 18),
    DAY: (1, 2, 3, 4, 5, 7, 10, 14, 21, 30, 60, 90, 180, 365),
}
LADDER: Final = tuple(n * unit for unit, numbers in _UNITS.items() for n in numbers)
"""Durations (µs) as people write them, in ascending order: a counter for each."""
_EDGES: Final = np.array(LADDER, np.int64)
_NAMES: Final = ((DAY, "DAY"), (HOUR, "HOUR"), (MINUTE, "MINUTE"), (SECOND, "SECOND"))


@dataclass(frozen=True)
class Lateness:
    """The number of late rows by the least duration of `LADDER` that covers them; the ``greatest`` lateness (µs).

    Rows that none covers are counted under 0.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    greatest: int = 0

    @classmethod
    def of(cls, late: NDArray[np.int64]) -> Lateness:
        """Return that of some rows, by how late each is (µs)."""
        if not len(late):
            return cls()
        places, many = np.unique(np.searchsorted(_EDGES, late), return_counts=True)
        edges = [LADDER[place] if place < len(LADDER) else 0 for place in places.tolist()]
        return cls(dict(zip(edges, many.tolist(), strict=True)), int(late.max()))

    @classmethod
    def stored(cls, content: Mapping[str, Any]) -> Lateness:
        """Return that of the journal."""
        return cls({int(edge): many for edge, many in content.get("counts", {}).items()}, content.get("greatest", 0))

    def as_json(self) -> dict[str, Any]:
        """Return it for the journal; an empty object if there are no rows."""
        counts = {str(edge): many for edge, many in sorted(self.counts.items())}
        return {"counts": counts, "greatest": self.greatest} if counts else {}

    def __add__(self, other: Lateness) -> Lateness:
        edges = {*self.counts, *other.counts}
        counts = {edge: self.counts.get(edge, 0) + other.counts.get(edge, 0) for edge in edges}
        return Lateness(counts, max(self.greatest, other.greatest))

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(self.counts.values())

    def covering(self, share: float) -> int:
        """Return the least duration (µs) that covers this share of the rows, 0 < ``share`` <= 1."""
        left = share * self.rows
        for edge in sorted(edge for edge in self.counts if edge):
            left -= self.counts[edge]
            if left <= 0:
                return edge
        return self.greatest


def at_most(micros: int) -> int:
    """Return the greatest duration of `LADDER` up to so many µs, and at least 1 µs."""
    return LADDER[max(0, bisect.bisect_right(LADDER, micros) - 1)]


def interval(micros: int) -> str:
    """Return a duration as SQL's INTERVAL."""
    for unit, name in _NAMES:
        if micros % unit == 0 and (micros or unit == SECOND):
            return f"INTERVAL '{micros // unit}' {name}"
    return f"INTERVAL '{micros // SECOND}.{micros % SECOND:06d}' SECOND"


def added(stored: Mapping[str, Any], late: Lateness) -> Mapping[str, Any]:
    """Return what the journal has after more late rows."""
    return (Lateness.stored(stored) + late).as_json() if late.counts else stored


def in_words(micros: int) -> str:
    """Return a duration in words."""
    if micros < SECOND:
        return f"{micros / 1000:g} ms"
    return str(timedelta(microseconds=micros)) if micros >= MINUTE else f"{micros / SECOND:g} s"
