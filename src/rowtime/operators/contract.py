"""What an operator is: a frozen plan node that says what it needs, keeps, emits and promises.

An operator file reads in this order: ``requires``, ``keeps``, ``emits``, ``promises``, ``step``. The first four are
pure Python on facts and scalars: the planner, EXPLAIN and the running tick all use the same ones. ``step`` turns the
new rows of a tick (DataFrames) into results; it is the only place that touches Spark.

Every edge carries, beside the user's columns, the rowtime and what orders equal rowtimes: writer and position. The
order of a stream is (rowtime, writer, position) (SPEC 2.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from rowtime.core.clock import Clocks
from rowtime.core.time import BEGINNING, END
from rowtime.expr.facts import UNKNOWN, Fact, Kind, kind_of
from rowtime.expr.order import Order
from rowtime.operators.intake import Intake
from rowtime.operators.peek import Peek

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.kernels.timeline import Timeline
    from rowtime.operators.gates import Gate, Verdict

T = "__t"  # TIMESTAMP, never null: the rowtime
W = "__w"  # STRING: the writer; its order is the order between writers
P = "__p"  # BIGINT: the position in the writer
LARGE = 200_000  # rows of state: of more, files skip what is not wanted
A = "__a"  # TIMESTAMP: the recorded arrival time, on edges that still have it

Control = MutableMapping[str, Any]


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
    """Where an edge has its event time: the operator that knows its bound, and the column."""

    declared: str
    column: str


@dataclass(frozen=True)
class Shape:
    """What an edge carries.

    ``order``: the sort expressions that make the stream order, the rowtime first unless the rows are released anyway.
    ``extra``: hidden columns that ``order`` needs. ``placed``: writer and position order the rows of a writer.
    ``single``: all rows count as one writer's. ``released``: no row runs ahead of the edge's bound. ``arrival``: rows
    still have their recorded arrival time. ``batched``: the rows of one tick are a set without an order of arrival.
    ``unmerged``: several streams side by side, which count as one writer's for whoever looks at the order of arrival.
    ``event``: the event time that was declared below, as long as its column and the rows' places are passed on.
    ``retracts``: which events (open: without an end) may be taken back. ``lasts``: how long each of them lasts at least
    (µs), where all that end up to the bound plus that have gone out, and none is taken back.
    """

    columns: tuple[Column, ...]
    order: tuple[str, ...] = (T, W, P)
    extra: tuple[str, ...] = ()
    placed: bool = True
    single: bool = False
    released: bool = False
    arrival: bool = False
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
    def by_place(self) -> bool:
        """Equal rowtimes go by writer and position, and by nothing before them."""
        return self.order in ((T, W, P), (P,))

    @property
    def internals(self) -> tuple[str, ...]:
        """The columns of ours that travel with the rows."""
        return (T, W, P, *([A] if self.arrival else []), *self.extra)


@dataclass(frozen=True)
class Kept:
    """State that an operator keeps: what, until when, and what bounds it.

    ``by``: time, values (of an order), rows, keys, writers, edges (of events), one, or nothing (UNBOUNDED STATE).
    """

    what: str
    until: str
    by: str = "time"


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


@dataclass(frozen=True)
class Segment:
    """One immutable file of state: its rows have ``lowest`` <= time <= ``highest`` (µs UTC).

    ``sum``: the checksum of its bytes; ``None`` where an older version wrote it.
    """

    path: str
    rows: int
    lowest: int
    highest: int
    level: int = 0
    sum: int | None = None


class Named(Protocol):
    """What has scalars of its own in the journal."""

    @property
    def name(self) -> str:
        """Unique in its plan and stable from run to run."""
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


class Tick(Protocol):
    """The services of one tick; what an operator may use while it steps."""

    spark: SparkSession
    number: int

    def intake(self, node: Operator) -> Intake:
        """What this tick takes from the source of a stream."""
        ...

    def refused(self, gate: str) -> Sequence[DataFrame]:
        """The rows that the gate of that name refused in this tick."""
        ...

    def count(self, node: Operator, accepted: int) -> None:
        """Put rows into the ledger that a gate accepts without a clock pass."""
        ...

    def deliver(self, node: Operator, delta: Delta) -> None:
        """Stage the rows of a sink; they become visible with the tick's commit."""
        ...

    def scalar(self, query: str) -> int:
        """The one value of a query over constants, computed by Spark without a job."""
        ...

    def control(self, node: Named) -> Control:
        """The operator's own scalars; what it holds after the tick is journaled."""
        ...

    def segments(self, node: Operator, what: str = "state") -> Segments:
        """The operator's kept rows."""
        ...

    def write(
        self, node: Operator, rows: DataFrame | pa.Table, routes: Mapping[str, Route], count: int | None
    ) -> Mapping[str, Sequence[Segment]]:
        """Write rows to new files, one route each, in at most one Spark job; nothing is visible yet."""
        ...

    def keep(self, node: Operator, what: str, rows: pa.Table, time: str) -> Sequence[Segment]:
        """Write rows that the driver has to a new file; ``time``: the column (µs) that segments remember."""
        ...

    def frame(self, node: Operator, rows: pa.Table) -> DataFrame:
        """Rows that the driver has, for Spark; many of them by way of a file, which it reads in parallel."""
        ...

    def judge(
        self, node: Operator, rows: DataFrame, gate: Gate, count: int | None, peeked: Iterable[pa.Table] | None = None
    ) -> Verdict:
        """Decide at a gate which rows are refused (the clock pass); ``peeked``: the times, if known."""
        ...

    def types(self, node: Operator) -> Sequence[str]:
        """The types of an operator's columns, computed ones too; without a job. Empty: only its rows will tell."""
        ...

    def taker(self, node: Operator) -> Mapping[str, str] | None:
        """Which of its own are the columns of a sink that takes its files; of events from ``__t`` to ``__e``."""
        ...

    def account(  # noqa: PLR0913 - what a gate knows of its rows
        self,
        node: Operator,
        rows: DataFrame,
        verdict: Verdict,
        time: str,
        clock: str | None = None,
        peek: Peek | None = None,
    ) -> DataFrame:
        """The accepted rows; refused ones go to the ledger, with rowtime ``clock`` or the mark; ``peek``: of all."""
        ...

    def refuse(self, node: Operator, rows: DataFrame, broken: str, count: int | None) -> DataFrame:
        """The rows in which the column ``broken`` is NULL, without it; the others go to the ledger as MALFORMED."""
        ...

    def lookup(self, node: Operator) -> DataFrame:
        """The rows of a static table as they are now."""
        ...

    def describe(self, node: Operator, what: str) -> None:
        """Say what the next Spark jobs do, for Spark's own UI."""
        ...


