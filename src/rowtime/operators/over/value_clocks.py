"""The clocks of ordered values: limits before which no later value can be, at the marks and the bound.

A closer is a monotonic function of values whose marks are known (`operators.order.ordered`) and perhaps of the rowtime.
Law: no later row has a closer before its value at (marks, bound).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import ROWTIME
from rowtime.core.time import BEGINNING, END
from rowtime.frames.constants import row_of
from rowtime.kernels.hashes import hashes
from rowtime.operators.contract import Control, Delta, Tick, Unary, micros
from rowtime.operators.contract.state import Keeper, Segment
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.over.over_calls import RunningMark
from rowtime.sql.generate import to_spark
from rowtime.sql.script import parse_expression

MARK = "__m:"  # prefix of columns that stand for the mark of an order check


@dataclass(frozen=True)
class ValueControl(Control):
    """How far rows have been released value by value.

    ``clock``: a hash of the present values of the clocks. ``reached``: the rowtime (µs UTC) of a row at the clocks;
    ``None`` before there is one. ``since``: the least rowtime that is kept (µs UTC). ``stamp``: the greatest promise so
    far (µs UTC).
    """

    clock: int | None = None
    reached: int | None = None
    since: int = END
    stamp: int = BEGINNING


@dataclass(frozen=True)
class Closer:
    """A key that closes groups: its index, its value at the marks, and whether it descends."""

    key: int
    at: exp.Expr
    descending: bool = False


@dataclass(frozen=True)
class ValueClocks:
    """The clocks of the keys ``names``, given by ``closers`` and the marks of ``gates``."""

    names: tuple[str, ...]
    closers: tuple[Closer, ...]
    gates: tuple[Ordered | RunningMark, ...]

    def past(self, tick: Tick, bound: int) -> list[str]:
        """Return for each closer that has a clock the condition that a group is before it."""
        if bound >= END:
            return ["true"]
        conditions = []
        for closer in self.closers:
            text = self.at(tick, closer, bound)
            if text is not None:
                name = self.names[closer.key]
                conditions.append(f"{name} {'>' if closer.descending else '<'} ({text})")
                if any(gate.starts_null for gate in self.gates):
                    conditions.append(f"{name} IS NULL")
        return conditions

    def moved(self, tick: Tick, node: Keeper[ValueControl], bound: int) -> bool:
        """Return True if a clock of an operator has changed since the last tick."""
        if bound >= END:
            return True
        texts = [text for closer in self.closers if (text := self.at(tick, closer, bound)) is not None]
        row = row_of(f"SELECT {', '.join([*texts, str(len(texts))])}", tick.spark)
        if row is None:
            value = tick.scalar(f"SELECT xxhash64({', '.join(texts)}, {len(texts)})")
        else:
            value = int(hashes([column.combine_chunks() for column in row.columns])[0])
        if tick.control(node).clock == value:
            return False
        tick.remember(node, clock=value)
        return True

    def stamp_at(self, tick: Tick, stamp: exp.Expr, bound: int) -> int:
        """Return the rowtime (µs) of a row at the clocks; later rows do not get less, because ``stamp`` ascends."""
        if bound >= END:
            return END
        texts = {self.names[closer.key]: self.at(tick, closer, bound) for closer in self.closers}
        wanted = {column.name for column in stamp.find_all(exp.Column)}
        if any(texts.get(name) is None for name in wanted):
            return BEGINNING
        filled = stamp.copy().transform(lambda p: _parsed(texts[p.name]) if isinstance(p, exp.Column) else p)
        return tick.scalar(f"SELECT unix_micros(CAST({to_spark(filled)} AS TIMESTAMP))")

    def at(self, tick: Tick, closer: Closer, bound: int) -> str | None:
        """Return the clock of a closer as Spark SQL; ``None`` before the first row."""
        marks = {MARK + gate.name: gate.mark(tick) for gate in self.gates}
        marks[ROWTIME] = micros(bound) if bound > BEGINNING else None
        wanted = {column.name for column in closer.at.find_all(exp.Column)}
        if any(marks[name] is None for name in wanted):
            return None

        expression = closer.at.copy()
        return to_spark(expression.transform(lambda p: _parsed(marks[p.name]) if isinstance(p, exp.Column) else p))


class ByValues(Unary):
    """Releases rows value by value: those before the clock of their value, once it has moved.

    ``stamp``: the rowtime of released rows, over the closers.
    """

    stamp: exp.Expr | None

    control: ClassVar[type[ValueControl]] = ValueControl

    @property
    @abstractmethod
    def _clocks(self) -> ValueClocks:
        """Return the clocks of its values."""

    @abstractmethod
    def _close(self, tick: Tick, delta: Delta, past: Sequence[str]) -> Sequence[Segment]:
        """Release the new and kept rows that are ``past`` (conditions); keep the others."""

    @abstractmethod
    def _keep(self, tick: Tick, delta: Delta) -> None:
        """Keep the new rows."""

    def promises(self, clocks: Sequence[Clocks], control: ValueControl) -> Clocks:
        """Return the stamp, or the bound and the first row of the open groups."""
        bound = least(clocks[0].values())
        if bound >= END:
            return {"": END}
        now = control.reached if control.reached is not None else min(bound, control.since)
        return {"": max(control.stamp, now)}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Release the values before their clocks, and keep the rows of the others."""
        delta, clocks = deltas[0], self._clocks
        bound = least(delta.clocks.values())
        past = clocks.past(tick, bound)
        moved = bool(past) and clocks.moved(tick, self, bound)
        done: Sequence[Segment] = ()
        if moved and (delta.rows is not None or tick.segments(self).rows):
            done = self._close(tick, delta, past)
        elif delta.rows is not None:
            self._keep(tick, delta)
        if self.stamp is not None:
            tick.remember(self, reached=clocks.stamp_at(tick, self.stamp, bound))
        out = self.promises([delta.clocks], tick.control(self))
        tick.remember(self, stamp=out[""])
        rows = tick.segments(self, "complete").read(done) if done else None
        return Delta(rows, out)


def _parsed(text: str | None) -> exp.Expr:
    expression: exp.Expr = parse_expression(text or "NULL")
    return exp.paren(expression)
