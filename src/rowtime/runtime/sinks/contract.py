"""What a sink is: rows are staged with the tick, and published after its commit.

Staging writes the rows of a tick to files under names that nobody reads; the journal entry makes them part of the
output; publishing delivers them. A crash between the two is fixed at the next start, which publishes the last entry's
rows again: the very same rows with the same sequence numbers, because they are committed. So each sink defines what a
second publishing does: a directory and a stream log ignore repeats; Kafka and functions get sequence numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rowtime.core.stores import Place
from rowtime.operators.sinks.sink import Sink as SinkNode

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.runtime.sinks.ownership import Claim, Record


@dataclass(frozen=True)
class Batch:
    """Represents the rows that one tick delivers to a sink.

    ``first`` is the sequence number of the first row, counted from 0 over the whole output. ``bound`` (µs UTC): no
    later row has a rowtime below it. ``table`` and ``rows`` are the same rows, in stream order, with ``rowtime`` as the
    first column if the sink has one. ``skipped`` is how many rows below ``first`` were set aside and never delivered
    (`runtime.skipping`). ``link`` identifies them: the target stores it, and the journal has it (`ownership`).
    """

    tick: int
    first: int
    count: int
    bound: int
    files: Sequence[Place]
    table: Callable[[], pa.Table]
    rows: Callable[[], DataFrame]
    skipped: int = 0
    link: str = ""


class Sink(Protocol):
    """The outside end of one sink operator."""

    def folder(self, checkpoint: Place) -> Place:
        """Return where to stage: on the file system where the rows will stay."""
        ...

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:
        """Deliver a committed batch; may be called again with the same one after a crash."""
        ...

    def recover(self, staged: Sequence[str]) -> None:
        """Remove staged files of crashed ticks; ``staged`` are the files of the last commit."""
        ...


@runtime_checkable
class Owned(Protocol):
    """A sink whose target records which pump of which checkpoint writes what (`ownership`)."""

    def claim(self, claim: Claim) -> Record:
        """Claim the target and lock its place; raises ``Refused`` if it is another pump's."""
        ...

    def record(self, record: Record) -> None:
        """Record the owner in the target."""
        ...
