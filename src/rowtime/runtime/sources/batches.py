"""Any streaming DataFrame as a source: Spark's ``foreachBatch`` hands over one batch a tick.

The batch's id is the position. Where columns for writer and position are named, they give
the order of the rows. Where they are not, a batch is an unordered set: its rows are judged
against the clock before the batch, so nobody is refused for an order that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from rowtime.runtime.sources.contract import ARRIVAL, POSITION, ROWTIME, WRITER, Limits, Offsets, Slice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THE_WRITER = "batches"


class BatchSource:
    """The batches of one streaming DataFrame; ``names`` are its rowtime, writer and position columns."""

    in_band = False
    decodes = False
    steady = True

    def __init__(self, frame: DataFrame, names: Mapping[str, str | None]) -> None:
        self.frame = frame
        self._columns = [field.name for field in frame.schema.fields]
        self._rowtime, self._writer, self._position = names["rowtime"], names["writer"], names["position"]
        self.gives_rowtime = self._rowtime is not None
        self.batched = self._position is None
        self._pending: tuple[int, DataFrame] | None = None
        self._count = 0

    def hand(self, number: int, rows: DataFrame, count: int) -> None:
        """Make a batch the next range; it stays until a tick has taken it."""
        self._pending, self._count = (number, rows), count

    def drop(self) -> None:
        """Forget the batch: its tick is committed."""
        self._pending = None

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:  # noqa: ARG002
        """The pending batch, unless an earlier start has committed it already."""
        at = start.get(THE_WRITER, 0)
        if self._pending is None or self._pending[0] < at:
            return Slice({THE_WRITER: at}, {THE_WRITER: at}, rows=0), state
        arrived = state.get("arrived", {})
        return Slice({THE_WRITER: at}, {THE_WRITER: self._pending[0] + 1}, arrived=arrived, rows=self._count), state

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """The rows of the pending batch, in rowtime's own session."""
        assert self._pending is not None
        number, rows = self._pending
        home = _rehomed(rows, spark)
        given = f"CAST(`{self._rowtime}` AS TIMESTAMP)" if self._rowtime else "CAST(NULL AS TIMESTAMP)"
        writer = f"CAST(`{self._writer}` AS STRING)" if self._writer else f"'{THE_WRITER}'"
        names = [f"`{name}`" for name in self._columns]
        position = f"CAST(`{self._position}` AS BIGINT)"
        if self._position is None:
            # The hash makes the numbers those of the rows, not of how Spark spread them.
            order = f"{given}, xxhash64({', '.join(names)})"
            position = f"{number << 40}L + row_number() OVER (ORDER BY {order})"
        arrival = "current_timestamp()" if not part.arrived else f"timestamp_micros({max(part.arrived.values())}L)"
        return home.selectExpr(
            *names,
            f"{given} AS {ROWTIME}",
            f"{writer} AS {WRITER}",
            f"{position} AS {POSITION}",
            f"{arrival} AS {ARRIVAL}",
        )

    def finished(self, at: Offsets) -> bool:  # noqa: ARG002
        """False: only Spark knows whether a streaming DataFrame has ended."""
        return False


def _rehomed(rows: DataFrame, spark: SparkSession) -> DataFrame:
    """The same rows in another session, so that expressions on top are resolved in UTC."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no public way to do this
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001
