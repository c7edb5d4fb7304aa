"""Events up to what cuts them as they are known after every change: EMIT CHANGES of CLIP (SPEC 9.5).

What is left of an event is what no later start covers, if each covers everything from there on:
an anti-join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rowtime.core.time import END
from rowtime.operators.contract import Kept
from rowtime.operators.lifetimes import D, N
from rowtime.operators.speculative_anti_join import SpeculativeAntiJoin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SpeculativeClip(SpeculativeAntiJoin):
    """A `Clip` of versions of events; ``on``: which right events cut which left ones."""

    kind: ClassVar[str] = "speculative clip"

    def keeps(self) -> tuple[Kept, ...]:
        """What may yet be cut, and the starts that cut it."""
        left = Kept("left events", "the bound has passed their end")
        return (left, Kept("starts of right events", "no left event that began before is kept"))

    def _side(self, n: int, rows: DataFrame, more: Sequence[str] = ()) -> DataFrame:
        rows = super()._side(n, rows, more)
        if n == 0:
            return rows
        return rows.selectExpr(*self.names[1], "__rs", f"{END}L AS __re", D, *more, f"__rs + 1 AS {N}")

    @property
    def _condition(self) -> str:
        return f"{super()._condition} AND __rs > __ls"
