"""The rejected rows of a gate, as a stream like any other (semantics 4): ``name.rejected``.

Its rowtime is the clock that refused the row; if there was none yet, the first instant of the year 0001, so that no
refused row is lost because it has no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar

from rowtime.core.clock import NOBODY, Clocks
from rowtime.core.fields import LATER, UNSTORED
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import NOTHING, Column, Control, Delta, Link, Operator, Shape, Tick, quoted
from rowtime.operators.gates.tsort import SortMarks

ADDED = (
    Column("reason", "STRING"),
    Column("refused_time", "TIMESTAMP"),
    Column("refused_by", "TIMESTAMP"),
    Column("writer", "STRING"),
    Column("position", "BIGINT"),
    Column("raw_record", "STRING"),
)
"""The columns that a refused row has besides those of its stream."""


def shown_as(column: str) -> str:
    """Return the name there of a stream's column: a name in ``ADDED`` gets the prefix ``row_``."""
    return f"row_{column}" if column.lower() in {added.name for added in ADDED} else column


@dataclass(frozen=True)
class GateMarks(Control):
    """``marks``: by writer the mark (µs UTC) by which the gate refuses, if it is below its clock; else ``None``."""

    marks: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Rejected(Operator):
    """``SELECT STREAM … FROM gate.rejected``; ``gate`` is the operator that refuses.

    ``failing``: the query without a gate whose rows cannot be computed, if ``gate`` is its top operator.
    """

    name: str
    gate: Operator = field(metadata=UNSTORED)
    columns: tuple[Column, ...]
    failing: str = field(default="", metadata=LATER)

    control: ClassVar = GateMarks
    kind: ClassVar[str] = "rejected"
    finishes_groups: ClassVar = False
    begins_anywhere: ClassVar[bool] = True
    promise: ClassVar[str] = "the clocks of the gate"
    reason: ClassVar[str] = "a later refusal happens at the same or a later clock of its writer"

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return the gate."""
        return (self.gate,)

    def emits(self) -> Shape:
        """Return the columns of the refused rows, then the reason and the clock."""
        return Shape((*(replace(column, name=shown_as(column.name)) for column in self.columns), *ADDED))

    def promises(self, clocks: Sequence[Clocks], control: GateMarks) -> Clocks:
        """Return the clocks of the gate's writers before the tolerance; its own promise is below them.

        A T-sort that follows its input's bound refuses by its marks, which may be below it.
        """
        if control.marks is None:
            return clocks[0]
        marks = control.marks
        return {w: at if at >= END or w == NOBODY else min(at, marks.get(w, BEGINNING)) for w, at in clocks[0].items()}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return nothing: refused rows pass only over this edge."""
        return NOTHING

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the rows refused in this tick."""
        gate = tick.control(self.gate)
        if isinstance(gate, SortMarks) and gate.followed is not None:
            tick.remember(self, marks=dict(gate.marks))
        clocks = self.promises([delta.clocks for delta in deltas], tick.control(self))
        parts = tick.refused(self.failing or self.gate.name)
        if not parts:
            return Delta(None, clocks)
        rows = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
        return Delta(rows.selectExpr(*self._shown(tick, rows)), clocks)

    def _shown(self, tick: Tick, rows: Frame) -> list[str]:
        """Return the columns of the query; NULL for those that a refused row lacks because it failed before."""
        present = {name.lower() for name in rows.columns}
        kinds = {shown_as(c.name): c.type for c in self.columns}
        if any(name.lower() not in present for name in kinds):
            types = dict(zip(self.gate.emits().names, tick.types(self.gate), strict=True))
            kinds = {name: types.get(name) or kind for name, kind in kinds.items()}
        names = [c.name for c in self.emits().columns]
        missing = (name for name in names if name.lower() not in present)
        nulls = {name: f"CAST(NULL AS {kinds.get(name) or 'STRING'}) AS {quoted(name)}" for name in missing}
        return [*(nulls.get(name, quoted(name)) for name in names), *self.emits().internals]


def readers_of(operators: Iterable[Operator], pump: str) -> list[Rejected]:
    """Return the operators that read the refused rows of a pump from the pump's first gate."""
    rejected = (node for node in operators if isinstance(node, Rejected))
    readers = [node for node in rejected if (node.failing == pump if node.failing else node.gate.checks_pump(pump))]
    return [node for node in readers if (node.failing, node.gate.name) == (readers[0].failing, readers[0].gate.name)]
