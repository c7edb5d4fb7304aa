"""Rows of a tick on the driver, if there are not too many: of sources, segments and its own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.frames.kinds import holds
from rowtime.frames.local import MOST, LocalFrame
from rowtime.frames.tables import Column, put_together
from rowtime.operators.contract.state import Segment, rows_in
from rowtime.operators.rows.values import type_text
from rowtime.runtime.sources.contract import Slice, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

INSIDE = 2  # times the rows of a tick, the greatest number that operators may make or keep
BYTES = 512 << 20  # of the rows of one source, or of one operator's state, that the driver holds


def of_source(spark: SparkSession, source: Source, part: Slice) -> LocalFrame | None:
    """Return the rows of a range, if the source can read them by itself."""
    given = getattr(source, "given", None)
    read = None if given is None or part.rows is None or part.rows > MOST else given(part)
    if read is None or not all(holds(kind) for _, kind in read[0]):
        return None
    tables = _few(read[1])
    return None if tables is None else LocalFrame.of(spark, put_together(read[0], tables), read[0])


def of_segments(
    spark: SparkSession, fields: Sequence[Column], segments: Sequence[Segment], table: Callable[[Segment], pa.Table]
) -> LocalFrame | None:
    """Return the rows of segments; ``table`` returns those of one."""
    if not segments or rows_in(segments) > INSIDE * MOST or not all(holds(kind) for _, kind in fields):
        return None
    tables = _few(map(table, segments))
    return None if tables is None else LocalFrame.of(spark, put_together(fields, tables), fields)


def of_table(spark: SparkSession, schema: StructType, rows: pa.Table) -> LocalFrame | None:
    """Return the rows of a table, with the schema that Spark would give it."""
    fields = [(field.name, type_text(field.dataType)) for field in schema.fields]
    return LocalFrame.of(spark, rows, fields) if rows.num_rows <= INSIDE * MOST else None


def _few(tables: Iterable[pa.Table]) -> list[pa.Table] | None:
    """Return the tables, unless they are too large together."""
    kept, used = [], 0
    for table in tables:
        kept.append(table)
        used += table.nbytes
        if used > BYTES:
            return None
    return kept
