"""Tables of the Spark session, for names that neither the script nor its home defines; as they were first read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from rowtime.core.errors import refuse
from rowtime.core.stores import Place, place_of
from rowtime.operators.contract import quoted
from rowtime.operators.streams.table import tables_of
from rowtime.plan.session_tables import SESSION, definition, kept_in
from rowtime.runtime.analysis import quietly
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.plan.program import Program
    from rowtime.plan.stored import StoredPlan
    from rowtime.runtime.tick import GivenTable
    from rowtime.sql.statements import CreateTable


@dataclass
class SessionTables:
    """Finds tables by name: first in the checkpoint's plan, which has read them before, then in the session."""

    given: SparkSession | None
    checkpoint: str | Path | Place | None = None

    def __call__(self, name: str) -> CreateTable | None:
        """Return a table's definition. Raises ``Refused``: R124 for a streaming view, R155 and R209 for odd columns."""
        if self._plan is not None and (kept := kept_in(self._plan, name)) is not None:
            return kept
        rows = None if self.given is None else _frame_of(self.given, name)
        if rows is None:
            return None
        if rows.isStreaming:
            what = f"{name} is a streaming view of the session, not a table"
            raise refuse("R124", what, f"Pass it as a stream: pipeline.source('{name}', spark.table('{name}')).")
        lowered = [column.lower() for column in rows.columns]
        if odd := [
            column_name
            for column_name in lowered
            if lowered.count(column_name) > 1 or column_name == "rowtime" or column_name.startswith("__")
        ]:
            what = f"the table {name} of the session cannot have the column {odd[0]}"
            raise refuse("R209", what, "Make a temporary view with other names, each of them once.")
        return definition(name, ((field.name, field.dataType.simpleString()) for field in rows.schema.fields))

    @cached_property
    def _plan(self) -> StoredPlan | None:
        if self.checkpoint is None:
            return None
        place = Checkpoint(place_of(self.checkpoint))
        return None if (plan := place.plan) is None or place.journal.last() is None else plan


def rows_of_session(program: Program, given: SparkSession) -> dict[str, GivenTable]:
    """Return the rows of a program's session tables, by the present meaning of their names.

    A table that is read again is looked up again, so it includes new files.
    """
    nodes = [node for node in tables_of(program.operators) if node.source[0] == SESSION]
    changing = {node.table for node in nodes if node.refresh}
    still = {node.table for node in nodes} - changing
    tables: dict[str, GivenTable] = {name: partial(_rows, name, _frame_of(given, name)) for name in still}
    return tables | {name: partial(_rows_now, name, given) for name in changing}


def _rows_now(name: str, given: SparkSession, spark: SparkSession) -> DataFrame:
    if _frame_of(given, name) is not None:
        given.catalog.refreshTable(".".join(map(quoted, name.split("."))))
    return _rows(name, _frame_of(given, name), spark)


def _frame_of(given: SparkSession, name: str) -> DataFrame | None:
    with quietly():
        try:
            return given.table(".".join(map(quoted, name.split("."))))
        except (AnalysisException, ParseException):
            return None


def _rows(name: str, rows: DataFrame | None, spark: SparkSession) -> DataFrame:
    """Read a DataFrame of the user's session in another session; casts and time zones stay those of the user's."""
    if rows is None:
        hint = "Create the view or the table before the pipeline starts for the first time."
        raise refuse("R155", f"the session has no table or view {name}", hint)
    classes = spark._jvm.org.apache.spark.sql.classic.Dataset  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no public way
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - as above
    return DataFrame(classes.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001 - as above
