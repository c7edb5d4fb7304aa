"""A directory of Parquet, CSV or JSON files: exactly once for anyone who reads it.

Rows are staged in ``_rowtime/`` inside the directory, a name that Spark's readers skip, and
renamed into place after the commit, in stream order. So a plain ``spark.read`` of the
directory shows committed rows only, each once, at any moment; a start after a crash
finishes the renames of the last commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rowtime.core.places import sync
from rowtime.state.files import move, remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.sink import Sink as SinkNode
    from rowtime.runtime.sinks.contract import Batch

STAGING = "_rowtime"


class DirectorySink:
    """Publishing again renames nothing twice: a staged file is in one place or the other."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def folder(self, checkpoint: Path) -> Path:  # noqa: ARG002 - beside the files, so that a rename is enough
        """The staging folder inside the directory."""
        return self.path / STAGING

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002
        """Rename the staged files into place, in order."""
        for file in batch.files:
            if file.exists():
                move(file, self.path / f"part-{file.name}")
        if batch.files:
            sync(self.path)

    def recover(self, staged: Sequence[str]) -> None:
        """Remove staged files that no commit names."""
        folder = self.path / STAGING
        for file in folder.glob("*") if folder.is_dir() else ():
            if file.name not in staged:
                remove(file)
