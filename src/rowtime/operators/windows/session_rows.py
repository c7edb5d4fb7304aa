"""SESSION as a table function: each row with the edges of its session, once that has ended.

Semantics 12: the rows of a session get its end as their rowtime, and keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import BEFORE, DUE, FIRST, IS_DUE, LAST, POSITION, ROUTE, ROWTIME, SESSION, WRITER
from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING, END, MAX_MICROS
from rowtime.operators.contract import Closed, Column, Delta, Shape, Tick, Unary, passed, quoted
from rowtime.operators.contract.requirement import PLACED
from rowtime.operators.contract.state import Kept, Route, Segment, StateNote
from rowtime.operators.windows.session import Chains


@dataclass(frozen=True)
class SessionRows(Unary):
    """Adds the columns ``names`` of start and end; sessions are of the columns ``keys``, ``gap`` in µs."""

    keys: tuple[str, ...]
    gap: Micros
    names: tuple[str, str]

    control: ClassVar = Closed
    kind: ClassVar[str] = "session rows"
    same_below: ClassVar = ()
    needs: ClassVar = (PLACED,)  # a row's place in its writer orders the rows of a session
    promise: ClassVar[str] = "just above the bound of its input"
    reason: ClassVar[str] = "every session that ends at the bound has gone out, and each later one ends after it"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the rows of open sessions."""
        return (self._state.noted("the rows of open sessions", "the bound reaches the end of the session"),)

    def emits(self) -> Shape:
        """Return the input's columns and the session's edges; rows of one end in their former order."""
        below = self.input.emits()
        # Facts about the columns' order were about the old order.
        columns = (*(Column(c.name, c.type) for c in below.columns), *(Column(n, "TIMESTAMP") for n in self.names))
        order = (ROWTIME, BEFORE, WRITER, POSITION)
        return replace(
            below, columns=columns, order=order, extra=(BEFORE,), placed=False, single=True, released=True,
            unmerged=False, stamped=False, event=None,
        )  # fmt: skip

    def promises(self, clocks: Sequence[Clocks], control: Closed) -> Clocks:  # noqa: ARG002
        """Return the bound, strictly."""
        bound = least(clocks[0].values())
        return {"": bound + 1 if BEGINNING < bound < END else bound}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Keep the new rows; release those whose session has ended."""
        delta, control = deltas[0], tick.control(self)
        before = control.closed
        bound = max(least(delta.clocks.values()), before)
        control = tick.remember(self, closed=bound)
        if delta.rows is not None:
            at = f"unix_micros({ROWTIME})"
            times = (f"{at} AS {FIRST}", f"{at} AS {LAST}", f"{at} + {self.gap}L AS {DUE}")
            tick.describe(self, "keep rows of open sessions")
            self._state.keep(tick, self, delta.rows.selectExpr("*", *times))
        done = self._close(tick, before, bound)
        tick.segments(self).forget(bound)
        self._state.compact(tick, self, "rows of open sessions", lambda kept: kept.where(f"{DUE} > {bound}L"))
        rows = tick.segments(self, "complete").read(done) if done else None
        return Delta(rows, self.promises([{"": bound}], control))

    def _close(self, tick: Tick, before: int, bound: int) -> tuple[Segment, ...]:
        """Emit rows of ended sessions, and keep those that were due but whose session continues."""
        chains = Chains(tuple(map(quoted, self.keys)), self.gap)
        pieces = chains.due(tick, self, before, bound)
        if pieces is None:
            return ()
        session = f"OVER (PARTITION BY {', '.join((*chains.keys, SESSION))})"
        numbered = chains.numbered(pieces).selectExpr("*", f"min({FIRST}) {session} AS __o")
        ended = chains.ended(numbered).where(IS_DUE)
        complete = f"{DUE} <= {passed(bound, DUE)}"
        edges = (
            f"timestamp_micros(__o) AS {quoted(self.names[0])}",
            f"timestamp_micros({DUE}) AS {quoted(self.names[1])}",
        )
        rowtime = f"timestamp_micros(least({DUE}, {MAX_MICROS}L)) AS __z"
        rows = ended.selectExpr("*", *edges, rowtime, f"CASE WHEN {complete} THEN 1 ELSE 0 END AS {ROUTE}")
        shape = self.emits()
        out = {name: name for name in (*shape.names, *shape.internals)} | {ROWTIME: "__z", BEFORE: ROWTIME}
        routes = {"complete": Route(1, out, DUE), "state": self._state.route()}
        tick.describe(self, "close sessions")
        written = tick.write(self, rows, routes)
        tick.segments(self).add(written["state"])
        return tuple(written["complete"])

    @property
    def _state(self) -> Kept:
        below = self.input.emits().without_origin()
        return Kept(DUE, (*below.names, *below.internals, FIRST, LAST, DUE))
