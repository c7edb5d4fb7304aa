"""The services of one tick, which the runtime gives to the operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rowtime.operators.contract.edge import Delta
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.state import C, Keeper, Route, Segment, Segments

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.frames.frame import Frame
    from rowtime.operators.contract.gates import Gate, Verdict
    from rowtime.operators.contract.operator import Operator
    from rowtime.operators.sinks.sink import Sink
    from rowtime.operators.streams.table import Table
    from rowtime.operators.streams.table_versions import TableVersions


class Tick(Protocol):
    """The services of one tick, for operators in their step."""

    spark: SparkSession
    number: int
    stops: bool
    """True in a tick that is ``trying`` if the first value that cannot be computed ends the run."""
    now: int
    """The time of day at which the tick began, µs UTC; only values that are kept as input may depend on it."""

    of_keys: bool
    """True in a task that has the rows of some keys (`ByKeys`)."""

    @property
    def trying(self) -> bool:
        """True if values that cannot be computed are to be separated (`refuse_computed`); else they end the tick.

        A tick in which a value failed is run again like this. The output of an operator must be the same in both.
        """
        ...

    def intake(self, node: Operator) -> Intake:
        """Return what this tick takes from the source of a stream."""
        ...

    def needs_all_rows(self, why: str) -> None:
        """Note that a step depends on rows before those that it is given, for another reason than the marks of gates.

        An operator whose rows may be in any task says so; the tick then is computed by one task.
        """
        ...

    def leave(self, node: Operator, rows: Frame) -> None:
        """Leave rows to the task that has all keys (`Operator.gathered`)."""
        ...

    def refused(self, gate: str) -> Sequence[Frame]:
        """Return the rows that the gate of that name refused in this tick."""
        ...

    def count(self, node: Operator, accepted: int, span: tuple[int, int] | None = None) -> None:
        """Count rows in the ledger that a gate accepts without a clock pass; ``span`` of their times (µs), if known."""
        ...

    def deliver(self, node: Sink, delta: Delta) -> None:
        """Stage the rows of a sink; the tick's commit makes them visible."""
        ...

    def scalar(self, query: str) -> int:
        """Return the value of a query over constants, without a Spark job."""
        ...

    def control(self, node: Keeper[C]) -> C:
        """Return the operator's present scalars."""
        ...

    def remember(self, node: Keeper[C], **changes: Any) -> C:
        """Change some of the operator's scalars; the values at the end of a tick are journaled."""
        ...

    def segments(self, node: Operator, what: str = "state") -> Segments:
        """Return the operator's kept rows."""
        ...

    def write(
        self, node: Operator, rows: Frame | pa.Table | DataFrame, routes: Mapping[str, Route]
    ) -> Mapping[str, Sequence[Segment]]:
        """Write rows to new files, one per route, one Spark job for those of a static table; nothing is visible yet."""
        ...

    def keep(self, node: Operator, what: str, rows: pa.Table, time: str) -> Sequence[Segment]:
        """Write rows to a new file; ``time``: the column (µs) whose range segments store."""
        ...

    def frame(self, node: Keeper[Any], rows: pa.Table) -> Frame:
        """Return a table as a frame."""
        ...

    def judge(self, node: Operator, rows: Frame, gate: Gate, times: pa.Table | None = None) -> Verdict:
        """Decide at a gate which rows are refused (the clock pass).

        ``times``: what is judged in the place of their times: ``__w``, ``__p``, ``t`` (BIGINT).
        """
        ...

    def types(self, node: Operator) -> Sequence[str]:
        """Return the types of an operator's columns; empty: only its rows will tell."""
        ...

    def limits(self, node: Operator) -> Sequence[Mapping[str, Any]]:
        """Return the limits of the table behind a pump that are narrower than the declaration (`column_limits`)."""
        ...

    def adopted_as(self, node: Operator) -> Mapping[str, str] | None:
        """Return the names of its columns in the files of a sink that takes them over; of events ``__t`` to ``__e``."""
        ...

    def shows_each_change(self, node: Operator) -> bool:
        """Return True if an operator above needs each change of its events, and not only the state after a tick."""
        ...

    def account(self, node: Operator, rows: Frame, verdict: Verdict, time: str, clock: str | None = None) -> Frame:
        """Return the accepted rows; count refused ones, with rowtime ``clock`` or the mark."""
        ...

    def refuse(self, node: Operator, rows: Frame, broken: str) -> Frame:
        """Return the rows in which the column ``broken`` is NULL, without it; refuse the others as MALFORMED."""
        ...

    def refuse_computed(self, node: Operator, rows: Frame, broken: str) -> Frame:
        """Refuse rows that the operator computes, at the gate of its query; in a tick that is ``trying``."""
        ...

    def lookup(self, node: Table) -> Frame | DataFrame:
        """Return the rows of a static table as they are now, with their numbers (`ROW_NUMBER`)."""
        ...

    def in_spark(self, node: Operator, what: str, segments: Sequence[Segment]) -> DataFrame:
        """Return kept rows of a static table as Spark's, for what is computed of them once."""
        ...

    def reread(self, node: TableVersions, *, first: bool) -> DataFrame | None:
        """Return the rows of a table as they are now.

        In a replay: the versions in the checkpoint, with `VALID_FROM`; at the ``first`` reading, then ``None``.
        """
        ...

    def describe(self, node: Operator, what: str) -> None:
        """Note what is done now, for those who watch the run."""
        ...
