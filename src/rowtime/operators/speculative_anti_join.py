"""Left anti-join as it is known after every change: EMIT CHANGES of LEFT ANTI JOIN and LEFT JOIN (SPEC 9.5).

What is uncovered of a left event is computed anew for every change of it and of the right
events that it meets; what differs from the one before goes out with that change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rowtime.core.time import BEGINNING, END
from rowtime.operators.anti_join import AntiJoin, gaps
from rowtime.operators.contract import Delta, Tick, quoted
from rowtime.operators.lifetime_join import LEFT, RIGHT
from rowtime.operators.lifetimes import C, D, E, N, Q, both, made, netted
from rowtime.operators.lifetimes import Kept as Rows
from rowtime.operators.versions import BEFORE, VERSION, as_of, differences, versions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SpeculativeAntiJoin(AntiJoin):
    """An `AntiJoin` of versions of events."""

    kind: ClassVar[str] = "speculative anti-join"

    def requires(self) -> str:
        """Versions, all up to the last one."""
        return "versions, in their order"

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """What each new change leaves uncovered of the left events that it touches."""
        control = tick.control(self)
        clocks = self.promises([delta.clocks for delta in deltas], control)
        before = control.get("bound", BEGINNING)
        kept = [Rows(tick, self, "left"), Rows(tick, self, "right")]
        old = [self._old(n, one.between(before if n == 0 else BEGINNING, END)) for n, one in enumerate(kept)]
        new: list[DataFrame | None] = [None, None]
        for n, delta in enumerate(deltas):
            written = [] if delta.rows is None else kept[n].add(self._side(n, delta.rows, (Q, C)), delta.count)
            new[n] = kept[n].segments.read(written).drop(N) if written else None
        rows = self._revised(old, new)
        control["bound"] = max(before, clocks[""])
        self._forget(kept, control["bound"])
        return Delta(rows, clocks)

    def _identity(self, n: int) -> list[str]:
        return [*self.names[n], *(LEFT, RIGHT)[n][:2]]

    def _old(self, n: int, rows: DataFrame | None) -> DataFrame | None:
        """What was there before the new changes, as one version."""
        return None if rows is None else netted(rows.drop(N, Q, C), self._identity(n)).selectExpr("*", *BEFORE)

    def _revised(self, old: Sequence[DataFrame | None], new: Sequence[DataFrame | None]) -> DataFrame | None:
        left, right = (both(before, now) for before, now in zip(old, new, strict=True))
        own = self._identity(0)
        met = None if left is None or new[1] is None else self._met(left, new[1])
        touched = [None if rows is None else rows.select(*map(quoted, own), Q, C) for rows in (new[0], met)]
        changes = both(*touched)
        if left is None or changes is None:
            return None
        versions = versions_of(changes, own)
        identity = [*own, *VERSION]
        alive = as_of(left, versions, own, own)
        covers = alive.selectExpr("*", "__le AS __rs", "__le AS __re")
        if right is not None:
            covering = as_of(self._met(left, right), versions, own, [*own, "__rs", "__re"])
            covers = covers.unionByName(covering.drop(D).selectExpr("*", f"CAST(NULL AS BIGINT) AS {D}"))
        weight = f"max({D}) OVER (PARTITION BY {', '.join(map(quoted, identity))}) AS {D}"
        covers = covers.selectExpr(*map(quoted, identity), "__rs", "__re", weight).where(f"{D} IS NOT NULL")
        names = [quoted(name) for name in self.names[0]]
        pieces = gaps(covers, identity).selectExpr(*names, *VERSION, "__x", f"__rs AS {E}", D)
        return differences(pieces, self.names[0]).selectExpr(*names, *made("__x", E, D, Q, C))

    def _met(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """The left events that right rows cover, with their times, weights and versions."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        own = [quoted(name) for name in self._identity(0)]
        met = left.select(*own).distinct().join(right, F.expr(self._condition), "inner")
        return met.select(*own, "__rs", "__re", D, Q, C)
