"""The ``foreachBatch`` driver: Spark's streaming queries call the engine's one tick.

Spark replays a batch with the same id and rows until its own commit; the journal entry
comes before that, so a batch that Spark repeats after a crash is already committed and is
left out. Direct sources of the same pipeline are asked in every tick as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rowtime.runtime.sources.batches import BatchSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from rowtime.runtime.engine import Engine, TickReport


class BatchDriver:
    """Runs one Spark streaming query for each handed DataFrame; ticks are taken in turn."""

    def __init__(self, engine: Engine, tell: Callable[[TickReport], None]) -> None:
        self._engine, self._tell = engine, tell
        self._turn = threading.Lock()
        self._queries: list[StreamingQuery] = []

    @property
    def sources(self) -> Mapping[str, BatchSource]:
        """The handed DataFrames by stream."""
        return {name: s for name, s in self._engine.sources.items() if isinstance(s, BatchSource)}

    def start(self, *, available_now: bool) -> None:
        """Start the streaming queries, with their checkpoints below ours."""
        for name, source in self.sources.items():
            place = self._engine.checkpoint.folder / "spark" / name
            writer = source.frame.writeStream.foreachBatch(self._handler(source))
            writer = writer.option("checkpointLocation", str(place)).queryName(f"rowtime {name}")
            writer = writer.trigger(availableNow=True) if available_now else writer
            self._queries.append(writer.start())

    def await_end(self, stop: threading.Event) -> None:
        """Wait until every query has ended by itself, or ``stop`` is set; errors are raised."""
        while any(query.isActive for query in self._queries) and not stop.wait(0.1):
            self._raise()
            if len(self.sources) < len(self._engine.sources):
                self._between()
        for query in self._queries:
            query.stop()
        self._raise()

    def _between(self) -> None:
        """A tick of the direct sources, between batches."""
        with self._turn:
            report = self._engine.tick()
        if report is not None:
            self._tell(report)

    def _handler(self, source: BatchSource) -> Callable[[DataFrame, int], None]:
        def handle(rows: DataFrame, number: int) -> None:
            with self._turn:
                kept = rows.persist()
                try:
                    source.hand(number, kept, kept.count())
                    report = self._engine.tick()
                finally:
                    source.drop()
                    kept.unpersist()
            self._engine.hook("before Spark's commit")
            if report is not None:
                self._tell(report)

        return handle

    def _raise(self) -> None:
        for query in self._queries:
            error = query.exception()
            if error is not None:
                raise error
