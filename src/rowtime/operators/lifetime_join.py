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
from rowtime.operators.contract import Column, Delta, Kept, Operator, Route, Shape, Tick, passed, quoted
from rowtime.operators.lifetimes import C, D, E, N, Q, S, derived, due, made, netted
from rowtime.operators.lifetimes import Kept as Rows
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot import exp

LEFT, RIGHT = ("__ls", "__le", "__ld", "__lq", "__lc"), ("__rs", "__re", "__rd", "__rq", "__rc")
"""Start, end and weight of a row of a side; with which change it came, and the bound that that met."""


@dataclass(frozen=True)
class LifetimeJoin:
    """Pairs of ``left`` and ``right`` for which ``on`` holds; ``names`` are what the columns of each are called.

    ``versioned``: each pair comes with the later change of its two.
    """

    name: str
    left: Operator
    right: Operator
    names: tuple[tuple[str, ...], tuple[str, ...]]
    on: exp.Expr | None
    versioned: bool = False

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
        return (Kept("events of both sides", "the bounds of both have passed their end"),)

    def emits(self) -> Shape:
        """The columns of both."""
        columns = [c for side in self.inputs for c in side.emits().columns]
        named = [name for side in self.names for name in side]
        own = tuple(Column(name, c.type) for name, c in zip(named, columns, strict=True))
        return derived(Shape(own, retracts="any" if any(map(self._retracts, (0, 1))) else "none"))

    def _retracts(self, side: int) -> bool:
        return self.inputs[side].emits().retracts != "none"

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:  # noqa: ARG002
        """The least of both."""
        return {"": min(least(one.values()) for one in clocks)}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Join what is new, keep it."""
        control = tick.control(self)
        clocks, before = self.promises([delta.clocks for delta in deltas], control), control.get("bound", BEGINNING)
        kept, bound = [Rows(tick, self, "left"), Rows(tick, self, "right")], max(before, clocks[""])
        # What ends up to the bound meets nothing new.
        old = [self._netted(n, one.between(before, END)) for n, one in enumerate(kept)]
        new = [self._new(tick, n, delta, bound) for n, delta in enumerate(deltas)]
        everything = [both(one, other) for one, other in zip(old, new, strict=True)]
        pairs = [(new[0], everything[1]), (old[0], new[1])]
        found = [self._joined(one, other) for one, other in pairs if one is not None and other is not None]
        control["bound"] = bound
        for n, one in enumerate(kept):
            one.forget(bound, self._identity(n))
        return Delta(None if not found else found[0] if len(found) == 1 else found[0].unionByName(found[1]), clocks)

    @property
    def _changes(self) -> tuple[str, ...]:
        return (Q, C) if self.versioned else ()

    def _identity(self, side: int) -> list[str]:
        return [*self.names[side], *(LEFT, RIGHT)[side][:2]]

    def _netted(self, side: int, rows: DataFrame | None) -> DataFrame | None:
        """Without what was taken back, which would meet all that its open end reaches over."""
        if rows is None or self.versioned or not self._retracts(side):
            return rows
        return netted(rows, [*self._identity(side), N])

    def _new(self, tick: Tick, side: int, delta: Delta, bound: int) -> DataFrame | None:
        """The new rows of a side; those that live on are kept. Written, because they are read more than once."""
        if delta.rows is None:
            return None
        rows = side_of(self.inputs[side], self.names[side], (LEFT, RIGHT)[side], delta.rows, self._changes)
        found, what = self._netted(side, rows), ("left", "right")[side]
        assert found is not None
        columns = {name: name for name in found.columns}
        over = f"IF({N} > {passed(bound, N)}, 0, 1) AS __route"
        tick.describe(self, "keep events")
        routes = {what: Route(0, columns, N), "merged": Route(1, columns, N)}
        written = tick.write(self, found.selectExpr("*", over), routes, delta.count)
        tick.segments(self, what).add(written[what])
        read = {name: tick.segments(self, name).read(segments) for name, segments in written.items() if segments}
        return both(read.get(what), read.get("merged"))

    def _joined(self, left: DataFrame, right: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        own = (dict(zip((D, Q, C), side[2:], strict=True)) for side in (LEFT, RIGHT))
        left, right = (rows.withColumnsRenamed(named).drop(N) for rows, named in zip((left, right), own, strict=True))
        together = "__ls < __re AND __rs < __le"
        condition = f"({to_spark(self.on)}) AND {together}" if self.on is not None else together
        rows = left.join(right, F.expr(condition), "inner")
        names = [quoted(name) for side in self.names for name in side]
        change = ["greatest(__lq, __rq)", "greatest(__lc, __rc)"] if self.versioned else []
        return rows.selectExpr(*names, *made("greatest(__ls, __rs)", "least(__le, __re)", "__ld * __rd", *change))


def side_of(
    source: Operator, names: Sequence[str], times: Sequence[str], rows: DataFrame, more: Sequence[str] = ()
) -> DataFrame:
    """The rows of one side under the names that they have in the join; ``times``: those of start and end."""
    named = [f"{quoted(name)} AS {quoted(to)}" for name, to in zip(source.emits().names, names, strict=True)]
    return rows.selectExpr(*named, f"{S} AS {times[0]}", f"{E} AS {times[1]}", D, *more, due(E))


def both(one: DataFrame | None, other: DataFrame | None) -> DataFrame | None:
    """The rows of both, where there are any."""
    if one is None or other is None:
        return other if one is None else one
    return one.unionByName(other)
