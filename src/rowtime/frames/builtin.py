"""The names of Spark's own functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINE = "\n"  # no function name contains it
_BUILTIN: Final[dict[str, frozenset[str]]] = {}  # by application


def spark_functions(spark: SparkSession) -> frozenset[str]:
    """Return the names of Spark's own functions, in lower case; listed once for each application."""
    application = spark.sparkContext.applicationId
    if application not in _BUILTIN:
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way
        listed = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin().listFunction()
        _BUILTIN[application] = frozenset(names_of(listed))
    return _BUILTIN[application]


def names_of(listed: Any) -> list[str]:
    """Return the lower-case names of Spark's identifiers, in one call; without prefixes that some versions add."""
    text: str = listed.mkString(_LINE)
    return [name.rpartition(".")[2] for name in text.replace("`", "").lower().split(_LINE)]
