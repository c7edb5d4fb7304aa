"""Rows that a tick has on the driver, if they are not too many: those of sources, of segments, of its own tables."""

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

INSIDE = 2  # times as many rows may operators make of those of a tick, or keep
BYTES = 512 << 20  # of the rows of one source, or of one operator's state, that the driver takes


def of_source(spark: SparkSession, source: Source, part: Slice) -> LocalFrame | None:
    """The rows of a range, where the source reads them by itself."""
    given = getattr(source, "given", None)
    found = None if given is None or part.rows is None or part.rows > MOST else given(part)
    if found is None or not all(holds(kind) for _, kind in found[0]):
        return None
    tables = _few(found[1])
    return None if tables is None else LocalFrame.of(spark, put_together(found[0], tables), found[0])


def of_segments(
    spark: SparkSession, fields: Sequence[Column], segments: Sequence[Segment], table: Callable[[Segment], pa.Table]
) -> LocalFrame | None:
    """The rows of segments; ``table`` gives those of one."""
    if not segments or rows_in(segments) > INSIDE * MOST or not all(holds(kind) for _, kind in fields):
        return None
    tables = _few(map(table, segments))
    return None if tables is None else LocalFrame.of(spark, put_together(fields, tables), fields)


def of_table(spark: SparkSession, schema: StructType, rows: pa.Table) -> LocalFrame | None:
    """The rows of a table, which Spark would have with this schema."""
    fields = [(field.name, type_text(field.dataType)) for field in schema.fields]
    return LocalFrame.of(spark, rows, fields) if rows.num_rows <= INSIDE * MOST else None


def _few(tables: Iterable[pa.Table]) -> list[pa.Table] | None:
    """The tables, unless they are too large together."""
    found, used = [], 0
    for table in tables:
        found.append(table)
        used += table.nbytes
        if used > BYTES:
            return None
    return found
