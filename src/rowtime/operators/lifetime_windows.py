"""GROUP BY TUMBLE or HOP over events: a window holds every event that it overlaps (SPEC 9.6).

A window is final once the bound has reached its end. The result is an event of the window's
extent, or a point at its last instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.errors import Failure, Problem
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import Delta, Kept, Link, Shape, Tick, passed, quoted
from rowtime.operators.event_groups import FROM, EventGroups
from rowtime.operators.failing_events import results
from rowtime.operators.lifetimes import OVERLAPS, D, E, N, S, made, netted
from rowtime.operators.lifetimes import Kept as Rows
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW = "__z"  # the end of a window, µs


@dataclass(frozen=True)
class LifetimeWindows(EventGroups):
    """``aggregates`` of each window [k·hop + offset, + size) and ``keys``; ``point``: the result is one at its end.

    ``clips``: whether aggregates see lifetimes, and cut to the window at both ends (``both``) or at its end (``end``).
    """

    size: int
    hop: int
    offset: int = 0
    point: bool = False
    clips: str = ""

    kind: ClassVar[str] = "lifetime windows"
    promise: ClassVar[str] = "the beginning of the first window that is not final"
    reason: ClassVar[str] = "a window goes out as a whole once the bound has reached its end, and begins before"

    def keeps(self) -> tuple[Kept, ...]:
        """Events of windows that are not final."""
        return (Kept("events", "the bound reaches the end of their last window"),)

    def emits(self) -> Shape:
        """The select list; a window is final when it goes out, and lasts as long as all others."""
        return replace(super().emits(), retracts="none", lasts=1 if self.point else self.size)

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:  # noqa: ARG002
        """The least start of a window that may yet go out."""
        bound = least(clocks[0].values())
        if not BEGINNING < bound < END:
            return {"": bound}
        start = first_start(bound, self.size, self.hop, self.offset)
        return {"": start + self.size - 1 if self.point else start}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """What is alive in the window."""
        span = (f"{E} - {self.size}L", E) if self.point else (S, E)
        return Link(self.same_keys(), meets=OVERLAPS, span=span, narrows="meet")

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
        kept.forget(bound, self.identity)
        return Delta(rows, self.promises([delta.clocks], control))

    def _events(self, rows: DataFrame) -> DataFrame:
        """Events with the end of their last window."""
        last = f"{last_window(self.size, self.hop, self.offset)} AS {N}"
        return rows.selectExpr(*map(quoted, self.input.emits().names), f"{S} AS {FROM}", E, D, last)

    def _windows(self, tick: Tick, events: DataFrame, before: int, bound: int) -> DataFrame:
        """The windows with an end in (before, bound]."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        events = netted(events, [*self.identity, N])
        if bound >= END and events.where(f"{N} >= {END}L").limit(1).count():
            what = f"{self.name}: an event without an end lies in endless windows, and its stream has ended"
            hint = "Send its end edge, or limit it: ALTER_DURATION(s, interval)."
            raise Failure(Problem("R195", what, hint=hint))
        tick.describe(self, "aggregate windows")
        each = in_windows(events, (before, bound), self.size, self.hop, self.offset)
        each = each.selectExpr("*", f"explode(sequence(1L, {D})) AS __i").selectExpr(
            *(key.sql for key in self.keys),
            *map(quoted, self.input.emits().names),
            WINDOW,
            *clipped(self.size, self.clips),
        )
        start = f"{WINDOW} - {1 if self.point else self.size}L"
        if tick.trying:
            return results(tick, self, each, [*self.key_names, WINDOW], [], made(start, WINDOW))
        finals = [F.expr(f"{to_spark(item.expression)} AS {item.column.name}") for item in self.aggregates]
        groups = each.groupBy(*self.key_names, WINDOW)
        made_of = groups.agg(*finals) if finals else groups.count()
        if self.having is not None:
            made_of = made_of.where(to_spark(self.having))
        return made_of.selectExpr(*(item.sql for item in self.items), *made(start, WINDOW))


def first_start(bound: int, size: int, hop: int, offset: int) -> int:
    """Where the first window begins that ends behind a bound."""
    return bound + hop - (bound - offset - size) % hop - size


def clipped(size: int, clips: str) -> list[str]:
    """The lifetime in a window, as aggregates see it: its end is never beyond that of the window, for it may change."""
    if not clips:
        return []
    start = f"greatest({FROM}, {WINDOW} - {size}L)" if clips == "both" else FROM
    times = {"__lifetime_start": start, "__lifetime_end": f"least({E}, {WINDOW})"}
    return [f"timestamp_micros({micros}) AS {name}" for name, micros in times.items()]


def last_window(size: int, hop: int, offset: int) -> str:
    """The end of the last window that overlaps an event; END of one that has none."""
    return f"IF({E} < {END}L, {E} - 1 - pmod({E} - 1 - {offset}L, {hop}L) + {size}L, {END}L)"


def in_windows(events: DataFrame, span: tuple[int, int], size: int, hop: int, offset: int) -> DataFrame:
    """Events (`FROM`, `E`, `N` as in `last_window`), each once for every window it overlaps that ends in ``span``."""
    before, bound = span
    after = f"greatest({FROM}, {passed(before, FROM)})"
    first = f"{after} + {hop}L - pmod({after} - {offset + size}L, {hop}L)"
    events = events.selectExpr("*", f"{first} AS __lo", f"least({N}, {passed(bound, N)}) AS __hi").where("__lo <= __hi")
    return events.selectExpr("*", f"explode(sequence(__lo, __hi, {hop}L)) AS {WINDOW}").drop("__lo", "__hi")
