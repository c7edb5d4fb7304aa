"""EMIT CHANGES: emits what is added to a stream of events at once, and later retractions (semantics 9.5).

An insert is an event as it is known; a retraction shortens it to a new end, or to its start if it never existed. Each
change belongs to one input row, so the changes do not depend on how the input is cut into ticks. Its rowtime is the
bound when that row came. For derived events, one row may change many, or replace one by another (`Versions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rowtime.core.clock import Clocks
from rowtime.core.columns import ASKED_VERSION, CHANGED_BY, MET, POSITION, ROWTIME, STOP, WEIGHT, WRITER
from rowtime.core.time import END, MIN_MICROS
from rowtime.frames.frame import Frame
from rowtime.operators.contract import (
    Column,
    Control,
    Delta,
    Link,
    Origin,
    Shape,
    Tick,
    Unary,
    named,
    quoted,
)
from rowtime.operators.rows.lifetimes import BEGINS, instant

NAMES = ("change", "start", "stop", "new_stop")


@dataclass(frozen=True)
class EmitChanges(Unary):
    """``EMIT CHANGES``: inserts and retractions; ``names`` of the columns that say which, from when and to when."""

    names: tuple[str, ...] = NAMES

    kind: ClassVar[str] = "emit changes"
    promise: ClassVar[str] = "the input's bounds"
    reason: ClassVar[str] = "a change goes out with the bound that its row met, and bounds never go back"

    def emits(self) -> Shape:
        """Return the columns of the change, and the payload."""
        below = self.input.emits()
        added = zip(self.names, ("STRING", *["TIMESTAMP"] * 3), strict=True)
        columns = (*(Column(name, kind) for name, kind in added), *(Column(c.name, c.type) for c in below.columns))
        if below.placed:
            return Shape(columns, placed=True, single=below.single, unmerged=True)
        first, *others = (quoted(column.name) for column in columns)
        # The merge below releases only the next rows, and a version comes as a whole.
        return Shape(
            columns, order=(ROWTIME, POSITION, f"{first} DESC", *others), placed=False, single=True, released=True
        )

    def promises(self, clocks: Sequence[Clocks], control: Control) -> Clocks:  # noqa: ARG002
        """Return the input's bounds; no row has a rowtime before the first possible instant."""
        return {writer: max(at, MIN_MICROS) for writer, at in clocks[0].items()}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the event's rows that came with the change or before it, from the whole life of the changing row."""
        _, start, stop, _ = (quoted(name) for name in self.names)
        below = self.input.emits()
        same = (*named([(name, name) for name in below.names]), (f"unix_micros({start})", BEGINS))
        return Link(
            (*same, *([(WRITER, WRITER)] if below.placed else [])),
            meets=f"{CHANGED_BY} <= {ASKED_VERSION}",
            version=POSITION,
            span=(f"unix_micros({start})", f"coalesce(unix_micros({stop}), {END}L)"),
        )

    def origin(self, column: str) -> Origin | None:  # noqa: ARG002 - all have one order
        """Return the part of a change."""
        return Origin("change", "as they change")

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the rows of one change of one event as one row."""
        delta = deltas[0]
        clocks = self.promises([delta.clocks], tick.control(self))
        if delta.rows is None:
            return Delta(None, clocks)
        payload = [quoted(name) for name in self.input.emits().names]
        place = [WRITER, POSITION] if self.input.emits().placed else []
        rows = _net(delta.rows, [*payload, *place, CHANGED_BY, ROWTIME])
        what = f"IF({WEIGHT} < 0, 'retract', 'insert')"
        values = [what, ROWTIME, _time(STOP), _time(f"IF({WEIGHT} < 0, coalesce(__later, {BEGINS}), NULL)")]
        added = [f"{value} AS {quoted(name)}" for value, name in zip(values, self.names, strict=True)]
        at = instant(f"greatest({MET}, {MIN_MICROS}L)")
        writer = WRITER if place else f"'' AS {WRITER}"
        return Delta(
            rows.selectExpr(*added, *payload, f"{at} AS {ROWTIME}", writer, f"{CHANGED_BY} AS {POSITION}"),
            clocks,
        )


def _net(rows: Frame, by: Sequence[str]) -> Frame:
    """Return the changes of the ends of events that are equal in ``by``, without those that cancel out, each as a row.

    An event that is shortened is one row: the retraction, with its new end (``__later``).
    """
    totals = [f"sum({WEIGHT}) AS {WEIGHT}", f"max({MET}) AS {MET}"]
    ends = rows.grouped([*by, STOP], totals).where(f"{WEIGHT} <> 0")
    groups = f"PARTITION BY {', '.join(by)}"
    ordered = f"OVER ({groups} ORDER BY {STOP})"
    beside = {"__lower_weight": f"lag({WEIGHT})", "__upper_weight": f"lead({WEIGHT})", "__lower_end": f"lag({STOP})"}
    calls = [f"{call} {ordered} AS {name}" for name, call in beside.items()]
    ends = ends.selectExpr("*", f"count(*) OVER ({groups}) AS __ends", *calls)
    ends = ends.where(f"NOT (__ends = 2 AND {WEIGHT} = 1 AND coalesce(__upper_weight, 0L) = -1)")
    shortened = f"__ends = 2 AND {WEIGHT} = -1 AND __lower_weight = 1"
    each = f"explode(sequence(1L, abs({WEIGHT}))) AS __i"
    return ends.selectExpr("*", f"IF({shortened}, __lower_end, NULL) AS __later", each)


def _time(micros: str) -> str:
    return f"IF({micros} < {END}L, timestamp_micros({micros}), NULL)"