@dataclass(frozen=True)
class Route:
    """Where some rows of a write go: those whose ``__route`` is ``key`` or one of ``more``, which go elsewhere too.

    ``columns``: those of the file and of the DataFrame; ``time``: a BIGINT column (µs) whose range a segment remembers.
    """

    key: int
    columns: Mapping[str, str]
    time: str
    more: tuple[int, ...] = ()


class Operator(Protocol):
    """A plan node. ``name`` is unique in its plan and stable from run to run."""

    kind: ClassVar[str]
    promise: ClassVar[str]
    """Which bound goes downstream, in words; empty where it is the identity or the least."""
    reason: ClassVar[str]
    """Why the promise holds, in one sentence; empty where it is the identity or the least."""

    @property
    def name(self) -> str:
        """The operator's name."""
        ...

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The operators that this one reads."""
        ...

    def requires(self) -> str:
        """What the inputs must give, in words: order, or nothing."""
        ...

    def keeps(self) -> tuple[Kept, ...]:
        """What is kept from tick to tick, and what bounds it."""
        ...

    def emits(self) -> Shape:
        """What the output edge carries."""
        ...

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:
        """The output's bounds, given those of the inputs and the operator's scalars."""
        ...

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The results of one tick."""
        ...


def walk(root: Operator) -> Iterator[Operator]:
    """Every operator below and including ``root``, inputs first, each once."""
    seen: set[str] = set()

    def visit(node: Operator) -> Iterator[Operator]:
        if node.name in seen:
            return
        seen.add(node.name)
        for child in node.inputs:
            yield from visit(child)
        yield node

    return visit(root)


def quoted(name: str) -> str:
    """A column name in Spark SQL text."""
    return "`" + name.replace("`", "``") + "`"


def micros(at: int) -> str:
    """An instant as Spark SQL text of type TIMESTAMP."""
    return f"timestamp_micros({at}L)"


def passed(value: int, column: str) -> str:
    """A BIGINT that differs from tick to tick, as Spark SQL whose compiled code does not.

    Spark compiles numbers into its code, and keeps an array beside it: a comparison with a new number would start cold
    in every tick. The index is 0 whatever stands in ``column`` (BIGINT, never null); so nothing is folded.
    """
    return f"get(array({value}L), CAST(pmod({column}, 1L) AS INT))"
