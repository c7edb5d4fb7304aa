"""The join of a stream with a static table: each row with its matches in the table (semantics 5).

A semi- or anti-join is a filter: the rows of the stream that have a match in the table, or those that have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from sqlglot import exp

from rowtime.core.clock import Clocks
from rowtime.core.columns import BROKEN, POSITION, ROW_NUMBER, ROWTIME, VALID_FROM, VALID_UNTIL, WRITER
from rowtime.core.fields import LATER
from rowtime.frames.frame import Frame
from rowtime.operators.contract import (
    Column,
    Control,
    Delta,
    Distribution,
    EventTime,
    FireColumns,
    Link,
    Operator,
    Origin,
    Shape,
    Tick,
    named,
    quoted,
)
from rowtime.operators.contract.requirement import RELEASED, UNORDERED, Requirement
from rowtime.operators.joins.of_rows import OfRows, Side
from rowtime.operators.rows.attempt import judged
from rowtime.operators.rows.conditions import joined_if, sorted_out


@dataclass(frozen=True)
class TableJoin(OfRows):
    """``inputs``: the stream and the table; ``outer``: rows of the stream without a match are emitted too.

    ``alone``: only columns of the stream are emitted, each row once: those with a match (``left_semi``), or those
    without (``left_anti``).
    """

    name: str
    inputs: tuple[Operator, Operator]
    sides: tuple[Side, Side]
    on: exp.Expr | None
    outer: bool = False
    alone: str = field(default="", metadata=LATER)

    kind: ClassVar[str] = "table join"
    begins_anywhere: ClassVar[bool] = True
    promise: ClassVar[str] = "the bound of the stream"
    reason: ClassVar[str] = "each row goes out at once, with its own rowtime"

    @property
    def _number(self) -> str:
        """Return the number of the table's row; with several joins, each has its own."""
        return f"{ROW_NUMBER}{len(self.inputs[0].emits().without_origin().extra)}"

    def emits(self) -> Shape:
        """Return both sides' columns; rows of the stream in its order, their matches in the table's.

        A semi- or anti-join keeps the rows as they are: their columns, the orders of these, and their places.
        """
        return self._shape

    @cached_property
    def _shape(self) -> Shape:
        stream = self.inputs[0].emits()
        columns_of = [{column.name: column for column in node.emits().columns} for node in self.inputs]
        if self.alone:
            kept = tuple(replace(columns_of[0][old], name=name) for old, name in self.sides[0].columns)
            return replace(stream, columns=kept, event=self._event(stream))
        columns = tuple(Column(name, columns_of[n][old].type) for n in (0, 1) for old, name in self.sides[n].columns)
        order, extra = (*stream.order, self._number), (*stream.extra, self._number)
        return replace(stream, columns=columns, order=order, extra=extra, placed=False, event=self._event(stream))

    def _event(self, stream: Shape) -> EventTime | None:
        """Return the event time of the stream, whose rows keep their order, with the new name of its column."""
        event, names = stream.event, dict(self.sides[0].columns)
        column = None if event is None else names.get(event.here or event.column)
        if event is None or column is None:
            return None
        return replace(event, here="" if column == event.column else column)

    def fires(self) -> FireColumns | None:
        """Return those of the stream, with its columns' new names."""
        fires = self.inputs[0].fires()
        return None if fires is None else fires.renamed({new: old for old, new in self.sides[0].columns})

    def origin(self, column: str) -> Origin | None:
        """Return that of the stream's column, if its rows are emitted unchanged."""
        olds = [old for old, name in self.sides[0].columns if name == column]
        return self.inputs[0].origin(olds[0]) if self.alone and olds else None

    def requires(self) -> tuple[Requirement, ...]:
        """Require stream order if the table has versions: the bound when a row came decides which version it joins."""
        return (RELEASED if self._versioned else UNORDERED, UNORDERED)

    def distribution(self) -> Distribution:
        """Return any task, unless the bound decides which version of the table a row joins."""
        return Distribution.SINGLE if self._versioned else Distribution.ANY

    @property
    def _versioned(self) -> bool:
        return VALID_FROM in self.inputs[1].emits().extra

    def promises(self, clocks: Sequence[Clocks], control: Control) -> Clocks:  # noqa: ARG002
        """Return the bounds of the stream."""
        return clocks[0]

    def link(self, n: int) -> Link:
        """Return the row of the stream by its place, that of the table by its values."""
        emitted = set(self.emits().names)
        same = named([(name, old) for old, name in self.sides[n].columns if name in emitted])
        return Link((*same, (ROWTIME, ROWTIME), (WRITER, WRITER), (POSITION, POSITION)) if n == 0 else same)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the new rows with their matches; lazily, unless the condition of a semi-join may fail."""
        delta, table = deltas
        if delta.rows is None or (table.rows is None and not self.outer and self.alone != "left_anti"):
            return Delta(None, delta.clocks)
        internals = [name for name in self.emits().internals if name != self._number]
        rows = delta.rows.selectExpr(*_renamed(self.sides[0]), *internals)
        names = [quoted(column.name) for column in self.emits().columns]
        if table.rows is None and self.alone:
            return replace(delta, rows=rows.selectExpr(*names, *internals), files=None)
        if table.rows is None:
            missing = [f"CAST(NULL AS {c.type or 'STRING'}) AS {quoted(c.name)}" for c in self._table_columns]
            rows = rows.selectExpr("*", *missing, f"CAST(NULL AS BIGINT) AS {self._number}")
            return replace(delta, rows=rows.selectExpr(*names, *self.emits().internals), files=None)
        versions = (VALID_FROM, VALID_UNTIL) if self._versioned else ()
        right = table.rows.selectExpr(*_renamed(self.sides[1]), f"{ROW_NUMBER} AS {self._number}", *versions)
        if tick.trying and self.on is not None:
            joined = self._tried(tick, rows, right)
        elif self.alone:
            if self._may_fail:
                self._compute(tick, rows.joined(right, self._met, "inner"))
            joined = rows.joined(right, self._met, self.alone)
        else:
            joined = rows.joined(right, self._met, "left" if self.outer else "inner")
        return replace(delta, rows=joined.selectExpr(*names, *self.emits().internals), files=None)

    @property
    def _met(self) -> str:
        return " AND ".join([*self._on_parts, *self._valid]) or "true"

    @property
    def _valid(self) -> list[str]:
        """Return the condition that a row joins the version of its rowtime."""
        at = f"unix_micros({ROWTIME})"
        return [f"{VALID_FROM} <= {at}", f"{at} < {VALID_UNTIL}"] if self._versioned else []

    def _tried(self, tick: Tick, rows: Frame, right: Frame) -> Frame:
        """Return the rows to emit; pairs whose condition cannot be computed are refused."""
        equal, others = sorted_out(self.on, self._left, self._types(tick))
        met = " AND ".join([*equal, *self._valid]) or "true"
        pairs = rows.joined(right, met, "inner")
        tick.refuse_computed(self, judged(pairs, [others], {}, [], pairs.columns), BROKEN)
        how = self.alone or ("left" if self.outer else "inner")
        return joined_if(rows, right, met, others, how)

    def _types(self, tick: Tick) -> dict[str, str]:
        """Return the types of the condition's columns."""
        types: dict[str, str] = {}
        for node, side in zip(self.inputs, self.sides, strict=True):
            kinds = dict(zip(node.emits().names, tick.types(node), strict=True))
            types |= {name: kinds[old] for old, name in side.columns}
        return types

    @property
    def _table_columns(self) -> tuple[Column, ...]:
        return self.emits().columns[len(self.sides[0].columns) :]


def _renamed(side: Side) -> list[str]:
    return [f"{quoted(old)} AS {quoted(name)}" for old, name in side.columns]
