"""Files of a lake table in the form for Spark: Parquet, and partition columns, whose values are in the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowtime.runtime.sources.file_places import reach_all
from rowtime.runtime.sources.files import FilesSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.runtime.sources.contract import Slice

THE_WRITER: Final = "table"


class TableFiles(FilesSource):
    """Reads numbered files of a table; each is given by its whole path, so no folder is searched."""

    copies = False
    writer = THE_WRITER

    def __init__(self, columns: Sequence[tuple[str, str]], rowtime: str = "") -> None:
        super().__init__("parquet", {"path": "/", "rowtime.column": rowtime}, columns, Path("/"))

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return the rows of some files, with their positions; partition columns as in the log."""
        reach_all(spark, (path for _, path, _ in part.detail["files"]), "the lake table at")
        return super().read(spark, part)
