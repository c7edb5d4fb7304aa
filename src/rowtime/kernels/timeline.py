"""The bounds of an event time over the items of one tick: which item caused which advance.

Semantics 8. Items are in the merged order. A row is emitted before the bound that it causes, so the bound in force
before a row is that of the items before it. Times are µs UTC.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rowtime.core.time import BEGINNING, END

FEWER = 8  # times; then it is faster to look up the few values among the many
FIRST, LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max  # positions before and after every item


@dataclass(frozen=True)
class Timeline:
    """What went downstream in one tick: the bound ``before`` it, and each strict advance.

    The bound was ``bounds[i]``, above ``before``, after the item at ``items[i]``; both ascend, and a bound may be
    repeated. ``rows`` are the positions of the rows, ascending, and ``times`` their event times. ``stamps`` looks up
    the rowtimes of items, for operators that pass bounds on among rows. ``regions``: if several merge, the positions of
    the rows of each, and its own bound before each of these and after all.
    """

    before: int
    items: np.ndarray
    bounds: np.ndarray
    rows: np.ndarray
    times: np.ndarray
    stamps: Callable[[np.ndarray], np.ndarray] | None = None
    regions: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    @cached_property
    def _rises(self) -> np.ndarray | None:
        """Return which items advance the bound; ``None`` for all."""
        rises = np.ones(len(self.bounds), bool)
        np.greater(self.bounds[1:], self.bounds[:-1], out=rises[1:])
        return None if rises.all() else rises

    @cached_property
    def positions(self) -> np.ndarray:
        """Return the positions of the items that advance the bound."""
        return self.items if self._rises is None else self.items[self._rises]

    @cached_property
    def values(self) -> np.ndarray:
        """Return the bounds to which they advance it."""
        return self.bounds if self._rises is None else self.bounds[self._rises]

    @property
    def after(self) -> int:
        """Return the bound after the tick."""
        return int(self.bounds[-1]) if len(self.bounds) else self.before

    @property
    def first(self) -> int | None:
        """Return the first advance of the tick."""
        return int(self.bounds[0]) if len(self.bounds) else None

    def passing(self, every: int) -> Timeline:
        """Return only the advances that reach or pass a multiple of ``every``, without the end."""
        bounds = np.concatenate([[self.before], self.values])
        crosses = (bounds[1:] // every > bounds[:-1] // every) & (self.values < END)
        return replace(self, items=self.positions[crosses], bounds=self.values[crosses])

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return the bound in force before each row."""
        bounds = np.concatenate([[self.before], self.bounds])
        return bounds[:-1] if rows is self.items else values_at(rows, self.items, bounds)

    def behind(self, rows: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return the indexes of rows whose times are below the bound in force before them."""
        if rows is not self.items or not len(rows):
            return np.flatnonzero(times < self.at(rows))
        later = np.flatnonzero(times[1:] < self.bounds[:-1]) + 1
        return np.concatenate([[0], later]) if times[0] < self.before else later

    def next(self, rows: np.ndarray, unknown: int) -> np.ndarray:
        """Return the first strict advance after each row; ``unknown`` if this tick has none."""
        return values_at(rows, self.positions, np.concatenate([self.values, [unknown]]))


def values_at(rows: np.ndarray, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return for each row the value whose number is how many of the positions, which ascend, are before the row."""
    if len(rows) > FEWER * len(positions) and (rows[1:] >= rows[:-1]).all():
        ends = np.searchsorted(rows, positions, side="right")
        bounds: np.ndarray = np.repeat(values, np.diff(ends, prepend=0, append=len(rows)))
        return bounds
    looked_up: np.ndarray = values[np.searchsorted(positions, rows, side="left")]
    return looked_up


def advances(
    positions: np.ndarray, wanted: np.ndarray, reached: int, sent: int, gap: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return positions and values of the bounds that are sent, some perhaps repeated; and the bound of the operator.

    ``wanted`` is the bound that each item asks for, ``reached`` the bound before, ``sent`` the last one sent
    downstream; the next one is sent once it is at least that + ``gap``. Lower values are ignored.
    """
    if not len(wanted):
        return positions, wanted, reached
    where, values, last = positions, wanted, int(max(reached, wanted[-1]))
    if wanted[0] <= reached or not (wanted[1:] >= wanted[:-1]).all():
        running = np.maximum(wanted, reached)
        np.maximum.accumulate(running, out=running)
        rises = np.empty(len(running), bool)
        rises[0] = running[0] > reached
        np.greater(running[1:], running[:-1], out=rises[1:])
        where, values, last = positions[rises], running[rises], int(running[-1])
    if gap > 1:
        keep = _spaced(values, sent, gap)
        where, values = where[keep], values[keep]
    return where, values, last


def _spaced(values: np.ndarray, sent: int, gap: int) -> np.ndarray:
    """Return the indexes of ascending values at least ``gap`` above the one before; the first end is included."""
    end = int(np.searchsorted(values, END))
    inside, kept = values[:end], [end] if end < len(values) else []
    at = int(np.searchsorted(inside, sent + gap)) if sent > BEGINNING else 0
    if at == end:
        return np.array(kept, np.int64)
    spaced = []
    most = (int(inside[-1]) - int(inside[0])) // gap + 1
    if most < end // FEWER:  # only few can be kept, usually at similar distances
        numbers, near = inside.data, 2 * end // most
        while at < end:
            spaced.append(at)
            wanted, last = numbers[at] + gap, at + near
            at = bisect_left(numbers, wanted, at + 1, last if last < end and numbers[last] >= wanted else end)
    else:
        follows = [*np.searchsorted(inside, inside + gap).tolist(), end]
        while at < end:
            spaced.append(at)
            at = follows[at]
    return np.array([*spaced, *kept], np.int64)
