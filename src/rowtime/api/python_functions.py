"""Python functions that SQL expressions call by name, with the types of their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import ParseException

from rowtime.core.errors import refuse
from rowtime.frames.builtin import spark_functions

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import SparkSession

_FLOATS = ("DOUBLE", "FLOAT")


@dataclass(frozen=True)
class PythonFunction:
    """A function of the values of its arguments; ``returns``: a Spark type, or empty for a function of PySpark."""

    function: Callable[..., Any]
    returns: str

    def register(self, spark: SparkSession, name: str) -> None:
        """Register it in a session for use in SQL. Raises ``Refused`` (R107) for a type that Spark does not know."""
        if is_of_spark(self.function):
            spark.udf.register(name, self.function)
            return
        floats = self.returns.upper() in _FLOATS
        try:
            spark.udf.register(name, _in_floats(self.function) if floats else self.function, self.returns)
        except ParseException as wrong:
            what = f"the Python function {name} returns {self.returns!r:.60}, which is not a type of Spark"
            raise refuse("R107", what, "For example BIGINT, DOUBLE, STRING, TIMESTAMP, ARRAY<INT>.") from wrong


def check_names(spark: SparkSession, names: Collection[str]) -> None:
    """Refuse (R203) names of Spark's own functions, because rowtime's rules about expressions go by these names."""
    taken = spark_functions(spark) if names else frozenset()
    for name in names:
        if name.lower() in taken:
            raise refuse("R203", f"{name} is a function of Spark", "Use another name.")


def register(spark: SparkSession, functions: Mapping[str, PythonFunction]) -> None:
    """Register functions in a session. Raises ``Refused`` (R107) for types that Spark does not know."""
    for name, function in functions.items():
        function.register(spark, name)


def is_of_spark(function: Callable[..., Any]) -> bool:
    """Return True if PySpark's `udf`, `pandas_udf` or `arrow_udf` made the function; it has its own type and flag."""
    return hasattr(function, "evalType") and hasattr(function, "returnType")


def _in_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that it returns floats instead of integers, which Spark would turn into NULL."""

    def called(*values: Any) -> Any:
        answer = function(*values)
        return None if answer is None else float(answer)

    return called
