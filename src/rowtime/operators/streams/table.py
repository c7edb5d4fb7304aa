"""A static table: its rows as they are at the first start; every later tick reads the same rows.

Semantics 5: a join with a table uses one version of it. The rows are copied into the checkpoint, numbered, with the
first tick's commit; a restart reads the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rowtime.core.clock import Clocks
from rowtime.core.columns import ROW_NUMBER
from rowtime.core.fields import LATER, OPTIONS, Micros
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import Column, Control, Delta, Distribution, Operator, Shape, Tick
from rowtime.operators.contract.state import Kept, StateNote

PINNED, VERSIONS = "table", "versions"  # the names of the copy, and of the copies of a table that is read again


@dataclass(frozen=True)
class Pinned(Control):
    """``pinned``: the rows have been kept; they never change."""

    pinned: bool = False


@dataclass(frozen=True)
class Table(Operator):
    """``source`` is the format with its options, as in CREATE TABLE; ``table`` its name there.

    ``refresh``: how long after a reading a join reads it again (`TableVersions`); 0: never.
    """

    name: str
    table: str
    columns: tuple[Column, ...]
    source: tuple[str, tuple[tuple[str, str], ...]] = field(metadata=OPTIONS)
    refresh: Micros = field(default=0, metadata=LATER)

    control: ClassVar[type[Control]] = Pinned
    kind: ClassVar[str] = "table"
    in_traces: ClassVar[bool] = False
    promise: ClassVar[str] = "the end"
    reason: ClassVar[str] = "its rows are those of the first start, and none come later"

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return nothing."""
        return ()

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the rows, once."""
        return (self._state.noted("its rows as they were at the first start", "the checkpoint is given up", "one"),)

    def emits(self) -> Shape:
        """Return the declared columns; rows have a number and no rowtime."""
        return Shape(self.columns, order=(ROW_NUMBER,), extra=(ROW_NUMBER,), placed=False, single=True, released=True)

    def promises(self, clocks: Sequence[Clocks], control: Any) -> Clocks:  # noqa: ARG002
        """Return the end."""
        return {"": END}

    def on_versions(self, below: Sequence[Operator]) -> Operator:  # noqa: ARG002 - none
        """Return the same operator: it does not change."""
        return self

    @property
    def _state(self) -> Kept:
        return Kept(ROW_NUMBER, (*self.emits().names, ROW_NUMBER), PINNED, waits=False)

    def distribution(self) -> Distribution:
        """Return that each task has its rows."""
        return Distribution.WHOLE

    def is_due(self, tick: Tick) -> bool:
        """Return True if the tick reads the table itself."""
        control = tick.control(self)
        return isinstance(control, Pinned) and not control.pinned

    def load(self, tick: Tick) -> None:
        """Copy the table if the tick reads it."""
        if self.is_due(tick):
            tick.describe(self, "copy the table")
            tick.segments(self, PINNED).add(self._state.write(tick, self, tick.lookup(self)))
            tick.remember(self, pinned=True)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002
        """Return all rows of the table, in every tick; copied in the first."""
        self.load(tick)
        segments = tick.segments(self, PINNED)
        live = segments.overlapping(BEGINNING, END)
        return Delta(segments.read(live) if live else None, {"": END})


def tables_of(operators: Iterable[Operator]) -> list[Table]:
    """Return the tables among some operators."""
    return [node for node in operators if isinstance(node, Table)]


def is_table(node: Operator) -> bool:
    """Return True for an operator with the rows of a table: they have numbers and no rowtimes."""
    return node.emits().order == (ROW_NUMBER,)
