"""What a tick does in the one task that has all rows; one of several does something else (`executors.level_ticks`)."""

from __future__ import annotations

from typing import Any

from rowtime.frames.frame import Frame
from rowtime.operators.contract import Delta, Operator
from rowtime.operators.contract.gates import Verdict
from rowtime.runtime.clock_pass import clock_pass


class OneTask:
    """A tick whose operators step in one task."""

    of_keys = False

    def decided(self, node: Operator, *given: Any) -> Verdict:  # noqa: ARG002 - of a task with a part of the rows
        """Return a gate's verdict on the rows of the tick, from the arguments of `judge`."""
        return clock_pass.judge(*given)

    def stepped(self, node: Operator) -> Delta | None:  # noqa: ARG002 - as above
        """Return the result of an operator that has stepped elsewhere; ``None`` if it steps here."""
        return None

    def leave(self, node: Operator, rows: Frame) -> None:
        """Do nothing: this task has all keys."""

    def received(self, node: Operator, reader: Operator, delta: Delta) -> Delta:  # noqa: ARG002 - as above
        """Return what an operator gives to one above it; ``delta``: what it has given in this task."""
        return delta

    def needs_all_rows(self, why: str) -> None:
        """Do nothing."""
