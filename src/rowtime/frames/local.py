"""Rows on the driver, with the methods of a Spark DataFrame that operators use.

A frame is a query of DuckDB over Arrow tables; nothing is computed before the rows are read. Expressions without a
translation (`frames.translated`), and all other methods of a DataFrame, are Spark's: the frame becomes a DataFrame. So
an operator need not know which of the two it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import pyarrow as pa

from rowtime.frames.columns import places_in, selected
from rowtime.frames.kinds import PLAIN, arrow_of, holds, spark_type, sql_type
from rowtime.frames.queries import FEW_ROWS, Query, TooMany, all_of, as_columns, called
from rowtime.frames.tables import Column, delivered, sorted_by, stacked, with_chunks
from rowtime.frames.translated import Item, group_key, item, order, parsed, scope_of, scope_of_fields, tested
from rowtime.frames.values import Scope, Value
from rowtime.frames.words import Untranslated
from rowtime.kernels.frames import Ints
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Rows = DataFrame  # it has the methods of one, and takes its place
else:
    Rows = object

MOST: Final = 1_000_000  # rows that the driver holds itself (docs/design/whole-ticks.md)
FEW: Final = 100_000  # rows that are sent to Spark as a part of its plan
_JOINS: Final = {"inner": "INNER", "left": "LEFT", "left_semi": "SEMI", "left_anti": "ANTI"}
_BESIDE: Final = ("inner", "left")  # joins that return the columns of both sides

HANDING_OVER: Final[ContextVar[Callable[[], None]]] = ContextVar("what is done before Spark takes rows over")


class LocalFrame(Rows):
    """Rows with columns ``fields``; ``session``: the Spark session for what is not computed here."""

    def __init__(self, session: SparkSession, fields: Sequence[Column], rows: Query | pa.Table) -> None:
        self._session = session
        self.fields = tuple(fields)
        self._rows, self._shared = rows, False
        self._spark: DataFrame | None = None

    @classmethod
    def of(cls, session: SparkSession, table: pa.Table, fields: Sequence[Column]) -> LocalFrame | None:
        """Return a frame with the rows of a table; ``None`` if frames do not support one of the types."""
        if not all(holds(kind) for _, kind in fields):
            return None
        return cls(session, fields, as_columns(table, [name for name, _ in fields]))

    @classmethod
    def empty(cls, session: SparkSession, fields: Sequence[Column]) -> LocalFrame:
        """Return a frame without rows."""
        table = pa.table({f"c{n}": pa.array([], arrow_of(kind)) for n, (_, kind) in enumerate(fields)})
        return cls(session, fields, table)

    # -- what there is ------------------------------------------------------------------

    @property
    def sparkSession(self) -> SparkSession:  # noqa: N802 - Spark's name
        """As Spark's."""
        return self._session

    @property
    def columns(self) -> list[str]:
        """The names."""
        return [name for name, _ in self.fields]

    @property
    def dtypes(self) -> list[Column]:
        """As Spark's."""
        return [*self.fields]

    @cached_property
    def schema(self) -> StructType:
        """The types, as Spark has them."""
        from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - Spark

        return StructType([StructField(name, spark_type(kind)) for name, kind in self.fields])

    @cached_property
    def nothing(self) -> DataFrame:
        """Return an empty DataFrame with these columns, in Spark."""
        rows = pa.table([pa.array([], arrow_of(kind)) for _, kind in self.fields], names=self.columns)
        return self._session.createDataFrame(with_chunks(rows), schema=self.schema)

    @cached_property
    def scope(self) -> Scope:
        """Return the scope for expressions over the rows; a duplicate name is not in it."""
        return scope_of_fields(self.fields)

    def can(self, *texts: str) -> bool:
        """Return True if expressions over the rows can be computed here."""
        try:
            for text in texts:
                self.scope.value(parsed(text))
        except Untranslated:
            return False
        return True

    # -- methods of a DataFrame ---------------------------------------------------------

    def selectExpr(self, *expr: Any) -> DataFrame:  # noqa: N802 - Spark's name
        """As Spark's."""
        try:
            return self._selected([*self._items(expr)])
        except Untranslated:
            return self.spark().selectExpr(*expr)

    def select(self, *columns: Any) -> DataFrame:
        """As Spark's."""
        if not all(isinstance(column, str) for column in columns):
            return self.spark().select(*columns)
        return self.selectExpr(*map(_attribute, columns))

    def where(self, condition: Any) -> DataFrame:
        """As Spark's."""
        try:
            text = tested(condition, self.scope) if isinstance(condition, str) else None
        except Untranslated:
            text = None
        return self.spark().where(condition) if text is None else self._of(behind=f" WHERE {text}")

    filter = where

    def drop(self, *cols: Any) -> DataFrame:
        """As Spark's."""
        gone = {name.lower() for name in cols}
        return self.selectExpr(*(quoted(name) for name in self.columns if name.lower() not in gone))

    def toDF(self, *names: str) -> LocalFrame:  # noqa: N802 - Spark's name
        """As Spark's."""
        fields = [(name, kind) for name, (_, kind) in zip(names, self.fields, strict=True)]
        return LocalFrame(self._session, fields, self.query)

    def unionByName(self, other: Any, allowMissingColumns: bool = False) -> DataFrame:  # noqa: FBT001, FBT002, N802, N803 - Spark's
        """As Spark's."""
        union = self._united(other, lacking=allowMissingColumns) if isinstance(other, LocalFrame) else None
        return self.spark().unionByName(other, allowMissingColumns=allowMissingColumns) if union is None else union

    def union(self, other: Any) -> DataFrame:
        """As Spark's: by position."""
        if not isinstance(other, LocalFrame) or len(other.fields) != len(self.fields):
            return self.spark().union(other)
        return self.unionByName(other.toDF(*self.columns))

    unionAll = union  # noqa: N815 - Spark's name

    def distinct(self) -> DataFrame:
        """As Spark's."""
        plain = all(kind in PLAIN and kind not in ("float", "double") for _, kind in self.fields)
        return self._of("DISTINCT *") if plain else self.spark().distinct()

    def limit(self, most: int) -> LocalFrame:
        """As Spark's."""
        return self._of(behind=f" LIMIT {most}")

    def sortWithinPartitions(self, *cols: Any, **kwargs: Any) -> DataFrame:  # noqa: N802 - Spark's name
        """As Spark's, with a single partition."""
        rows = self.in_order(cols) if not kwargs and all(isinstance(term, str) for term in cols) else None
        return self.spark().sortWithinPartitions(*cols, **kwargs) if rows is None else rows

    def in_order(self, terms: Sequence[str]) -> LocalFrame | None:
        """Return the rows sorted by some terms of ORDER BY; ``None`` if Spark has to sort them."""
        at = self._numbers(terms) if self.sized > FEW_ROWS else None  # for few, one query does all
        if at and (rows := sorted_by(self._table(), [f"c{n}" for n in at])) is not None:
            return LocalFrame(self._session, self.fields, rows)
        try:
            return self._of(behind=f" ORDER BY {order(terms, self.scope)}")
        except Untranslated:
            return None

    def grouped(self, keys: Sequence[str], aggregates: Sequence[str]) -> LocalFrame | None:
        """Return groups by columns, with aggregates ``call AS name``; ``None`` if Spark has to make them."""
        try:
            named = [group_key(item(_attribute(key), self.scope)) for key in keys]
            items = [*named, *(item(text, self.scope) for text in aggregates)]
            if any(entry.value.type == "float" for entry in items):  # intermediate precision affects their sums
                return None
            by = ", ".join(entry.value.sql for entry in items[: len(keys)])
            return self._selected(items, f" GROUP BY {by}" if by else "")
        except Untranslated:
            return None

    def joined(self, other: LocalFrame, test: str, how: str) -> LocalFrame | None:
        """Return the rows joined with those of another frame that satisfy ``test``; ``None`` if Spark has to join.

        ``how``: ``inner``, ``left``, ``left_semi`` or ``left_anti``.
        """
        if {name.lower() for name in self.columns} & {name.lower() for name in other.columns} or how not in _JOINS:
            return None
        sides = (("l", self), ("r", other if how in _BESIDE else None))
        scope = {name: Value(f"l.{of.sql}", of.type) for name, of in self.scope.columns.items()}
        scope |= {name: Value(f"r.{of.sql}", of.type) for name, of in other.scope.columns.items()}
        try:
            met = tested(test, scope_of(scope))
        except Untranslated:
            return None
        columns = [(f"{side}.c{n}", of) for side, frame in sides if frame for n, of in enumerate(frame.fields)]
        listed = ", ".join(called(column, n) for n, (column, _) in enumerate(columns))
        mine, theirs = self.query, other.query
        sql = f"SELECT {listed} FROM {mine} AS l {_JOINS[how]} JOIN {theirs} AS r ON {met}"  # noqa: S608 - translated
        return LocalFrame(self._session, [of for _, of in columns], mine.over(sql, theirs))

    # -- the rows -----------------------------------------------------------------------

    @property
    def query(self) -> Query:
        """Return the query for the rows; those of a shared frame are computed first."""
        if self._shared:
            self._table()
        return self._rows if isinstance(self._rows, Query) else all_of(self._rows)

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """Return the rows; raises ``Uncomputed``."""
        table = self._table()
        arrays = [delivered(table.column(n), kind) for n, (_, kind) in enumerate(self.fields)]
        fields = [pa.field(name, array.type) for name, array in zip(self.columns, arrays, strict=True)]
        return pa.table(arrays, schema=pa.schema(fields))

    def collect(self) -> list[Any]:
        """As Spark's."""
        from pyspark.sql import Row  # noqa: PLC0415 - Spark

        kind = Row(*self.columns)
        return [kind(*row.values()) for row in self.toArrow().to_pylist()]

    def count(self) -> int:
        """As Spark's."""
        return int(self._table().num_rows)

    @property
    def number(self) -> int:
        """Return the number of rows, counted by a query if they are not computed yet; raises ``Uncomputed``."""
        return self._rows.number() if isinstance(self._rows, Query) else int(self._rows.num_rows)

    @property
    def known(self) -> int | None:
        """Return the number of rows; ``None`` if they are not computed yet."""
        return None if isinstance(self._rows, Query) else int(self._rows.num_rows)

    @property
    def sized(self) -> int:
        """Return how many rows its input tables have."""
        return self._rows.sized if isinstance(self._rows, Query) else int(self._rows.num_rows)

    def chosen(self, which: pa.Array | pa.ChunkedArray) -> LocalFrame:
        """Return the rows for which a mask is true, in the order of `toArrow`."""
        return LocalFrame(self._session, self.fields, self._table().filter(which))

    def taken(self, places: Ints) -> LocalFrame:
        """Return the rows at some places, in the order of `toArrow`."""
        return LocalFrame(self._session, self.fields, self._table().take(pa.array(places)))

    def computed(self, texts: Sequence[str]) -> LocalFrame:
        """Compute all expressions for each row, and return the same rows; raises ``Uncomputed``."""
        more = (Item(f"__computed{n}", self.scope.value(parsed(text))) for n, text in enumerate(texts))
        selected_frame = self._selected([*self._items(["*"]), *more])
        return LocalFrame(self._session, self.fields, selected_frame._table().select(range(len(self.fields))))  # noqa: SLF001 - one of ours

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the values of a column; times without their zone, which is UTC."""
        return self._table().column(self.columns.index(name))

    def with_column(self, name: str, kind: str, values: pa.Array) -> LocalFrame:
        """Return the rows with a new or replaced column, in the order of `toArrow`."""
        table, more = self._table(), as_columns(pa.table({name: values}), [name]).column(0)
        at = self.columns.index(name) if name in self.columns else len(self.fields)
        table = table.set_column(at, f"c{at}", more) if at < len(self.fields) else table.append_column(f"c{at}", more)
        return LocalFrame(self._session, [*self.fields[:at], (name, kind), *self.fields[at + 1 :]], table)

    def places(self, names: Sequence[str]) -> pa.Array | None:
        """Return the place, from 0 on, of each of few rows in ascending order; ``None`` if that needs a query."""
        rows, at = self._rows, self._numbers(names)
        few = isinstance(rows, pa.Table) and rows.num_rows <= FEW_ROWS
        return places_in(rows, {n: self.fields[n][1] for n in at}) if few and at is not None else None

    def share(self) -> None:
        """Compute the rows once, because several will read them."""
        self._shared = True

    def spark(self) -> DataFrame:
        """Return the rows as a DataFrame; many rows should rather be read by Spark, with the tick run again."""
        if self._spark is None:
            if self._table().num_rows > FEW:
                raise TooMany(str(self._table().num_rows))
            HANDING_OVER.get(lambda: None)()
            self._spark = self._session.createDataFrame(with_chunks(self.toArrow()), schema=self.schema)
        return self._spark

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.spark(), name)

    def __getitem__(self, name: Any) -> Any:
        return self.spark()[name]

    # -- implementation -----------------------------------------------------------------

    def _table(self) -> pa.Table:
        if isinstance(self._rows, Query):
            self._rows = self._rows.rows()
        return self._rows

    def _numbers(self, names: Sequence[str]) -> list[int] | None:
        """Return the places of columns among the fields; ``None`` if one of the names is not that of one column."""
        indices = {name.lower(): n for n, name in enumerate(self.columns)}
        at = [indices.get(name.lower(), -1) for name in names]
        return None if min(at, default=0) < 0 or len(indices) < len(self.fields) else at

    def _items(self, texts: Sequence[str]) -> Iterator[Item]:
        for text in texts:
            if text == "*":
                yield from (Item(name, Value(f"c{n}", kind)) for n, (name, kind) in enumerate(self.fields))
            else:
                yield item(text, self.scope)

    def _selected(self, items: Sequence[Item], behind: str = "") -> LocalFrame:
        if any(selected_item.value.type == "void" for selected_item in items):
            raise Untranslated("void")
        fields = [(selected_item.name, selected_item.value.type) for selected_item in items]
        if self._shared:
            self._table()
        if not behind and isinstance(self._rows, pa.Table):
            rows = selected(self._rows, [selected_item.value.sql for selected_item in items])
            if rows is not None:
                return LocalFrame(self._session, fields, rows)
        texts = [selected_item.value.sql for selected_item in items]
        result = self._of(", ".join(called(text, n) for n, text in enumerate(texts)), behind, fields)
        if not behind and (below := self.query.projection) is not None:
            result._rows = replace(result.query, projection=below.over(texts))  # noqa: SLF001 - one of ours
        return result

    def _of(self, what: str = "*", behind: str = "", fields: Sequence[Column] | None = None) -> LocalFrame:
        """Return a query over the rows: its select list, and the text after FROM."""
        rows = self.query
        sql = f"SELECT {what} FROM {rows}{behind}"  # noqa: S608 - translated
        return LocalFrame(self._session, self.fields if fields is None else fields, rows.over(sql))

    def _united(self, other: LocalFrame, *, lacking: bool) -> LocalFrame | None:
        if lacking:
            try:
                return self._beside(other)._united(other._beside(self), lacking=False)  # noqa: SLF001 - one of ours
            except Untranslated:
                return None
        theirs = {name.lower(): (n, kind) for n, (name, kind) in enumerate(other.fields)}
        mine = {name.lower(): kind for name, kind in self.fields}
        if len(mine) != len(self.fields) or mine != {name: kind for name, (_, kind) in theirs.items()}:
            return None
        for one, beside in ((self, other), (other, self)):  # a few rows do not make a query copy many
            if one.known is None and one.sized < (beside.known or 0):
                one._table()  # noqa: SLF001 - one of ours
        both = self._rows, other._rows
        if isinstance(both[0], pa.Table) and isinstance(both[1], pa.Table):
            rows = stacked(both[0], both[1], [theirs[name][0] for name in mine])
            if rows is not None:
                return LocalFrame(self._session, self.fields, rows)
        listed = ", ".join(called(f"c{theirs[name][0]}", n) for n, name in enumerate(mine))
        upper, lower = self.query, other.query
        sql = f"SELECT * FROM {upper} UNION ALL SELECT {listed} FROM {lower}"  # noqa: S608 - names of ours
        return LocalFrame(self._session, self.fields, upper.over(sql, lower))

    def _beside(self, other: LocalFrame) -> LocalFrame:
        """Add the columns of another frame that it lacks, as NULL."""
        mine = {name.lower() for name in self.columns}
        more = [(name, kind) for name, kind in other.fields if name.lower() not in mine]
        nulls = (f", CAST(NULL AS {sql_type(kind)}) AS c{n}" for n, (_, kind) in enumerate(more, len(mine)))
        return self._of(f"*{''.join(nulls)}", fields=[*self.fields, *more])


def is_local(rows: Any) -> TypeGuard[LocalFrame]:
    """Return True for rows on the driver."""
    return isinstance(rows, LocalFrame)


def joined(rows: DataFrame, others: DataFrame, test: str, how: str) -> DataFrame:
    """Join rows with others by a condition of Spark SQL."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark

    local: DataFrame | None = rows.joined(others, test, how) if is_local(rows) and is_local(others) else None
    return rows.join(others, F.expr(test), how) if local is None else local


def _attribute(name: str) -> str:
    """Return a column's name in the form for ``select`` and ``groupBy``: plain, in quotes, or a struct field."""
    return name if name == "*" or "`" in name or "." in name else quoted(name)
