"""Windows as a table function: TUMBLE, HOP and CUMULATE add the window of each row, without grouping.

Semantics 5 and 12. A row keeps its rowtime and passes at once; if windows overlap, it is emitted once for each window
that contains it, in the order of their ends. Windows are ``[start, end)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import COPY, HOP_MICROS, HOP_TIME, POSITION, ROWTIME
from rowtime.core.fields import UNSTORED, Micros
from rowtime.core.time import UNREACHED
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Distribution, Shape, Tick, Unary, quoted
from rowtime.operators.contract.gates import Gate
from rowtime.operators.contract.requirement import PLACED, UNORDERED, Requirement
from rowtime.operators.rows.select import Item
from rowtime.sql.generate import to_spark


@dataclass(frozen=True)
class Hop(Unary):
    """``start`` and ``end``: of the window that contains ``time`` and ends first, as columns.

    ``copies``: the greatest number of windows that contain a row; each ends ``slide`` (µs) after the one before and is
    ``size`` (µs) long, or, if it ``grows``, begins where the first does. ``gate``: the time may be NULL; such rows are
    refused.
    """

    time: exp.Expr
    start: Item
    end: Item
    copies: int = 1
    slide: Micros = 0
    size: Micros = 0
    grows: bool = False
    gate: bool = field(default=False, metadata=UNSTORED)

    kind: ClassVar[str] = "windows"
    same_below: ClassVar = (ROWTIME,)
    begins_anywhere: ClassVar[bool] = True
    keeps_places: ClassVar[bool] = True

    def requires(self) -> tuple[Requirement, ...]:
        """Require places, if it refuses rows and has to identify them."""
        return (PLACED if self.gate else UNORDERED,)

    def emits(self) -> Shape:
        """Return the input's columns and the window's; the copies of a row follow each other."""
        below = self.input.emits()
        order = below.order if POSITION in below.order else (*below.order, POSITION)
        return replace(below, columns=(*below.columns, self.start.column, self.end.column), order=order, event=None)

    def refuses(self) -> bool:
        """Return True if it is the gate of a query that drops rows without a time."""
        return bool(self.gate)

    def distribution(self) -> Distribution:
        """Return any task."""
        return Distribution.ANY

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the new rows, once for each of their windows; lazily."""
        delta = deltas[0]
        if delta.rows is None:
            return Delta(None, delta.clocks)
        rows = self._timed(tick, delta) if self.gate else delta.rows
        rows = self._first(rows) if self.copies == 1 else self._copied(rows)
        return Delta(rows, delta.clocks, delta.lowest, delta.highest)

    def _timed(self, tick: Tick, delta: Delta) -> Frame:
        """Return the rows that have a time."""
        assert delta.rows is not None
        rows = delta.rows.selectExpr("*", f"CAST({to_spark(self.time)} AS TIMESTAMP) AS {HOP_TIME}")
        verdict = tick.judge(self, rows, Gate(HOP_TIME, UNREACHED, "LATE", {}))
        return tick.account(self, rows, verdict, HOP_TIME, ROWTIME).drop(HOP_TIME)

    def _first(self, rows: Frame) -> Frame:
        names = (*map(quoted, self.input.emits().names), self.start.sql, self.end.sql)
        windows = rows.selectExpr(*names, *self.emits().internals)
        if self.slide <= self.size:
            return windows
        # Between windows that do not touch there are rows in no window.
        return windows.where(f"{to_spark(self.time)} >= {quoted(self.start.column.name)}")

    def _copied(self, rows: Frame) -> Frame:
        start, end = (quoted(item.column.name) for item in (self.start, self.end))
        first = (self.time, self.start.expression, self.end.expression)
        ends = (f"unix_micros({to_spark(node)}) AS {name}" for node, name in zip(first, HOP_MICROS, strict=True))
        rows = rows.selectExpr("*", *ends, f"explode(sequence(0L, {self.copies - 1}L)) AS {COPY}")
        held = "__s" if self.grows else "__u"  # the last window is the one that ends ``size`` after it
        rows = rows.selectExpr("*", f"__e + {COPY} * {self.slide}L AS __f").where(f"__f - {self.size}L <= {held}")
        internals = (
            f"{POSITION} * {self.copies}L + {COPY} AS {POSITION}" if name == POSITION else name
            for name in self.emits().internals
        )
        begins = "__s" if self.grows else f"__f - {self.size}L"
        edges = (f"timestamp_micros({begins}) AS {start}", f"timestamp_micros(__f) AS {end}")
        return rows.selectExpr(*map(quoted, self.input.emits().names), *edges, *internals)
