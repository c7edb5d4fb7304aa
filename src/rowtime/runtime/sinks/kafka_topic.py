"""A Kafka topic as a sink operator's outside end: rows, then the bound to every partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rowtime.core.time import BEGINNING
from rowtime.operators.contract import quoted
from rowtime.runtime.sinks.kafka import write_bound, write_kafka
from rowtime.state.checkpoint import folder_of
from rowtime.state.files import sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.sink import Sink as SinkNode
    from rowtime.runtime.sinks.contract import Batch


class KafkaSink:
    """At least once: after a crash the last tick's rows come again, with the same sequence numbers."""

    def __init__(self, options: Mapping[str, str], stream: str) -> None:
        self._options, self._stream = dict(options), stream
        self._bound, self._folder = BEGINNING, Path()

    def folder(self, checkpoint: Path) -> Path:
        """In the checkpoint, until the next commit."""
        self._folder = checkpoint / "handover" / folder_of(f"kafka-{self._stream}")
        return self._folder

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:
        """Write the rows with their sequence numbers, then the bound; what is in the topic is staged no longer."""
        if batch.count and all(file.exists() for file in batch.files):
            table = batch.table()
            names = [name for name in table.column_names if name != node.rowtime]
            rows = spark.createDataFrame(table)
            number = f"{batch.first}L + monotonically_increasing_id() AS __seq"
            time = f"{quoted(node.rowtime)} AS __t" if node.rowtime else "CAST(NULL AS TIMESTAMP) AS __t"
            rows = rows.coalesce(1).selectExpr(*map(quoted, names), time, number)
            write_kafka(
                rows,
                self._options,
                stream=self._stream,
                first_sequence=batch.first,
                columns=names,
                rowtime_column=node.rowtime or None,
            )
        if batch.bound > self._bound:
            write_bound(spark, self._options, self._stream, batch.bound)
            self._bound = batch.bound
        for file in batch.files:
            file.unlink(missing_ok=True)

    def recover(self, staged: Sequence[str]) -> None:
        """Remove what crashed ticks staged; in a topic there is nothing to undo."""
        sweep(self._folder, staged)
