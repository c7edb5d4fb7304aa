"""The rejected rows of a gate, as a stream like any other (semantics 4): ``name.rejected``.

Its rowtime is the clock that refused the row; where there was none yet, the first instant
of the year 0001, so that no refused row is lost for want of a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar

from rowtime.core.clock import NOBODY, Clocks
from rowtime.core.fields import LATER, UNSTORED
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import NOTHING, Column, Control, DataFrame, Delta, Link, Operator, Shape, Tick, quoted
from rowtime.operators.gates.tsort import SortMarks

ADDED = (
    Column("reason", "STRING"),
    Column("refused_time", "TIMESTAMP"),
    Column("refused_by", "TIMESTAMP"),
    Column("writer", "STRING"),
    Column("position", "BIGINT"),
    Column("raw_record", "STRING"),
)
"""What a refused row has beside the columns of its stream."""


def shown_as(column: str) -> str:
    """What a column of the stream is called there: of a name in ``ADDED`` it is ``row_`` and that name."""
    return f"row_{column}" if column.lower() in {added.name for added in ADDED} else column


@dataclass(frozen=True)
class GateMarks(Control):
    """``marks``: by writer the mark (µs UTC) by which the gate refuses, if that lies below its clock; else ``None``."""

    marks: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Rejected(Operator):
    """``SELECT STREAM … FROM gate.rejected``; ``gate`` is the operator that refuses.

    ``failing``: the query without a gate whose rows cannot be computed, where ``gate`` is the end of it.
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
        """The gate."""
        return (self.gate,)

    def emits(self) -> Shape:
        """The columns of the refused rows, then why and by what they were refused."""
        return Shape((*(replace(column, name=shown_as(column.name)) for column in self.columns), *ADDED))

    def promises(self, clocks: Sequence[Clocks], control: GateMarks) -> Clocks:
        """The clocks of the gate's writers before tolerance; its own promise is below them.

        A T-sort that follows its input's bound refuses by its marks, which may lie below it.
        """
        if control.marks is None:
            return clocks[0]
        marks = control.marks
        return {w: at if at >= END or w == NOBODY else min(at, marks.get(w, BEGINNING)) for w, at in clocks[0].items()}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Nothing: what a gate refuses passes over no edge but this."""
        return NOTHING

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The rows refused in this tick."""
        gate = tick.control(self.gate)
        if isinstance(gate, SortMarks) and gate.followed is not None:
            tick.remember(self, marks=dict(gate.marks))
        clocks = self.promises([delta.clocks for delta in deltas], tick.control(self))
        parts = tick.refused(self.failing or self.gate.name)
        if not parts:
            return Delta(None, clocks)
        rows = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
        return Delta(rows.selectExpr(*self._shown(tick, rows)), clocks)

    def _shown(self, tick: Tick, rows: DataFrame) -> list[str]:
        """The columns of the query; NULL for those that a refused row has not got, as it fails on the way to them."""
        there = {name.lower() for name in rows.columns}
        kinds = {shown_as(c.name): c.type for c in self.columns}
        if any(name.lower() not in there for name in kinds):
            known = dict(zip(self.gate.emits().names, tick.types(self.gate), strict=True))
            kinds = {name: known.get(name) or kind for name, kind in kinds.items()}
        names = [c.name for c in self.emits().columns]
        missing = (name for name in names if name.lower() not in there)
        nulls = {name: f"CAST(NULL AS {kinds.get(name) or 'STRING'}) AS {quoted(name)}" for name in missing}
        return [*(nulls.get(name, quoted(name)) for name in names), *self.emits().internals]


def readers_of(operators: Iterable[Operator], pump: str) -> list[Rejected]:
    """What reads the refused rows of a pump, as far as it reads them from the pump's first gate."""
    rejected = (node for node in operators if isinstance(node, Rejected))
    found = [node for node in rejected if (node.failing == pump if node.failing else node.gate.checks_pump(pump))]
    return [node for node in found if (node.failing, node.gate.name) == (found[0].failing, found[0].gate.name)]
