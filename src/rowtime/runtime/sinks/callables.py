"""Sinks inside the process: a Python function, a table in memory, the console.

A function is called once a tick, after the commit, with the rows as an Arrow table in stream order. After a crash
between commit and call it is called again with the same rows and the same sequence numbers: at least once, and
``batch.first`` shows repeats.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowtime.core.errors import Failure, Problem, headline
from rowtime.core.stores import Place
from rowtime.core.time import to_text
from rowtime.runtime.plain_rows import plain_rows
from rowtime.state.checkpoint import folder_of
from rowtime.state.files import sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.sinks.sink import Sink as SinkNode
    from rowtime.runtime.sinks.contract import Batch


_LINES: Final = 1000  # rows that a tick prints


class FunctionSink:
    """Calls ``function(batch)`` for every tick that has rows or moves the bound."""

    def __init__(self, function: Callable[[Batch], object], name: str) -> None:
        self._function, self._name = function, name

    def folder(self, checkpoint: Place) -> Place:
        """Return a folder in the checkpoint: the rows stay there until the next commit."""
        return checkpoint / "handover" / folder_of(self._name)

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002
        """Call the function; its error becomes a ``Failure`` (R509) that names the sink."""
        try:
            self._function(batch)
        except Exception as error:
            hint = "Fix the function. The rows are committed: the next start calls it with the same rows again."
            what = f"the function of {self._name.removesuffix('.sink')} raised {headline(error)}"
            raise Failure(Problem("R509", what, hint=hint)) from error
        if batch.files:
            sweep(batch.files[0].parent, [file.name for file in batch.files])

    def recover(self, staged: Sequence[str]) -> None:
        """Do nothing: files that no commit names are overwritten or removed."""


class MemorySink(FunctionSink):
    """Keeps the rows in memory, for notebooks and tests: ``table`` has all of them so far."""

    def __init__(self, name: str) -> None:
        super().__init__(self._take, name)
        self.batches: list[tuple[int, pa.Table]] = []
        self.bound: int | None = None

    def _take(self, batch: Batch) -> None:
        self.bound = batch.bound
        if batch.count:
            self.batches.append((batch.first, batch.table()))

    @property
    def table(self) -> pa.Table | None:
        """Return all rows of this process, in stream order; ``None`` before the first."""
        return pa.concat_tables(table for _, table in self.batches) if self.batches else None


class ConsoleSink(FunctionSink):
    """Prints the rows, a line each."""

    def __init__(self, name: str) -> None:
        super().__init__(self._print, name)

    def _print(self, batch: Batch) -> None:
        if not batch.count:
            return
        for row in plain_rows(batch.table().slice(0, _LINES)):
            cells = (f"{name}={_cell(value)}" for name, value in row.items())
            sys.stdout.write("  ".join(cells) + "\n")
        if batch.count > _LINES:
            sys.stdout.write(f"… {batch.count - _LINES} more rows, up to {to_text(batch.bound)}\n")
        sys.stdout.flush()


def _cell(value: object) -> str:
    replace = getattr(value, "replace", None)
    if hasattr(value, "tzinfo") and replace is not None:
        return str(replace(tzinfo=None))
    return "NULL" if value is None else str(value)
