"""The services of one tick, which the runtime gives to the operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rowtime.operators.contract.edge import Delta
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.peek import Peek
from rowtime.operators.contract.state import C, Keeper, Route, Segment, Segments

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.operators.contract.gates import Gate, Verdict
    from rowtime.operators.contract.operator import Operator
    from rowtime.operators.sinks.sink import Sink
    from rowtime.operators.streams.table import Table
    from rowtime.operators.streams.table_versions import TableVersions


class Tick(Protocol):
    """The services of one tick; what an operator may use while it steps."""

    spark: SparkSession
    number: int
    now: int
    """The time of day at which the tick began, µs UTC; nothing but what is kept as input may depend on it."""

    @property
    def trying(self) -> bool:
        """True if what cannot be computed is to be distinguished (`refuse_computed`); in other ticks it ends the tick.

        A tick in which a value has failed is run again so. What an operator sends out must be the same in both.
        """
        ...

    def intake(self, node: Operator) -> Intake:
        """What this tick takes from the source of a stream."""
        ...

    def refused(self, gate: str) -> Sequence[DataFrame]:
        """The rows that the gate of that name refused in this tick."""
        ...

    def count(self, node: Operator, accepted: int, span: tuple[int, int] | None = None) -> None:
        """Put rows into the ledger that a gate accepts without a clock pass; ``span`` of their times (µs), if known."""
        ...

    def deliver(self, node: Sink, delta: Delta) -> None:
        """Stage the rows of a sink; they become visible with the tick's commit."""
        ...

    def scalar(self, query: str) -> int:
        """The one value of a query over constants, computed by Spark without a job."""
        ...

    def control(self, node: Keeper[C]) -> C:
        """The operator's own scalars, as they are now."""
        ...

    def remember(self, node: Keeper[C], **changes: Any) -> C:
        """The operator's scalars with other values in these fields; what was said last in a tick is journaled."""
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

    def limits(self, node: Operator) -> Sequence[Mapping[str, Any]]:
        """What the columns of the table behind a pump take, where that is less than is declared (`column_limits`)."""
        ...

    def adopted_as(self, node: Operator) -> Mapping[str, str] | None:
        """Which of its own are the columns of a sink that takes its files; of events from ``__t`` to ``__e``."""
        ...

    def asked_changes(self, node: Operator) -> bool:
        """Whether somebody above asks for each change of its events, and not only for what a tick leaves of them."""
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

    def refuse_computed(self, node: Operator, rows: DataFrame, broken: str, count: int | None) -> DataFrame:
        """The same for rows that the operator computes, at the gate of its query; of a tick that is ``trying``."""
        ...

    def lookup(self, node: Table) -> DataFrame:
        """The rows of a static table as they are now."""
        ...

    def reread(self, node: TableVersions, *, first: bool) -> DataFrame | None:
        """The rows of a table as they are now.

        In a replay: the versions that the checkpoint has, with `VALID_FROM`; at the ``first`` reading, then ``None``.
        """
        ...

    def describe(self, node: Operator, what: str) -> None:
        """Say what the next Spark jobs do, for Spark's own UI."""
        ...
