"""Blame: which single row raised the mark of a writer so far that most later rows were refused as late.

A row is to blame if most of the rows since, and at least three, would not have been late without it. Without it the
mark would be the greatest of all other items, refused late ones included: a row that would be late even so is below
that. A row that another one confirms, within the tolerance, is not to blame: without it the other one would do the
same.

The result is a function of the writer's items, however they are cut into pieces: the last row that raised the mark by
more than the tolerance is watched, and another one replaces it only if it is not to blame at that moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rowtime.core.time import BEGINNING

FEW = 3

Times = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Raise(NamedTuple):
    """A row that raised a mark by more than the tolerance, and what happened to later rows.

    The row's ``position``, the mark ``before`` and ``after`` it (µs), the number of ``rows`` of the writer since, and
    how many of them were refused as ``late`` and would not have been without it. ``other``: the mark as it would be
    without it; ``next``: the time of the item after it. Older versions did not record these two.
    """

    position: int
    before: int
    after: int
    rows: int = 0
    late: int = 0
    other: int = BEGINNING
    next: int = BEGINNING

    @property
    def without(self) -> int:
        """Return the mark as it would be without the row."""
        return max(self.before, self.other)

    @property
    def ahead(self) -> int:
        """Return how far the row was above its neighbours (µs)."""
        return self.after - (max(self.before, self.next) if max(self.before, self.next) > BEGINNING else self.other)

    @property
    def poisons(self) -> bool:
        """Return True if the row is to blame."""
        return self.late >= FEW and self.late * 2 > self.rows


@dataclass(frozen=True)
class Past:
    """The judged items of one writer, in its order, a column each.

    ``times`` of rows and bounds (µs), BEGINNING for one that moves no mark; ``judged``: what was compared with the
    mark; ``rows`` False for a bound; ``late`` for a row that the mark made late; ``running``: the mark before each.
    """

    positions: Times
    times: Times
    judged: Times
    rows: Flags
    late: Flags
    running: Times

    @classmethod
    def of_rows(cls, positions: Times, times: Times, late: Flags, mark: int) -> Past:
        """Return rows whose times are the mark, which is ``mark`` before the first; bounds are not among them."""
        running = np.maximum.accumulate(np.concatenate(([mark], times)))[:-1]
        return cls(positions, times, times, np.ones(len(times), bool), late, running)

    def since(self, start: int, stop: int | None = None) -> Past:
        """Return a part of them."""
        part = slice(start, stop)
        numbers = self.positions[part], self.times[part], self.judged[part]
        return Past(*numbers, self.rows[part], self.late[part], self.running[part])


def watched(raised: Raise | None, past: Past, within: int, jump: int | None = None) -> Raise | None:
    """Return the watched row after more items of its writer; ``within``: the tolerance (µs).

    ``jump``: how far a row has to raise the mark (µs) to be watched; the tolerance, if not given.
    """
    far = within if jump is None else jump
    jumps = np.flatnonzero(past.rows & ~past.late & (past.times > past.running + far))
    matters, start, at = _that_matter(past, jumps), 0, 0
    while at < len(jumps):
        at += _replaced(raised, past.since(start), jumps[at:] - start, within)
        if at >= len(jumps):
            break
        at = int(matters[np.searchsorted(matters, at)])
        row = int(jumps[at])
        before, after = int(past.running[row]), int(past.times[row])
        raised, start, at = Raise(int(past.positions[row]), before, after, other=before), row + 1, at + 1
    return None if raised is None else _counted(raised, past.since(start), within)[0]


def _that_matter(past: Past, jumps: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return which of the jumps may be to blame when the next one comes, and the last one."""
    edges = np.append(jumps, len(past.times))
    late, rows = (np.concatenate(([0], np.cumsum(flags))) for flags in (past.late, past.rows))
    many, of = late[edges[1:]] - late[edges[:-1]], rows[edges[1:]] - rows[edges[:-1]] - 1
    may = (many >= FEW) & (many * 2 > of)
    return np.flatnonzero(may | (np.arange(len(jumps)) == len(jumps) - 1))


def _replaced(raised: Raise | None, past: Past, jumps: NDArray[np.intp], within: int) -> int:
    """Return the first of some jumps at which the watched row is not to blame; their number if there is none."""
    if raised is None:
        return 0
    first = past.since(0, int(jumps[0]))
    if not _counted(raised, first, within)[0].poisons:
        return 0
    _, rows, late = _counted(raised, past, within)
    poisons = (late[jumps] >= FEW) & (late[jumps] * 2 > rows[jumps])
    others = np.flatnonzero(~poisons)
    return int(others[0]) if len(others) else len(jumps)


def _counted(raised: Raise, past: Past, within: int) -> tuple[Raise, Times, Times]:
    """Return the watched row with more items counted, and the numbers of rows and late ones before each item."""
    confirms = past.times >= raised.after - within
    times = np.where(confirms, np.maximum(past.times, raised.after), past.times)
    without = np.maximum.accumulate(np.concatenate(([raised.without], times)))
    late = past.late & (past.judged >= without[:-1] - within)
    rows = raised.rows + np.concatenate(([0], np.cumsum(past.rows)))
    blamed = raised.late + np.concatenate(([0], np.cumsum(late)))
    known = past.times[past.times > BEGINNING] if raised.next == BEGINNING else past.times[:0]
    after = int(known[0]) if len(known) else raised.next
    return Raise(*raised[:3], int(rows[-1]), int(blamed[-1]), int(without[-1]), after), rows, blamed
