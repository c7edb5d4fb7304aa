"""Rows of a tick as frames: of sources and tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.core.columns import POSITION, WRITER
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import holds, type_text
from rowtime.frames.tables import Column, handed_out, put_together, with_chunks
from rowtime.runtime.sources.contract import Scan, Slice, Source
from rowtime.runtime.sources.scanned import Scanned
from rowtime.runtime.sources.statistics import unskipped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_TOO_LARGE = "spark.driver.maxResultSize"  # the setting that Spark names if rows are too large for the driver


def of_source(spark: SparkSession, source: Source, part: Slice, columns: Collection[str] | None = None) -> Frame:
    """Return the rows of a range: read by the source itself, if it can do that, or by Spark in one job.

    ``columns``: those that are read, if the source can leave out the others.
    """
    own = source.given(part, columns)
    if own is None or not all(holds(kind) for _, kind in own[0]):
        return _of_scan(spark, source, part)
    rows = framed(spark, own[0], put_together(own[0], [*own[1]]))
    return _in_places(rows) if isinstance(source, Scanned) else rows


def framed(spark: SparkSession, fields: Sequence[Column], table: pa.Table) -> Frame:
    """Return rows as a frame. Raises ``Refused`` (R189) for a type whose values Spark does not hand out."""
    for name, kind in fields:
        if not holds(kind):
            what = f"{'a value on the way' if name.startswith('__') else name} is of type {kind.upper()}"
            hint = "Add intervals of years and months to a date, or count the months as a number."
            raise refuse("R189", f"{what}, which cannot be stored", hint)
    return Frame.of(spark, table, fields)


def _of_scan(spark: SparkSession, source: Source, part: Slice) -> Frame:
    """Return rows that only Spark reads, in the order of their positions."""
    scan = source.scan(spark, part)
    fields = fields_of(scan)
    framed(spark, fields, pa.table({name: pa.nulls(0) for name, _ in fields}))
    try:
        return _in_places(framed(spark, fields, read(scan)))
    except Exception as error:
        if _TOO_LARGE in str(error):
            what = "a tick has more rows than Spark hands out to this process"
            hint = "Compute ticks in Spark's tasks: --small-ticks spark. Or take fewer rows a tick."
            raise Failure(Problem("R515", what, hint=hint)) from error
        raise


def _in_places(rows: Frame) -> Frame:
    """Return rows of a source in the order of their positions: Spark's tasks give them in no order."""
    return rows.in_order([WRITER, POSITION])


def read(scan: Scan) -> pa.Table:
    """Return the rows of a scan; Spark decodes those that only it can decode in a job of their own."""
    rows = handed_out(scan.rows)
    if scan.decoding is None or scan.rest is None:
        return rows
    rows, rest = scan.decoding.decoded(rows)
    if rest.num_rows > rows.num_rows:
        return handed_out(scan.by_spark.rows)
    return pa.concat_tables([rows, handed_out(scan.rest(rest)).cast(rows.schema)]) if rest.num_rows else rows


def fields_of(scan: Scan) -> Sequence[Column]:
    """Return the names and types of columns."""
    if scan.decoding is not None:
        return scan.decoding.fields
    return [(field.name, type_text(field.dataType)) for field in scan.rows.schema.fields]


def in_spark(spark: SparkSession, schema: StructType, files: Sequence[str], tables: Sequence[pa.Table]) -> DataFrame:
    """Return the rows of files and tables as Spark's, for a query over a table."""
    parts = []
    if files or not tables:
        parts.append(unskipped(spark.read.schema(schema).parquet(*files)))
    if tables:
        table = pa.concat_tables(tables, promote_options="default")
        parts.append(spark.createDataFrame(with_chunks(table), schema=schema))
    return reduce(lambda one, other: one.unionByName(other), parts)


def of_table(spark: SparkSession, schema: StructType, rows: pa.Table) -> Frame:
    """Return the rows of a table, with the schema that Spark would give it."""
    return framed(spark, [(field.name, type_text(field.dataType)) for field in schema.fields], rows)
