"""A query over a static table: computed once, from the table's rows at the first start (semantics 5).

It is the input of a sub-query in an expression. Its rows are kept like those of the table, so every later tick and
start reads the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import AGGREGATE, ROW_NUMBER
from rowtime.core.errors import refuse
from rowtime.core.time import BEGINNING, END
from rowtime.expr.conditions import columns_in
from rowtime.operators.contract import AGGREGATION, DataFrame, Delta, Link, Made, Operator, Shape, Tick, Unary, quoted
from rowtime.operators.contract import functions as F
from rowtime.operators.contract.state import Kept, Segment, StateNote
from rowtime.operators.rows.select import Item
from rowtime.operators.streams.table import PINNED, Pinned
from rowtime.sql.generate import to_spark

_OF_A_VALUE = "SQLSTATE: 22"  # Spark's error for values with which an expression cannot be computed


@dataclass(frozen=True)
class TableQuery(Unary):
    """``SELECT values FROM input WHERE where GROUP BY keys HAVING having``, over the table ``input``.

    ``grouped``: the values are those of groups, of a single one without ``keys``. ``once``: the columns that identify a
    row: if two rows have equal values there, the query is refused; ``None``: no such check.
    """

    values: tuple[Item, ...]
    where: exp.Expr | None = None
    keys: tuple[exp.Expr, ...] = ()
    having: exp.Expr | None = None
    grouped: bool = False
    once: tuple[str, ...] | None = None

    control: ClassVar = Pinned
    kind: ClassVar[str] = "table query"
    in_traces: ClassVar[bool] = False
    promise: ClassVar[str] = "the end"
    reason: ClassVar[str] = "its rows are computed at the first start, and none come later"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the rows, once."""
        return (self._state.noted("its rows, computed at the first start", "the checkpoint is given up", "one"),)

    def emits(self) -> Shape:
        """Return the values; rows have a number and no rowtime, like those of a table."""
        columns = tuple(item.column for item in self.values)
        return Shape(columns, order=(ROW_NUMBER,), extra=(ROW_NUMBER,), placed=False, single=True, released=True)

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return all rows of the table: no trace lists them."""
        return Link()

    def required_columns(self, n: int, asked: Collection[str]) -> Iterable[str]:  # noqa: ARG002 - one input
        """Return the columns that decide about rows, and those of the required values."""
        values = (item.expression for item in self.values if item.column.name in asked)
        return columns_in([self.where, self.having, *self.keys, *values])

    def made_from(self, n: int, column: str) -> Made | None:
        """Return the source of a column: its value."""
        value = next((item.expression for item in self.values if item.column.name == column), None)
        if value is None:
            return super().made_from(n, column)
        return Made(columns_in([value]), AGGREGATION) if self.grouped else Made.by(value)

    def on_versions(self, below: Sequence[Operator]) -> Operator:  # noqa: ARG002 - the table
        """Return the same operator: it does not change."""
        return self

    def typed(self, rows: Callable[[Operator], DataFrame]) -> DataFrame:
        """Return the values over an empty table."""
        return self._computed(rows(self.input))

    @property
    def _state(self) -> Kept:
        return Kept(ROW_NUMBER, (*self.emits().names, ROW_NUMBER), PINNED)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return all rows, in every tick; computed in the first."""
        control, segments = tick.control(self), tick.segments(self, PINNED)
        if not control.pinned:
            tick.describe(self, "compute what a sub-query asks of the table")
            rows = self._computed(rows_given(tick, self.input, deltas[0]))
            rows = rows.selectExpr("*", f"monotonically_increasing_id() AS {ROW_NUMBER}")
            segments.add(written(tick, self, self._state, rows))
            tick.remember(self, pinned=True)
            self._check(segments.read(segments.overlapping(BEGINNING, END)) if segments.rows else None)
        found = segments.overlapping(BEGINNING, END)
        return Delta(segments.read(found) if found else None, {"": END}, segments.rows)

    def _computed(self, rows: DataFrame) -> DataFrame:
        if self.where is not None:
            rows = rows.where(to_spark(self.where))
        if not self.grouped:
            return rows.selectExpr(*(item.sql for item in self.values))
        asked = [item.expression for item in self.values] + ([self.having] if self.having is not None else [])
        names = [f"{AGGREGATE}{n}" for n in range(len(asked))]
        made = [F.expr(f"{to_spark(one)} AS {name}") for one, name in zip(asked, names, strict=True)]
        found = rows.groupBy(*(F.expr(to_spark(key)) for key in self.keys)).agg(*made)
        found = found.where(names[-1]) if self.having is not None else found
        return found.selectExpr(
            *(f"{name} AS {quoted(item.column.name)}" for item, name in zip(self.values, names, strict=False))
        )

    def _check(self, rows: DataFrame | None) -> None:
        """Raise ``Refused`` (R167) if there are two rows where only one is allowed. NULLs are not equal."""
        if self.once is None or rows is None:
            return
        keys = [quoted(name) for name in self.once]
        known = rows.where(" AND ".join(f"{key} IS NOT NULL" for key in keys) or "true")
        if known.groupBy(*keys).count().where("count > 1").limit(1).collect():
            where = f" for one value of {', '.join(columns_of(self))}" if keys else ""
            what = f"a sub-query is used as a value, and {self.input.name} has several rows{where}"
            hint = "Choose one: SELECT MAX(…), or a condition that only one row meets."
            raise refuse("R167", what, hint)


def rows_given(tick: Tick, node: Operator, table: Delta) -> DataFrame:
    """Return the rows of a table in their order, in one partition, so that results that depend on an order repeat."""
    if table.rows is not None:
        return table.rows.coalesce(1).sortWithinPartitions(ROW_NUMBER)
    kinds = zip(node.emits().names, tick.types(node), strict=True)
    nothing = [f"CAST(NULL AS {kind or 'STRING'}) AS {quoted(name)}" for name, kind in kinds]
    return tick.spark.range(0).selectExpr(*nothing)


def written(tick: Tick, node: Operator, state: Kept, rows: DataFrame) -> Sequence[Segment]:
    """Write the rows to a file; raises ``Refused`` (R168) if one of them cannot be computed."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - `check` works without Spark

    try:
        return state.write(tick, node, rows, None)
    except PySparkException as wrong:
        if _OF_A_VALUE not in str(wrong):
            raise
        tables = ", ".join(table.name for table in node.inputs)
        what = f"a sub-query of {tables} cannot be computed: {str(wrong).partition(' SQLSTATE')[0]}"
        raise refuse("R168", what, "Leave such rows out: … AND v <> 0, or TRY_CAST(v AS INT).") from wrong


def columns_of(node: TableQuery) -> list[str]:
    """Return the columns of the table after those that identify the row."""
    return sorted(columns_in(item.expression for item in node.values if item.column.name in (node.once or ())))
