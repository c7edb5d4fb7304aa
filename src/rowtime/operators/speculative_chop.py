"""The pieces of events as they are known after every change: EMIT CHANGES of CHOP (SPEC 9.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rowtime.core.errors import Failure, Problem
from rowtime.core.time import END
from rowtime.operators.chop import Chop
from rowtime.operators.contract import Delta, Kept, Tick, quoted
from rowtime.operators.lifetimes import C, D, E, Q, S, made


@dataclass(frozen=True)
class SpeculativeChop(Chop):
    """A `Chop` of versions of events: each row is cut by itself, those that take an event back as well."""

    kind: ClassVar[str] = "speculative chop"

    def keeps(self) -> tuple[Kept, ...]:
        """Nothing."""
        return ()

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The pieces of each row, with its change."""
        delta = deltas[0]
        clocks = self.promises([delta.clocks], tick.control(self))
        if delta.rows is None:
            return Delta(None, clocks)
        tick.describe(self, "look for endless events")
        if delta.rows.where(f"{E} >= {END}L").limit(1).count():
            what = f"{self.name}: an event without an end has endless pieces, and each is to be shown at once"
            hint = "Limit it: ALTER_DURATION(s, interval). Or leave EMIT CHANGES out."
            raise Failure(Problem("R195", what, hint=hint))
        names = list(map(quoted, self.emits().names))
        first, last = (f"{at} - pmod({at} - {self.offset}L, {self.by}L)" for at in (S, f"({E} - 1)"))
        cuts = f"explode(sequence({first}, {last}, {self.by}L)) AS __k"
        rows = delta.rows.selectExpr(*names, f"{S} AS __ls", f"{E} AS __le", D, Q, C, cuts)
        pieces = made("greatest(__ls, __k)", f"least(__le, __k + {self.by}L)", D, Q, C)
        return Delta(rows.selectExpr(*names, *pieces), clocks)
