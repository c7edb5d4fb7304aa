"""Reads files whose statistics may omit NaN, like Arrow's: no row group is skipped because of them.

For Spark NaN is greater than every number, and its filters skip data outside of a file's statistics. In dictionaries it
distinguishes the two zeros. So filters over floating point are not pushed down to the reader.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, FloatType

from rowtime.operators.contract import quoted


def unskipped(rows: DataFrame) -> DataFrame:
    """Return the rows, with floating-point columns wrapped in an identity function."""
    names = [(quoted(f.name), isinstance(f.dataType, FloatType | DoubleType)) for f in rows.schema.fields]
    if not any(floats for _, floats in names):
        return rows
    return rows.selectExpr(*(f"nanvl({name}, {name}) AS {name}" if floats else name for name, floats in names))
