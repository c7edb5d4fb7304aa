"""Counters of durations: exact numbers of rows at the durations that people write, and the exact greatest one.

A counter has the durations that are greater than the edge before its own and not greater than its own. So the number of
rows up to an edge is exact, and with a WITHIN that is an edge it is the number of rows that a T-sort accepts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rowtime.core.time import HOUR, MINUTE
from rowtime.operators.contract.lateness import LADDER

Times = NDArray[np.int64]
EDGES: Final = np.array(LADDER, np.int64)
BINS: Final = len(LADDER) + 1
"""A counter for each edge, and one for longer durations."""
MOST_HOURS: Final = 14  # between the time zones of two clocks, in general
_NEAR, _BESIDE = MINUTE, 5 * MINUTE
_DENSER: Final = 8
_FEW: Final = 3


def bins_of(durations: Times) -> NDArray[np.intp]:
    """Return the counter of each duration (µs, more than 0)."""
    return np.searchsorted(EDGES, durations)


@dataclass
class Durations:
    """The number of durations by counter, and the ``greatest`` (µs; 0 without any)."""

    bins: Times = field(default_factory=lambda: np.zeros(BINS, np.int64))
    greatest: int = 0

    def add(self, durations: Times) -> None:
        """Count durations (µs, more than 0)."""
        if len(durations):
            self.bins += np.bincount(bins_of(durations), minlength=BINS)
            self.greatest = max(self.greatest, int(durations.max()))

    def merge(self, other: Durations) -> None:
        """Count those of another one too."""
        self.bins = self.bins + other.bins
        self.greatest = max(self.greatest, other.greatest)

    @property
    def rows(self) -> int:
        """Return the number of durations."""
        return int(self.bins.sum())

    def beyond(self, edge: int) -> int:
        """Return how many are greater than one of the edges, or than the greatest one."""
        return 0 if edge >= self.greatest else int(self.bins[int(np.searchsorted(EDGES, edge)) + 1 :].sum())

    def covering(self, rows: int) -> int:
        """Return the least edge (µs) that so many of them do not exceed; 0 for none, the greatest if no edge does."""
        if rows <= 0:
            return 0
        at = int(np.searchsorted(np.cumsum(self.bins), rows))
        return LADDER[at] if at < len(LADDER) else self.greatest

    def quantile(self, share: float) -> int:
        """Return the least edge (µs) that this share of them does not exceed."""
        return min(self.covering(int(np.ceil(share * self.rows))), self.greatest)

    def as_json(self) -> dict[str, Any]:
        """Return the counters that are not 0, by their edges (µs); those of longer durations as ``0``."""
        places = np.flatnonzero(self.bins).tolist()
        edges = {str(LADDER[at] if at < len(LADDER) else 0): int(self.bins[at]) for at in places}
        return {"counts": edges, "greatest": self.greatest}


@dataclass
class Hours:
    """How many rows are late by about a whole number of hours, and by a little more or less.

    A clock in another time zone, or one set back at the end of summer time, gives rows that are late by whole hours.
    ``near``: within a minute; ``beside``: one to five minutes away; by the number of hours.
    """

    near: Times = field(default_factory=lambda: np.zeros(MOST_HOURS + 1, np.int64))
    beside: Times = field(default_factory=lambda: np.zeros(MOST_HOURS + 1, np.int64))

    def add(self, late: Times) -> None:
        """Count rows by how late they are (µs)."""
        late = late[late >= HOUR - _BESIDE]
        if not len(late):
            return
        hours = (late + HOUR // 2) // HOUR
        away = np.abs(late - hours * HOUR)
        some = (hours >= 1) & (hours <= MOST_HOURS)
        self.near += np.bincount(hours[some & (away <= _NEAR)], minlength=MOST_HOURS + 1)
        around = some & (away > _NEAR) & (away <= _BESIDE)
        self.beside += np.bincount(hours[around], minlength=MOST_HOURS + 1)

    def merge(self, other: Hours) -> None:
        """Count those of another one too."""
        self.near, self.beside = self.near + other.near, self.beside + other.beside

    @property
    def peaks(self) -> dict[int, int]:
        """Return the rows near whole hours, by hour, where they are eight times as dense as beside the hour."""
        density = self.beside * (_NEAR / (_BESIDE - _NEAR))
        return {
            hour: int(self.near[hour])
            for hour in range(1, MOST_HOURS + 1)
            if self.near[hour] >= _FEW and self.near[hour] > _DENSER * density[hour]
        }
