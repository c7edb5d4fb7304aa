"""The types of computed columns, from Spark's analyzer, without rows and without a job.

The plan knows the types of declared columns; only Spark knows those of expressions. If the type of a result must not
depend on which rows a tick has (two inputs of a UNION ALL, the side of an outer join that never had a row), it is found
here, from the declared columns upwards.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from rowtime.core import columns as hidden
from rowtime.operators.contract import Operator, quoted
from rowtime.operators.rows.values import type_text

_TIMES = (
    *(hidden.ROWTIME, hidden.ARRIVAL, hidden.PASSED_ROWTIME, hidden.SESSION_START, hidden.SESSION_END),
    *(hidden.LIFETIME_START, hidden.LIFETIME_END),
)
_INTERNALS = {hidden.WRITER: "STRING", hidden.POSITION: "BIGINT", **dict.fromkeys(_TIMES, "TIMESTAMP")}


class ColumnTypes:
    """The types of the columns of one plan, each found once; empty if even Spark does not know it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, node: Operator) -> tuple[str, ...]:
        """Return the types of an operator's output, as Spark's type text, in the order of its columns."""
        if node.name not in self._known:
            self._known[node.name] = self._found(node)
        return self._known[node.name]

    def _found(self, node: Operator) -> tuple[str, ...]:
        columns = node.emits().columns
        if all(column.type for column in columns):
            return tuple(column.type for column in columns)
        try:
            computed = {field.name.lower(): type_text(field.dataType) for field in node.typed(self.rows).schema}
        except AnalysisException:  # its first rows will show the problem
            computed = {}
        return tuple(column.type or computed.get(column.name.lower(), "") for column in columns)

    def rows(self, node: Operator) -> DataFrame:
        """Return an empty DataFrame with hidden columns and the operator's columns of known types."""
        known = dict(zip(node.emits().names, self.of(node), strict=True))
        typed = {**_INTERNALS, **{name: kind for name, kind in known.items() if kind}}
        texts = [f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in typed.items()]
        return self._spark.range(0).selectExpr(*texts)

    def between(self, node: Operator) -> list[DataFrame]:
        """Return the tables between the inputs of a join or group and its result: rows with keys, and groups."""
        return node.between(self.rows)
