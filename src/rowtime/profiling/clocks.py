"""Clocks of a stretch of rows: the mark before each row, by key, without the marks of rows before the stretch.

A mark is the greatest time of the earlier rows of its key, and a row's lateness is how far it is below the mark before
it. A task does not know the marks before its own rows. So it keeps the first rows of each key *open*, and counts the
others by its own marks. That is exact if the mark before the stretch is not above the task's own mark at the first row
that it counted: whoever has all stretches checks it (`chained`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rowtime.core.time import BEGINNING
from rowtime.profiling.counts import BINS, Durations, Hours, bins_of

Times = NDArray[np.int64]
Keys = NDArray[np.int32]
Open = tuple[Times, Times, Keys | None]
"""Rows in order: their times, what is compared with the mark (mostly the same), and their keys, if they have any."""
FREE: Final = 131_072
FEW: Final = 16
_ROOM: Final = 2**62


@dataclass
class KeyFacts:
    """Facts about the rows of each key, a place each: arrays that grow.

    ``marks``: after its rows; ``seen``: its number of rows; ``lowest``, ``highest``: its least and greatest time (µs).
    ``late``: counters of its late rows, ``latest``: the greatest lateness; ``leap``: the longest step of its mark.
    ``first``: its mark at the first row that was counted; ``BEGINNING - 1`` while all rows are open.
    """

    marks: Times = field(default_factory=lambda: np.empty(0, np.int64))
    seen: Times = field(default_factory=lambda: np.empty(0, np.int64))
    lowest: Times = field(default_factory=lambda: np.empty(0, np.int64))
    highest: Times = field(default_factory=lambda: np.empty(0, np.int64))
    late: Times = field(default_factory=lambda: np.empty((0, BINS), np.int64))
    latest: Times = field(default_factory=lambda: np.empty(0, np.int64))
    leap: Times = field(default_factory=lambda: np.empty(0, np.int64))
    first: Times = field(default_factory=lambda: np.empty(0, np.int64))

    def grow(self, count: int) -> None:
        """Give so many keys a place."""
        more = count - len(self.marks)
        if more <= 0:
            return
        more = max(more, len(self.marks))
        starts = {"marks": BEGINNING, "lowest": _ROOM, "highest": BEGINNING, "first": UNCOUNTED}
        for name in ("marks", "seen", "lowest", "highest", "latest", "leap", "first"):
            column = np.full(more, starts.get(name, 0), np.int64)
            setattr(self, name, np.concatenate((getattr(self, name), column)))
        self.late = np.concatenate((self.late, np.zeros((more, BINS), np.int64)))


UNCOUNTED: Final = BEGINNING - 1


def marks_before(times: Times, keys: Keys | None, marks: Times) -> Times:
    """Return the mark before each row, and raise ``marks``, by key; without ``keys`` there is one."""
    if keys is None or (keys[0] == keys[-1] and (keys == keys[0]).all()):
        at = 0 if keys is None else int(keys[0])
        running = np.maximum.accumulate(np.concatenate((marks[at : at + 1], times)))
        marks[at] = running[-1]
        return running[:-1]
    order = np.argsort(keys.astype(np.uint16) if len(marks) <= 2**16 else keys, kind="stable")
    by_key, raised, before = keys[order], times[order], np.empty(len(times), np.int64)
    starts = np.flatnonzero(np.concatenate(([True], by_key[1:] != by_key[:-1])))
    first = marks[by_key[starts]]
    raised[starts] = np.maximum(raised[starts], first)
    running = _running(raised, starts)
    shifted = np.concatenate((running[:1], running[:-1]))
    shifted[starts] = first
    before[order] = shifted
    marks[by_key[starts]] = running[np.concatenate((starts[1:], [len(running)])) - 1]
    return before


def _running(values: Times, starts: NDArray[np.intp]) -> Times:
    """Return the running maximum of each of some runs."""
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span * len(starts) < _ROOM:
        runs = np.zeros(len(values), np.int64)
        runs[starts[1:]] = span
        offsets = np.cumsum(runs) - low
        lifted: Times = np.maximum.accumulate(values + offsets) - offsets
        return lifted
    parts = np.split(values, starts[1:])
    return np.concatenate([np.maximum.accumulate(part) for part in parts])


@dataclass
class Clock:
    """The clock of a stretch: one mark for all rows, or one for each key.

    ``late``: counters of the late rows that are not open, ``hours``: how many are late by whole hours; ``leaps``:
    counters of the steps by which rows raised a mark. ``free``: so many first rows of the stretch are open, and
    ``few`` of each key.
    """

    free: int = FREE
    few: int = FEW
    facts: KeyFacts = field(default_factory=KeyFacts)
    late: Durations = field(default_factory=Durations)
    hours: Hours = field(default_factory=Hours)
    leaps: Durations = field(default_factory=Durations)
    open: list[Open] = field(default_factory=list)
    _free_left: int = -1
    _open_left: int = -1

    def __post_init__(self) -> None:
        self._free_left, self._open_left = self.free, 4 * self.free
        self.facts.grow(1)

    def take(self, times: Times, judged: Times, keys: Keys | None = None, before: Times | None = None) -> Times:
        """Take rows in order; return the mark before each. ``keys`` are the places of their keys.

        ``before``: the marks, if they follow from something else than the rows (`guarded`).
        """
        facts = self.facts
        if before is None:
            before = marks_before(times, keys, facts.marks)
        counted = np.ones(len(times), bool)
        counted[: self._free_left] = False
        self._free_left = max(0, self._free_left - len(times))
        if keys is not None and self.few and self._open_left > 0:
            counted &= facts.seen[keys] >= self.few
        opened = ~counted
        if opened.any():
            some = times[opened]
            self.open.append(
                (some, some if judged is times else judged[opened], None if keys is None else keys[opened])
            )
            self._open_left -= int(opened.sum())
        self._note(times, keys)
        if not counted.any():
            return before
        if opened.any():
            self._count(times[counted], judged[counted], None if keys is None else keys[counted], before[counted])
        else:
            self._count(times, judged, keys, before)
        return before

    def _note(self, times: Times, keys: Keys | None) -> None:
        facts = self.facts
        if keys is None:
            facts.seen[0] += len(times)
            facts.lowest[0] = min(int(facts.lowest[0]), int(times.min()))
            facts.highest[0] = max(int(facts.highest[0]), int(times.max()))
            return
        facts.seen += np.bincount(keys, minlength=len(facts.seen))
        np.minimum.at(facts.lowest, keys, times)
        np.maximum.at(facts.highest, keys, times)

    def _count(self, times: Times, judged: Times, keys: Keys | None, before: Times) -> None:
        self._first(keys, before)
        self.count(times, judged, keys, before)

    def _first(self, keys: Keys | None, before: Times) -> None:
        """Note the mark of each key at the first of its rows that is counted."""
        first = self.facts.first
        if keys is None:
            if first[0] == UNCOUNTED:
                first[0] = before[0]
            return
        new = np.flatnonzero(first[keys] == UNCOUNTED)
        if len(new):
            some, at = np.unique(keys[new], return_index=True)
            first[some] = before[new[at]]

    def count(self, times: Times, judged: Times, keys: Keys | None, before: Times) -> None:
        """Count rows by how far they are below the mark before them, or raise it."""
        known = before > BEGINNING
        behind = np.flatnonzero(known & (judged < before))
        late = before[behind] - judged[behind]
        ahead = np.flatnonzero(known & (times > before))
        leaps = times[ahead] - before[ahead]
        self.late.add(late)
        self.hours.add(late)
        self.leaps.add(leaps)
        if keys is None:
            self.facts.late[0] = self.late.bins
            self.facts.latest[0], self.facts.leap[0] = self.late.greatest, self.leaps.greatest
            return
        np.add.at(self.facts.late, (keys[behind], bins_of(late)), 1)
        np.maximum.at(self.facts.latest, keys[behind], late)
        np.maximum.at(self.facts.leap, keys[ahead], leaps)
