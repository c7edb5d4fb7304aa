"""Delay: emits each row a fixed time later.

Semantics 8.2: by rowtime and not by wall clock, so a row is released once the stream's own clock is that far. Nothing
is held here: the rows are ahead of the bound, as on any edge, and a consumer that needs them in order gets a `Merge`
above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rowtime.core.columns import ROWTIME
from rowtime.core.fields import Micros
from rowtime.core.time import MAX_MICROS, shift
from rowtime.operators.contract import Column, Delta, Link, Shape, Tick, Unary, quoted
from rowtime.operators.rows.lifetimes import BEGINS


@dataclass(frozen=True)
class Delay(Unary):
    """``DELAY(TABLE s, interval)``: rowtimes move by ``by`` (µs), bounds stay."""

    by: Micros

    kind: ClassVar[str] = "delay"
    promise: ClassVar[str] = "the input's bounds"
    reason: ClassVar[str] = (
        "a row gets a later rowtime than it came with, so it goes out once the clock has reached that rowtime"
    )

    def emits(self) -> Shape:
        """Return the input's columns; facts about their order were about the time before."""
        below = self.input.emits()
        columns = tuple(Column(column.name, column.type) for column in below.columns)
        return replace(below, columns=columns, released=False, stamped=False, event=None)

    def link(self, n: int) -> Link:
        """Return the row before it was delayed."""
        return Link((*self.passed_on(n), (BEGINS, f"{BEGINS} + {self.by}L")))

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the new rows under their new rowtimes; lazily."""
        delta = deltas[0]
        clocks = self.promises([delta.clocks], tick.control(self))
        if delta.rows is None:
            return Delta(None, clocks)
        shape = self.emits()
        others = [*map(quoted, shape.names), *(name for name in shape.internals if name != ROWTIME)]
        time = f"timestamp_micros(least(unix_micros({ROWTIME}) + {self.by}L, {MAX_MICROS}L)) AS {ROWTIME}"
        lowest, highest = shift(delta.lowest, self.by), shift(delta.highest, self.by)
        return Delta(delta.rows.selectExpr(*others, time), clocks, min(lowest, MAX_MICROS), highest)
