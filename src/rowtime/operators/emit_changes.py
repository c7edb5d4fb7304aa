"""EMIT CHANGES: what enters a stream of events at once, and what is taken back of it later (SPEC 9.5).

An insert is an event as it is known; a retraction shortens it to a new end, to its start if
it never was. Each change is that of one row of the input, so the changes do not depend on
how the input is cut into ticks. Its rowtime is the bound that this row met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rowtime.core.clock import Clocks
from rowtime.core.time import END, MIN_MICROS
from rowtime.operators.contract import Column, Delta, Kept, Operator, P, Shape, T, Tick, W, quoted
from rowtime.operators.lifetimes import C, D, E, Q, S, instant

NAMES = ("change", "start", "stop", "new_stop")


@dataclass(frozen=True)
class EmitChanges:
    """``EMIT CHANGES``: inserts and retractions; ``names`` of the columns that say which, from when and to when."""

    name: str
    input: Operator
    names: tuple[str, ...] = NAMES

    kind: ClassVar[str] = "emit changes"
    promise: ClassVar[str] = "the input's bounds"
    reason: ClassVar[str] = "a change goes out under the bound that its row met, and bounds do not go back"

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The events."""
        return (self.input,)

    def requires(self) -> str:
        """Nothing."""
        return "nothing"

    def keeps(self) -> tuple[Kept, ...]:
        """Nothing."""
        return ()

    def emits(self) -> Shape:
        """What changes, and the payload."""
        below = self.input.emits()
        added = zip(self.names, ("STRING", *["TIMESTAMP"] * 3), strict=True)
        columns = (*(Column(name, kind) for name, kind in added), *(Column(c.name, c.type) for c in below.columns))
        return Shape(columns, placed=True, single=below.single, unmerged=True)

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:  # noqa: ARG002
        """The input's bounds; no row has a rowtime before the first instant there is."""
        return {writer: max(at, MIN_MICROS) for writer, at in clocks[0].items()}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The rows of one change of one event as one row."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        delta = deltas[0]
        clocks = self.promises([delta.clocks], tick.control(self))
        if delta.rows is None:
            return Delta(None, clocks)
        payload = [quoted(name) for name in self.input.emits().names]
        ends = {"new": f"max(IF({D} > 0, {E}, NULL))", "old": f"max(IF({D} < 0, {E}, NULL))", "met": f"max({C})"}
        rows = delta.rows.groupBy(*payload, W, P, Q, T).agg(
            *(F.expr(f"{text} AS __{name}") for name, text in ends.items())
        )
        rows = rows.where("NOT (__old <=> __new)")
        stop, later = "coalesce(__old, __new)", f"IF(__old IS NULL, NULL, coalesce(__new, {S}))"
        values = ["IF(__old IS NULL, 'insert', 'retract')", T, _time(stop), _time(later)]
        added = [f"{value} AS {quoted(name)}" for value, name in zip(values, self.names, strict=True)]
        at = instant(f"greatest(__met, {MIN_MICROS}L)")
        return Delta(rows.selectExpr(*added, *payload, f"{at} AS {T}", W, f"{Q} AS {P}"), clocks, delta.count)


def _time(micros: str) -> str:
    return f"IF({micros} < {END}L, timestamp_micros({micros}), NULL)"
