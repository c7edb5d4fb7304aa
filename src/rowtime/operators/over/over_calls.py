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
    """``mark``: the last value, coded as `coded` does it; ``type``: its Spark type. From the first rows on."""

    mark: Any = None
    type: str = ""


@dataclass(frozen=True)
class OverControl(Control):
    """What Spark has said of the calls, from the first rows on, and where another measure of time stands.

    ``types``: the Spark type of each call.
    ``straight``: the kernel gives the very types that Spark gives.
    ``collated``: the columns that hold text with a collation.
    ``bound`` (µs UTC), ``clock``: the bound at which Spark was asked last, and the value there that RANGE measures.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    straight: bool = False
    collated: Sequence[str] = field(default_factory=list)
    bound: int | None = None
    clock: int = BEGINNING


@dataclass(frozen=True)
class RunningMark:
    """The last value of a call that never falls: groups of lesser ones are complete, as with `Ordered`.

    Before the first value that is not NULL it is NULL, and then never again.
    """

    name: str

    control: ClassVar = LastValue
    exact: ClassVar[bool] = True
    starts_null: ClassVar[bool] = True

    def mark(self, tick: Tick) -> str | None:
        """The value as Spark SQL of its own type; ``None`` before the first."""
        control = tick.control(self)
        return None if control.mark is None else decoded(control.mark, control.type, 0, descending=False)


@dataclass(frozen=True)
class Call:
    """One call: its function of ``argument`` over ``frame``; ``typed`` is what Spark types it by.

    ``mark`` is the name under which its last value is known, where it never falls.
    """

    column: Column
    function: Function
    argument: exp.Expr
    frame: Frame
    typed: exp.Expr
    mark: Mark = ""

    def may_be_empty(self) -> bool:
        """True if there may be no row to compute it from, and the value then is NULL."""
        if isinstance(self.function, Count | Distinct):
            return False
        few = isinstance(self.function, Nth) and self.function.n > 1
        return few or self.frame.upper > 0 or not self.frame.own

    def __str__(self) -> str:
        return f"{self.column.name} = {to_rowtime(self.typed)} over {self.frame}"
