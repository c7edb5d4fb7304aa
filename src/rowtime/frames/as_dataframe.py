"""The methods of a Spark DataFrame that operators use, for rows on the driver.

What has no translation, and all other methods, are Spark's: the rows become a DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowtime.frames.kinds import arrow_of, spark_type
from rowtime.frames.queries import TooMany
from rowtime.frames.tables import Column, with_chunks
from rowtime.frames.words import Untranslated
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from rowtime.frames.local import LocalFrame

    Rows = DataFrame  # it has the methods of one, and takes its place
else:
    Rows = object

FEW: Final = 100_000  # rows that are sent to Spark as a part of its plan
HANDING_OVER: Final[ContextVar[Callable[[], None]]] = ContextVar("what is done before Spark takes rows over")


class AsDataFrame(Rows):
    """Rows with columns ``fields``."""

    if TYPE_CHECKING:  # what `LocalFrame` has
        fields: tuple[Column, ...]
        _session: SparkSession
        _spark: DataFrame | None
        valued: Callable[[Sequence[str]], LocalFrame]
        in_order: Callable[[Sequence[str]], LocalFrame | None]
        _where: Callable[[str], LocalFrame]
        _table: Callable[[], pa.Table]

    @property
    def sparkSession(self) -> SparkSession:  # noqa: N802 - Spark's name
        """As Spark's."""
        return self._session

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

    def selectExpr(self, *expr: Any) -> DataFrame:  # noqa: N802 - Spark's name
        """As Spark's."""
        try:
            return self.valued(expr)
        except Untranslated:
            return self.spark().selectExpr(*expr)

    def select(self, *columns: Any) -> DataFrame:
        """As Spark's."""
        if not all(isinstance(column, str) for column in columns):
            return self.spark().select(*columns)
        return self.selectExpr(*map(attribute, columns))

    def where(self, condition: Any) -> DataFrame:
        """As Spark's."""
        try:
            if isinstance(condition, str):
                return self._where(condition)
        except Untranslated:
            pass
        return self.spark().where(condition)

    filter = where

    def drop(self, *cols: Any) -> DataFrame:
        """As Spark's."""
        gone = {name.lower() for name in cols}
        return self.selectExpr(*(quoted(name) for name in self.columns if name.lower() not in gone))

    def withColumnRenamed(self, existing: str, new: str) -> DataFrame:  # noqa: N802 - Spark's name
        """As Spark's."""
        return self.toDF(*(new if name == existing else name for name in self.columns))

    def union(self, other: Any) -> DataFrame:
        """As Spark's: by position."""
        if not isinstance(other, AsDataFrame) or len(other.fields) != len(self.fields):
            return self.spark().union(other)
        return self.unionByName(other.toDF(*self.columns))

    unionAll = union  # noqa: N815 - Spark's name

    def sortWithinPartitions(self, *cols: Any, **kwargs: Any) -> DataFrame:  # noqa: N802 - Spark's name
        """As Spark's, with a single partition."""
        rows = self.in_order(cols) if not kwargs and all(isinstance(term, str) for term in cols) else None
        return self.spark().sortWithinPartitions(*cols, **kwargs) if rows is None else rows

    def collect(self) -> list[Any]:
        """As Spark's."""
        from pyspark.sql import Row  # noqa: PLC0415 - Spark

        kind = Row(*self.columns)
        return [kind(*row.values()) for row in self.toArrow().to_pylist()]

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


def attribute(name: str) -> str:
    """Return a column's name in the form for ``select`` and ``groupBy``: plain, in quotes, or a struct field."""
    return name if name == "*" or "`" in name or "." in name else quoted(name)
