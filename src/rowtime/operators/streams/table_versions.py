"""A table that is read again: its versions, each with the rowtimes of the stream that meet it.

Semantics 5: a version that is read while the bound of the stream is b counts for the rows above b, until the next one
does. All rows at or below b have gone out by then or meet the version before, however the input is cut. The versions
are copied into the checkpoint with the rowtime from which they count, as a part of the input: a replay reads these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from rowtime.core.clock import least
from rowtime.core.columns import ROW_NUMBER, VALID_FROM, VALID_UNTIL
from rowtime.core.time import BEGINNING, END
from rowtime.frames.local import is_local
from rowtime.operators.contract import Control, DataFrame, Delta, Link, Operator, Shape, Tick, quoted
from rowtime.operators.contract.state import Kept, Segment, Segments, StateNote
from rowtime.operators.streams.table import VERSIONS, Table

MARK = -1  # the ROW_NUMBER of a row that stands for the version itself, which may have no others
_FIRST = BEGINNING + 1  # the first version counts from here on


@dataclass(frozen=True)
class Versioned(Control):
    """When a table was read, and what its versions are for; all in µs UTC.

    ``since``: the rowtimes from which on the versions count that may still be met, in their order; ``read``: the time
    of day when the table was read last, ``None`` before that; ``bound``: that of the stream at the end of the tick.
    """

    since: Sequence[int] = ()
    read: int | None = None
    bound: int = BEGINNING


@dataclass(frozen=True)
class TableVersions(Table):
    """``stream``: what the table is joined with; ``refresh``: how long after a reading the table is read again."""

    stream: Operator = field(kw_only=True)

    control: ClassVar[type[Control]] = Versioned
    kind: ClassVar[str] = "versions of a table"
    reason: ClassVar[str] = "the join keeps the bound of the stream"

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The stream, whose bound says which rows meet a new version."""
        return (self.stream,)

    def keeps(self) -> tuple[StateNote, ...]:
        """Every version, and from when on it counts."""
        state = self._state.noted("its versions, each as it was read", "the checkpoint is given up", "nothing")
        return (state, StateNote("when it was read", "the next reading", "one", fields=("since", "read", "bound")))

    def emits(self) -> Shape:
        """The declared columns; rows have a number, the rowtimes of the rows that they meet, and no rowtime."""
        hidden = (ROW_NUMBER, VALID_FROM, VALID_UNTIL)
        return Shape(self.columns, order=(ROW_NUMBER,), extra=hidden, placed=False, single=True, released=True)

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """No row of the stream makes a row of the table."""
        return Link()

    @property
    def _state(self) -> Kept:
        return Kept(VALID_FROM, (*(column.name for column in self.columns), ROW_NUMBER, VALID_FROM), VERSIONS)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The versions that rows of this tick and of later ones may meet; a new one if it is time to read it."""
        control, segments = tick.control(self), tick.segments(self, VERSIONS)
        assert isinstance(control, Versioned)
        now = tick.now
        since = control.bound + 1 if control.read is not None else _FIRST
        later = not control.since or since > control.since[-1]  # else no row could have met the last one
        if later and control.bound < END and (control.read is None or now - control.read >= self.refresh):
            rows = tick.reread(self, first=control.read is None)
            known = [*control.since]
            known = known if rows is None else self._read(tick, segments, rows, known, since)
            control = replace(control, since=known, read=now)
        behind = sum(after <= control.bound for after in control.since[1:])
        live, bound = control.since[behind:], least(deltas[0].clocks.values())
        tick.remember(self, since=tuple(live), read=control.read, bound=max(bound, control.bound))
        self._state.compact(tick, self, "the versions of a table", lambda rows: rows)
        found = segments.overlapping(live[0] - 1, END)
        return Delta(self._shown(segments.read(found), live) if found else None, {"": END}, sum(s.rows for s in found))

    def _shown(self, rows: DataFrame, live: Sequence[int]) -> DataFrame:
        """The rows of the versions that still count, with the end of each."""
        ends = " ".join(f"WHEN {one} THEN {until}" for one, until in zip(live, live[1:], strict=False))
        until = f"CASE {VALID_FROM} {ends} ELSE {END} END" if ends else str(END)
        rows = rows.where(f"{ROW_NUMBER} <> {MARK} AND {VALID_FROM} >= {live[0]}")
        return rows.selectExpr("*", f"CAST({until} AS BIGINT) AS {VALID_UNTIL}")

    def _read(self, tick: Tick, segments: Segments, rows: DataFrame, known: list[int], since: int) -> list[int]:
        """Keep what has been read, if it differs from the last version; from when on the versions count."""
        if VALID_FROM in rows.columns:  # the versions of a checkpoint that is run again
            segments.add(self._state.write(tick, self, rows, None))
            marks = rows.where(f"{ROW_NUMBER} = {MARK}").select(VALID_FROM).collect()
            return sorted(row[0] for row in marks)
        tick.describe(self, "read the table again" if known else "copy the table")
        last = segments.overlapping(known[-1] - 1, END) if known else []
        written = self._state.write(tick, self, self._marked(rows, since), None)
        segments.add(written)
        if known and self._same(segments, last, written, known[-1]):
            segments.replace(written, [])
            return known
        return [*known, since]

    def _marked(self, rows: DataFrame, since: int) -> DataFrame:
        """The rows of a version with their numbers, and the row that stands for it."""
        nothing = [f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}" for field in rows.schema]
        mark = rows.sparkSession.range(1).selectExpr(*nothing, f"CAST({MARK} AS BIGINT) AS {ROW_NUMBER}")
        numbered = rows.selectExpr("*", f"monotonically_increasing_id() AS {ROW_NUMBER}")
        return numbered.union(mark).selectExpr("*", f"CAST({since} AS BIGINT) AS {VALID_FROM}")

    def _same(self, segments: Segments, last: Sequence[Segment], new: Sequence[Segment], since: int) -> bool:
        """True if the new version has the rows of the last one, which counts since then, in whatever order."""
        names = [quoted(column.name) for column in self.columns]
        before = _of_spark(segments.read(last)).where(f"{ROW_NUMBER} <> {MARK} AND {VALID_FROM} = {since}")
        after = _of_spark(segments.read(new)).where(f"{ROW_NUMBER} <> {MARK}")
        types = " ".join(field.dataType.simpleString() for field in after.schema)
        if "map<" in types or "variant" in types:  # which Spark does not compare
            return False
        before, after = before.selectExpr(*names), after.selectExpr(*names)
        return before.count() == after.count() and not after.exceptAll(before).limit(1).collect()


def refreshed(node: Operator) -> bool:
    """True for a table that is read again."""
    return isinstance(node, Table) and bool(node.refresh)


def with_versions(table: Operator, stream: Operator, name: str) -> Operator:
    """A table that is read again, as the versions that the rows of a stream meet."""
    assert isinstance(table, Table)
    return TableVersions(name, table.table, table.columns, table.source, table.refresh, stream=stream)


def kept_versions(operator: str) -> str:
    """What the versions that a checkpoint has of an operator are called among the tables that a replay is given."""
    return f"{operator}/{VERSIONS}"


def _of_spark(rows: DataFrame) -> DataFrame:
    return rows.spark() if is_local(rows) else rows
