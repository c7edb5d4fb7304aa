"""A query over a static table: computed once, from the table's rows at the first start (semantics 5).

It is the input of a sub-query in an expression. Its rows are kept like those of the table, so every later tick and
start reads the same ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import AGGREGATE, ROW_NUMBER
from rowtime.core.errors import refuse
from rowtime.core.time import BEGINNING, END
from rowtime.expr.conditions import columns_in
from rowtime.operators.contract import AGGREGATION, DataFrame, Delta, Derivation, Shape, Tick, Unary, quoted
from rowtime.operators.contract import functions as F
from rowtime.operators.rows.select import Item
from rowtime.operators.streams.computed_once import ComputedOnce, rows_given, written
from rowtime.operators.streams.table import PINNED
from rowtime.sql.generate import to_spark


@dataclass(frozen=True)
class TableSelect(ComputedOnce, Unary):
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

    kind: ClassVar[str] = "table query"

    def emits(self) -> Shape:
        """Return the values; rows have a number and no rowtime, like those of a table."""
        columns = tuple(item.column for item in self.values)
        return Shape(columns, order=(ROW_NUMBER,), extra=(ROW_NUMBER,), placed=False, single=True, released=True)

    def required_columns(self, n: int, wanted: Collection[str]) -> Iterable[str]:  # noqa: ARG002 - one input
        """Return the columns that decide about rows, and those of the required values."""
        values = (item.expression for item in self.values if item.column.name in wanted)
        return columns_in([self.where, self.having, *self.keys, *values])

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the source of a column: its value."""
        value = next((item.expression for item in self.values if item.column.name == column), None)
        if value is None:
            return super().made_from(n, column)
        return Derivation(columns_in([value]), AGGREGATION) if self.grouped else Derivation.by(value)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:  # noqa: ARG002 - the tables are read once
        """Return all rows, in every tick; computed in the first."""
        segments = tick.segments(self, PINNED)
        if self.is_due(tick):
            tick.describe(self, "compute what a sub-query asks of the table")
            rows = self.computed([rows_given(tick, self.input)])
            rows = rows.selectExpr("*", f"monotonically_increasing_id() AS {ROW_NUMBER}")
            segments.add(written(tick, self, self._state, rows))
            tick.remember(self, pinned=True)
            self._check(tick.in_spark(self, PINNED, segments.overlapping(BEGINNING, END)) if segments.rows else None)
        live = segments.overlapping(BEGINNING, END)
        return Delta(segments.read(live) if live else None, {"": END})

    def computed(self, tables: Sequence[DataFrame]) -> DataFrame:
        """Return the values over the rows of the table."""
        [rows] = tables
        if self.where is not None:
            rows = rows.where(to_spark(self.where))
        if not self.grouped:
            return rows.selectExpr(*(item.sql for item in self.values))
        expressions = [item.expression for item in self.values] + ([self.having] if self.having is not None else [])
        names = [f"{AGGREGATE}{n}" for n in range(len(expressions))]
        columns = [
            F.expr(f"{to_spark(expression)} AS {name}") for expression, name in zip(expressions, names, strict=True)
        ]
        groups = rows.groupBy(*(F.expr(to_spark(key)) for key in self.keys)).agg(*columns)
        groups = groups.where(names[-1]) if self.having is not None else groups
        return groups.selectExpr(
            *(f"{name} AS {quoted(item.column.name)}" for item, name in zip(self.values, names, strict=False))
        )

    def _check(self, rows: DataFrame | None) -> None:
        """Raise ``Refused`` (R167) if there are two rows where only one is allowed. NULLs are not equal."""
        if self.once is None or rows is None:
            return
        keys = [quoted(name) for name in self.once]
        keyed = rows.where(" AND ".join(f"{key} IS NOT NULL" for key in keys) or "true")
        if keyed.groupBy(*keys).count().where("count > 1").limit(1).collect():
            where = f" for one value of {', '.join(columns_of(self))}" if keys else ""
            what = f"a sub-query is used as a value, and {self.input.name} has several rows{where}"
            hint = "Choose one of them with SELECT MAX(…), or with a condition that only one row satisfies."
            raise refuse("R167", what, hint)


def columns_of(node: TableSelect) -> list[str]:
    """Return the columns of the table after those that identify the row."""
    return sorted(columns_in(item.expression for item in node.values if item.column.name in (node.once or ())))
