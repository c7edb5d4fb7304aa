"""Alters lifetimes one by one: to-point, shift, extend, alter duration, limit, quantize (semantics 9.6).

Times computed by an expression over the event are in columns that are not passed on. Each row is mapped by itself,
retractions too, so nothing is kept. An event without any length left is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from rowtime.core.clock import Clocks
from rowtime.core.columns import CHANGED_BY, MET, NEW_END, NEW_START, POSITION, ROWTIME, STOP, WEIGHT, WRITER
from rowtime.core.fields import LATER, Micros
from rowtime.core.time import BEGINNING, END, shift
from rowtime.operators.contract import Control, Delta, Link, Operator, Shape, Tick, Unary, quoted
from rowtime.operators.rows.lifetimes import BEGINS, instant

How = Literal["TO_POINT", "POINT_AT_END", "SHIFT", "EXTEND", "ALTER_DURATION", "AT_MOST", "WITHIN", "QUANTIZE"]


@dataclass(frozen=True)
class AlterLifetime(Unary):
    """Changes lifetimes: ``how``, ``by`` how many µs (EXTEND without it: forever); ``offset`` of steps.

    ``computed``: the input has the new end of each event (`NEW_END`), and for WITHIN the new start (`NEW_START`).
    """

    how: How
    by: Micros | None = None
    offset: Micros = 0
    computed: bool = field(default=False, metadata=LATER)

    kind: ClassVar[str] = "alter lifetime"
    promise: ClassVar[str] = "the input's bounds, moved as a change at the bound would be moved"
    reason: ClassVar[str] = "the new lifetime never begins or changes before the moved time of the old one"

    def emits(self) -> Shape:
        """Return the shape of the same events with other lifetimes."""
        below = self.input.emits()
        below = replace(below, columns=tuple(c for c in below.columns if c.name not in (NEW_START, NEW_END)))
        if self.how != "SHIFT":
            below = replace(below, lasts=0)
        ends = self.how in ("TO_POINT", "ALTER_DURATION", "AT_MOST", "WITHIN") and below.retracts != "none"
        return replace(below, retracts="any") if ends else below

    def promises(self, clocks: Sequence[Clocks], control: Control) -> Clocks:  # noqa: ARG002
        """Return each bound, moved."""
        return {writer: self._moved(at) for writer, at in clocks[0].items()}

    def _moved(self, at: int) -> int:
        if self.how == "SHIFT" or (self.how == "EXTEND" and self.by is not None and self.by < 0):
            return shift(at, self.by or 0)
        if self.how == "QUANTIZE" and self.by is not None and BEGINNING < at < END:
            return at - (at - self.offset) % self.by
        return at

    def link(self, n: int) -> Link:
        """Return the event before it was altered."""
        start, end = self.times()
        return Link(
            (*self.passed_on(n, WRITER, POSITION, WEIGHT, CHANGED_BY), (BEGINS, start), (STOP, end)), narrows="own"
        )

    def opens_events(self) -> bool:
        """Return False if every event gets an end, or waits for its own; True if none has one."""
        if self.how == "EXTEND" and self.by is None:
            return True
        return self.how in ("SHIFT", "EXTEND", "QUANTIZE") and super().opens_events()

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the same operator: it maps each row by itself."""
        return replace(self, input=below[0])

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the rows with their new times; lazily."""
        delta = deltas[0]
        clocks = self.promises([delta.clocks], tick.control(self))
        if delta.rows is None:
            return Delta(None, clocks)
        start, end = self.times()
        names = [*map(quoted, self.emits().names), WRITER, POSITION, WEIGHT, CHANGED_BY]
        bound = f"{MET} + {self.by}L" if self.how == "SHIFT" else MET
        rows = delta.rows.selectExpr(*names, f"{bound} AS {MET}", f"{start} AS __s", f"{end} AS {STOP}")
        rows = rows.where(f"{STOP} > __s").selectExpr(*names, MET, STOP, f"{instant('__s')} AS {ROWTIME}")
        return Delta(rows, clocks)

    def times(self) -> tuple[str, str]:
        """Return start and end as BIGINT expressions; an event without an end stays so, unless it gets one."""
        by, offset = self.by, self.offset
        until = f"unix_micros({NEW_END})" if self.computed else f"{BEGINS} + {by}L"
        times_by_kind = {
            "TO_POINT": (BEGINS, f"{BEGINS} + 1"),
            "POINT_AT_END": (STOP, f"IF({STOP} < {END}L, {STOP} + 1, {STOP})"),
            "ALTER_DURATION": (BEGINS, f"coalesce({until}, {END}L)" if self.computed else until),
            "AT_MOST": (BEGINS, f"least({STOP}, {until})"),
            "WITHIN": (f"greatest({BEGINS}, unix_micros({NEW_START}))", f"least({STOP}, {until})"),
            "EXTEND": (BEGINS, f"{END}L" if by is None else _finite(f"{STOP} + {by}L")),
            "SHIFT": (f"{BEGINS} + {by}L", _finite(f"{STOP} + {by}L")),
            "QUANTIZE": (
                f"{BEGINS} - pmod({BEGINS} - {offset}L, {by}L)",
                _finite(f"{STOP} + pmod({offset}L - {STOP}, {by}L)"),
            ),
        }
        return times_by_kind[self.how]


def _finite(end: str) -> str:
    return f"IF({STOP} < {END}L, {end}, {STOP})"
