"""Text with a collation, as Spark compares it: by keys whose bytes have the order and the identity of the texts.

Spark has such keys and no function of SQL that gives them, so its expression is asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rowtime.kernels.collated import KEY, VALUE
from rowtime.operators.values import type_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def has_collation(kind: DataType) -> bool:
    """True if values of a type are, or hold, text that is not compared by its bytes."""
    return " collate " in type_text(kind)


def keyed(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """The rows with keys in place of text in some columns."""
    return rows.withColumns({name: _key(rows, name) for name in names})


def paired(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """The rows with pairs of key and text (`kernels.collated`) in place of text in some columns."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - `check` does without Spark

    pairs = {name: F.struct(_key(rows, name).alias(KEY), F.col(name).alias(VALUE)) for name in names}
    return rows.withColumns({name: F.when(F.col(name).isNotNull(), pair) for name, pair in pairs.items()})


def _key(rows: DataFrame, name: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above
    from pyspark.sql.classic.column import Column as Classic  # noqa: PLC0415 - as above

    java = rows.sparkSession._jvm  # noqa: SLF001 - the one way to the expression
    assert java is not None
    bridge = java.org.apache.spark.sql.classic.ExpressionUtils
    text = bridge.expression(F.col(name)._jc)  # noqa: SLF001 - as above
    return Classic(bridge.column(java.org.apache.spark.sql.catalyst.expressions.CollationKey(text)))
