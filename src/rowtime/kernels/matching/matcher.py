"""Matches of many partitions: which rows become starts, one after the other, and which are not decided yet.

Starts are tried ahead of their turn, as many of all partitions at once as is worthwhile (`Rounds`); those that a match
skips are dropped. Undecided starts are tried again when more is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from rowtime.core.time import END
from rowtime.kernels.frames import Flags, Ints, ranges
from rowtime.kernels.matching.automaton import Automaton
from rowtime.kernels.matching.paths import EXCEEDED, FAILED, MATCHED, NONE, Outcome, Paths
from rowtime.kernels.matching.rows import Conditions, Rows

AT_ONCE: Final = 4_096
"""Starts up to this number cost together little more than one."""
_USEFUL: Final = 0.25  # share of the tried starts; below it, fewer are tried

To = Literal["past", "next", "first", "last"]


class TooManyPaths(Exception):
    """A start has too many paths; ``row``: which."""

    def __init__(self, row: int) -> None:
        super().__init__(str(row))
        self.row = row


@dataclass(frozen=True)
class Clause:
    """The search: ``within`` (µs); where the next match may begin (``to``: the variables of first and last).

    ``in_turn``: starts are tried only in their turn, so that no unnecessary condition is evaluated. ``behind``: how
    many rows after a match its measures read. ``whole``: whether all rows of a match are emitted, so that none of an
    undecided start is before the start itself.
    """

    machine: Automaton
    within: int | None = None
    skip: To = "past"
    to: frozenset[int] = frozenset()
    behind: int = 0
    whole: bool = False
    in_turn: bool = False


@dataclass(frozen=True)
class Matches:
    """Certain matches by start, and the state of each partition.

    ``states``: those of the rows of all matches, one match after the other, from ``offset``. ``next``: for each
    partition the first row that is not decided as a start. ``least`` (µs): for each partition, no present row that is
    emitted for a later start is below it; END if there is none. ``until`` (µs): the bound that decides its first start
    without a further row; END for none. ``failed``: the starts that are given up because a condition cannot be
    computed, the row where this is so, and the number of the reason.
    """

    starts: Ints
    states: Ints
    offset: Ints
    next: Ints
    least: Ints
    until: Ints
    failed: tuple[Ints, Ints, Ints]


def matches(clause: Clause, rows: Rows, conditions: Conditions, begin: Ints) -> Matches:
    """Return the matches from the rows ``begin`` of each partition on. Raises ``TooManyPaths``."""
    return _Search(clause, rows, conditions, begin).result()


@dataclass
class _Search:
    clause: Clause
    rows: Rows
    conditions: Conditions
    begin: Ints
    parts: list[tuple[Ints, Ints, Ints]] = field(default_factory=list)
    """For the matches of each round: starts, lengths and states."""
    failed: list[tuple[Ints, Ints, Ints]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.paths = Paths(self.clause.machine, self.rows, self.conditions, self.clause.within)
        self.viable = np.flatnonzero(self.paths.viable)
        self.next = self.begin.copy()
        self.stands = np.zeros(len(self.begin), np.bool_)  # undecided
        self.share = AT_ONCE

    def result(self) -> Matches:
        todo = np.flatnonzero(self.next < self.rows.ends)
        while len(todo):
            outcome = self.paths.run(self._launched(todo))
            self._walk(todo, outcome)
            todo = todo[~self.stands[todo] & (self.next[todo] < self.rows.ends[todo])]
        starts, lengths, states = _columns(self.parts)
        order = np.argsort(starts, kind="stable")
        offset = np.concatenate(([0], np.cumsum(lengths)))
        places = ranges(offset[order], lengths[order])
        sorted_offset = np.concatenate(([0], np.cumsum(lengths[order])))
        until = np.full(len(self.begin), END)
        if self.clause.within is not None:
            until[self.stands] = self.rows.times[self.next[self.stands]] + self.clause.within
        failed = _columns(self.failed)
        return Matches(starts[order], states[places], sorted_offset, self.next, self._least(), until, failed)

    def _launched(self, todo: Ints) -> Ints:
        """Return the next possible starts of some partitions; a partition without one is done."""
        each = 1 if self.clause.in_turn else max(1, self.share // len(todo))
        low = np.searchsorted(self.viable, self.next[todo])
        high = np.searchsorted(self.viable, self.rows.ends[todo])
        counts = np.minimum(high - low, each)
        self.next[todo[counts == 0]] = self.rows.ends[todo[counts == 0]]
        self.reached = self.next.copy()  # up to where (exclusive) the starts of this round decide
        some = counts > 0
        last = np.minimum(low + counts, len(self.viable) - 1)
        self.reached[todo[some]] = np.where(
            low[some] + counts[some] < high[some], self.viable[last[some]], self.rows.ends[todo[some]]
        )
        return np.asarray(self.viable[ranges(low, counts)])

    # -- from start to start --------------------------------------------------------------------

    def _walk(self, todo: Ints, outcome: Outcome) -> None:
        """Find which of the tried starts have their turn, and where this leads each partition."""
        starts, count = outcome.starts, len(outcome.starts)
        if not count:
            return
        then, waits = self._then(outcome)
        decided = np.isin(outcome.what, (NONE, MATCHED, FAILED)) & ~waits
        reached = self.reached[self.rows.partition[starts]]
        jump = np.where(decided & (then < reached), np.searchsorted(starts, then), count)
        inside = jump < count
        inside[inside] = starts[jump[inside]] < reached[inside]
        jump[~inside] = count
        todo = todo[self.next[todo] < self.reached[todo]]
        first, end = np.searchsorted(starts, self.next[todo]), np.searchsorted(starts, self.reached[todo])
        todo, first, end = todo[first < end], first[first < end], end[first < end]
        turn = np.flatnonzero(_visited(jump, first))
        last = turn[np.searchsorted(turn, end) - 1]
        exceeded = turn[outcome.what[turn] == EXCEEDED]
        if len(exceeded):
            raise TooManyPaths(int(starts[exceeded].min()))
        self.next[todo] = np.where(decided[last], np.maximum(then[last], self.reached[todo]), starts[last])
        self.stands[todo] = ~decided[last]
        given_up = turn[outcome.what[turn] == FAILED]
        self.failed.append((starts[given_up], *(of[given_up] for of in outcome.broken)))
        used = turn[decided[turn] & (outcome.what[turn] == MATCHED)]
        lengths = outcome.length[used]
        self.parts.append((starts[used], lengths, outcome.states[ranges(outcome.offset[used], lengths)]))
        self.share = self.share * 2 if len(turn) > _USEFUL * count else max(AT_ONCE, self.share // 4)

    def _then(self, outcome: Outcome) -> tuple[Ints, Flags]:
        """Return where each start skips to, and which wait for rows that their measures read."""
        starts, length, skip = outcome.starts, np.maximum(outcome.length, 0), self.clause.skip
        then = starts + 1
        some = outcome.what == MATCHED
        if skip == "past":
            then = np.where(some, starts + np.maximum(length, 1), then)
        elif skip in ("first", "last"):
            variable = self.clause.machine.variable[outcome.states]
            hits = np.flatnonzero(np.isin(variable, list(self.clause.to)))
            if skip == "first":
                place = np.searchsorted(hits, outcome.offset[:-1])
            else:
                place = np.searchsorted(hits, outcome.offset[1:]) - 1
            some = some & (length > 0)
            then[some] = starts[some] + hits[place[some]] - outcome.offset[:-1][some]
        partition = self.rows.partition[starts]
        last = starts + np.maximum(length - 1, 0) + self.clause.behind
        waits = (outcome.what == MATCHED) & ~self.rows.over[partition] & (last >= self.rows.ends[partition])
        return then, waits

    # -- rows that may still be emitted ---------------------------------------------------------

    def _least(self) -> Ints:
        least = np.full(len(self.begin), END)
        stands = np.flatnonzero(self.stands)
        if not len(stands):
            return least
        if self.clause.whole:
            least[stands] = self.rows.times[self.next[stands]]
        elif self.clause.in_turn:
            for stand in stands.tolist():
                self._lower(least, stand)
        else:
            self._lower_by_matches(least, stands)
        return least

    def _lower(self, least: Ints, stand: int) -> None:
        """Set the least of a partition, to its first start where a condition fails for one that may have its turn."""
        try:
            self._lower_by_matches(least, np.array([stand]))
        except Exception:  # noqa: BLE001 - of any expression; it is raised when it is the turn of the start
            least[stand] = self.rows.times[self.next[stand]]

    def _lower_by_matches(self, least: Ints, stands: Ints) -> None:
        low = np.searchsorted(self.viable, self.next[stands])
        counts = np.searchsorted(self.viable, self.rows.ends[stands]) - low
        outcome = self.paths.run(np.asarray(self.viable[ranges(low, counts)]))
        np.minimum.at(least, self.rows.partition[outcome.starts], outcome.least)


def _columns(parts: Sequence[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    one, two, three = (np.concatenate([np.zeros(0, np.int64), *(part[n] for part in parts)]) for n in range(3))
    return one, two, three


def _visited(jump: Ints, first: Ints) -> Flags:
    """Return the places reachable from some, including these; ``jump``: from each place to a later one, or the end."""
    seen = np.zeros(len(jump) + 1, np.bool_)
    seen[first] = True
    jump = np.append(jump, len(jump))
    while True:  # after n rounds everything less than 2 ** n jumps away
        before = np.flatnonzero(seen)
        seen[jump[before]] = True
        seen[-1] = False
        if np.count_nonzero(seen) == len(before):
            return seen[:-1]
        jump = jump[jump]
