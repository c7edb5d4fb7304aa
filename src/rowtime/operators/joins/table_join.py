"""The join of a stream with a static table: each row with what the table says of it (semantics 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from rowtime.core.clock import Clocks
from rowtime.core.columns import BROKEN, POSITION, ROW_NUMBER, ROWTIME, WRITER
from rowtime.frames.local import is_local
from rowtime.frames.local import joined as met_by
from rowtime.operators.contract import Column, Control, DataFrame, Delta, Link, Operator, Shape, Tick, named, quoted
from rowtime.operators.contract import functions as F
from rowtime.operators.joins.join import OfRows, Side
from rowtime.operators.rows.attempt import all_computed, judged
from rowtime.operators.rows.conditions import holds, sorted_out
from rowtime.sql.generate import to_spark

BROADCAST = 1_000_000  # rows of a table that every task gets as a whole
SMALL = 200_000  # rows


@dataclass(frozen=True)
class TableJoin(OfRows):
    """``inputs``: the stream and the table; ``outer``: rows of the stream without a match go out too."""

    name: str
    inputs: tuple[Operator, Operator]
    sides: tuple[Side, Side]
    on: exp.Expr | None
    outer: bool = False

    kind: ClassVar[str] = "table join"
    begins_anywhere: ClassVar[bool] = True
    promise: ClassVar[str] = "that of the stream"
    reason: ClassVar[str] = "each row goes out at once, with its own rowtime"

    @property
    def _number(self) -> str:
        """The number of the table's row; several joins have one each."""
        return f"{ROW_NUMBER}{len(self.inputs[0].emits().without_origin().extra)}"

    def emits(self) -> Shape:
        """Both sides' columns; rows of the stream in its order, their matches in that of the table."""
        stream = self.inputs[0].emits()
        columns = tuple(
            Column(name, {c.name: c.type for c in node.emits().columns}[old])
            for node, side in zip(self.inputs, self.sides, strict=True)
            for old, name in side.columns
        )
        order, extra = (*stream.order, self._number), (*stream.extra, self._number)
        return replace(stream, columns=columns, order=order, extra=extra, placed=False)

    def promises(self, clocks: Sequence[Clocks], control: Control) -> Clocks:  # noqa: ARG002
        """Those of the stream."""
        return clocks[0]

    def link(self, n: int) -> Link:
        """The row of the stream by its place, that of the table by its values."""
        there = set(self.emits().names)
        same = named([(name, old) for old, name in self.sides[n].columns if name in there])
        return Link((*same, (ROWTIME, ROWTIME), (WRITER, WRITER), (POSITION, POSITION)) if n == 0 else same)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The new rows with their matches; lazily, without a job."""
        delta, table = deltas
        if delta.rows is None or (table.rows is None and not self.outer):
            return Delta(None, delta.clocks)
        internals = [name for name in self.emits().internals if name != self._number]
        rows = delta.rows.selectExpr(*_renamed(self.sides[0]), *internals)
        names = [quoted(column.name) for column in self.emits().columns]
        if table.rows is None:
            missing = [f"CAST(NULL AS {c.type or 'STRING'}) AS {quoted(c.name)}" for c in self._table_columns]
            rows = rows.selectExpr("*", *missing, f"CAST(NULL AS BIGINT) AS {self._number}")
            return replace(delta, rows=rows.selectExpr(*names, *self.emits().internals), peek=None, files=None)
        known = table.rows.selectExpr(*_renamed(self.sides[1]), f"{ROW_NUMBER} AS {self._number}")
        if not is_local(known) or not is_local(rows):
            known = F.broadcast(known) if (table.count or 0) <= BROADCAST else known
        if tick.trying and self.on is not None:
            joined = self._tried(tick, rows, known)
        else:
            lazy = self.inputs[0].may_fail_later()
            met = to_spark(self.on) if self.on is not None else "true"
            joined = met_by(rows, known, met, "left" if self.outer or lazy else "inner")
            if lazy:  # so that all rows are computed, and not those alone that can have a match
                below = self.inputs[0]
                joined = all_computed(joined, [quoted(to) for of, to in self.sides[0].columns if not below.origin(of)])
                joined = joined if self.outer else joined.where(f"{self._number} IS NOT NULL")
        most = (delta.count or SMALL + 1) * max(1, table.count or 0)
        count = most if most <= SMALL else None
        return replace(
            delta, rows=joined.selectExpr(*names, *self.emits().internals), count=count, peek=None, files=None
        )

    def _tried(self, tick: Tick, rows: DataFrame, known: DataFrame) -> DataFrame:
        """The rows that go out; pairs of which the condition cannot be computed are refused."""
        types = dict(zip(self.emits().names, tick.types(self), strict=True))
        equal, others = sorted_out(self.on, types)
        met = F.expr(" AND ".join(["true", *equal]))
        pairs = rows.join(known, met, "inner")
        tick.refuse_computed(self, judged(pairs, others, {}, [], pairs.columns), BROKEN, None)
        return rows.join(known, met & holds(rows.sparkSession, others), "left" if self.outer else "inner")

    @property
    def _table_columns(self) -> tuple[Column, ...]:
        return self.emits().columns[len(self.sides[0].columns) :]


def _renamed(side: Side) -> list[str]:
    return [f"{quoted(old)} AS {quoted(name)}" for old, name in side.columns]
