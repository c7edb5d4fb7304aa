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

    from rowtime.operators.contract.operator import Operator
    from rowtime.operators.contract.tick import Tick

LARGE = 200_000  # rows of state: of more, files skip what is not wanted


@dataclass(frozen=True)
class Control:
    """The scalars that an operator keeps from tick to tick; its own class says what each of them means.

    Nobody changes one: an operator gives its tick other values (`Tick.remember`), and what the tick has at its end is
    journaled, by name. A field that is not in the journal has its default, and one that has its default is not
    written: a default is what older checkpoints mean.
    """

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """What the journal has."""
        return cls(**{field.name: stored[field.name] for field in fields(cls) if field.name in stored})

    def stored(self) -> dict[str, Any]:
        """What the journal gets."""
        first = type(self)()
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value != getattr(first, name)}


@dataclass(frozen=True)
class UpTo(Control):
    """``bound`` (µs UTC): up to where its results are certain and have gone out. It never goes back."""

    bound: int = BEGINNING


@dataclass(frozen=True)
class Closed(Control):
    """``closed`` (µs UTC): the bound up to which groups or windows have ended and have gone out. It never goes back."""

    closed: int = BEGINNING


C = TypeVar("C", bound=Control)
C_co = TypeVar("C_co", bound=Control, covariant=True)


@dataclass(frozen=True)
class Segment:
    """One immutable file of state: its rows have ``lowest`` <= time <= ``highest`` (µs UTC).

    ``sum``: the checksum of its bytes; ``None`` where an older version wrote it. ``size``: how many these are; 0 where
    an older version wrote it.
    """

    path: str
    rows: int
    lowest: int
    highest: int
    level: int = 0
    sum: int | None = None
    size: int = 0


def rows_in(segments: Iterable[Segment]) -> int:
    """How many rows some segments have."""
    return sum(segment.rows for segment in segments)


@dataclass(frozen=True)
class Route:
    """Where some rows of a write go: those whose ``__route`` is ``key`` or one of ``more``, which go elsewhere too.

    ``columns``: those of the file and of the DataFrame; ``time``: a BIGINT column (µs) whose range a segment remembers.
    """

    key: int
    columns: Mapping[str, str]
    time: str
    more: tuple[int, ...] = ()


@dataclass(frozen=True)
class Kept:
    """Rows that an operator keeps in segments of one name, forgotten by ``time`` (BIGINT).

    ``columns``: those of the files; ``sometimes``: those that files have too where the types of the rows ask for them.
    """

    time: str
    columns: tuple[str, ...]
    name: str = "state"
    sometimes: tuple[str, ...] = ()

    def route(self, key: int = 0) -> Route:
        """Where such rows go."""
        return Route(key, {name: name for name in self.columns}, self.time)

    def write(self, tick: Tick, node: Operator, rows: DataFrame, count: int | None) -> Sequence[Segment]:
        """New files of rows, which have these columns and more; they are no state yet."""
        route = self.route()
        rows = rows.selectExpr(*map(quoted, {**route.columns, self.time: self.time}), f"0 AS {ROUTE}")
        return tick.write(node, rows, {self.name: route}, count)[self.name]

    def keep(self, tick: Tick, node: Operator, rows: DataFrame, count: int | None) -> Sequence[Segment]:
        """The same, as state from this tick's commit on."""
        written = self.write(tick, node, rows, count)
        tick.segments(node, self.name).add(written)
        return written

    def noted(self, what: str, until: str, by: str = "time") -> StateNote:
        """The note of a state that is made of such rows alone."""
        return StateNote(what, until, by, rows=(self,))

    def compact(self, tick: Tick, node: Operator, what: str, wanted: Callable[[DataFrame], DataFrame]) -> None:
        """Put segments together where there are many: what is still ``wanted`` of their rows; ``what``: in words."""
        segments = tick.segments(node, self.name)
        if crowded := segments.crowded():
            tick.describe(node, f"compact {what}")
            rows = wanted(segments.read(crowded))
            segments.replace(crowded, self.write(tick, node, rows, rows_in(crowded)))


@dataclass(frozen=True)
class StateNote:
    """State that an operator keeps: what, until when, and what bounds it.

    ``by``: time, values (of an order), rows, keys, writers, edges (of events), one, or nothing (UNBOUNDED STATE).
    ``rows``: what it has in segments.
    ``fields``: the scalars that have it, by their names in the class of the operator's `Control`.
    """

    what: str
    until: str
    by: str = "time"
    rows: tuple[Kept, ...] = ()
    fields: tuple[str, ...] = ()


class Named(Protocol):
    """What the journal knows by name."""

    @property
    def name(self) -> str:
        """Unique in its plan and stable from run to run."""
        ...


class Keeper(Named, Protocol[C_co]):
    """What has scalars of its own in the journal."""

    @property
    def control(self) -> type[C_co]:
        """Their class."""
        ...


class Segments(Protocol):
    """The live segments of one kept thing of one operator."""

    def overlapping(self, low: int, high: int) -> Sequence[Segment]:
        """Segments that may hold a time in (low, high]."""
        ...

    def add(self, written: Sequence[Segment]) -> None:
        """Make segments part of the state, from this tick's commit on."""
        ...

    def forget(self, up_to: int) -> None:
        """Drop the segments in which every time is at or below ``up_to``."""
        ...

    def replace(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Exchange segments for their compacted form."""
        ...

    def crowded(self) -> Sequence[Segment]:
        """Segments that should be merged now, so that their number stays O(log) of the ticks."""
        ...

    def read(self, segments: Sequence[Segment]) -> DataFrame:
        """The rows of some segments."""
        ...

    def tables(self, segments: Sequence[Segment]) -> Sequence[pa.Table]:
        """The same on the driver, a table a segment; what it remembers of earlier ticks is not read again."""
        ...

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        ...

    @property
    def lowest(self) -> int:
        """The least time that is kept; END if nothing is."""
        ...
