"""A query of Spark's over static tables: computed once, from their rows at the first start (semantics 5).

It is what a query joins or asks for if that is more than one table: a sub-query with further sub-queries, a join, a
view of tables. It is a table like any other: its rows are kept, and every later tick and start reads the same ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rowtime.core.clock import Clocks
from rowtime.core.columns import ROW_NUMBER
from rowtime.core.errors import refuse
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import AGGREGATION, Column, DataFrame, Delta, Derivation, Operator, Shape, Tick, quoted
from rowtime.operators.streams.computed_once import ComputedOnce, rows_given, written
from rowtime.operators.streams.table import PINNED
from rowtime.sql.generate import to_spark

READ = "rowtime_table_{}"
"""The name by which the query reads its n-th input."""


@dataclass(frozen=True)
class SparkQuery(ComputedOnce):
    """``query`` is Spark SQL over the tables ``inputs``, and gives ``columns``."""

    name: str
    inputs: tuple[Operator, ...]
    query: exp.Expr
    columns: tuple[Column, ...]

    kind: ClassVar[str] = "query of tables"

    def emits(self) -> Shape:
        """Return the columns; rows have a number and no rowtime, like those of a table."""
        return Shape(self.columns, order=(ROW_NUMBER,), extra=(ROW_NUMBER,), placed=False, single=True, released=True)

    def promises(self, clocks: Sequence[Clocks], control: object) -> Clocks:  # noqa: ARG002 - tables have no clock
        """Return the end."""
        return {"": END}

    def required_columns(self, n: int, wanted: Collection[str]) -> Iterable[str]:  # noqa: ARG002 - Spark decides
        """Return all columns of the tables."""
        return self.inputs[n].emits().names

    def made_from(self, n: int, column: str) -> Derivation | None:  # noqa: ARG002 - any may contribute
        """Return all columns of the table."""
        return Derivation(frozenset(self.inputs[n].emits().names), AGGREGATION)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002 - the tables are read once
        """Return all rows, in every tick; they are computed in the first."""
        segments = tick.segments(self, PINNED)
        if self.is_due(tick):
            tick.describe(self, "compute a query of tables")
            given = [rows_given(tick, table) for table in self.inputs]
            rows = self.computed(given).coalesce(1)
            rows = rows.selectExpr("*", f"monotonically_increasing_id() AS {ROW_NUMBER}")
            segments.add(written(tick, self, self._state, rows))
            tick.remember(self, pinned=True)
        live = segments.overlapping(BEGINNING, END)
        return Delta(segments.read(live) if live else None, {"": END})

    def computed(self, tables: Sequence[DataFrame]) -> DataFrame:
        """Return the rows; raises ``Refused`` (R107) if Spark refuses the query."""
        from pyspark.errors import AnalysisException  # noqa: PLC0415 - `check` works without Spark

        spark = tables[0].sparkSession
        names = [READ.format(n) for n in range(len(tables))]
        for name, node, rows in zip(names, self.inputs, tables, strict=True):
            rows.select(*map(quoted, node.emits().names)).createOrReplaceTempView(name)
        try:
            return spark.sql(to_spark(self.query))
        except AnalysisException as wrong:
            message = str(wrong).partition(" SQLSTATE")[0]
            what = f"Spark refuses the query of {', '.join(table.name for table in self.inputs)}: {message}"
            raise refuse("R107", what) from wrong
        finally:
            for name in names:
                spark.catalog.dropTempView(name)
