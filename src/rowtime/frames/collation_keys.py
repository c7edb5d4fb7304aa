"""Keys of text with a collation: bytes that have the order and the identity of the texts, computed by Spark.

Spark has such keys, but no SQL function that returns them, so its expression is called by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowtime.frames.answers import Part
from rowtime.frames.kinds import spark_type, without_collation

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType

_BINARY: Final = "UTF8_BINARY"


def kind_of_keys(kind: str) -> str:
    """Return the type of the keys of values."""
    return without_collation(kind, "binary")


def key_column(spark: SparkSession, part: Part) -> Column:
    """Return the keys of a column in Spark."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark

    return _key(spark, F.col(part.sql), spark_type(part.columns[0][1]))


def _key(spark: SparkSession, value: Column, kind: DataType) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark
    from pyspark.sql import types as t  # noqa: PLC0415 - as above
    from pyspark.sql.classic.column import Column as Classic  # noqa: PLC0415 - as above

    if isinstance(kind, t.StringType) and kind.collation != _BINARY:
        java: Any = spark._jvm  # noqa: SLF001 - the only way to the expression
        bridge = java.org.apache.spark.sql.classic.ExpressionUtils
        text = bridge.expression(value._jc)  # noqa: SLF001 - as above
        return Classic(bridge.column(java.org.apache.spark.sql.catalyst.expressions.CollationKey(text)))
    if isinstance(kind, t.ArrayType):
        return F.transform(value, lambda part: _key(spark, part, kind.elementType))
    if isinstance(kind, t.StructType):
        parts = [_key(spark, value[field.name], field.dataType).alias(field.name) for field in kind]
        return F.when(value.isNotNull(), F.struct(*parts))
    return value
