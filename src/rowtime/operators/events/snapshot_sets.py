"""GROUP BY SNAPSHOT() with aggregates that cannot be subtracted from: MIN, MAX and others (semantics 9.6).

Each snapshot is aggregated over the events that are alive in it. Events that ended below the bound are dropped; for
each group with live events, the snapshot that reaches the bound is kept: it has been emitted as open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import BAD, DUE, NEXT_SNAPSHOT, SNAPSHOT_AT, START, STOP, WEIGHT
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Operator, Tick, UpTo, passed, quoted
from rowtime.operators.contract.state import StateNote
from rowtime.operators.events.event_groups import EventGroups
from rowtime.operators.events.event_windows import in_snapshots
from rowtime.operators.events.failing_events import exact_groups, fitting, refused, tried
from rowtime.operators.events.speculative_groups import SpeculativeGroups
from rowtime.operators.groups.finished import in_words
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.lifetimes import BEGINS, WeightedLog, advanced, derived_columns, due, netted, revised


@dataclass(frozen=True)
class SnapshotSets(EventGroups):
    """Any ``aggregates`` of each snapshot and ``keys``; ``items`` and ``having`` are over both by name."""

    control: ClassVar = UpTo
    kind: ClassVar[str] = "snapshot sets"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events that have not ended, and the snapshot that they are in."""
        until = "the bound has passed their end"
        last = WeightedLog.kept(*self._values, "__x", name="open")
        return (
            WeightedLog.kept(*self.identity).noted("events that are open", until),
            last.noted("the last snapshot of each group with such events", until),
        )

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the operator for the snapshots of each version."""
        return SpeculativeGroups(self.name, below[0], self.keys, self.aggregates, self.items, having=self.having)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the snapshots up to the bound, minus those emitted before."""
        delta = fitting(tick, self, deltas[0])
        clocks, before, bound = advanced(tick, self, deltas)
        kept, going = WeightedLog(tick, self), WeightedLog(tick, self, "open")
        if delta.rows is not None:
            columns = map(quoted, self.input.emits().names)
            kept.add(delta.rows.selectExpr(*columns, f"{BEGINS} AS {START}", STOP, WEIGHT, due(STOP)))
        events = kept.between(before, END)
        result = None if bound <= before or events is None else self._changes(tick, events, going, bound)
        tick.remember(self, bound=bound)
        kept.forget(bound, self.identity)
        going.forget(bound, [*self._values, "__x"])
        return Delta(result, clocks)

    @property
    def _values(self) -> list[str]:
        return [*self.key_names, *(item.column.name for item in self.aggregates), BAD]

    @property
    def _calls(self) -> list[exp.Expr]:
        return [item.expression for item in self.aggregates]

    def _changes(self, tick: Tick, events: Frame, going: WeightedLog, bound: int) -> Frame:
        alive = netted(events.drop(DUE), self.identity).where(f"{START} < {passed(bound, START)}")
        alive = selected(tick, alive, ["*", *(key.sql for key in self.keys)])
        gone = going.between(BEGINNING, END)
        if gone is not None:
            gone = netted(gone.drop(DUE), [*self._values, "__x"]).selectExpr(
                *self._values, "__x", f"{END}L AS {STOP}", WEIGHT
            )
            alive = self._since(alive, gone)
        tick.describe(self, "aggregate snapshots")
        changes = revised(tick, self, self._values, self._snapshots(tick, alive, bound), gone)
        if bound < END:
            going.add(changes.where(f"{STOP} >= {END}L").select(*self._values, "__x", WEIGHT, DUE))
        if tick.trying:
            beyond = [(f"{BAD} = {n}", in_words(call)) for n, call in enumerate(self._calls)]
            return refused(tick, self, tried(self, changes, beyond), derived_columns("__x", STOP, WEIGHT))
        return self.selected(changes, derived_columns("__x", STOP, WEIGHT))

    def _since(self, events: Frame, open_: Frame) -> Frame:
        """Return events from the start of their group's last snapshot on: the event that began it may be dropped."""
        begins = open_.selectExpr(*(f"{name} AS __g{n}" for n, name in enumerate(self.key_names)), "__x")
        same = " AND ".join(f"{name} <=> __g{n}" for n, name in enumerate(self.key_names)) or "true"
        others = [quoted(name) for name in events.columns if name != START]
        return events.joined(begins, same, "left").selectExpr(
            *others, f"greatest({START}, coalesce(__x, {START})) AS {START}"
        )

    def _snapshots(self, tick: Tick, alive: Frame, bound: int) -> Frame:
        """Return the snapshots that begin below the bound; one that reaches it is open."""
        others = [quoted(name) for name in alive.columns if name != STOP]
        events = alive.selectExpr(*others, f"least({STOP}, {passed(bound, STOP)}) AS {STOP}")
        each = in_snapshots(events, START, self.key_names).selectExpr("*", f"explode(sequence(1L, {WEIGHT})) AS __i")
        groups = [*self.key_names, SNAPSHOT_AT, NEXT_SNAPSHOT]
        groups_of, beyond = exact_groups(self, each, groups) if tick.trying else (self.aggregated(each, groups), [])
        cases = " ".join(f"WHEN {flag} THEN {self._calls.index(call)}" for flag, call in beyond)
        bad = f"CAST({f'CASE {cases} END' if cases else 'NULL'} AS INT) AS {BAD}"
        until = f"IF({NEXT_SNAPSHOT} < {passed(bound, NEXT_SNAPSHOT)}, {NEXT_SNAPSHOT}, {END}L) AS {STOP}"
        return groups_of.selectExpr(*self._values[:-1], bad, f"{SNAPSHOT_AT} AS __x", until, f"1L AS {WEIGHT}")
