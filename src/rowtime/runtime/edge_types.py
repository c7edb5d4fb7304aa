"""What only Spark can say of the edge of a pump: that no value of an expression's type can be assigned to a column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rowtime.core.errors import Problem
from rowtime.expr.store_assignment import may_assign
from rowtime.runtime.column_types import ColumnTypes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.plan.bind.pump_edge import PumpEdge
    from rowtime.plan.program import Program


def misfits(program: Program, spark: SparkSession) -> list[Problem]:
    """The problems (R220) of assignments that can never fit; without a job."""
    types = ColumnTypes(spark)
    return [problem for edge in program.edges for problem in _misfits(edge, types, spark)]


def _misfits(edge: PumpEdge, types: ColumnTypes, spark: SparkSession) -> Iterator[Problem]:
    known = dict(zip(edge.node.emits().names, types.of(edge.node), strict=True))
    yield from edge.misfits(known)
    for column in edge.assigned:
        given = known.get(column.source, "")
        if given and may_assign(given, column.type) is None and not _spark_may(spark, given, column.type):
            yield edge.misfit(column, given)


def _spark_may(spark: SparkSession, given: str, target: str) -> bool:
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to the rules of assignment
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    kinds = (parser.parseDataType(text) for text in (given, target))
    return bool(jvm.org.apache.spark.sql.catalyst.expressions.Cast.canANSIStoreAssign(*kinds))
