"""A sink: hands the rows of a query to the outside, once, with the bound after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rowtime.core.clock import Clocks
from rowtime.operators.contract import Delta, Kept, Operator, Shape, Tick


@dataclass(frozen=True)
class Sink:
    """Where a pump or a query writes: a format with options, or a registered function.

    ``ordered``: rows are handed over in stream order. ``rowtime``: the name of the column
    that carries ROWTIME, empty for none.
    """

    name: str
    input: Operator
    format: str
    options: tuple[tuple[str, str], ...] = ()
    ordered: bool = True
    rowtime: str = "rowtime"

    kind: ClassVar[str] = "sink"
    promise: ClassVar[str] = ""
    reason: ClassVar[str] = ""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The one input."""
        return (self.input,)

    @property
    def columns(self) -> list[str]:
        """What is written: the column of ROWTIME, if there is one, and those of the rows."""
        return [*([self.rowtime] if self.rowtime else []), *self.emits().names]

    def requires(self) -> str:
        """Stream order, unless the rows may go out in any order."""
        return "stream order" if self.ordered else "nothing"

    def keeps(self) -> tuple[Kept, ...]:
        """The number of rows so far, which numbers the next ones."""
        return ()

    def emits(self) -> Shape:
        """What the input emits."""
        return self.input.emits()

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:  # noqa: ARG002
        """The input's bounds; sinks that can carry a bound write it after the rows."""
        return clocks[0]

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Stage the rows; the tick's commit makes them visible."""
        tick.deliver(self, deltas[0])
        return deltas[0]
