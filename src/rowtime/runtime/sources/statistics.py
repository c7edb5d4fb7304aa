"""Reads files whose statistics may leave NaN out, as Arrow's do: no part of one is skipped for them.

For Spark NaN is greater than every number, and its filters skip what lies outside of a file's statistics. In
dictionaries it tells both zeros apart. So a filter over floating point is not handed to the reader.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, FloatType

from rowtime.operators.contract import quoted


def unskipped(rows: DataFrame) -> DataFrame:
    """The rows, with columns of floating point behind a function that gives each value as it is."""
    names = [(quoted(f.name), isinstance(f.dataType, FloatType | DoubleType)) for f in rows.schema.fields]
    if not any(floats for _, floats in names):
        return rows
    return rows.selectExpr(*(f"nanvl({name}, {name}) AS {name}" if floats else name for name, floats in names))
