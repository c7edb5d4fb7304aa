"""An attempt: computes expressions of a row that may fail, and says so instead of ending the job.

In ANSI mode an expression that cannot be computed (a division by zero, a text that is no number, a sum beyond its type)
ends the whole job. Spark's own `TryEval` turns the failure of one row into NULL. SQL has no name for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def attempted(spark: SparkSession, expressions: Sequence[str]) -> Column:
    """A struct of the values of Spark SQL ``expressions``; NULL where one of them fails, whatever the others are."""
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - `check` does without Spark

    inside = ", ".join(f"'c{n}', {text}" for n, text in enumerate(expressions))
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to an expression of Spark
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(parser.parseExpression(f"named_struct({inside})"))
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(tried))
