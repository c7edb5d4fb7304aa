"""What passes over an edge: columns, the shape of the edge, and what comes in one tick.

Every edge carries, beside the user's columns, the rowtime and what orders equal rowtimes: writer and position. The
order of a stream is (rowtime, writer, position) (semantics 2.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Literal

from rowtime.core.clock import Clocks
from rowtime.core.columns import ARRIVAL, ORIGIN, POSITION, ROWTIME, WRITER
from rowtime.core.time import BEGINNING, END
from rowtime.expr.facts import UNKNOWN, Fact, Kind, kind_of
from rowtime.expr.order import Order
from rowtime.operators.contract.peek import Peek
from rowtime.operators.contract.state import Segment
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rowtime.kernels.timeline import Timeline

_WAY = re.compile(r"( ASC| DESC)?( NULLS (FIRST|LAST))?$")


@dataclass(frozen=True)
class Column:
    """A column of an edge: name, Spark type text (empty: only Spark knows), what is known of its values."""

    name: str
    type: str = ""
    fact: Fact = UNKNOWN

    @property
    def order(self) -> Order:
        """The order of its values over the stream."""
        return self.fact.order

    @property
    def known(self) -> Fact:
        """The fact, with the kind of the declared type."""
        return self.fact if self.fact.kind is not Kind.OTHER else replace(self.fact, kind=kind_of(self.type))


@dataclass(frozen=True)
class EventTime:
    """Where an edge has its event time: the operator that knows its bound, and the column.

    ``here``: what the column is called between a join and the select list above it; empty for its own name.
    """

    declared: str
    column: str
    here: str = ""


class Trait(Enum):
    """What an edge can have that an operator may require; `Shape.traits` says which it has."""

    PLACED = auto()  # writer and position order the rows of a writer
    BY_PLACE = auto()  # equal rowtimes go by writer and position, and by nothing before them
    SINGLE = auto()  # all rows count as one writer's
    MERGED = auto()  # it is no several streams side by side
    RELEASED = auto()  # no row runs ahead of the bound
    EVENT_TIME = auto()  # an event time is declared below, and known here


@dataclass(frozen=True)
class Origin:
    """What a column is: the rowtime of its row (`ROWTIME`), or another part of an event that was made a row.

    ``order``: in which order such rows come, in words.
    """

    what: str
    order: str = ""


EDGES = ("start of an edge", "stop of an edge")
"""What columns of edges are, by which events are put together again."""


@dataclass(frozen=True)
class Shape:
    """What an edge carries.

    ``order``: the sort expressions that make the stream order, the rowtime first unless the rows are released anyway.
    ``extra``: hidden columns that ``order`` needs. ``placed``: writer and position order the rows of a writer.
    ``single``: all rows count as one writer's. ``released``: no row runs ahead of the edge's bound. ``arrival``: rows
    still have their recorded arrival time, and ``stamped``: it is their rowtime, raised where it would go back.
    ``batched``: the rows of one tick are a set without an order of arrival.
    ``unmerged``: several streams side by side, which count as one writer's for whoever looks at the order of arrival.
    ``event``: the event time that was declared below, as long as its column and the rows' places are passed on.
    ``retracts``: which events (open: without an end) may be taken back. ``lasts``: how long each of them lasts at least
    (µs), where all that end up to the bound plus that have gone out, and none is taken back.
    """

    columns: tuple[Column, ...]
    order: tuple[str, ...] = (ROWTIME, WRITER, POSITION)
    extra: tuple[str, ...] = ()
    placed: bool = True
    single: bool = False
    released: bool = False
    arrival: bool = False
    stamped: bool = False
    batched: bool = False
    unmerged: bool = False
    event: EventTime | None = None
    retracts: Literal["any", "open", "none"] = "any"
    lasts: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The user's columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def of_users(self) -> tuple[Column, ...]:
        """The columns without those that only the engine knows."""
        return tuple(column for column in self.columns if not column.name.startswith("__"))

    @property
    def traits(self) -> frozenset[Trait]:
        """What an operator above may require of it."""
        has = {
            Trait.PLACED: self.placed,
            Trait.BY_PLACE: self.order in ((ROWTIME, WRITER, POSITION), (POSITION,)),
            Trait.SINGLE: self.single,
            Trait.MERGED: not self.unmerged,
            Trait.RELEASED: self.released,
            Trait.EVENT_TIME: self.event is not None,
        }
        return frozenset(trait for trait, true in has.items() if true)

    @property
    def shows_order(self) -> bool:
        """True if what orders the rows is among their columns; a select list can leave out what does."""
        there = {*self.internals, *map(quoted, self.names)}
        return all(_WAY.sub("", term) in there for term in self.order)

    @property
    def has_origin(self) -> bool:
        """Rows that were merged have the writer and the position that they had before beside their own."""
        return ORIGIN[0] in self.extra

    def without_origin(self) -> Shape:
        """The same without these, where no gate above asks for them."""
        return replace(self, extra=tuple(name for name in self.extra if name not in ORIGIN))

    def with_origin(self, kept: DataFrame) -> DataFrame:
        """Kept rows, with an empty writer and no position where an older version kept them without."""
        if not self.has_origin:
            return kept
        there = ORIGIN[0] in kept.columns
        made = (f"coalesce({ORIGIN[0]}, '')", ORIGIN[1]) if there else ("''", "CAST(NULL AS BIGINT)")
        others = [quoted(name) for name in kept.columns if name not in ORIGIN]
        return kept.selectExpr(*others, *(f"{sql} AS {name}" for sql, name in zip(made, ORIGIN, strict=True)))

    @property
    def internals(self) -> tuple[str, ...]:
        """The columns of ours that travel with the rows."""
        return (ROWTIME, WRITER, POSITION, *([ARRIVAL] if self.arrival else []), *self.extra)


@dataclass(frozen=True)
class Delta:
    """What passes over an edge in one tick: new rows and the bounds after them.

    ``rows`` is ``None`` where there is certainly none. ``count`` is an upper limit; where there is none, ``about`` says
    of how many rows they are made, if that is known. Every rowtime lies in [``lowest``, ``highest``] (µs UTC). ``peek``
    reads columns of every row without a Spark job, where the source can; ``files`` are the rows in files that a sink
    may take as they are, ``final`` other events. ``timeline``: the event time's bounds. ``left``: the clocks of writers
    that left behind their rows of this tick.
    """

    rows: DataFrame | None
    clocks: Clocks
    count: int | None = None
    lowest: int = BEGINNING
    highest: int = END
    peek: Peek | None = None
    files: tuple[Segment, ...] | None = None
    final: tuple[Segment, ...] = ()
    timeline: Timeline | None = None
    about: int | None = None
    left: Clocks = field(default_factory=dict)
