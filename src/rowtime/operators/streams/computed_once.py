"""What is computed once, from the rows of static tables at the first start (semantics 5).

The rows are kept like those of a table, so every later tick and start reads the same ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import pyarrow as pa

from rowtime.core.columns import ROW_NUMBER
from rowtime.core.errors import refuse
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import type_text
from rowtime.operators.contract import DataFrame, Delta, Distribution, Link, Operator, Tick, quoted
from rowtime.operators.contract.state import Kept, Segment, StateNote
from rowtime.operators.streams.table import PINNED, Pinned, Table

_OF_A_VALUE = "SQLSTATE: 22"  # Spark's error for values with which an expression cannot be computed


class ComputedOnce(Operator):
    """An operator over static tables whose rows never change."""

    control: ClassVar = Pinned
    in_traces: ClassVar[bool] = False
    promise: ClassVar[str] = "the end"
    reason: ClassVar[str] = "its rows are computed at the first start, and none come later"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the rows, once."""
        return (self._state.noted("its rows, computed at the first start", "the checkpoint is given up", "one"),)

    @abstractmethod
    def computed(self, tables: Sequence[DataFrame]) -> DataFrame:
        """Return the query over the rows of the inputs."""

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return the columns over tables without rows, by Spark, whose query it is."""
        tables = [rows(table) for table in self.inputs]
        schema = self.computed([table.nothing for table in tables]).schema
        fields = [(field.name, type_text(field.dataType)) for field in schema.fields]
        return Frame(tables[0].sparkSession, fields, pa.table({}))

    def link(self, n: int) -> Link:  # noqa: ARG002 - any
        """Return all rows of the tables: no trace lists them."""
        return Link()

    def distribution(self) -> Distribution:
        """Return that each task has its rows, as those of a table."""
        return Distribution.WHOLE

    def is_due(self, tick: Tick) -> bool:
        """Return True if the tick computes the rows."""
        control = tick.control(self)
        assert isinstance(control, Pinned)
        return not control.pinned

    def on_versions(self, below: Sequence[Operator]) -> Operator:  # noqa: ARG002 - the tables
        """Return the same operator: it does not change."""
        return self

    @property
    def _state(self) -> Kept:
        return Kept(ROW_NUMBER, (*self.emits().names, ROW_NUMBER), PINNED, waits=False)


def loaded(tick: Tick, operators: Iterable[Operator]) -> bool:
    """Copy the tables that a tick reads, and compute what is computed once from them; return whether there are any.

    This is Spark's, before the other steps of the tick, which read the copies (semantics 5).
    """
    static = [node for node in operators if isinstance(node, Table | ComputedOnce)]
    if not any(node.is_due(tick) for node in static):
        return False
    deltas: dict[str, Delta] = {}
    for node in static:
        if isinstance(node, Table):
            node.load(tick)
        if all(below.name in deltas for below in node.inputs):
            deltas[node.name] = node.step(tick, [deltas[below.name] for below in node.inputs])
    return True


def rows_given(tick: Tick, node: Operator) -> DataFrame:
    """Return the rows of a table in their order, in one partition, so that results that depend on an order repeat."""
    segments = tick.segments(node, PINNED)
    if segments.rows:
        rows = tick.in_spark(node, PINNED, segments.overlapping(BEGINNING, END))
        return rows.coalesce(1).sortWithinPartitions(ROW_NUMBER)
    kinds = zip(node.emits().names, tick.types(node), strict=True)
    nothing = [f"CAST(NULL AS {kind or 'STRING'}) AS {quoted(name)}" for name, kind in kinds]
    return tick.spark.range(0).selectExpr(*nothing)


def written(tick: Tick, node: Operator, state: Kept, rows: DataFrame) -> Sequence[Segment]:
    """Write the rows to a file; raises ``Refused`` (R168) if one of them cannot be computed."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - `check` works without Spark

    try:
        return state.write(tick, node, rows)
    except PySparkException as wrong:
        if _OF_A_VALUE not in str(wrong):
            raise
        tables = ", ".join(table.name for table in node.inputs)
        what = f"a sub-query of {tables} cannot be computed: {str(wrong).partition(' SQLSTATE')[0]}"
        raise refuse("R168", what, "Exclude such rows: … AND v <> 0, or use TRY_CAST(v AS INT).") from wrong
