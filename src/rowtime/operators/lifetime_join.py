"""Joins of events: an event for each pair that meets the condition, alive while both are (SPEC 9.6).

Weights multiply, so a change of one side is a change of its pairs, and only what is new has
to be joined: new left with all right, new right with the left that was there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import Column, Delta, Kept, Operator, Shape, Tick, passed, quoted
from rowtime.operators.lifetimes import D, E, N, S, derived, made
from rowtime.operators.lifetimes import Kept as Rows
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot import exp

LEFT, RIGHT = ("__ls", "__le", "__ld"), ("__rs", "__re", "__rd")  # start, end, weight of a side


@dataclass(frozen=True)
class LifetimeJoin:
    """Pairs of ``left`` and ``right`` for which ``on`` holds; ``names`` are what the columns of each are called."""

    name: str
    left: Operator
    right: Operator
    names: tuple[tuple[str, ...], tuple[str, ...]]
    on: exp.Expr | None

    kind: ClassVar[str] = "lifetime join"
    promise: ClassVar[str] = ""
    reason: ClassVar[str] = ""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Both sides."""
        return (self.left, self.right)

    def requires(self) -> str:
        """Nothing."""
        return "nothing"

    def keeps(self) -> tuple[Kept, ...]:
        """Events of both sides."""
        return (Kept("events of both sides", "the bounds of both have reached their end"),)

    def emits(self) -> Shape:
        """The columns of both."""
        columns = [c for side in self.inputs for c in side.emits().columns]
        named = [name for side in self.names for name in side]
        return derived(Shape(tuple(Column(name, c.type) for name, c in zip(named, columns, strict=True))))

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:  # noqa: ARG002
        """The least of both."""
        return {"": min(least(one.values()) for one in clocks)}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Join what is new, keep it."""
        control = tick.control(self)
        clocks = self.promises([delta.clocks for delta in deltas], control)
        kept = [Rows(tick, self, "left"), Rows(tick, self, "right")]
        old = [one.between(BEGINNING, END) for one in kept]
        new = [
            None if d.rows is None else side_of(self.inputs[n], self.names[n], (LEFT, RIGHT)[n], d.rows)
            for n, d in enumerate(deltas)
        ]
        everything = [_both(one, other) for one, other in zip(old, new, strict=True)]
        pairs = [(new[0], everything[1]), (old[0], new[1])]
        found = [self._joined(one, other) for one, other in pairs if one is not None and other is not None]
        for n, rows in enumerate(new):
            if rows is not None and clocks[""] < END:
                kept[n].add(rows.where(f"{N} > {passed(clocks[''], N)}"), deltas[n].count)
        for n, one in enumerate(kept):
            one.forget(clocks[""], [*self.names[n], *(LEFT, RIGHT)[n][:2]])
        return Delta(None if not found else found[0] if len(found) == 1 else found[0].unionByName(found[1]), clocks)

    def _joined(self, left: DataFrame, right: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        left, right = (rows.withColumnRenamed(D, side[2]).drop(N) for rows, side in ((left, LEFT), (right, RIGHT)))
        together = "__ls < __re AND __rs < __le"
        condition = f"({to_spark(self.on)}) AND {together}" if self.on is not None else together
        rows = left.join(right, F.expr(condition), "inner")
        names = [quoted(name) for side in self.names for name in side]
        return rows.selectExpr(*names, *made("greatest(__ls, __rs)", "least(__le, __re)", "__ld * __rd"))


def side_of(source: Operator, names: Sequence[str], times: Sequence[str], rows: DataFrame) -> DataFrame:
    """The rows of one side under the names that they have in the join; ``times``: those of start and end."""
    named = [f"{quoted(name)} AS {quoted(to)}" for name, to in zip(source.emits().names, names, strict=True)]
    return rows.selectExpr(*named, f"{S} AS {times[0]}", f"{E} AS {times[1]}", D, f"{E} AS {N}")


def _both(one: DataFrame | None, other: DataFrame | None) -> DataFrame | None:
    if one is None or other is None:
        return other if one is None else one
    return one.unionByName(other)
