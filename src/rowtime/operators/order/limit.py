"""LIMIT: the first n rows in stream order (semantics 12). After them, the stream has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rowtime.core.clock import Clocks
from rowtime.core.columns import POSITION
from rowtime.core.time import END
from rowtime.operators.contract import Control, Delta, Link, Tick, Unary
from rowtime.operators.contract.requirement import COUNTED
from rowtime.operators.order.merge import Merged


@dataclass(frozen=True)
class Passed(Control):
    """``full``: all rows that may pass have passed."""

    full: bool = False


@dataclass(frozen=True)
class Limit(Unary):
    """The first ``count`` rows of a merge that numbers them from 0."""

    count: int

    control: ClassVar = Passed
    kind: ClassVar[str] = "limit"
    needs: ClassVar = (replace(COUNTED, name="numbered"),)  # the numbers of the rows in stream order
    promise: ClassVar[str] = "the bound of its input, and the end once the last row has gone out"
    reason: ClassVar[str] = "no row follows the last one"

    def promises(self, clocks: Sequence[Clocks], control: Passed) -> Clocks:
        """Return the input's bounds, or the end."""
        return dict.fromkeys(clocks[0], END) if control.full else clocks[0]

    def link(self, n: int) -> Link:
        """Return the row itself, unchanged."""
        return self.unchanged(n)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the rows whose numbers are low enough."""
        delta, control, below = deltas[0], tick.control(self), tick.control(self.input)
        assert isinstance(below, Merged)  # as required: it numbers the rows
        over = control.full or self.count == 0
        control = tick.remember(self, full=over or below.numbered >= self.count)
        rows = None if over or delta.rows is None else delta.rows.where(f"{POSITION} < {self.count}L")
        return Delta(rows, self.promises([delta.clocks], control))
