"""What an operator keeps from tick to tick, and where: immutable files of rows, and scalars in the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from rowtime.core.columns import ROUTE
from rowtime.core.time import BEGINNING
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rowtime.frames.frame import Frame
    from rowtime.operators.contract.operator import Operator
    from rowtime.operators.contract.tick import Tick


@dataclass(frozen=True)
class Control:
    """The scalars that an operator keeps from tick to tick; its subclass documents each of them.

    They are immutable: an operator gives its tick new values (`Tick.remember`), and the values at the end of a tick are
    journaled by name. A field that is not in the journal has its default, and a default is not written, because older
    checkpoints mean it.
    """

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Return the scalars from the journal."""
        return cls(**{field.name: stored[field.name] for field in fields(cls) if field.name in stored})

    def stored(self) -> dict[str, Any]:
        """Return the scalars for the journal."""
        first = type(self)()
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(first, name)}


@dataclass(frozen=True)
class UpTo(Control):
    """``bound`` (µs UTC): results up to it are certain and have been emitted. It never goes back."""

    bound: int = BEGINNING


@dataclass(frozen=True)
class Closed(Control):
    """``closed`` (µs UTC): groups or windows up to this bound have ended and have been emitted. It never goes back."""

    closed: int = BEGINNING


C = TypeVar("C", bound=Control)
C_co = TypeVar("C_co", bound=Control, covariant=True)


@dataclass(frozen=True)
class Segment:
    """One immutable file of state: its rows have ``lowest`` <= time <= ``highest`` (µs UTC).

    ``sum``: the checksum of its bytes; ``None`` if it is not known. ``size``: the number of bytes. ``dead``: how many
    of its rows are no longer needed. ``shards``: of the keys of its rows, in words (`state.shards`); empty: all.
    """

    path: str
    rows: int
    lowest: int
    highest: int
    level: int = 0
    sum: int | None = None
    size: int = 0
    dead: int = 0
    shards: str = ""


def rows_in(segments: Iterable[Segment]) -> int:
    """Return how many rows some segments have."""
    return sum(segment.rows for segment in segments)


@dataclass(frozen=True)
class Route:
    """Where some rows of a write go: those whose ``__route`` is ``key`` or in ``more``; the latter also go elsewhere.

    ``columns``: those of the file and of the Frame; ``time``: a BIGINT column (µs) whose range a segment stores.
    """

    key: int
    columns: Mapping[str, str]
    time: str
    more: tuple[int, ...] = ()


@dataclass(frozen=True)
class Kept:
    """Rows that an operator keeps in segments of one name; they are dropped by ``time`` (BIGINT).

    ``columns``: those of the files; ``sometimes``: additional ones if the types of the rows need them. ``timed_by``:
    the column of the files that has the time; ``time``, if that is one of them. ``waits``: the rows can still give or
    release results, so that they count as held. ``groups``: the columns that tell groups apart, if rows are parts of
    groups, which count as held instead; ``lasting``: no time ends them; ``since``: the column with their starts, if
    groups of the same columns are one where they overlap. ``counts``: columns whose sum counts, if a row stands for
    several or takes one back. ``counted``: the field of the operator's control that has the number instead.
    """

    time: str
    columns: tuple[str, ...]
    name: str = "state"
    sometimes: tuple[str, ...] = ()
    timed_by: str = ""
    waits: bool = True
    groups: tuple[str, ...] | None = None
    lasting: bool = False
    since: str = ""
    counts: tuple[str, ...] = ()
    counted: str = ""

    @property
    def timing(self) -> str:
        """Return the column of the files that has the time; empty if none has."""
        return self.timed_by or (self.time if self.time in self.columns else "")

    def route(self, key: int = 0) -> Route:
        """Return the route for such rows."""
        return Route(key, {name: name for name in self.columns}, self.time)

    def write(self, tick: Tick, node: Operator, rows: Frame | DataFrame) -> Sequence[Segment]:
        """Write rows, which have these columns and more, to new files that are not state yet."""
        route = self.route()
        rows = rows.selectExpr(*map(quoted, {**route.columns, self.time: self.time}), f"0 AS {ROUTE}")
        return tick.write(node, rows, {self.name: route})[self.name]

    def keep(self, tick: Tick, node: Operator, rows: Frame) -> Sequence[Segment]:
        """Write rows to new files that become state with this tick's commit."""
        written = self.write(tick, node, rows)
        tick.segments(node, self.name).add(written)
        return written

    def noted(self, what: str, until: str, by: str = "time") -> StateNote:
        """Return the note of a state that consists of such rows alone."""
        return StateNote(what, until, by, rows=(self,))

    def compact(self, tick: Tick, node: Operator, what: str, wanted: Callable[[Frame], Frame]) -> None:
        """Combine many segments into one, with the rows that are still ``wanted``; ``what``: in words."""
        segments = tick.segments(node, self.name)
        if crowded := segments.crowded():
            tick.describe(node, f"compact {what}")
            rows = wanted(segments.read(crowded))
            segments.replace(crowded, self.write(tick, node, rows))


@dataclass(frozen=True)
class StateNote:
    """State that an operator keeps: what, until when, and what limits it.

    ``by``: time, values (of an order), rows, keys, writers, edges (of events), one, or nothing (UNBOUNDED STATE).
    ``rows``: the part in segments. ``fields``: the scalars that have it, by their names in the class of the operator's
    `Control`.
    """

    what: str
    until: str
    by: str = "time"
    rows: tuple[Kept, ...] = ()
    fields: tuple[str, ...] = ()


class Named(Protocol):
    """Something with a name in the journal."""

    @property
    def name(self) -> str:
        """Unique in its plan and stable across runs."""
        ...


class Keeper(Named, Protocol[C_co]):
    """Something with scalars of its own in the journal."""

    @property
    def control(self) -> type[C_co]:
        """Return their class."""
        ...


class Segments(Protocol):
    """The live segments of one kind of rows of one operator."""

    def overlapping(self, low: int, high: int) -> Sequence[Segment]:
        """Return the segments that may hold a time in (low, high]."""
        ...

    def add(self, written: Sequence[Segment]) -> None:
        """Make segments part of the state, from this tick's commit on."""
        ...

    def forget(self, up_to: int, *, writer: str | None = None, dead: int | None = None) -> None:
        """Drop the segments in which every time is at or below ``up_to``; count the dead rows of the others.

        Dead are rows up to ``dead`` (``up_to``, if not given), and those one µs later of writers up to ``writer``.
        """
        ...

    def replace(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Replace segments by their compacted form."""
        ...

    def crowded(self) -> Sequence[Segment]:
        """Return the segments to merge now, so that their number stays O(log) of the number of ticks."""
        ...

    def read(self, segments: Sequence[Segment]) -> Frame:
        """Return the rows of some segments."""
        ...

    def tables(self, segments: Sequence[Segment]) -> Sequence[pa.Table]:
        """Return the rows, one table per segment; tables cached in earlier ticks are not read again."""
        ...

    @property
    def rows(self) -> int:
        """Return how many rows are kept."""
        ...

    @property
    def lowest(self) -> int:
        """Return the least time that is kept; END if there are no rows."""
        ...
