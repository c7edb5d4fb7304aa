"""What a source is: positions of writers, and a DataFrame between two positions.

A source answers two questions (DESIGN 3.1): which positions exist now, per writer, and which rows are between two
positions. The driver asks the first at the start of a tick, journals the answer, and asks the second as often as the
tick needs. Everything that affects a result comes from the journaled range, so a range read twice gives the same rows,
in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

Item = TypeVar("Item")

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# Columns that a source adds to the declared ones. Types in Spark's words.

Offsets = Mapping[str, int]  # writer -> the next position to read


@dataclass(frozen=True)
class BoundItem:
    """A bound that the driver knows without reading rows; ``at`` in µs UTC, END for the end.

    ``arrival``: when it arrived, if recorded.
    """

    writer: str
    position: int
    at: int
    arrival: int | None = None


@dataclass(frozen=True)
class Limits:
    """How much one tick may take from one source; ``None`` is no limit."""

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Backlog:
    """How much of the known input a range takes.

    ``unit``: ``rows``, ``bytes``, or ``versions`` of a table. ``taken``: the amount in the range; ``left``: the amount
    after it.
    """

    unit: str
    taken: int
    left: int


@dataclass(frozen=True)
class Slice:
    """What one tick takes from a source: positions [start, end) of each writer.

    ``bounds`` are the bound items in the range; ``arrived`` the arrival clock of each writer after this reading (its
    last arrival, or the time of the reading if it was read to its present end); ``left`` the writers that left in this
    range; ``rows`` the greatest possible number of rows, if known; ``detail`` anything else that the source needs to
    read the very same range again. All of it is plain JSON.
    """

    start: Offsets
    end: Offsets
    bounds: tuple[BoundItem, ...] = ()
    bound: int | None = None
    """A bound for each present writer, after the items of the range (µs UTC)."""
    arrived: Mapping[str, int] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    rows: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    backlog: Backlog | None = None
    """The unread rest; ``None`` if no end is known, and for a range that is read again."""
    counted: bool = False
    """True for whole files of which the exact number of ``rows`` is known."""

    @property
    def empty(self) -> bool:
        """Return True if the range contains no item."""
        return dict(self.start) == dict(self.end)


class Decoding(Protocol):
    """What is left to do with rows that Spark has read; any process can do it. It is pickled."""

    @property
    def fields(self) -> Sequence[tuple[str, str]]:
        """The columns that the source gives, with their types."""
        ...

    def decoded(self, read: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the source's rows, and those of ``read`` that only Spark can decode."""
        ...


@dataclass(frozen=True)
class Scan:
    """The rows of a range for a job that reads all of their columns, once.

    ``decoding``: what makes the rows of the source of them. Spark decodes what it cannot: some rows by ``rest``, or all
    by ``whole``.
    """

    rows: DataFrame
    decoding: Decoding | None = None
    rest: Callable[[pa.Table], DataFrame] | None = None
    whole: Callable[[], DataFrame] | None = None

    @property
    def by_spark(self) -> Scan:
        """The same, decoded by Spark."""
        return self if self.whole is None else Scan(self.whole())


Given = tuple[Sequence[tuple[str, str]], Iterable["pa.Table"]]
"""Columns with their types, and tables with them."""


@dataclass(frozen=True)
class Division:
    """A range in parts, which any process can read: the rows of a writer in one part precede those in the next one.

    ``fields``: the columns of `Source.given`, with their types.
    """

    fields: Sequence[tuple[str, str]]
    parts: Sequence[tuple[Source, Slice]]


class Source(Protocol):
    """One source of one stream, as the driver sees it; the methods with a body are abilities that most do not have."""

    in_band: bool
    """True if bounds may be among the rows (column ``__b``), so that only a job sees them."""
    gives_rowtime: bool
    """True if writers may give a rowtime of their own (column ``__t`` may be non-null)."""
    steady: bool
    """True if the arrival times of a writer never go back."""

    @property
    def decodes(self) -> bool:
        """True if records may fail to decode (column ``__m``)."""
        ...

    @property
    def keeps_writers_together(self) -> bool:
        """True if each partition of Spark that reads a range has all rows of its writers."""
        return False

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:
        """Return the next range from ``start`` on, and the source's own notes (``state``) after it.

        Known writers are in ``end`` even without new items. Raises ``Failure`` (R501) if the source cannot be reached.
        """
        ...

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return the items of a range: the declared columns, then the columns named above."""
        ...

    def finished(self, at: Offsets) -> bool:
        """Return True if no item can ever follow these positions (a finite input)."""
        ...

    def scan(self, spark: SparkSession, part: Slice) -> Scan:
        """Return the rows of a range for a job that reads all of their columns, once."""
        return Scan(self.read(spark, part))

    def given(self, part: Slice, columns: Collection[str] | None = None) -> Given | None:  # noqa: ARG002 - of those that can
        """Return the rows of a range without Spark, if any process can read them; of ``columns`` only, if it can."""
        return None

    def divided(self, part: Slice, many: int) -> Division | None:  # noqa: ARG002 - of those that can
        """Return a range in at most ``many`` parts of about equal size, if any process can read it."""
        return None

    def count(self, part: Slice) -> int | None:
        """Return the greatest possible number of rows of a range, if known; the exact one if they have been decoded."""
        return part.rows

    def blame(self, error: BaseException) -> bool:  # noqa: ARG002 - of those that can
        """Set aside what has caused a tick's failure; return True if the tick can be tried again at once."""
        return False

    def release(self) -> None:
        """Remove what was made for one tick."""
        return

    def close(self) -> None:
        """Release what the source holds."""
        return


class Repeatable(Source, Protocol):
    """A source that can read again what the journal says was read."""

    def between(self, start: Offsets, end: Offsets, state: Mapping[str, Any]) -> Slice:
        """Return the range between two journaled positions; ``state``: the notes after it.

        The caller takes arrival clocks from the journal. Raises a ``RowtimeError`` where the range cannot be read
        again.
        """
        ...


def in_shares(items: Sequence[Item], sizes: Sequence[float], many: int) -> list[Sequence[Item]]:
    """Return consecutive items in so many shares of about equal size; some may be empty."""
    ends, reached, whole = [0], 0.0, sum(sizes)
    for number, size in enumerate(sizes):
        while len(ends) < many and reached + size / 2 >= whole * len(ends) / many:
            ends.append(number)
        reached += size
    ends += [len(items)] * (many + 1 - len(ends))
    return [items[start:end] for start, end in pairwise(ends)]
