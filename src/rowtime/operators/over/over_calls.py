"""The calls of OVER: their functions and frames, and the marks of those that never fall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlglot import exp

from rowtime.core.fields import Mark
from rowtime.core.time import BEGINNING
from rowtime.kernels.window_functions import Count, Distinct, Function, Nth
from rowtime.kernels.windowed import Frame
from rowtime.operators.contract import Column, Control, Tick
from rowtime.operators.rows.values import decoded
from rowtime.sql.generate import to_rowtime


@dataclass(frozen=True)
class LastValue(Control):
    """``mark``: the last value in the form of `coded`; ``type``: its Spark type. Set with the first rows."""

    mark: Any = None
    type: str = ""


@dataclass(frozen=True)
class OverControl(Control):
    """The types of the calls, set with the first rows, and the position of another measure of time.

    ``types``: the Spark type of each call. ``straight``: the kernel gives the same types as Spark. ``collated``: the
    columns that hold text with a collation. ``bound`` (µs UTC), ``clock``: the last bound for which Spark was asked,
    and the value there that RANGE measures. ``held_rows``, ``held_heads``: how many rows and accumulators the keys
    have that end later than ``held_at`` (µs UTC); ``None`` if an older version did not count them.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    straight: bool = False
    collated: Sequence[str] = field(default_factory=list)
    bound: int | None = None
    clock: int = BEGINNING
    held_rows: int | None = None
    held_heads: int | None = None
    held_at: int = BEGINNING


@dataclass(frozen=True)
class RunningMark:
    """The last value of a call that never falls: groups of lesser values are complete, as with `Ordered`.

    It is NULL before the first value that is not NULL, and then never again.
    """

    name: str

    control: ClassVar = LastValue
    exact: ClassVar[bool] = True
    starts_null: ClassVar[bool] = True

    def mark(self, tick: Tick) -> str | None:
        """Return the value as Spark SQL of its own type; ``None`` before the first."""
        control = tick.control(self)
        return None if control.mark is None else decoded(control.mark, control.type, 0, descending=False)


@dataclass(frozen=True)
class Call:
    """One call: its function of ``argument`` over ``frame``; Spark types it by ``typed``.

    ``mark``: the name of its last value, if it never falls.
    """

    column: Column
    function: Function
    argument: exp.Expr
    frame: Frame
    typed: exp.Expr
    mark: Mark = ""

    def may_be_empty(self) -> bool:
        """Return True if there may be no row in the frame, and the value then is NULL."""
        if isinstance(self.function, Count | Distinct):
            return False
        few = isinstance(self.function, Nth) and self.function.n > 1
        return few or self.frame.upper > 0 or not self.frame.own

    def __str__(self) -> str:
        return f"{self.column.name} = {to_rowtime(self.typed)} over {self.frame}"
