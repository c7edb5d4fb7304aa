"""Windows of start times in a row as they are known after every change: EMIT CHANGES of COUNT_WINDOW (SPEC 9.5).

The windows of a group are computed anew for every change of its starts, from the starts that
may yet change and the last ones before these; what differs goes out with that change. A change
of an end alone changes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import Delta, Tick, quoted
from rowtime.operators.count_windows import WINDOW, CountWindows
from rowtime.operators.event_groups import FROM
from rowtime.operators.lifetimes import C, D, E, N, Q, made, netted
from rowtime.operators.lifetimes import Kept as Rows
from rowtime.operators.versions import BEFORE, VERSION, as_of, differences, versions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SpeculativeCountWindows(CountWindows):
    """`CountWindows` of versions of events; what is kept is the same."""

    kind: ClassVar[str] = "speculative count windows"

    def requires(self) -> str:
        """Versions, all up to the last one."""
        return "versions, in their order"

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """What each new change makes of the windows of its group."""
        delta, control = deltas[0], tick.control(self)
        clocks = self.promises([delta.clocks], control)
        before = control.get("bound", BEGINNING)
        bound = max(before, clocks[""])
        ahead, last = Rows(tick, self, "ahead"), Rows(tick, self, "last")
        rows = None
        if delta.rows is not None:
            old = [ahead.between(before, END), last.between(BEGINNING, END)]
            written = ahead.add(self._changes(delta.rows, before), delta.count)
            rows = self._revised(ahead.segments.read(written), old) if written else None
        due = ahead.between(before, bound) if before < bound < END else None
        if due is not None:
            self._move(tick, due, last)
        self._pass(control, bound, ahead, last)
        return Delta(rows, clocks)

    def _changes(self, rows: DataFrame, before: int) -> DataFrame:
        """Events that a version adds and takes away, without those of which it changes the end."""
        changes = netted(self._starts(rows, before, (Q, C)), [*self.identity, Q, N])
        return changes.select(*self._quoted, FROM, D, Q, C, N)

    def _revised(self, new: DataFrame, old: Sequence[DataFrame | None]) -> DataFrame:
        """The windows of each version of the groups with new changes, less those of the one before it."""
        keys, groups = [key.sql for key in self.keys], [*self.key_names, *VERSION]
        changes = new.drop(N).selectExpr("*", *keys)
        versions = versions_of(changes, self.key_names)
        known = [one.drop(N, Q, C).selectExpr("*", *BEFORE, *keys) for one in old if one is not None]
        events = reduce(lambda one, other: one.unionByName(other), known, changes)
        alive = as_of(events, versions, self.key_names, [*self.identity, *self.key_names])
        results = self._aggregated(self._ranked(alive, groups), groups)
        items = [item.sql for item in self.items]
        events = results.selectExpr(*items, *VERSION, f"{WINDOW} AS __x", f"{WINDOW} + 1 AS {E}", f"1L AS {D}")
        names = [quoted(item.column.name) for item in self.items]
        return differences(events, self.emits().names).selectExpr(*names, *made("__x", E, D, Q, C))
