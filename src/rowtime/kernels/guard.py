"""The guard: rows too far above what has been seen are early, too far below late; only others count.

SPEC 7.2. Whether a row counts depends on the rows before it, so a running maximum is not
enough: a row that is early must not raise the mark that judges the next. But where no row
of a block lies more than the limit above the running maximum, none is early, and the
maximum is the mark. Only other blocks are judged row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rowtime.core.time import BEGINNING, END

Times = NDArray[np.int64]
Flags = NDArray[np.bool_]
OK, EARLY, LATE = 0, 1, 2
BLOCK = 4096


@dataclass(frozen=True)
class Limits:
    """How far below and above the mark a row may lie, in µs."""

    late: int
    early: int


@dataclass(frozen=True)
class Items:
    """The items of one writer, in its order, a column each.

    ``known`` is False where there is no time; ``rows`` where the item is a bound, which
    raises the mark and is never refused; ``judged`` where a row cannot be early. ``raised``
    where a time below the mark is raised to it instead of being late, but to no end.
    """

    times: Times
    known: Flags
    rows: Flags
    judged: Flags
    raised: Flags

    @classmethod
    def of(cls, times: Times, known: Flags) -> Items:
        """Rows alone, all of which may be early."""
        return cls(times, known, np.ones(len(times), bool), known, np.zeros(len(times), bool))

    def part(self, start: int) -> Items:
        """One block of them."""
        part = slice(start, start + BLOCK)
        return Items(self.times[part], self.known[part], self.rows[part], self.judged[part], self.raised[part])


@dataclass(frozen=True)
class Guarded:
    """``result`` of each item (OK, EARLY, LATE), the mark ``before`` and ``after`` it, and after all.

    ``started``: a row has been accepted that could have been early, so that the next may be.
    """

    result: NDArray[np.int8]
    before: Times
    after: Times
    mark: int
    started: bool


def guard(items: Items, mark: int, limits: Limits, *, started: bool | None = None) -> Guarded:
    """Judge the items of one writer; times in µs.

    A row is early iff t > mark + ``early``, late iff t < mark - ``late``; until one is
    accepted none is early, however high a bound has set the mark. Unknown times are OK here
    and move nothing. ``mark`` is BEGINNING where there is none; ``started`` as it says if not given.
    """
    none = np.empty(0, np.int64)
    found = Guarded(np.empty(0, np.int8), none, none, mark, mark > BEGINNING if started is None else started)
    parts = [found]
    for start in range(0, len(items.times), BLOCK):
        found = _block(items.part(start), found, limits)
        parts.append(found)
    return replace(
        found,
        result=np.concatenate([part.result for part in parts]),
        before=np.concatenate([part.before for part in parts]),
        after=np.concatenate([part.after for part in parts]),
    )


def _block(items: Items, last: Guarded, limits: Limits) -> Guarded:
    running = np.maximum.accumulate(np.concatenate(([last.mark], np.where(items.known, items.times, BEGINNING))))
    before, after = running[:-1], running[1:]
    # Before the first row nothing is early; that it may be late itself only makes this more careful.
    since = np.logical_or.accumulate(np.concatenate(([last.started], items.judged)))
    if (items.judged & since[:-1] & (items.times - limits.early > before)).any():
        return _row_by_row(items, last, limits)
    late = items.known & items.rows & (items.times < before - limits.late) & (~items.raised | (before >= END))
    result = np.where(late, LATE, OK).astype(np.int8)
    started = last.started or bool((items.judged & ~late).any())
    return Guarded(result, before, after, int(running[-1]), started)


def _row_by_row(items: Items, last: Guarded, limits: Limits) -> Guarded:
    mark, started = last.mark, last.started
    results, befores, afters = [], [], []
    columns = (items.times, items.known, items.rows & ~items.raised, items.rows & items.raised, items.judged)
    for time, known, row, raised, judged in zip(*(column.tolist() for column in columns), strict=True):
        befores.append(mark)
        verdict = OK
        if known and ((row and time < mark - limits.late) or (raised and mark >= END)):
            verdict = LATE
        elif judged and started and time > mark + limits.early:
            verdict = EARLY
        elif known:
            mark, started = max(mark, time), started or judged
        results.append(verdict)
        afters.append(mark)
    return Guarded(np.array(results, np.int8), np.array(befores), np.array(afters), mark, started)
