"""The guard: rows too far above earlier rows are early, rows too far below are late; only others count.

Semantics 7.2. Whether a row counts depends on the rows before it, so a running maximum is not enough: a row that is
early must not raise the mark that judges the next. But if no row of a block is more than the limit above the running
maximum, none is early, and the maximum is the mark. Only other blocks are judged row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rowtime.core.time import BEGINNING, END

Times = NDArray[np.int64]
Flags = NDArray[np.bool_]
OK, EARLY, LATE, HELD = 0, 1, 2, 3
BLOCK = 4096


@dataclass(frozen=True)
class Limits:
    """How far below and above the mark a row may be, in µs; how many rows decide about a jump (0: none).

    ``floor``: a row below it is late whatever the mark, and a row is early only above both.
    """

    late: int
    early: int
    resync: int = 0
    floor: int = BEGINNING


@dataclass(frozen=True)
class Items:
    """The items of one writer, in its order, a column each.

    ``known`` is False if there is no time; ``rows`` where the item is a bound, which raises the mark and is never
    refused; ``judged`` where a row cannot be early. ``raised`` where a time below the mark is raised to it instead of
    being late, but to no end.
    """

    times: Times
    known: Flags
    rows: Flags
    judged: Flags
    raised: Flags

    @classmethod
    def of(cls, times: Times, known: Flags) -> Items:
        """Return rows alone, all of which may be early."""
        return cls(times, known, np.ones(len(times), bool), known, np.zeros(len(times), bool))

    def part(self, start: int) -> Items:
        """Return one block of them."""
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


def guard(items: Items, mark: int, limits: Limits, *, started: bool | None = None, ended: bool = False) -> Guarded:
    """Judge the items of one writer; times in µs.

    A row is early if and only if t > mark + ``early``, late if and only if t < mark - ``late``; until one is accepted
    none is early, however high a bound or the floor. Unknown times are OK here and move nothing. ``mark`` is BEGINNING
    if there is none; ``started`` as it says if not given.

    With ``resync`` n, the rows after it vote on the first row and on every early one: as soon as n of them are within
    ``early`` of it, it is OK and moves the mark; as soon as n are not, or none can follow (``ended``, or a bound at
    END), it is EARLY. While it is undecided, it and everything after it are not in the result.
    """
    none = np.empty(0, np.int64)
    block = Guarded(np.empty(0, np.int8), none, none, mark, mark > BEGINNING if started is None else started)
    votes = _Votes.of(items, limits, ended=ended)
    parts = [block]
    for start in range(0, len(items.times), BLOCK):
        part = items.part(start)
        block = _block(part, block, votes, start)
        parts.append(block)
        if len(block.result) < len(part.times):
            break
    return replace(
        block,
        result=np.concatenate([part.result for part in parts]),
        before=np.concatenate([part.before for part in parts]),
        after=np.concatenate([part.after for part in parts]),
    )


@dataclass(frozen=True)
class _Votes:
    """The votes of the rows after a row; ``places`` are the indices of all rows before the end."""

    items: Items
    limits: Limits
    places: NDArray[np.intp]
    ended: bool

    @classmethod
    def of(cls, items: Items, limits: Limits, *, ended: bool) -> _Votes:
        """Return the votes; rows after the end do not count."""
        ends = np.flatnonzero(items.known & ~items.rows & (items.times >= END))
        places = np.flatnonzero(items.rows[: ends[0]] if len(ends) else items.rows)
        return cls(items, limits, places, ended or bool(len(ends)))

    def on(self, index: int) -> int:
        """Return OK, EARLY, or HELD while it is undecided; of 2n - 1 rows, n are on one side."""
        many = self.limits.resync
        if not many:
            return EARLY
        rank = int(np.searchsorted(self.places, index, "right"))
        voters = self.places[rank : rank + 2 * many - 1]
        away = np.abs(self.items.times[voters] - self.items.times[index])
        near = int((self.items.known[voters] & (away <= self.limits.early)).sum())
        if near >= many:
            return OK
        return EARLY if self.ended or len(voters) - near >= many else HELD


def _block(items: Items, last: Guarded, votes: _Votes, start: int) -> Guarded:
    limits = votes.limits
    counted = items.known & (items.times >= limits.floor)
    running = np.maximum.accumulate(np.concatenate(([last.mark], np.where(counted, items.times, BEGINNING))))
    before, after = running[:-1], running[1:]
    # Before the first row nothing is early; that it may be late itself only makes this more careful.
    since = np.logical_or.accumulate(np.concatenate(([last.started], items.judged)))
    first = bool(limits.resync) and not last.started and bool(items.judged.any())
    if first or (items.judged & since[:-1] & (items.times - limits.early > np.maximum(before, limits.floor))).any():
        return _row_by_row(items, last, votes, start)
    below = items.times < np.maximum(before - limits.late, limits.floor)
    late = items.known & items.rows & below & (~items.raised | (before >= END))
    result = np.where(late, LATE, OK).astype(np.int8)
    started = last.started or bool((items.judged & ~late).any())
    return Guarded(result, before, after, int(running[-1]), started)


def _row_by_row(items: Items, last: Guarded, votes: _Votes, start: int) -> Guarded:
    mark, started, limits = last.mark, last.started, votes.limits
    results, befores, afters = [], [], []
    columns = (items.times, items.known, items.rows & ~items.raised, items.rows & items.raised, items.judged)
    for index, (time, known, row, raised, judged) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True), start
    ):
        verdict = OK
        if known and ((row and time < max(mark - limits.late, limits.floor)) or (raised and mark >= END)):
            verdict = LATE
        elif judged and (time > max(mark, limits.floor) + limits.early if started else limits.resync):
            verdict = votes.on(index)
        if verdict == HELD:
            break
        befores.append(mark)
        if verdict == OK and known:
            mark, started = max(mark, time), started or judged
        results.append(verdict)
        afters.append(mark)
    return Guarded(np.array(results, np.int8), np.array(befores, np.int64), np.array(afters, np.int64), mark, started)
