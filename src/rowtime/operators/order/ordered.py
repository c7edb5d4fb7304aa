"""The order check: a value that is declared or promised to ascend is checked row by row.

Semantics 6: `MONOTONIC(e)` and declared orders are about the rows in stream order, so the input is one sequence. A row
whose value goes back (or is NULL) is refused as ``BROKEN_ORDER`` and moves nothing. The *mark* is a limit below which
no later value can be, so groups of lesser values are complete: the greatest value so far minus the tolerance; or if
rows are counted, the greatest of all but the last n rows. A bound that a client sets is an item among the rows: after
it, the mark is not below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa
from sqlglot import exp

from rowtime.core.columns import COLUMN_BOUND, ORDERED_VALUE, POSITION, ROWTIME, WRITER
from rowtime.core.fields import UNSTORED, Micros
from rowtime.core.time import BEGINNING
from rowtime.expr.facts import Fact
from rowtime.expr.order import Order
from rowtime.operators.contract import Column, Control, Delta, Shape, Tick, Unary, quoted
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.operators.contract.requirement import GATED
from rowtime.operators.contract.state import StateNote
from rowtime.operators.rows.values import Ranks, coded, decoded, furthest, numbered
from rowtime.operators.streams.column_bounds import about, heard
from rowtime.operators.streams.stream import Stream
from rowtime.sql.generate import to_spark


@dataclass(frozen=True)
class OrderMarks(Control):
    """The state of the value; values are coded as by `coded`.

    ``type``: the Spark type of the value, set with the first rows. ``marks``: by writer, the furthest value so far.
    ``recent``: by writer, the last values, if some rows may come out of order. ``bounds``: by writer, the furthest
    bound that was given. ``heard``: how many bounds of the stream have arrived.
    """

    type: str = ""
    marks: Mapping[str, Any] = field(default_factory=dict)
    recent: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, Any] = field(default_factory=dict)
    heard: int = 0


@dataclass(frozen=True)
class Ordered(Unary):
    """Passes rows whose ``value`` does not go back; ``strict``: nor repeats.

    ``within`` (µs, of times) and ``rows``: how far it may go back. ``declares``: the column whose declared order this
    is. ``gate``: the stream that sends bounds of its columns among the rows; ``passes``: they are passed on to the
    check of another column. ``more``: another check follows; stored plans have this field.
    """

    value: exp.Expr
    descending: bool = False
    strict: bool = False
    declares: Column | None = None
    within: Micros = 0
    rows: int = 0
    gate: Stream | None = field(default=None, metadata=UNSTORED)
    passes: bool = False
    more: bool = False

    starts_null: ClassVar[bool] = False
    control: ClassVar = OrderMarks
    kind: ClassVar[str] = "order check"
    same_below: ClassVar = (ROWTIME,)
    needs: ClassVar = (GATED,)  # an order is about the rows of one sequence
    keeps_places: ClassVar[bool] = True
    is_gate: ClassVar[bool] = True
    passes_all: ClassVar[bool] = True
    keeps_rows_alone: ClassVar[bool] = True
    compares: ClassVar = ("value",)

    @property
    def exact(self) -> bool:
        """Return True if no row may go back at all."""
        return not self.within and not self.rows

    @property
    def order(self) -> Order:
        """Return the order of the marks."""
        base = Order.STRICTLY_ASCENDING if self.strict else Order.ASCENDING
        return base.reversed() if self.descending else base

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the mark, and the values that do not count for it yet."""
        what = f"the {'least' if self.descending else 'greatest'} value so far"
        mark = StateNote(what, "the stream ends", "one", fields=("marks", "bounds"))
        last = StateNote(
            f"the values of the last {self.rows} rows",
            "the same number of later rows has come",
            "rows",
            fields=("recent",),
        )
        return (mark, last) if self.rows else (mark,)

    def emits(self) -> Shape:
        """Return the input's columns; from here on the order of a declared one is known."""
        shape = self.input.emits()
        if self.declares is None:
            return shape
        declared = self.declares
        columns = [
            declared if c.name == declared.name else c for c in shape.columns if self.passes or c.name != COLUMN_BOUND
        ]
        return replace(shape, columns=tuple(columns))

    def row_expressions(self) -> Iterable[exp.Expr]:
        """Return the value that is checked."""
        return (self.value,)

    def checks_declared(self) -> bool:
        """Return True for an order in the definition of a stream."""
        return self.declares is not None

    def checks_pump(self, pump: str) -> bool:
        """Return True for an order that the target of the pump declares."""
        return self.declares is None and self.name.startswith(f"{pump}.")

    def marks(self) -> Mapping[str, tuple[Ordered, Fact | None]]:
        """Return its own mark, with the fact about a declared order; within a tolerance only the mark has an order."""
        return {self.name: (self, replace(self.declares.known, order=self.order) if self.declares else None)}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Refuse the rows that go back."""
        delta, control = deltas[0], tick.control(self)
        if delta.rows is None:
            return Delta(None, delta.clocks)
        if not control.type:
            control = tick.remember(
                self, type=delta.rows.selectExpr(f"{to_spark(self.value)} AS v").schema[0].dataType.simpleString()
            )
        items = None if self.gate is None else heard(tick, self.gate, delta.rows, self)
        rows = delta.rows if items is None else delta.rows.where(f"{COLUMN_BOUND} IS NULL")
        bounds = [] if items is None else self._bounds(items, control)
        rows, verdict = self._judged(tick, replace(delta, rows=rows), control, bounds)
        self._remember(tick, bounds)
        rows = tick.account(self, rows, verdict, ROWTIME, ROWTIME)
        shape = self.emits()
        if items is not None and self.passes:
            rows = rows.unionByName(delta.rows.where(f"{COLUMN_BOUND} IS NOT NULL"), allowMissingColumns=True)
        return Delta(rows.selectExpr(*map(quoted, shape.names), *shape.internals), delta.clocks)

    def _bounds(self, items: pa.Table, control: OrderMarks) -> list[tuple[str, int, Any]]:
        """Return the bounds of this column in the form of marks."""
        assert self.declares is not None
        bounds = about(items, self.declares.name)
        return [(writer, place, numbered(at, control.type, self.descending)) for writer, place, at in bounds]

    def _remember(self, tick: Tick, bounds: Sequence[tuple[str, int, Any]]) -> None:
        control = tick.control(self)
        strongest = {**control.bounds}
        for writer, _, at in bounds:
            strongest[writer] = furthest([at, strongest.get(writer, at)], control.type, self.descending)
        tick.remember(self, bounds=strongest)

    def _judged(
        self, tick: Tick, delta: Delta, control: OrderMarks, bounds: Sequence[tuple[str, int, Any]]
    ) -> tuple[Any, Verdict]:
        """Return rows and the verdict on their values: as whole numbers, or by their ranks."""
        assert delta.rows is not None
        text = coded(to_spark(self.value), control.type)
        known, recent = control.marks, control.recent
        within = -1 if self.strict else self.within
        gate = Gate(
            ORDERED_VALUE, within, "BROKEN_ORDER", known, missing="BROKEN_ORDER", behind=self.rows, recent=recent
        )
        if text is not None:
            value = f"timestamp_micros({f'~({text})' if self.descending else text}) AS {ORDERED_VALUE}"
            rows = delta.rows.selectExpr("*", value)
            gate = replace(gate, bounds=[(w, p, at + within) for w, p, at in bounds])
            verdict = tick.judge(self, rows, gate)
            tick.remember(self, marks=dict(verdict.marks), recent=dict(verdict.recent))
            return rows, verdict
        values = delta.rows.selectExpr(WRITER, POSITION, f"{to_spark(self.value)} AS v")
        before = control.bounds
        ranks = Ranks.of(values, known, recent, self.descending, [*(at for _, _, at in bounds), *before.values()])
        marks = dict(ranks.marks)
        for writer, at in zip(before, ranks.bounds[len(bounds) :], strict=True):
            marks[writer] = max(marks.get(writer, BEGINNING), at + within)
        placed = [(w, p, at + within) for (w, p, _), at in zip(bounds, ranks.bounds, strict=False)]
        gate = replace(gate, marks=marks, recent=ranks.recent, bounds=placed)
        verdict = tick.judge(self, delta.rows, gate, ranks.table)
        tick.remember(self, marks=ranks.values(verdict.marks), recent=ranks.lists(verdict.recent))
        return delta.rows, verdict

    def mark(self, tick: Tick) -> str | None:
        """Return the mark as Spark SQL of the value's own type; ``None`` before the first row or bound."""
        control = tick.control(self)
        marks = [mark for mark in control.marks.values() if mark is not None and mark != BEGINNING]
        if self.within:
            marks = [mark - self.within for mark in marks]
        marks += control.bounds.values()
        if not marks:
            return None
        return decoded(furthest(marks, control.type, self.descending), control.type, 0, self.descending)
