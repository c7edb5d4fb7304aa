"""Edges: the columns and the shape of an edge, and the data that passes over it in one tick.

Besides the user's columns, every edge carries the rowtime, and writer and position, which order equal rowtimes. The
order of a stream is (rowtime, writer, position) (semantics 2.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

from rowtime.core.clock import Clocks
from rowtime.core.columns import ARRIVAL, ORIGIN, POSITION, ROWTIME, WRITER
from rowtime.core.time import BEGINNING, END
from rowtime.expr.facts import UNKNOWN, Fact, Kind, kind_of
from rowtime.expr.order import Order
from rowtime.operators.contract.state import Segment
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.kernels.timeline import Timeline

_WAY = re.compile(r"( ASC| DESC)?( NULLS (FIRST|LAST))?$")


@dataclass(frozen=True)
class Column:
    """A column of an edge: name, Spark type text (empty: only Spark knows), and facts about its values."""

    name: str
    type: str = ""
    fact: Fact = UNKNOWN

    @property
    def order(self) -> Order:
        """Return the order of its values over the stream."""
        return self.fact.order

    @property
    def known(self) -> Fact:
        """Return the fact, with the kind of the declared type."""
        return self.fact if self.fact.kind is not Kind.OTHER else replace(self.fact, kind=kind_of(self.type))


@dataclass(frozen=True)
class EventTime:
    """The event time of an edge: the operator that knows its bound, and the column.

    ``here``: the column's name between a join and the select list above it; empty for its own name.
    """

    declared: str
    column: str
    here: str = ""


class Trait(Enum):
    """A property of an edge that an operator may require; `Shape.traits` returns those of an edge."""

    PLACED = auto()  # writer and position order the rows of a writer
    BY_PLACE = auto()  # equal rowtimes are ordered by writer and position first
    SINGLE = auto()  # all rows count as one writer's
    MERGED = auto()  # it is not several streams side by side
    RELEASED = auto()  # no row is ahead of the bound
    EVENT_TIME = auto()  # an event time is declared below, and still known here


@dataclass(frozen=True)
class Origin:
    """The meaning of a column: the rowtime of its row (`ROWTIME`), or another part of an event that became a row.

    ``order``: the order of such rows, in words.
    """

    what: str
    order: str = ""


EDGES = ("start of an edge", "stop of an edge")
"""The meaning of the columns of edges, from which events are put together again."""


@dataclass(frozen=True)
class Shape:
    """The properties of an edge.

    ``order``: the sort expressions of the stream order, the rowtime first unless the rows are released anyway.
    ``extra``: hidden columns that ``order`` needs. ``placed``: writer and position order the rows of a writer.
    ``single``: all rows count as one writer's. ``released``: no row is ahead of the edge's bound. ``arrival``: rows
    still have their recorded arrival time; ``stamped``: it is their rowtime, raised where it would go back.
    ``batched``: the rows of one tick are a set without an order of arrival. ``unmerged``: several streams side by side;
    operators that need the order of arrival treat them as one writer's. ``event``: the event time declared below, as
    long as its column and the rows' places are passed on. ``retracts``: which events (open: without an end) may be
    retracted. ``lasts``: the least duration of an event (µs), if all events that end up to the bound plus that duration
    have been emitted, and none is retracted. ``settled``: the order in which no later row, also one with the bound as
    its rowtime, goes before rows that have come.
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
    settled: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the user's columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def of_users(self) -> tuple[Column, ...]:
        """Return the columns without hidden ones."""
        return tuple(column for column in self.columns if not column.name.startswith("__"))

    @property
    def traits(self) -> frozenset[Trait]:
        """Return the properties that an operator above may require."""
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
        """Return True if the columns that order the rows are visible; a select list can omit them."""
        return self.shown_order == self.order

    @property
    def shown_order(self) -> tuple[str, ...]:
        """Return the sort expressions over visible columns and hidden ones that are there."""
        columns = {*self.internals, *map(quoted, self.names)}
        return tuple(term for term in self.order if _WAY.sub("", term) in columns)

    @property
    def has_origin(self) -> bool:
        """Return True if merged rows also have the writer and the position from before the merge."""
        return ORIGIN[0] in self.extra

    def without_origin(self) -> Shape:
        """Return the shape without these, if no gate above needs them."""
        return replace(self, extra=tuple(name for name in self.extra if name not in ORIGIN))

    def with_origin(self, kept: Frame) -> Frame:
        """Return kept rows; those of a plan without a gate that needs them get an empty writer and no position."""
        if not self.has_origin:
            return kept
        has_origin = ORIGIN[0] in kept.columns
        origin = (f"coalesce({ORIGIN[0]}, '')", ORIGIN[1]) if has_origin else ("''", "CAST(NULL AS BIGINT)")
        others = [quoted(name) for name in kept.columns if name not in ORIGIN]
        return kept.selectExpr(*others, *(f"{sql} AS {name}" for sql, name in zip(origin, ORIGIN, strict=True)))

    @property
    def internals(self) -> tuple[str, ...]:
        """Return the hidden columns of the rows."""
        return (ROWTIME, WRITER, POSITION, *([ARRIVAL] if self.arrival else []), *self.extra)


def shaped_once(emits: Callable[[Any], Shape]) -> Callable[[Any], Shape]:
    """Return the same method, which each operator runs once and keeps the shape of."""
    key = f"{emits.__module__}.{emits.__qualname__}"  # a class and the one that it extends each have one

    @wraps(emits)
    def known(self: Any) -> Shape:
        kept: dict[str, Shape] = self.__dict__
        if key not in kept:
            kept[key] = emits(self)
        return kept[key]

    return known


@dataclass(frozen=True)
class Delta:
    """The data that passes over an edge in one tick: new rows and the bounds after them.

    ``rows`` is ``None`` if there are certainly none. Every rowtime is in [``lowest``, ``highest``] (µs UTC). ``files``
    are the rows in files that a sink may take as they are, ``final`` other events. ``timeline``: the event time's
    bounds. ``left``: the clocks of writers that left after their rows of this tick. ``partial``: the rows are partial
    results of the operator above (`Operator.combined`).
    """

    rows: Frame | None
    clocks: Clocks
    lowest: int = BEGINNING
    highest: int = END
    files: tuple[Segment, ...] | None = None
    final: tuple[Segment, ...] = ()
    timeline: Timeline | None = None
    left: Clocks = field(default_factory=dict)
    partial: bool = False
