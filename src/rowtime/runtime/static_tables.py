"""The rows of static tables, from Spark or from Python."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from rowtime.core.errors import refuse
from rowtime.expr.store_assignment import as_read
from rowtime.operators.contract import quoted
from rowtime.operators.streams.table import Table
from rowtime.plan.formats.lake import STATIC
from rowtime.plan.session_tables import SESSION
from rowtime.runtime.sources.failures import naming
from rowtime.runtime.sources.statistics import unskipped
from rowtime.runtime.store_access import reachable


def rows_of(spark: SparkSession, node: Table, given: Callable[[SparkSession], DataFrame] | None) -> DataFrame:
    """Return the present rows of a static table: those ``given`` from Python, else from Spark."""
    name, (kind, options) = node.table, node.source
    columns = [(column.name, as_read(column.type)) for column in node.columns]
    if given is not None:
        rows = given(spark)
    elif kind == SESSION:
        with naming("table", name):
            rows = spark.table(".".join(map(quoted, name.split("."))))
    elif kind in STATIC:
        from rowtime.runtime.sources.lakes import static_rows  # noqa: PLC0415 - an extra

        rows = static_rows(spark, name, node.source, dict(columns))
    elif kind:
        with naming("table", name):
            reader = spark.read.format(kind).options(**reachable(spark, dict(options)))
        if kind in ("csv", "json"):  # these have no types of their own
            reader = reader.schema(", ".join(f"{quoted(column)} {of}" for column, of in columns))
        rows = reader.load() if kind == "jdbc" else unskipped(reader.load())
    else:
        hint = "Say where they are: CREATE TABLE … USING parquet OPTIONS (path '…')."
        raise refuse("R155", f"the table {name} has no rows", hint)
    return rows.selectExpr(*(f"CAST({quoted(column)} AS {of}) AS {quoted(column)}" for column, of in columns))
