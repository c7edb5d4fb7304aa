"""GROUP BY SNAPSHOT() with aggregates that nothing takes back: MIN, MAX and their like (SPEC 9.6).

Each snapshot is aggregated over the events that are alive in it. What ended below the bound is
gone; of each group in which events are alive the snapshot that reaches the bound is kept, which
has gone out as open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import Delta, Operator, StateNote, Tick, UpTo, passed, quoted
from rowtime.operators.events.elementary import AT, NEXT, in_snapshots
from rowtime.operators.events.event_groups import FROM, EventGroups
from rowtime.operators.events.failing_events import exact_groups, fitting, refused, tried
from rowtime.operators.events.speculative_groups import SpeculativeGroups
from rowtime.operators.groups.finished import in_words
from rowtime.operators.rows.attempt import Told
from rowtime.operators.rows.lifetimes import D, E, N, S, WeightedLog, due, made, netted, revised

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot import exp

BAD = "__bad"  # INT: the number of the aggregate of a snapshot that is beyond its type


@dataclass(frozen=True)
class SnapshotSets(EventGroups):
    """Any ``aggregates`` of each snapshot and ``keys``; ``items`` and ``having`` are over both by name."""

    control: ClassVar = UpTo
    kind: ClassVar[str] = "snapshot sets"

    def keeps(self) -> tuple[StateNote, ...]:
        """What has not ended, and the snapshot that it is in."""
        until = "the bound has passed their end"
        return (
            StateNote("events that are open", until, rows={"state": N}),
            StateNote("the last snapshot of each group with such events", until, rows={"open": N}),
        )

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """The snapshots of each version."""
        return SpeculativeGroups(self.name, below[0], self.keys, self.aggregates, self.items, having=self.having)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The snapshots as far as the bound, less those that went out before."""
        delta, control = fitting(tick, self, deltas[0]), tick.control(self)
        clocks = self.promises([delta.clocks], control)
        before = control.bound
        bound = max(before, clocks[""])
        kept, going = WeightedLog(tick, self), WeightedLog(tick, self, "open")
        if delta.rows is not None:
            columns = map(quoted, self.input.emits().names)
            kept.add(delta.rows.selectExpr(*columns, f"{S} AS {FROM}", E, D, due(E)), delta.count)
        events = kept.between(before, END)
        result = None if bound <= before or events is None else self._changes(tick, events, going, bound)
        control.bound = bound
        kept.forget(bound, self.identity)
        going.forget(bound, [*self._values, "__x"])
        return Delta(result, clocks)

    @property
    def _values(self) -> list[str]:
        return [*self.key_names, *(item.column.name for item in self.aggregates), BAD]

    @property
    def _calls(self) -> list[exp.Expr]:
        return [item.expression for item in self.aggregates]

    @property
    def _beyond(self) -> list[Told]:
        return [(f"{BAD} = {n}", in_words(call)) for n, call in enumerate(self._calls)]

    def _changes(self, tick: Tick, events: DataFrame, going: WeightedLog, bound: int) -> DataFrame:
        alive = netted(events.drop(N), self.identity).where(f"{FROM} < {passed(bound, FROM)}")
        alive = alive.selectExpr("*", *(key.sql for key in self.keys))
        gone = going.between(BEGINNING, END)
        if gone is not None:
            if BAD not in gone.columns:  # kept by an older version, of which nothing failed
                gone = gone.selectExpr("*", f"CAST(NULL AS INT) AS {BAD}")
            gone = netted(gone.drop(N), [*self._values, "__x"]).selectExpr(*self._values, "__x", f"{END}L AS {E}", D)
            alive = self._since(alive, gone)
        tick.describe(self, "aggregate snapshots")
        found = revised(tick, self, self._values, self._snapshots(tick, alive, bound), gone)
        if bound < END:
            going.add(found.where(f"{E} >= {END}L").select(*self._values, "__x", D, N), None)
        if tick.trying:
            return refused(tick, self, tried(self, found, self._beyond), made("__x", E, D))
        return self.selected(found, made("__x", E, D))

    def _since(self, events: DataFrame, open_: DataFrame) -> DataFrame:
        """Events from the begin of the snapshot on that their group was in: what began it may be forgotten."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        begins = open_.selectExpr(*(f"{name} AS __g{n}" for n, name in enumerate(self.key_names)), "__x")
        same = " AND ".join(f"{name} <=> __g{n}" for n, name in enumerate(self.key_names)) or "true"
        others = [quoted(name) for name in events.columns if name != FROM]
        return events.join(begins, F.expr(same), "left").selectExpr(
            *others, f"greatest({FROM}, coalesce(__x, {FROM})) AS {FROM}"
        )

    def _snapshots(self, tick: Tick, alive: DataFrame, bound: int) -> DataFrame:
        """Those that begin below the bound; what reaches it is open."""
        others = [quoted(name) for name in alive.columns if name != E]
        events = alive.selectExpr(*others, f"least({E}, {passed(bound, E)}) AS {E}")
        each = in_snapshots(events, FROM, self.key_names).selectExpr("*", f"explode(sequence(1L, {D})) AS __i")
        groups = [*self.key_names, AT, NEXT]
        found, beyond = exact_groups(self, each, groups) if tick.trying else (self.aggregated(each, groups), [])
        cases = " ".join(f"WHEN {flag} THEN {self._calls.index(call)}" for flag, call in beyond)
        bad = f"CAST({f'CASE {cases} END' if cases else 'NULL'} AS INT) AS {BAD}"
        until = f"IF({NEXT} < {passed(bound, NEXT)}, {NEXT}, {END}L) AS {E}"
        return found.selectExpr(*self._values[:-1], bad, f"{AT} AS __x", until, f"1L AS {D}")
