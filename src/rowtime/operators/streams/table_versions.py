"""A table that is read again: its versions, each with the rowtimes of the stream that join it.

Semantics 5: a version that is read while the bound of the stream is b applies to the rows above b, until the next
version does. All rows at or below b have been emitted by then or join the version before, however the input is cut. The
versions are copied into the checkpoint as a part of the input, with the rowtime from which they apply: a replay reads
these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rowtime.core.clock import least
from rowtime.core.columns import ROW_NUMBER, VALID_FROM, VALID_UNTIL
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Control, DataFrame, Delta, Distribution, Link, Operator, Shape, Tick, quoted
from rowtime.operators.contract.state import Kept, Segment, Segments, StateNote
from rowtime.operators.streams.table import VERSIONS, Table

MARK = -1  # the ROW_NUMBER of a row that represents the version itself, which may be empty
_FIRST = BEGINNING + 1  # the first version applies from here on


@dataclass(frozen=True)
class Versioned(Control):
    """When a table was read, and the rowtimes of its versions; all in µs UTC.

    ``since``: the first rowtimes of the versions that may still be joined, in order; ``read``: the time of day when the
    table was last read, ``None`` before that; ``bound``: that of the stream at the end of the tick.
    """

    since: Sequence[int] = ()
    read: int | None = None
    bound: int = BEGINNING


@dataclass(frozen=True)
class TableVersions(Table):
    """``stream``: the stream joined with the table; ``refresh``: how long after a reading the table is read again."""

    stream: Operator = field(kw_only=True)

    control: ClassVar[type[Control]] = Versioned
    kind: ClassVar[str] = "versions of a table"
    reason: ClassVar[str] = "the join keeps the bound of the stream"

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return the stream, whose bound says which rows join a new version."""
        return (self.stream,)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return every version, and the rowtime from which it applies."""
        state = self._state.noted("its versions, each as it was read", "the checkpoint is given up", "nothing")
        return (state, StateNote("when it was read", "the next reading", "one", fields=("since", "read", "bound")))

    def emits(self) -> Shape:
        """Return the declared columns; rows have a number and the rowtimes that they join, but no rowtime."""
        hidden = (ROW_NUMBER, VALID_FROM, VALID_UNTIL)
        return Shape(self.columns, order=(ROW_NUMBER,), extra=hidden, placed=False, single=True, released=True)

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return nothing: no row of the stream makes a row of the table."""
        return Link()

    @property
    def _state(self) -> Kept:
        return Kept(
            VALID_FROM, (*(column.name for column in self.columns), ROW_NUMBER, VALID_FROM), VERSIONS, waits=False
        )

    def distribution(self) -> Distribution:
        """Return one task, which knows the bound."""
        return Distribution.SINGLE

    def is_due(self, tick: Tick) -> bool:
        """Return True if it is time to read it, and a row could have joined the last version."""
        control = tick.control(self)
        assert isinstance(control, Versioned)
        later = not control.since or _since(control) > control.since[-1]
        return later and control.bound < END and (control.read is None or tick.now - control.read >= self.refresh)

    def load(self, tick: Tick) -> None:
        """Keep the present version if the tick reads the table."""
        control = tick.control(self)
        assert isinstance(control, Versioned)
        if self.is_due(tick):
            rows, versions = tick.reread(self, first=control.read is None), [*control.since]
            if rows is not None:
                versions = self._read(tick, tick.segments(self, VERSIONS), rows, versions, _since(control))
            tick.remember(self, since=versions, read=tick.now)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the versions that rows of this tick and of later ones may join; a new one if it is time to read it."""
        self.load(tick)
        control, segments = tick.control(self), tick.segments(self, VERSIONS)
        assert isinstance(control, Versioned)
        behind = sum(after <= control.bound for after in control.since[1:])
        live, bound = control.since[behind:], least(deltas[0].clocks.values())
        tick.remember(self, since=tuple(live), read=control.read, bound=max(bound, control.bound))
        self._state.compact(tick, self, "the versions of a table", lambda rows: rows)
        shown = segments.overlapping(live[0] - 1, END)
        return Delta(self._shown(segments.read(shown), live) if shown else None, {"": END})

    def _shown(self, rows: Frame, live: Sequence[int]) -> Frame:
        """Return the rows of the versions that still apply, with the end of each."""
        ends = " ".join(f"WHEN {since} THEN {until}" for since, until in zip(live, live[1:], strict=False))
        until = f"CASE {VALID_FROM} {ends} ELSE {END} END" if ends else str(END)
        rows = rows.where(f"{ROW_NUMBER} <> {MARK} AND {VALID_FROM} >= {live[0]}")
        return rows.selectExpr("*", f"CAST({until} AS BIGINT) AS {VALID_UNTIL}")

    def _read(self, tick: Tick, segments: Segments, rows: DataFrame, versions: list[int], since: int) -> list[int]:
        """Keep the rows that were read, if they differ from the last version; return the versions' first rowtimes."""
        if VALID_FROM in rows.columns:  # the versions of a checkpoint that is replayed
            segments.add(self._state.write(tick, self, rows))
            marks = rows.where(f"{ROW_NUMBER} = {MARK}").select(VALID_FROM).collect()
            return sorted(row[0] for row in marks)
        tick.describe(self, "read the table again" if versions else "copy the table")
        last = segments.overlapping(versions[-1] - 1, END) if versions else []
        written = self._state.write(tick, self, self._marked(rows, since))
        segments.add(written)
        if versions and self._same(tick, last, written, versions[-1]):
            segments.replace(written, [])
            return versions
        return [*versions, since]

    def _marked(self, rows: DataFrame, since: int) -> DataFrame:
        """Return the rows of a version with their numbers, and the row that represents it."""
        nothing = [f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}" for field in rows.schema]
        mark = rows.sparkSession.range(1).selectExpr(*nothing, f"CAST({MARK} AS BIGINT) AS {ROW_NUMBER}")
        numbered = rows.selectExpr("*", f"monotonically_increasing_id() AS {ROW_NUMBER}")
        return numbered.union(mark).selectExpr("*", f"CAST({since} AS BIGINT) AS {VALID_FROM}")

    def _same(self, tick: Tick, last: Sequence[Segment], new: Sequence[Segment], since: int) -> bool:
        """Return True if the new version has the rows of the last one, which applies since then, in whatever order."""
        names = [quoted(column.name) for column in self.columns]
        before = tick.in_spark(self, VERSIONS, last).where(f"{ROW_NUMBER} <> {MARK} AND {VALID_FROM} = {since}")
        after = tick.in_spark(self, VERSIONS, new).where(f"{ROW_NUMBER} <> {MARK}")
        types = " ".join(field.dataType.simpleString() for field in after.schema)
        if "map<" in types or "variant" in types:  # Spark cannot compare these
            return False
        before, after = before.selectExpr(*names), after.selectExpr(*names)
        return before.count() == after.count() and not after.exceptAll(before).limit(1).collect()


def _since(control: Versioned) -> int:
    """Return the first rowtime that a version joins that is read now."""
    return control.bound + 1 if control.read is not None else _FIRST


def refreshed(node: Operator) -> bool:
    """Return True for a table that is read again."""
    return isinstance(node, Table) and bool(node.refresh)


def with_versions(table: Operator, stream: Operator, name: str) -> Operator:
    """Return a table that is read again, as the versions that the rows of a stream join."""
    assert isinstance(table, Table)
    return TableVersions(name, table.table, table.columns, table.source, table.refresh, stream=stream)


def kept_versions(operator: str) -> str:
    """Return the name of an operator's versions in a checkpoint, among the tables given to a replay."""
    return f"{operator}/{VERSIONS}"
