"""The output rows of matches: the values that they pick and fold, as Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import to_text
from rowtime.kernels.exact import Overflow
from rowtime.kernels.frames import Flags, Frames, Ints
from rowtime.kernels.matching.automaton import Automaton
from rowtime.kernels.matching.matcher import Matches
from rowtime.kernels.matching.rows import NOTHING
from rowtime.kernels.matching.running import whole_array
from rowtime.operators.patterns.conditions import Values
from rowtime.operators.patterns.slots import CLASSIFIER, FIRST, TAKEN, Fold, MatchFunction, Pick, Slot
from rowtime.sql.generate import to_spark
from rowtime.sql.nodes import ONE_ROW, SHOW_EMPTY, WITH_UNMATCHED

UNMATCHED = -1
MOST_SHOWN = 50  # rows of a match that a trace lists


@dataclass(frozen=True)
class Out:
    """The output: the ``row``, its ``match`` (`UNMATCHED` for none), and the number of the match's rows up to it."""

    row: Ints
    match: Ints
    upto: Ints


NO_ROWS = Out(*(np.zeros(0, np.int64) for _ in range(3)))


def going_out(machine: Automaton, matches: Matches, mode: str, unmatched: Ints) -> Out:
    """Return the output rows, by match, then those without a match."""
    lengths = np.diff(matches.offset)
    if mode == ONE_ROW:
        return Out(matches.starts + np.maximum(lengths - 1, 0), np.arange(len(lengths)), lengths)
    match = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(match)) - matches.offset[match]
    shown = ~machine.left_out[matches.states]
    empty = np.flatnonzero(lengths == 0) if mode in (SHOW_EMPTY, WITH_UNMATCHED) else np.zeros(0, np.int64)
    match, place = np.concatenate((match[shown], empty)), np.concatenate((place[shown], np.full(len(empty), -1)))
    order = np.argsort(match, kind="stable")
    match, place = match[order], place[order]
    row = matches.starts[match] + np.maximum(place, 0)
    none = np.full(len(unmatched), UNMATCHED)
    return Out(np.concatenate((row, unmatched)), np.concatenate((match, none)), np.concatenate((place + 1, none + 1)))


@dataclass(frozen=True)
class Reader:
    """Reads the slots of output rows; ``ordinals``: the number of each match in its partition."""

    machine: Automaton
    numbers: Mapping[str, int]
    matches: Matches
    out: Out
    values: Values
    ordinals: Ints

    @cached_property
    def _in_match(self) -> Flags:
        return np.asarray(self.out.match != UNMATCHED)

    def among(self, which: Flags) -> Reader:
        """Return the reader of some of the output rows."""
        out = self.out
        return replace(self, out=Out(out.row[which], out.match[which], out.upto[which]))

    def columns(self, slots: Sequence[Slot]) -> dict[str, pa.Array]:
        """Return the columns of some slots, by name; an average of decimals has its count in an additional one.

        Raises ``Overflow``: for which output rows the first slot that has one overflows its type.
        """
        columns: dict[str, pa.Array] = {}
        for slot in slots:
            try:
                values = self._slot(slot)
            except Overflow as wrong:
                raise Overflow(str(wrong), wrong.beyond, slot.column.name) from wrong
            columns |= {f"{slot.column.name}{more}": column for more, column in values.items()}
        return columns

    def _slot(self, slot: Slot) -> Mapping[str, pa.Array]:
        if isinstance(slot, Pick):
            return {"": self.values.at(to_spark(slot.value), self._row(slot), slot.move)}
        if isinstance(slot, Fold):
            return self._fold(slot)
        if slot.what == CLASSIFIER:
            return {"": self._classifier(slot)}
        if slot.what == TAKEN:
            return {"": pa.array(map(self._taken, range(len(self.out.row))), pa.string())}
        return {
            "": pa.array(self.ordinals[self.out.match] if len(self.ordinals) else self.out.match, mask=~self._in_match)
        }

    def _frames(self, variables: Sequence[str], *, final: bool) -> tuple[Ints, Frames]:
        """Return the places of the rows of some variables in all matches, and those for each output row."""
        mine = np.isin(self.machine.variable[self.matches.states], [self.numbers[name] for name in variables])
        hits = np.flatnonzero(mine)
        match = np.where(self._in_match, self.out.match, len(self.matches.starts))
        offset = np.append(self.matches.offset, self.matches.offset[-1])
        upto = (
            np.append(self.matches.offset[1:], self.matches.offset[-1])[match]
            if final
            else offset[match] + self.out.upto
        )
        return hits, Frames(np.searchsorted(hits, offset[match]), np.searchsorted(hits, upto))

    def _picked(self, pick: Pick | MatchFunction) -> Ints:
        """Return the place that a pick means among the rows of all matches; `NOTHING` for none."""
        hits, frames = self._frames(pick.variables, final=pick.final)
        which, offset = pick.place
        at = frames.lo + offset if which == FIRST else frames.hi - 1 - offset
        exists = (at >= frames.lo) & (at < frames.hi)
        return np.where(exists, hits[np.where(exists, at, 0)], NOTHING) if len(hits) else np.full(len(at), NOTHING)

    def _row(self, pick: Pick) -> Ints:
        place = self._picked(pick)
        match = np.where(self._in_match, self.out.match, 0)
        if not len(self.matches.starts):
            return place
        return np.where(place == NOTHING, NOTHING, self.matches.starts[match] + place - self.matches.offset[match])

    def _classifier(self, function: MatchFunction) -> pa.Array:
        place = self._picked(function)
        exists = place != NOTHING
        states = self.matches.states[np.where(exists, place, 0)] if exists.any() else np.zeros(len(place), np.int64)
        names = pa.array(self.machine.variables, pa.string())
        return names.take(pa.array(self.machine.variable[states], mask=~exists))

    def _taken(self, number: int) -> str:
        """Return the variables and times of the rows of a match, as text."""
        match = self.out.match[number]
        begin, end = self.matches.offset[match : match + 2]
        last = min(end, begin + MOST_SHOWN)
        rows = self.matches.starts[match] + np.arange(last - begin)
        variables = self.machine.variable[self.matches.states[begin:last]]
        shown = [f"{self.machine.variables[name]} {to_text(int(at))}" for name, at in
                 zip(variables, self.values.rows.times[rows], strict=True)]  # fmt: skip
        return ", ".join([*shown, *([f"and {end - last} more"] if last < end else [])])

    def _fold(self, fold: Fold) -> dict[str, pa.Array]:
        hits, frames = self._frames(fold.variables, final=fold.final)
        match = np.searchsorted(self.matches.offset, hits, "right") - 1
        rows = self.matches.starts[match] + hits - self.matches.offset[match] if len(hits) else hits
        argument = self.values.columns[to_spark(fold.value)].take(pa.array(rows))
        parts = fold.function.seeds(argument, self.values.rows.times[rows])
        columns = fold.function.value(fold.function.fold(parts, frames))
        matched = pa.array(self._in_match)
        return {
            name: pc.if_else(matched, whole_array(column), pa.scalar(None, column.type))
            for name, column in columns.items()
        }
