"""Events that are put together as they are known after every change: EMIT CHANGES of STITCH (SPEC 9.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import Delta, Kept, Tick
from rowtime.operators.lifetimes import C, D, E, N, Q, S, due, made, netted
from rowtime.operators.lifetimes import Kept as Rows
from rowtime.operators.stitch import Stitch, runs
from rowtime.operators.versions import BEFORE, VERSION, as_of, differences, versions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SpeculativeStitch(Stitch):
    """A `Stitch` of versions of events: each payload is put together anew for every change of one of its events."""

    kind: ClassVar[str] = "speculative stitch"

    def requires(self) -> str:
        """Versions, all up to the last one."""
        return "versions, in their order"

    def keeps(self) -> tuple[Kept, ...]:
        """Events of what may yet become longer."""
        return (Kept("events", "the bound has passed the end of what they are part of, and of what began before"),)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """What each new change makes of its payload."""
        delta, control, kept = deltas[0], tick.control(self), Rows(tick, self)
        clocks = self.promises([delta.clocks], control)
        bound, low = max(control.get("bound", BEGINNING), clocks[""]), control.get("low", BEGINNING)
        old, rows = kept.between(low, END), None
        if delta.rows is not None:
            new = delta.rows.selectExpr(*self._quoted, f"{S} AS __ls", f"{E} AS __le", D, Q, C, due(E))
            written = kept.add(new, delta.count)
            rows = self._revised(kept.segments.read(written), old) if written else None
        control["bound"] = bound
        control["low"] = self._begun(kept, low, bound)
        kept.forget(control["low"], self._identity)
        return Delta(rows, clocks)

    @property
    def _identity(self) -> list[str]:
        return [*self._names, "__ls", "__le"]

    def _begun(self, kept: Rows, low: int, bound: int) -> int:
        """The least start of what is put together and has not ended below the bound."""
        rows = kept.between(low, END) if bound < END else None
        if rows is None:
            return bound
        alive = runs(netted(rows.drop(N, Q, C), self._identity), self._names).where(f"__y >= {bound}L")
        found = alive.agg({"__x": "min"}).collect()[0][0]
        return bound if found is None else min(bound, int(found))

    def _revised(self, new: DataFrame, old: DataFrame | None) -> DataFrame:
        """The results of each version of the payloads with new changes, less those of the one before it."""
        versions, events = versions_of(new, self._names), new.drop(N)
        if old is not None:
            events = events.unionByName(netted(old.drop(N, Q, C), self._identity).selectExpr("*", *BEFORE))
        alive = as_of(events, versions, self._names, self._identity)
        results = runs(alive, [*self._names, *VERSION]).withColumnRenamed("__y", E).selectExpr("*", f"1L AS {D}")
        return differences(results, self._names).selectExpr(*self._quoted, *made("__x", E, D, Q, C))
