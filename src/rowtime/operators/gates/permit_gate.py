"""Permit gate: rows in their order, each released by a permit of another stream.

Semantics 8.2. The k-th row is emitted with the k-th permit, at the later of the two rowtimes; the pairs follow from the
two orders alone. Rows wait for permits, and permits for rows. Rows without a permit are refused (``NO_PERMIT``) when
the permits have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import ASKED_AT, DUE, PERMIT, PERMITS, POSITION, ROWTIME
from rowtime.core.time import END
from rowtime.operators.contract import Column, Delta, Link, Operator, Shape, Tick, UpTo, quoted
from rowtime.operators.contract.requirement import COUNTED
from rowtime.operators.contract.state import Kept, StateNote
from rowtime.operators.panes.event_time import verdict_on
from rowtime.operators.rows.lifetimes import BEGINS

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.contract.state import Segment

REASON = "NO_PERMIT"


@dataclass(frozen=True)
class Queues(UpTo):
    """How many rows ``came``, were ``given`` a permit, were ``sent``; those below ``refused`` can get none any more.

    ``row``, ``permit``: the rowtimes (µs UTC) of the first waiting row and permit; ``None`` if none waits.
    """

    came: int = 0
    given: int = 0
    sent: int = 0
    refused: int = 0
    row: int | None = None
    permit: int | None = None


_PLACES = Kept(POSITION, (POSITION, PERMIT), "places", waits=False)
_PERMITS = Kept(PERMITS, (PERMITS, PERMIT), "permits")


@dataclass(frozen=True)
class PermitGate(Operator):
    """``GATE(TABLE s, TABLE permits [, n])``: each row of ``permits`` releases one row of ``input``, or ``n``.

    Both inputs are numbered in their orders, from 0 on.
    """

    name: str
    input: Operator
    permits: Operator
    count: str | None = None

    control: ClassVar = Queues
    kind: ClassVar[str] = "permit gate"
    needs: ClassVar = (replace(COUNTED, traced=True, name="1.merge"), replace(COUNTED, name="2.merge"))
    is_gate: ClassVar[bool] = True
    promise: ClassVar[str] = "the later of the earliest times that the next row and the next permit can have"
    reason: ClassVar[str] = (
        "a row goes out at the later of its own rowtime and its permit's, and both streams are in order"
    )

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return the rows, and the permits."""
        return (self.input, self.permits)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the rows and permits that wait for the other side."""
        rows = StateNote("rows without a permit", "permits arrive or end", "nothing", rows=(self._state, _PLACES))
        return (rows, _PERMITS.noted("permits without a row", "rows come", "nothing"))

    def emits(self) -> Shape:
        """Return the rows' columns, released in their order."""
        below = self.input.emits()
        columns = tuple(Column(column.name, column.type) for column in below.columns)
        return replace(below, columns=columns, arrival=False, event=None)

    def promises(self, clocks: Sequence[Clocks], control: Queues) -> Clocks:
        """Return the later of the next row's rowtime and the next permit's, as far as they are known."""
        rows, permits = (least(side.values()) for side in clocks)
        row = rows if control.row is None else control.row
        permit = permits if control.permit is None else control.permit
        return {"": max(min(max(row, permit), END), control.bound)}

    def link(self, n: int) -> Link:
        """Return the row with its rowtime from before."""
        return Link(self.passed_on(n)) if n == 0 else Link(meets=f"{BEGINS} <= {ASKED_AT}")

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Release every row that has its permit by now."""
        rows = deltas[0].rows
        self._permitted(tick, deltas[1].rows)
        new = self._arrived(tick, deltas[0])
        control = tick.control(self)
        sent = control.sent
        upto = min(control.came, control.given)
        released = self._let_out(tick, rows, (sent, upto)) if upto > sent else None
        if rows is not None and new and control.came > upto:
            tick.describe(self, "keep rows without a permit")
            self._state.keep(tick, self, _due(rows.where(f"{POSITION} >= {upto}L")))
        control = tick.remember(self, sent=upto)
        if upto > sent:
            tick.count(self, upto - sent)
        tick.segments(self).forget(upto - 1)
        if least(deltas[1].clocks.values()) >= END:
            self._refuse(tick, control, upto)
        control = self._head(tick, control, upto)
        self._compact(tick)
        clocks = self.promises([delta.clocks for delta in deltas], control)
        tick.remember(self, bound=clocks[""])
        return Delta(released, clocks)

    # -- input ------------------------------------------------------------------------

    def _permitted(self, tick: Tick, rows: Frame | None) -> None:
        """Keep new permits, with their running number."""
        if rows is None:
            return
        tick.describe(self, "read permits")
        many = f"greatest(coalesce(CAST({quoted(self.count)} AS BIGINT), 0L), 0L)" if self.count else "1L"
        read = (
            rows.selectExpr(POSITION, f"unix_micros({ROWTIME}) AS {PERMIT}", f"{many} AS n").toArrow().sort_by(POSITION)
        )
        totals = np.cumsum(read["n"].to_numpy()) + tick.control(self).given
        if len(totals):
            tick.remember(self, given=int(totals[-1]))
            kept = pa.table({PERMITS: totals, PERMIT: read[PERMIT]}).filter(pa.array(read["n"].to_numpy() > 0))
            tick.segments(self, "permits").add(tick.keep(self, "permits", kept, PERMITS))

    def _arrived(self, tick: Tick, delta: Delta) -> bool:
        """Keep the positions of the new rows; the promise needs their times."""
        rows = delta.rows
        if rows is None:
            return False
        tick.describe(self, "read the places of rows")
        read = rows.selectExpr(POSITION, f"unix_micros({ROWTIME}) AS {PERMIT}").toArrow().sort_by(POSITION)
        if not read.num_rows:
            return False
        tick.remember(self, came=int(read[POSITION][-1].as_py()) + 1)
        tick.segments(self, "places").add(tick.keep(self, "places", read, POSITION))
        return True

    # -- output -----------------------------------------------------------------------

    def _let_out(self, tick: Tick, rows: Frame | None, span: tuple[int, int]) -> Frame:
        """Return the rows at the positions [first, last), each at the later of its rowtime and its permit's."""
        first, last = span
        places = np.arange(first, last)
        permits = self._table(tick, "permits", first, END)
        times = permits[PERMIT].to_numpy()[np.searchsorted(permits[PERMITS].to_numpy(), places, side="right")]
        permitted = tick.frame(self, pa.table({"__place": places, PERMIT: times}))
        due = self._queued(tick, rows, first).joined(permitted, f"{POSITION} = __place", "inner")
        shape = self.emits()
        columns = [*map(quoted, shape.names), *(name for name in shape.internals if name != ROWTIME)]
        return due.selectExpr(*columns, f"greatest({ROWTIME}, timestamp_micros({PERMIT})) AS {ROWTIME}")

    def _queued(self, tick: Tick, rows: Frame | None, first: int) -> Frame:
        """Return the rows from a position on: waiting and new ones."""
        names = [*map(quoted, self.emits().names), *self.emits().internals]
        kept = tick.segments(self).overlapping(first - 1, END)
        parts = [self.emits().with_origin(tick.segments(self).read(kept)).selectExpr(*names)] if kept else []
        parts += [] if rows is None else [rows.selectExpr(*names)]
        both = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
        return both.where(f"{POSITION} >= {first}L")

    @property
    def _state(self) -> Kept:
        return Kept(DUE, (*self.emits().names, *self.emits().internals), timed_by=POSITION)

    def _compact(self, tick: Tick) -> None:
        for kept in (_PLACES, _PERMITS):
            log = tick.segments(self, kept.name)
            crowded = log.crowded()
            if crowded:
                merged = pa.concat_tables(log.tables(crowded)).sort_by(kept.time)
                log.replace(crowded, tick.keep(self, kept.name, merged, kept.time))
        shape = self.emits()
        self._state.compact(tick, self, "rows without a permit", lambda rows: _due(shape.with_origin(rows)))

    def _refuse(self, tick: Tick, control: Queues, upto: int) -> None:
        """Refuse waiting rows: no permit can come."""
        came = control.came
        lost = np.arange(max(upto, control.refused), came)
        tick.remember(self, refused=came)
        if not len(lost):
            return
        rows = self._queued(tick, None, int(lost[0]))
        tick.account(self, rows, verdict_on(rows, 0, lost, [REASON] * len(lost), np.full(len(lost), END)), ROWTIME)
        tick.segments(self).forget(END)
        tick.segments(self, "places").forget(END)

    def _head(self, tick: Tick, control: Queues, upto: int) -> Queues:
        """Return the rowtimes of the first waiting row and the first waiting permit."""
        tick.segments(self, "places").forget(upto - 1)
        tick.segments(self, "permits").forget(upto)
        return tick.remember(
            self,
            row=self._first(tick, "places", upto) if control.came > upto else None,
            permit=self._first(tick, "permits", upto) if control.given > upto else None,
        )

    def _first(self, tick: Tick, what: str, upto: int) -> int | None:
        return int(self._table(tick, what, upto, END)[PERMIT][0].as_py()) if tick.segments(self, what).rows else None

    def _table(self, tick: Tick, what: str, first: int, last: int) -> pa.Table:
        """Return kept rows or permits from position ``first`` on, in order."""
        by = POSITION if what == "places" else PERMITS
        segments: Sequence[Segment] = tick.segments(self, what).overlapping(first - 1, last)
        table = pa.concat_tables(tick.segments(self, what).tables(segments)).sort_by(by)
        at = np.searchsorted(table[by].to_numpy(), first, side="left" if what == "places" else "right")
        return table.slice(int(at))


def _due(rows: Frame) -> Frame:
    return rows.selectExpr("*", f"{POSITION} AS {DUE}")
