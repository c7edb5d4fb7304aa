"""What the methods of a frame have in common with those of a Spark DataFrame of the same names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from rowtime.frames.kinds import arrow_of, spark_type
from rowtime.frames.tables import Column, with_chunks
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class SparkNames:
    """Rows with columns ``fields``; each method gives what Spark's does, and raises ``Untranslated`` if it cannot."""

    if TYPE_CHECKING:  # what `Frame` has
        fields: tuple[Column, ...]

        @property
        def columns(self) -> list[str]:
            """The names."""

        _session: SparkSession
        valued: Callable[[Sequence[str]], Self]
        kept: Callable[[str], Self]
        in_order: Callable[[Sequence[str]], Self]
        unionByName: Callable[[Self], Self]  # noqa: N815 - Spark's name
        toDF: Callable[..., Self]  # noqa: N815 - as above
        toArrow: Callable[[], pa.Table]  # noqa: N815 - as above
        grouped: Callable[[Sequence[str], Sequence[str]], Self]
        limit: Callable[[int], Self]

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
        """Return an empty DataFrame with these columns, for Spark's analyzer."""
        rows = pa.table([pa.array([], arrow_of(kind)) for _, kind in self.fields], names=self.columns)
        return self._session.createDataFrame(with_chunks(rows), schema=self.schema)

    def selectExpr(self, *items: str) -> Self:  # noqa: N802 - Spark's name
        """As Spark's."""
        return self.valued(items)

    def select(self, *names: str) -> Self:
        """As Spark's, for names."""
        return self.valued([*map(attribute, names)])

    def where(self, condition: str) -> Self:
        """As Spark's."""
        return self.kept(condition)

    def drop(self, *names: str) -> Self:
        """As Spark's."""
        gone = {name.lower() for name in names}
        return self.valued([quoted(name) for name in self.columns if name.lower() not in gone])

    def withColumnRenamed(self, existing: str, new: str) -> Self:  # noqa: N802 - Spark's name
        """As Spark's."""
        return self.toDF(*(new if name == existing else name for name in self.columns))

    def union(self, other: Self) -> Self:
        """As Spark's: by position."""
        return self.unionByName(other.toDF(*self.columns))

    def distinct(self) -> Self:
        """As Spark's."""
        return self.grouped([*map(quoted, self.columns)], []) if self.columns else self.limit(1)

    def sortWithinPartitions(self, *terms: str) -> Self:  # noqa: N802 - Spark's name
        """As Spark's, with a single partition."""
        return self.in_order(terms)

    def collect(self) -> list[Any]:
        """As Spark's."""
        from pyspark.sql import Row  # noqa: PLC0415 - Spark

        kind = Row(*self.columns)
        return [kind(*row.values()) for row in self.toArrow().to_pylist()]


def attribute(name: str) -> str:
    """Return a column's name in the form for ``select`` and group keys: plain, in quotes, or a struct field."""
    return name if name == "*" or "`" in name or "." in name else quoted(name)
