"""GROUP BY TUMBLE or HOP over events: a window holds every event that it overlaps (SPEC 9.6).

A window is final once the bound has reached its end. The result is an event of the window's
extent, or a point at its last instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.errors import Failure, Problem
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import Delta, Kept, Operator, Shape, Tick, passed, quoted
from rowtime.operators.lifetimes import D, E, N, S, derived, made, netted
from rowtime.operators.lifetimes import Kept as Rows
from rowtime.operators.select import Item
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot import exp

FROM, WINDOW = "__s", "__z"  # the start of an event; the end of a window, µs


@dataclass(frozen=True)
class LifetimeWindows:
    """``aggregates`` of each window [k·hop + offset, + size) and ``keys``; ``point``: the result is one at its end."""

    name: str
    input: Operator
    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    size: int
    hop: int
    offset: int = 0
    point: bool = False
    having: exp.Expr | None = None

    kind: ClassVar[str] = "lifetime windows"
    promise: ClassVar[str] = "the beginning of the first window that is not final"
    reason: ClassVar[str] = "a window goes out as a whole once the bound has reached its end, and begins before"

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The events."""
        return (self.input,)

    def requires(self) -> str:
        """Nothing."""
        return "nothing"

    def keeps(self) -> tuple[Kept, ...]:
        """Events of windows that are not final."""
        return (Kept("events", "the bound reaches the end of their last window"),)

    def emits(self) -> Shape:
        """The select list, as events."""
        return derived(Shape(tuple(item.column for item in self.items)))

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:  # noqa: ARG002
        """The least start of a window that may yet go out."""
        bound = least(clocks[0].values())
        if not BEGINNING < bound < END:
            return {"": bound}
        end = bound + self.hop - (bound - self.offset - self.size) % self.hop
        return {"": end - (1 if self.point else self.size)}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Aggregate the windows that the bound has reached the end of; keep the events of others."""
        delta, control = deltas[0], tick.control(self)
        kept, before = Rows(tick, self), control.get("bound", BEGINNING)
        bound = max(before, least(delta.clocks.values()))
        parts = [] if delta.rows is None else [self._events(delta.rows)]
        old = kept.between(before, END) if bound > before else None
        rows = None
        if bound > before and (parts or old is not None):
            whole = parts + ([] if old is None else [old])
            rows = self._windows(tick, whole[0] if len(whole) == 1 else whole[0].unionByName(whole[1]), before, bound)
        if parts and bound < END:
            kept.add(parts[0].where(f"{N} > {passed(bound, N)}"), delta.count)
        control["bound"] = bound
        kept.forget(bound, self._identity)
        return Delta(rows, self.promises([delta.clocks], control))

    @property
    def _identity(self) -> list[str]:
        return [*self.input.emits().names, FROM, E]

    def _events(self, rows: DataFrame) -> DataFrame:
        """Events with the end of their last window."""
        last = f"IF({E} < {END}L, {E} - 1 - pmod({E} - 1 - {self.offset}L, {self.hop}L) + {self.size}L, {END}L) AS {N}"
        return rows.selectExpr(*map(quoted, self.input.emits().names), f"{S} AS {FROM}", E, D, last)

    def _windows(self, tick: Tick, events: DataFrame, before: int, bound: int) -> DataFrame:
        """The windows with an end in (before, bound]."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        events = netted(events, [*self._identity, N])
        if bound >= END and events.where(f"{N} >= {END}L").limit(1).count():
            what = f"{self.name}: an event without an end lies in endless windows, and its stream has ended"
            hint = "Send its end edge, or limit it: ALTER_DURATION(s, interval)."
            raise Failure(Problem("R195", what, hint=hint))
        tick.describe(self, "aggregate windows")
        after = f"greatest({FROM}, {passed(before, FROM)})"
        first = f"{after} + {self.hop}L - pmod({after} - {self.offset + self.size}L, {self.hop}L)"
        last = f"least({N}, {passed(bound, N)})"
        events = events.selectExpr("*", f"{first} AS lo", f"{last} AS hi").where("lo <= hi")
        each = events.selectExpr("*", f"explode(sequence(lo, hi, {self.hop}L)) AS {WINDOW}")
        each = each.selectExpr("*", f"explode(sequence(1L, {D})) AS __i").selectExpr(
            *(key.sql for key in self.keys), *map(quoted, self.input.emits().names), WINDOW
        )
        finals = [F.expr(f"{to_spark(item.expression)} AS {item.column.name}") for item in self.aggregates]
        groups = each.groupBy(*(key.column.name for key in self.keys), WINDOW)
        made_of = groups.agg(*finals) if finals else groups.count()
        if self.having is not None:
            made_of = made_of.where(to_spark(self.having))
        start = f"{WINDOW} - {1 if self.point else self.size}L"
        return made_of.selectExpr(*(item.sql for item in self.items), *made(start, WINDOW))
