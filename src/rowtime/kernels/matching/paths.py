"""The paths of an automaton over rows: from many starts at once, one row further in each step.

A start's paths are in the order of preference. If two are in the same state and have picked the same rows, the less
preferred one can never become the match, and is dropped; so are all paths that are less preferred than one that has
reached an end. The remaining path when none can continue is the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from rowtime.core.time import END
from rowtime.kernels.frames import Flags, Ints
from rowtime.kernels.matching.automaton import Automaton
from rowtime.kernels.matching.rows import NOTHING, Conditions, Picked, Rows
from rowtime.kernels.window_functions import Table

MOST_PATHS: Final = 1_000
"""Of one start, after any of its rows."""

NONE, MATCHED, OPEN, EXCEEDED, FAILED = range(5)


@dataclass(frozen=True)
class Outcome:
    """The outcome of each start: ``what`` (`NONE`, `MATCHED`, …), and its match, or the best so far.

    ``length``: the rows of this match; -1 for none. ``least`` (µs): no present row with which its match may end is
    below it; END if there is none. ``states``: those of the rows of all matches, one match after the other, from
    ``offset``. ``broken``: of one that has `FAILED`, the row where a condition could not be computed, and the number of
    the reason.
    """

    starts: Ints
    what: Ints
    length: Ints
    least: Ints
    states: Ints
    offset: Ints
    broken: tuple[Ints, Ints]


class Paths:
    """Searches the matches of an automaton that are shorter than ``within`` (µs)."""

    def __init__(self, machine: Automaton, rows: Rows, conditions: Conditions, within: int | None) -> None:
        self.machine, self.rows, self.conditions, self.within = machine, rows, conditions, within
        self.following, self.begins = machine.edges

    @cached_property
    def picked(self) -> tuple[Picked, ...]:
        """Return the rows that conditions pick, each once, with those that must be known for them."""
        picks = {pick for picks in self.conditions.of_paths.values() for pick in picks.picked}
        whole = {Picked(pick.variables, pick.last, n) for pick in picks for n in range(pick.offset + 1)}
        return tuple(sorted(whole, key=lambda one: (sorted(one.variables), one.last, one.offset)))

    def taken_by(self, variables: frozenset[int]) -> Flags:
        """Return by the number of a variable whether it is among these."""
        return np.isin(np.arange(len(self.machine.variables)), list(variables))

    @cached_property
    def viable(self) -> Flags:
        """Return which rows may be the first of a match, as far as the rows alone decide; and which are unknown."""
        machine, rows = self.machine, self.rows
        fits = np.zeros(len(rows.times), np.bool_)
        for at, follows in (
            (np.arange(len(fits)), machine.other),
            (rows.begins[rows.whole & (rows.ends > rows.begins)], machine.first),
        ):
            mine = np.zeros(len(at), np.bool_) if not follows.ends else np.ones(len(at), np.bool_)
            for state in follows.states:
                mask = self.conditions.of_rows.get(int(machine.variable[state]))
                mine |= True if mask is None else mask[at]
                if (broken := self.conditions.broken.get(int(machine.variable[state]))) is not None:
                    mine |= broken[at] > 0
            fits[at] = mine
        return fits | (np.arange(len(fits)) >= rows.known[rows.partition])

    def run(self, starts: Ints) -> Outcome:
        """Return the outcome of some starts (rows, in ascending order)."""
        return _Run(self, starts).outcome()


class _Run:
    """The paths from some starts; arrays of paths are ordered by start, and by preference in each."""

    def __init__(self, of: Paths, starts: Ints) -> None:
        self.of, self.rows, self.machine, self.starts = of, of.rows, of.machine, starts
        count, partition = len(starts), of.rows.partition[starts]
        self.known, self.ends = self.rows.known[partition], self.rows.ends[partition]
        self.over = self.rows.over[partition]
        self.limit = np.full(count, END) if of.within is None else self.rows.times[starts] + of.within
        self.what = np.full(count, NONE)
        self.length = np.full(count, -1)
        self.node = np.full(count, NOTHING)
        self.least = np.full(count, END)
        self.broken_at, self.reason = np.full(count, NOTHING), np.zeros(count, np.int64)
        self.parents: list[Ints] = []
        self.taken: list[Ints] = []
        self.nodes = 0
        # For each path: its start, its state (or beginning), its last node, and the rows that it has picked.
        self.start = np.arange(count)
        first = (starts == self.rows.begins[partition]) & self.rows.whole[partition]
        states = len(self.machine.follows)
        self.state = np.where(first, states + 1, states)
        self.last = np.full(count, NOTHING)
        self.picks = np.full((len(of.picked), count), NOTHING)
        self.sums = [input_of.begin(count) for input_of in of.conditions.running]
        self.picking = [of.taken_by(input_of.variables) for input_of in of.picked]
        self.summing = [of.taken_by(input_of.variables) for input_of in of.conditions.running]
        empty = np.where(first, self.machine.first.ends, self.machine.other.ends)
        self.length[empty] = 0

    def outcome(self) -> Outcome:
        step = 0
        while len(self.start):
            self._stop(step)
            if len(self.start):
                self._take(step)
            step += 1
        matched = self.length >= 0
        self.what[(self.what == NONE) & matched] = MATCHED
        self.what[(self.what == NONE) & (self.reason > 0)] = FAILED
        ends = self.rows.times[self.starts + np.maximum(self.length - 1, 0)]
        self.least = np.where(matched, np.minimum(self.least, ends), self.least)
        self.least[self.what == EXCEEDED] = self.rows.times[self.starts[self.what == EXCEEDED]]
        states, offset = self._states()
        return Outcome(self.starts, self.what, self.length, self.least, states, offset, (self.broken_at, self.reason))

    # -- where paths stop ---------------------------------------------------------------------

    def _stop(self, step: int) -> None:
        """Drop the paths that have no further row, or record that they wait for one."""
        mine = self.start
        row = self.starts[mine] + step
        inside = row < self.ends[mine]
        late = np.zeros(len(mine), np.bool_)
        late[inside] = self.rows.times[row[inside]] >= self.limit[mine[inside]]
        goes = (row < self.known[mine]) & ~late
        if goes.all():
            return
        at_end = np.zeros(len(mine), np.bool_)
        if step:
            at_end = ~inside & self.machine.ends_last[self.state]
        self._end(np.flatnonzero(at_end & self.over[mine]), step)
        waits = ~goes & ~late & ~self.over[mine]
        following = self.of.begins[self.state + 1] > self.of.begins[self.state]
        further = waits & following & (inside | (self.rows.bound < self.limit[mine]))
        self._open(further, np.where(inside, self.rows.times[np.where(inside, row, 0)], END))
        if step:
            self._open(waits & at_end & ~self.machine.ends[self.state], self.rows.times[row - 1])
        self._keep(goes)

    def _end(self, paths: Ints, step: int) -> None:
        """End at the end of the partition: the most preferred of these paths is the match of its start."""
        mine = self.start[paths]
        first = np.concatenate(([True], mine[1:] != mine[:-1])) if len(mine) else np.zeros(0, np.bool_)
        self.length[mine[first]], self.reason[mine[first]] = step, 0
        self.node[mine[first]] = self.last[paths[first]]

    def _open(self, paths: Flags, least: Ints) -> None:
        mine = self.start[paths]
        self.what[mine] = OPEN
        np.minimum.at(self.least, mine, least[paths])

    def _keep(self, which: Flags) -> None:
        self.start, self.state, self.last = self.start[which], self.state[which], self.last[which]
        self.picks = self.picks[:, which]
        self.sums = [chosen(table, np.flatnonzero(which)) for table in self.sums]

    # -- the next row ---------------------------------------------------------------------------

    def _take(self, step: int) -> None:
        """Take the next row as each possible variable, the preferred first."""
        begins = self.of.begins[self.state]
        counts = self.of.begins[self.state + 1] - begins
        path = np.repeat(np.arange(len(self.state)), counts)
        steps = np.arange(len(path)) - np.repeat(np.cumsum(counts) - counts, counts)
        state = self.of.following[begins[path] + steps]
        variable, row = self.machine.variable[state], self.starts[self.start[path]] + step
        fits, broken = np.ones(len(path), np.bool_), np.zeros(len(path), np.int64)
        for number, mask in self.of.conditions.of_rows.items():
            mine = variable == number
            fits[mine] = mask[row[mine]]
        for number, reasons in self.of.conditions.broken.items():
            mine = variable == number
            broken[mine] = reasons[row[mine]]
        fits |= broken > 0
        path, state, variable, row, broken = path[fits], state[fits], variable[fits], row[fits], broken[fits]
        picks = self._picks(self.picks[:, path], variable, row)
        sums = [self._summed(n, path, variable, row) for n in range(len(self.sums))]
        fits, broken = self._tested(variable, row, picks, sums, broken)
        if not fits.all():
            path, state, picks, broken = path[fits], state[fits], picks[:, fits], broken[fits]
            sums = [chosen(table, np.flatnonzero(fits)) for table in sums]
        self._settle(path, state, picks, sums, broken)

    def _picks(self, before: Ints, variable: Ints, row: Ints) -> Ints:
        """Return the rows that paths have picked, with this one."""
        picks = before.copy()
        for n, pick in enumerate(self.of.picked):
            mine = self.picking[n][variable]
            if pick.last:
                picks[n][mine] = before[n - 1][mine] if pick.offset else row[mine]
            else:
                due = mine & (before[n] == NOTHING)
                due &= before[n - 1] != NOTHING if pick.offset else True
                picks[n][due] = row[due]
        return picks

    def _summed(self, number: int, path: Ints, variable: Ints, row: Ints) -> Table:
        """Return an aggregate of the rows that paths have taken, with this one."""
        before = chosen(self.sums[number], path)
        mine = np.flatnonzero(self.summing[number][variable])
        if not len(mine):
            return before
        added = self.of.conditions.running[number].take(chosen(before, mine), row[mine])
        place = np.arange(len(path))
        place[mine] = len(path) + np.arange(len(mine))
        return {name: pa.concat_arrays([before[name], added[name]]).take(pa.array(place)) for name in before}

    def _tested(
        self, variable: Ints, row: Ints, picks: Ints, sums: Sequence[Table], broken: Ints
    ) -> tuple[Flags, Ints]:
        """Return which paths go on or are broken, and the reasons of the latter; some are known to be."""
        fits, broken = np.ones(len(variable), np.bool_), broken.copy()
        for number, condition in self.of.conditions.of_paths.items():
            mine = np.flatnonzero((variable == number) & (broken == 0))
            if len(mine):
                rows = [picks[self.of.picked.index(pick)][mine] for pick in condition.picked]
                tables = [chosen(sums[pick], mine) for pick in condition.running]
                fits[mine], broken[mine] = condition.test(row[mine], rows, tables)
        return fits | (broken > 0), broken

    def _settle(self, path: Ints, state: Ints, picks: Ints, sums: Sequence[Table], broken: Ints) -> None:
        """Keep the paths that may still be preferred, and record those that have reached an end.

        A path whose condition cannot be computed ends there too: a less preferred one can never become the match.
        """
        step, start = len(self.parents), self.start[path]
        keep = np.ones(len(start), np.bool_) if sums else _different(start, state, picks)
        ends = self.machine.ends[state] | (broken > 0)
        if ends.any():  # after the first end of a start nothing counts
            reached = np.flatnonzero(ends)
            first = reached[np.concatenate(([True], start[reached][1:] != start[reached][:-1]))]
            last = np.full(len(self.starts), len(state))
            last[start[first]] = first
            keep &= np.arange(len(state)) <= last[start]
        path, state, start, picks, broken = path[keep], state[keep], start[keep], picks[:, keep], broken[keep]
        node = self.nodes + np.arange(len(state))
        self.parents.append(self.last[path])
        self.taken.append(state)
        self.nodes += len(state)
        fails = broken > 0
        ends = self.machine.ends[state] & ~fails
        self.length[start[ends]], self.node[start[ends]], self.reason[start[ends]] = step + 1, node[ends], 0
        self.length[start[fails]], self.reason[start[fails]] = -1, broken[fails]
        self.broken_at[start[fails]] = self.starts[start[fails]] + step
        self.start, self.state, self.last, self.picks = start, state, node, picks
        self.sums = [chosen(table, np.flatnonzero(keep)) for table in sums]
        goes = (self.of.begins[state + 1] > self.of.begins[state]) | (self.machine.ends_last[state] & ~ends)
        self._bounded(goes & ~fails)

    def _bounded(self, goes: Flags) -> None:
        """Give up the starts that have too many paths."""
        if len(self.start) > MOST_PATHS:
            many = np.bincount(self.start[goes], minlength=len(self.starts)) > MOST_PATHS
            if many.any():
                self.what[many] = EXCEEDED
                goes &= ~many[self.start]
        self._keep(goes)

    # -- the matches --------------------------------------------------------------------------

    def _states(self) -> tuple[Ints, Ints]:
        """Return the states of the rows of all matches, from their ends."""
        lengths = np.maximum(self.length, 0)
        offset = np.concatenate(([0], np.cumsum(lengths)))
        states = np.zeros(offset[-1], np.int64)
        if self.nodes:
            parents, taken = np.concatenate(self.parents), np.concatenate(self.taken)
            on = np.flatnonzero(lengths)
            node, at = self.node[on], offset[on + 1] - 1
            while len(node):
                states[at] = taken[node]
                node = parents[node]
                more = node != NOTHING
                node, at = node[more], at[more] - 1
        return states, offset


def _different(start: Ints, state: Ints, picks: Ints) -> Flags:
    """Of paths of one start in one state with the same picked rows, keep the first."""
    keep = np.ones(len(start), np.bool_)
    if len(start) < 2 or (start[1:] != start[:-1]).all():  # noqa: PLR2004 - a pair
        return keep
    order = np.lexsort((np.arange(len(start)), *picks, state, start))
    same = (start[order][1:] == start[order][:-1]) & (state[order][1:] == state[order][:-1])
    for places in picks:
        same &= places[order][1:] == places[order][:-1]
    keep[order[1:][same]] = False
    return keep


def chosen(parts: Table, places: Ints) -> Table:
    """Return the parts at some places."""
    return {name: part.take(pa.array(places)) for name, part in parts.items()}
