"""Rows of a tick on the driver, if there are not too many: of sources, segments and its own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.core.columns import POSITION, WRITER
from rowtime.frames.kinds import holds, type_text
from rowtime.frames.local import MOST, LocalFrame
from rowtime.frames.queries import TooMany
from rowtime.frames.tables import Column, put_together, with_chunks
from rowtime.operators.contract.state import Segment, rows_in
from rowtime.runtime.sources.contract import Scan, Slice, Source
from rowtime.runtime.sources.scanned import Scanned
from rowtime.runtime.sources.statistics import unskipped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

INSIDE = 2  # times the rows of a tick, the greatest number that operators may make or keep
_TOO_LARGE = "spark.driver.maxResultSize"  # the setting that Spark names if rows are too large for the driver
BYTES = 512 << 20  # of the rows of one source, or of one operator's state, that the driver holds


def of_source(spark: SparkSession, source: Source, part: Slice) -> LocalFrame | None:
    """Return the rows of a range: read by the source itself, if it can do that, or by Spark in one job."""
    few = isinstance(source, Scanned) or (part.rows is not None and part.rows <= MOST)
    own = source.given(part) if few else None
    if own is None:
        return _of_scan(spark, source, part)
    if not all(holds(kind) for _, kind in own[0]):
        return None
    tables = _few(own[1])
    rows = None if tables is None else LocalFrame.of(spark, put_together(own[0], tables), own[0])
    return _in_places(rows) if isinstance(source, Scanned) else rows


def _of_scan(spark: SparkSession, source: Source, part: Slice) -> LocalFrame | None:
    """Return rows that only Spark reads, in the order of their positions; ``None`` if there may be too many."""
    taken = part.backlog if part.backlog is not None and part.backlog.unit == "bytes" else None
    few = part.rows is not None and part.rows <= MOST if taken is None else taken.taken <= BYTES
    if not few:
        return None
    scan = source.scan(spark, part)
    fields = fields_of(scan)
    if not all(holds(kind) for _, kind in fields):
        return None
    try:
        return _in_places(LocalFrame.of(spark, read(scan), fields))
    except Exception as error:
        if _TOO_LARGE in str(error):
            raise TooMany(_TOO_LARGE) from error
        raise


def _in_places(rows: LocalFrame | None) -> LocalFrame | None:
    """Return rows of a source in the order of their positions: Spark's tasks give them in no order."""
    return rows and (rows.in_order([WRITER, POSITION]) or rows)


def read(scan: Scan) -> pa.Table:
    """Return the rows of a scan; Spark decodes those that only it can decode in a job of their own."""
    rows = scan.rows.toArrow()
    if scan.decoding is None or scan.rest is None:
        return rows
    rows, rest = scan.decoding.decoded(rows)
    if rest.num_rows > rows.num_rows:
        return scan.by_spark.rows.toArrow()
    return pa.concat_tables([rows, scan.rest(rest).toArrow().cast(rows.schema)]) if rest.num_rows else rows


def fields_of(scan: Scan) -> Sequence[Column]:
    """Return the names and types of columns."""
    if scan.decoding is not None:
        return scan.decoding.fields
    return [(field.name, type_text(field.dataType)) for field in scan.rows.schema.fields]


def of_segments(
    spark: SparkSession, fields: Sequence[Column], segments: Sequence[Segment], table: Callable[[Segment], pa.Table]
) -> LocalFrame | None:
    """Return the rows of segments; ``table`` returns those of one."""
    if not segments or rows_in(segments) > INSIDE * MOST or not all(holds(kind) for _, kind in fields):
        return None
    tables = _few(map(table, segments))
    return None if tables is None else LocalFrame.of(spark, put_together(fields, tables), fields)


def beside_files(
    spark: SparkSession, schema: StructType, files: Sequence[str], tables: Sequence[pa.Table]
) -> DataFrame:
    """Return the rows of files and tables that are too many for the driver, as Spark's."""
    parts = []
    if files or not tables:
        parts.append(unskipped(spark.read.schema(schema).parquet(*files)))
    if tables:
        table = pa.concat_tables(tables, promote_options="default")
        parts.append(spark.createDataFrame(with_chunks(table), schema=schema))
    return reduce(lambda one, other: one.unionByName(other), parts)


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
