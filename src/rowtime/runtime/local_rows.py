"""Rows that a tick has on the driver, if they are not too many: those of sources, of segments, of its own tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.frames.kinds import holds
from rowtime.frames.local import MOST, LocalFrame, put_together
from rowtime.operators.contract.state import Segment, rows_in
from rowtime.operators.rows.values import type_text
from rowtime.runtime.sources.contract import Slice, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def of_source(spark: SparkSession, source: Source, part: Slice) -> LocalFrame | None:
    """The rows of a range, where the source reads them by itself."""
    given = getattr(source, "given", None)
    found = None if given is None or part.rows is None or part.rows > MOST else given(part)
    if found is None or not all(holds(kind) for _, kind in found[0]):
        return None
    return LocalFrame.of(spark, put_together(found[0], [*found[1]]), found[0])


def of_segments(
    spark: SparkSession, schema: StructType, segments: Sequence[Segment], table: Callable[[Segment], pa.Table]
) -> LocalFrame | None:
    """The rows of segments; ``table`` gives those of one."""
    fields = [(field.name, type_text(field.dataType)) for field in schema.fields]
    if not segments or rows_in(segments) > MOST or not all(holds(kind) for _, kind in fields):
        return None
    return LocalFrame.of(spark, put_together(fields, [*map(table, segments)]), fields)


def of_table(spark: SparkSession, schema: StructType, rows: pa.Table) -> LocalFrame | None:
    """The rows of a table, which Spark would have with this schema."""
    fields = [(field.name, type_text(field.dataType)) for field in schema.fields]
    return LocalFrame.of(spark, rows, fields) if rows.num_rows <= MOST else None
