"""A sink: delivers the rows of a query to the outside, once, with the bound after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from rowtime.core.columns import POSITION, ROWTIME, WRITER
from rowtime.core.fields import OPTIONS
from rowtime.operators.contract import Control, Delta, Distribution, Link, Tick, Unary
from rowtime.operators.contract.requirement import RELEASED, UNORDERED, Requirement

_FOLDERS: Final = "partitionby"


@dataclass(frozen=True)
class Sent(Control):
    """What a `Stage` has sent: ``sequence`` rows, up to ``bound`` (µs UTC); ``None`` before the first tick.

    ``base``, ``floor`` (µs UTC): how many rows another pump had written when this one took over, and up to which time;
    it starts after them. ``skipped``: how many rows were skipped manually. ``proof``: how many rows the target had
    before the last rows or bound, and what identified its content (`runtime.sinks.ownership.Proof`); ``link``: what
    identifies it after them. All are kept for the life of the query.
    """

    sequence: int | None = None
    bound: int | None = None
    base: int = 0
    floor: int | None = None
    skipped: int = 0
    proof: Sequence[int | str] = ()
    link: str = ""


@dataclass(frozen=True)
class Sink(Unary):
    """The target of a pump or a query: a format with options, or a registered function.

    ``ordered``: rows are delivered in stream order. ``rowtime``: the name of the column for ROWTIME, empty for none.
    """

    format: str
    options: tuple[tuple[str, str], ...] = field(default=(), metadata=OPTIONS)
    ordered: bool = True
    rowtime: str = "rowtime"

    control: ClassVar = Sent
    kind: ClassVar[str] = "sink"
    begins_anywhere: ClassVar[bool] = True
    in_traces: ClassVar[bool] = False

    @property
    def columns(self) -> list[str]:
        """Return the written columns: that of ROWTIME, if there is one, and those of the rows."""
        return [*([self.rowtime] if self.rowtime else []), *self.emits().names]

    def requires(self) -> tuple[Requirement, ...]:
        """Require stream order, unless the rows may be written in any order."""
        return (RELEASED if self.ordered else UNORDERED,)

    def distribution(self) -> Distribution:
        """Return any task, if all rows are of one writer, whose rowtimes ascend with its positions, or need no order.

        Those of one folder are in one task, so that its files are few.
        """
        shape = self.input.emits()
        of_one = shape.single and shape.released and shape.order[:3] == (ROWTIME, WRITER, POSITION)
        divided = any(name.lower() == _FOLDERS for name, _ in self.options)
        return Distribution.IN_ORDER if not divided and (of_one or not self.ordered) else Distribution.SINGLE

    def found_by_name(self) -> bool:
        """Return True, except for the console, which keeps nothing."""
        return self.format != "console"

    def link(self, n: int) -> Link:
        """Return the row itself, unchanged."""
        return self.unchanged(n)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Stage the rows; the tick's commit makes them visible."""
        tick.deliver(self, deltas[0])
        return deltas[0]
