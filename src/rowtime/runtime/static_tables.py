"""The rows of static tables, from Spark or from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from rowtime.core.errors import Failure, Problem, refuse
from rowtime.expr.store_assignment import as_read
from rowtime.operators.contract import quoted
from rowtime.operators.streams.table import Table
from rowtime.plan.bind.sink_options import driver_of
from rowtime.plan.formats.lake import STATIC
from rowtime.plan.session_tables import SESSION
from rowtime.runtime.sources.failures import naming
from rowtime.runtime.sources.json_numbers import JsonNumbers
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
        numbers = JsonNumbers.of(columns if kind == "json" else (), dict(options))
        if kind in ("csv", "json"):  # these have no types of their own
            kinds = (f"{quoted(column)} {numbers.kind(column, of)}" for column, of in columns)
            reader = reader.schema(", ".join(kinds))
        rows = _of_database(reader, name, dict(options)) if kind == "jdbc" else unskipped(reader.load())
        rows = numbers.converted(rows)
    else:
        hint = "Say where they are: CREATE TABLE … USING parquet OPTIONS (path '…')."
        raise refuse("R155", f"the table {name} has no rows", hint)
    return rows.selectExpr(*(f"CAST({quoted(column)} AS {of}) AS {quoted(column)}" for column, of in columns))


def _of_database(reader: DataFrameReader, name: str, options: Mapping[str, str]) -> DataFrame:
    """The rows of a table of a database. Spark finds a driver in its jars only by its class."""
    url = next((value for key, value in options.items() if key.lower() == "url"), "")
    driver = driver_of(url)
    if driver and not any(key.lower() == "driver" for key in options):
        reader = reader.option("driver", driver)
    try:
        return reader.load()
    except Py4JJavaError as error:
        what = f"the table {name} cannot be read: {str(error.java_exception.getMessage()).strip()}"
        raise Failure(Problem("R501", what, hint="Check url, user, password, dbtable and driver.")) from error
