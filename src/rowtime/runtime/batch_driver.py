"""The ``foreachBatch`` driver: Spark's streaming queries call the engine's one tick.

Spark replays a batch with the same id and rows until its own commit. The journal entry comes before that, so a batch
that Spark repeats after a crash is already committed and is skipped. Every tick also reads the direct sources of the
same pipeline.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from rowtime.core.stores import ObjectPlace
from rowtime.runtime.engine import Engine
from rowtime.runtime.report import TickReport
from rowtime.runtime.sources.batches import BatchSource
from rowtime.runtime.spark_paths import url_for_spark
from rowtime.state.checkpoint import folder_of

POLL = 0.1  # seconds


class BatchDriver:
    """Runs one Spark streaming query for each given DataFrame; their ticks take turns.

    ``tell`` is called with each tick, ``idle`` when the direct sources had nothing to do. Once ``ordered``
    returns True, the plan is to change, and no tick follows.
    """

    def __init__(
        self,
        engine: Engine,
        tell: Callable[[TickReport], None],
        idle: Callable[[], None],
        ordered: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine, self._tell, self._idle, self._ordered = engine, tell, idle, ordered
        self._turn = threading.Lock()
        self._queries: list[StreamingQuery] = []
        self._started, self._over = threading.Event(), False
        self._error: Exception | None = None

    @property
    def sources(self) -> Mapping[str, BatchSource]:
        """Return the given DataFrames by stream."""
        return {name: s for name, s in self._engine.sources.items() if isinstance(s, BatchSource)}

    def run(self, stop: threading.Event, *, available_now: bool) -> bool:
        """Run until ``stop`` is set or every query has ended; return False if it ends because the plan is to change.

        Raises the error of a query that failed.
        """
        try:
            self._start(available_now=available_now)
            while any(query.isActive for query in self._queries) and not stop.wait(POLL):
                self._raise()
                if self._ordered():
                    return False
                if not self._between():
                    self._idle()
            self._raise()
            while available_now and not stop.is_set() and self._between():
                pass  # read the rest of the direct sources
            return True
        finally:
            self._halt()

    def process_all(self) -> None:
        """Wait until the streaming queries have delivered the available rows."""
        self._started.wait()
        for query in self._queries:
            query.processAllAvailable()

    def _start(self, *, available_now: bool) -> None:
        """Start the streaming queries, with their checkpoints below ours."""
        for name, source in self.sources.items():
            place = self._engine.checkpoint.folder / "spark" / folder_of(name)
            location = url_for_spark(place) if isinstance(place, ObjectPlace) else str(place)
            writer = source.frame.writeStream.foreachBatch(self._handler(source))
            # Names of running queries are unique in a session, and so is the folder.
            writer = writer.option("checkpointLocation", location).queryName(f"rowtime {name} {place.parent.parent}")
            writer = writer.trigger(availableNow=True) if available_now else writer
            self._queries.append(writer.start())
        self._started.set()

    def _between(self) -> bool:
        """Run a tick of the direct sources, between batches; return True if there was something to do."""
        if len(self.sources) == len(self._engine.sources):
            return False
        with self._turn:
            report = self._engine.tick()
        if report is not None:
            self._tell(report)
        return report is not None

    def _handler(self, source: BatchSource) -> Callable[[DataFrame, int], None]:
        def handle(rows: DataFrame, number: int) -> None:
            try:
                report = self._tick(source, rows, number)
                self._engine.hook("before Spark's commit")
            except Exception as error:
                self._error = self._error or error  # Spark would wrap it in an error of its own
                raise
            if report is not None:
                self._tell(report)

        return handle

    def _tick(self, source: BatchSource, rows: DataFrame, number: int) -> TickReport | None:
        with self._turn:
            if self._over:
                raise InterruptedError("the pipeline has been stopped; Spark repeats this batch at the next start")
            kept = source.in_order(rows).persist()
            try:
                source.hand(number, kept)
                return self._engine.tick()
            finally:
                source.drop()
                kept.unpersist()

    def _halt(self) -> None:
        self._started.set()  # so that nobody waits after a failure
        with self._turn:  # the current tick ends; none follows
            self._over = True
        for query in self._queries:
            query.stop()

    def _raise(self) -> None:
        for query in self._queries:
            error = query.exception()
            if error is not None:
                raise self._error or error
