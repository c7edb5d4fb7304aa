"""The rows of a frame as a DataFrame of Spark, which computes what a test compares with the frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rowtime.frames.kinds import type_text
from rowtime.frames.tables import handed_out, with_chunks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rowtime.frames.frame import Frame


def in_spark(frame: Frame) -> DataFrame:
    """Return the same rows in Spark."""
    return frame.sparkSession.createDataFrame(with_chunks(frame.toArrow()), schema=frame.schema)


class SparkRows:
    """A DataFrame with the methods of a frame that are none of Spark's."""

    def __init__(self, rows: DataFrame) -> None:
        self.rows = rows

    def __getattr__(self, name: str) -> Any:
        of = getattr(self.rows, name)
        return (lambda *given, **named: _shown(of(*map(_given, given), **named))) if callable(of) else of

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """As Spark's, also for a VARIANT that is NULL."""
        return handed_out(self.rows)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The names and types of the columns."""
        return [(field.name, type_text(field.dataType)) for field in self.rows.schema]

    def joined(self, other: SparkRows, test: str, how: str) -> SparkRows:
        """As a frame's."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark

        return SparkRows(self.rows.join(other.rows, F.expr(test), how))

    def grouped(self, keys: Sequence[str], aggregates: Sequence[str]) -> SparkRows:
        """As a frame's."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark

        groups = self.rows.groupBy(*(f"`{key}`" for key in keys))
        rows = groups.agg(*map(F.expr, aggregates)) if aggregates else self.rows.select(*keys).distinct()
        return SparkRows(rows)

    def in_order(self, terms: Sequence[str]) -> SparkRows:
        """As a frame's."""
        self.rows.createOrReplaceTempView("rows_in_order")
        return SparkRows(self.rows.sparkSession.sql(f"SELECT * FROM rows_in_order ORDER BY {', '.join(terms)}"))


def _given(value: Any) -> Any:
    return value.rows if isinstance(value, SparkRows) else value


def _shown(value: Any) -> Any:
    from pyspark.sql import DataFrame

    return SparkRows(value) if isinstance(value, DataFrame) else value
