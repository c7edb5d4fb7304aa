"""Files of a lake table as Spark reads them: Parquet, and the columns of partitions, whose values are in the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowtime.core.columns import POSITION
from rowtime.operators.contract import quoted
from rowtime.runtime.sources.file_places import reach_all
from rowtime.runtime.sources.files import FEW_FILES, ROWS_BITS, FilesSource
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.runtime.sources.contract import Slice
    from rowtime.runtime.sources.file_list import NumberedFile

Values = Mapping[str, Mapping[str, str | None]]
"""By the number of a file, as text, the values of its partition."""
THE_WRITER: Final = "table"


class TableFiles(FilesSource):
    """Reads numbered files of a table; each is named by its whole path, so no folder is looked into."""

    writer = THE_WRITER

    def __init__(self, columns: Sequence[tuple[str, str]], rowtime: str = "") -> None:
        super().__init__("parquet", {"path": "/", "rowtime.column": rowtime}, columns, Path("/"))

    def slice_of(self, first: int, taken: Sequence[NumberedFile]) -> Slice:
        """The range of some files that begins at a number, with the values of their partitions."""
        part = super().slice_of(first, taken)
        values = {str(number): dict(file.values) for number, file in enumerate(taken, first) if file.values}
        return replace(part, detail={**part.detail, "values": values})

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """The rows of some files, with their positions; the columns of partitions as the log has them."""
        reach_all(spark, (path for _, path, _ in part.detail["files"]), "the lake table at")
        return with_partitions(super().read(spark, part), part.detail["values"], self.columns)

    def rows(self, part: Slice, wanted: Mapping[str, str]) -> Iterator[pa.Table] | None:
        """See `FilesSource.rows`; ``None`` where a partition is wanted."""
        there = {name.lower() for values in part.detail["values"].values() for name in values}
        return None if there & {column.lower() for column in wanted.values()} else super().rows(part, wanted)


def with_partitions(rows: DataFrame, values: Values, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """Rows of numbered files, with the columns of partitions as the log has them, whatever stands in the files."""
    partitions = {name.lower() for one in values.values() for name in one}
    wanted = {name: of for name, of in columns if name.lower() in partitions}
    if not wanted:
        return rows
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    number, names = f"shiftright({POSITION}, {ROWS_BITS})", rows.columns
    given = [(int(n), [_value(one, name) for name in wanted]) for n, one in values.items()]
    if len(given) <= FEW_FILES:
        entries = (f"{n}L, struct({', '.join(_shown(v) for v in found)})" for n, found in given)
        rows = rows.withColumn("__values", F.expr(f"element_at(map({', '.join(entries)}), {number})"))
        cells = {name: f"__values.col{nth}" for nth, name in enumerate(wanted, 1)}
    else:
        cells = {name: f"__value{nth}" for nth, name in enumerate(wanted, 1)}
        kinds = ", ".join(["__number bigint", *(f"{cell} string" for cell in cells.values())])
        known = rows.sparkSession.createDataFrame([(n, *found) for n, found in given], kinds)
        rows = rows.join(F.broadcast(known), F.expr(f"__number = {number}"), "left")
    cast = {name: f"CAST({cells[name]} AS {of})" for name, of in wanted.items()}
    return rows.selectExpr(*(f"{cast[name]} AS {quoted(name)}" if name in cast else quoted(name) for name in names))


def _value(values: Mapping[str, str | None], name: str) -> str | None:
    return next((value for one, value in values.items() if one.lower() == name.lower()), None)


def _shown(value: str | None) -> str:
    return "CAST(NULL AS STRING)" if value is None else literal(value)
