"""A running pipeline: like Spark's ``StreamingQuery``, with bounds, the ledger and what waits."""

from __future__ import annotations

import atexit
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from rowtime.api.altering import alter, take_up
from rowtime.api.shown import Ledger, Waits, follow, query_page
from rowtime.core.clock import least
from rowtime.core.errors import headline, refuse
from rowtime.core.log import LOG
from rowtime.core.stores import Place
from rowtime.core.time import to_micros, to_text
from rowtime.observe.logs import Logs
from rowtime.observe.observer import Observer, Observers, Run
from rowtime.observe.spark_listeners import QueryListener, SparkListener
from rowtime.plan.bind.event_time import manual
from rowtime.plan.waiting import PATIENCE, waiting
from rowtime.runtime.batch_driver import BatchDriver
from rowtime.runtime.progress import progress_of
from rowtime.runtime.pulse import Pulse
from rowtime.runtime.retries import Retries, permanent
from rowtime.runtime.sinks.callables import MemorySink
from rowtime.state.liveness import forget_failures, note_failure
from rowtime.state.pump_orders import waiting as waiting_orders
from rowtime.state.settings import put

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from rowtime.api.pipeline import Pipeline
    from rowtime.audit.traced import Trace
    from rowtime.runtime.engine import Engine
    from rowtime.runtime.pump_ordering import Ordered
    from rowtime.runtime.report import TickReport

Listener = Callable[[dict[str, Any]], None]
IDLE = 10.0  # seconds without a tick until listeners get an idle event, as in Spark
ORDERS = 1.0  # seconds between two looks for orders to pumps


class Query:
    """Represents a running pipeline.

    ``listener`` is called with the progress of every tick, with each failure after which the tick is tried again, and
    with ``{"changed": […]}`` after an order to pumps; if it raises, the run ends. ``listeners`` have the methods of
    Spark's ``StreamingQueryListener``.
    """

    def __init__(  # noqa: PLR0913 - the parts of a query, and its options
        self,
        engine: Engine,
        interval: float,
        *,
        available_now: bool = False,
        listener: Listener | None = None,
        listeners: Sequence[QueryListener] = (),
        observers: Sequence[Observer] = (),
        keep: int = 100,
        pipeline: Pipeline | None = None,
    ) -> None:
        self.engine, self._interval, self._available_now = engine, interval, available_now
        self._pipeline = pipeline
        self._listener = listener
        self.id = str(uuid.uuid5(uuid.NAMESPACE_URL, str(engine.checkpoint.folder)))
        self.runId = str(uuid.uuid4())
        self.recentProgress: deque[dict[str, Any]] = deque(maxlen=keep)
        self.exception: BaseException | None = None
        self._stop, self._done = threading.Event(), threading.Event()
        self._alone = False  # True in a thread of its own, where nobody may wait for the error
        self._retries = Retries()
        spark_listeners = [*(() if pipeline is None else pipeline.listeners), *listeners]
        self._logs, self._run = Logs(), Run(engine, self.id, self.runId)
        self._observers = Observers(self._run, [self._logs, *observers, *map(SparkListener, spark_listeners)])
        self._began: int | None = None  # when the last tick began, µs UTC
        self._last_event = time.monotonic()  # when listeners last got an event
        self._asks = 0.0  # when to look for orders again, in monotonic seconds
        self._looks = 0  # how many looks for input found nothing
        self._batch: BatchDriver | None = None

    # -- Spark's names ----------------------------------------------------------------

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return the progress of the newest tick."""
        return self.recentProgress[-1] if self.recentProgress else None

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Return True while the query runs."""
        return not self._done.is_set()

    @property
    def status(self) -> dict[str, Any]:
        """Return what the query does now, in Spark's terms; while a tick fails, also the attempts and the error.

        ``isTriggerActive``: a tick is running. ``isDataAvailable``: it reads something, or rows wait.
        """
        retries, watch = self._retries, self.engine.watch
        if not self.isActive:
            ended = "Stopped" if self.exception is None else f"Terminated with exception: {headline(self.exception)}"
            return {"message": ended, "isDataAvailable": False, "isTriggerActive": False}
        flags = {"isDataAvailable": watch.available, "isTriggerActive": watch.active}
        if retries.error is None:
            waits = "Processing new data" if flags["isDataAvailable"] else "Waiting for data to arrive"
            return {"message": watch.words or waits, **flags}
        return {"message": str(retries), **flags, "attempts": retries.failures, "error": headline(retries.error)}

    @property
    def failing(self) -> BaseException | None:
        """Return the failure after which the tick is tried again; ``None`` if the last attempt succeeded."""
        return self._retries.error

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 - Spark's name
        """Wait for the end; raises the error if the query failed."""
        ended = self.ended(timeout)
        if self.exception is not None:
            raise self.exception
        return ended

    def ended(self, timeout: float | None = None) -> bool:
        """Wait for the end, with or without an error; return False on a timeout."""
        return self._done.wait(timeout)

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """Wait until all available input has been processed and committed; raises the error if the query failed.

        As in Spark, this is for tests and examples: while rows keep coming, it may wait forever.
        """
        while self._batch is None and self._driver().sources and not self._done.wait(0.01):
            pass  # the thread of the query has only just begun
        if self._batch is not None:
            self._batch.process_all()
        wanted = self._looks + 2  # the current look may have begun before the last rows came
        while self._looks < wanted and not self._done.wait(0.01):
            pass
        if self.exception is not None:
            raise self.exception

    def addListener(self, listener: QueryListener) -> None:  # noqa: N802 - Spark's name
        """Add a listener from now on; it has the methods of Spark's ``StreamingQueryListener``."""
        self._observers.known.append(SparkListener(listener))

    def removeListener(self, listener: QueryListener) -> None:  # noqa: N802 - Spark's name
        """Remove a listener."""
        kept = (o for o in self._observers.known if not (isinstance(o, SparkListener) and o.listener is listener))
        self._observers.known = [*kept]

    def stop(self) -> None:
        """Stop after the current tick."""
        self.stop_soon()
        self._done.wait()

    def stop_soon(self) -> None:
        """Stop after the current tick, without waiting for it; a listener may call this."""
        self._stop.set()

    # -- ours -------------------------------------------------------------------------

    @property
    def checkpoint(self) -> Place:
        """Return the folder of the checkpoint."""
        return self.engine.checkpoint.folder

    @property
    def changes(self) -> tuple[str, ...]:
        """Return how the SQL differs from that of the checkpoint before this start; empty if it does not."""
        return self.engine.changes

    @property
    def bounds(self) -> Mapping[str, str]:
        """Return the bound of every operator as text (UTC)."""
        return {name: to_text(least(clocks.values())) for name, clocks in self.engine.entry.get("clocks", {}).items()}

    @property
    def ledger(self) -> Ledger:
        """Return the rows in, accepted and refused by reason, for every gate."""
        return Ledger(self.engine.entry["totals"])

    def set_watermark(self, operator: str, at: datetime | str | int) -> None:
        """Set the bound of an event time in MODE MANUAL, or of the time of a T-sort, from the next tick on.

        It takes effect after everything that earlier ticks have read, and the journal records it with these positions.
        Raises ``Refused`` (R171) for a view whose bound cannot be set.
        """
        micros = to_micros(at)
        put(self.checkpoint, manual(self.engine.plan, operator, micros), micros)

    def alter(self, text: str) -> Ordered:
        """Start and stop pumps by ``ALTER PUMP … START | STOP``, from the next tick on; see `rowtime.alter`."""
        return alter(self.checkpoint, text, self._pipeline)

    def waiting(self, patience: timedelta = timedelta(microseconds=PATIENCE)) -> Waits:
        """Return what is held, by which operator, what it waits for, and how to release it.

        Actions that cannot be undone (a bound, the end of a stream) are named only if a bound has not moved for
        ``patience``.
        """
        limit = patience // timedelta(microseconds=1)
        return Waits(waiting(self.engine.plan, self.engine.entry, self.engine.clock(), limit))

    def rejected(self, gate: str) -> list[Place]:
        """Return the Parquet files with the rows that a gate refused."""
        return self.engine.checkpoint.rejected(gate, self.engine.entry["tick"])

    def table(self, stream: str) -> pa.Table | None:
        """Return the rows of a stream ``USING memory`` so far, for notebooks; ``None`` before the first row."""
        for node in self.engine.program.sinks:
            sink = self.engine.stages[node.name].sink
            if isinstance(sink, MemorySink) and dict(node.options).get("stream") == stream.lower():
                return sink.table
        raise refuse("R103", f"no stream {stream} is kept in memory here", "Create it USING memory and pump into it.")

    def to_pandas(self, stream: str) -> pd.DataFrame | None:
        """Return the rows of a stream ``USING memory`` so far, instants in UTC; ``None`` before the first row."""
        table = self.table(stream)
        return None if table is None else table.to_pandas()

    def to_polars(self, stream: str) -> pl.DataFrame | None:
        """Return the same for polars; raises ``Refused`` (R612) if polars is not installed."""
        table = self.table(stream)
        return None if table is None else in_polars(table)

    def trace(
        self, row: Mapping[str, Any] | str | None = None, *, number: int | None = None, sink: str | None = None
    ) -> Trace:
        """Return what made a row of an output: the row with the sequence ``number``, or the first with these values.

        ``row`` may be a condition instead. ``sink`` may be left out if there is only one. The recorded input is read
        again. Raises ``Refused``: R409 if there is no such row, and the errors of `replay`.
        """
        from rowtime.audit.trace import trace  # noqa: PLC0415 - a trace runs the pipeline again

        assert self._pipeline is not None
        return trace(self._pipeline, self.checkpoint, row, number=number, sink=sink)

    def __repr__(self) -> str:
        return f"Query({self.status['message']}, tick {self.engine.entry['tick']})"

    def _repr_html_(self) -> str:
        """Show in a notebook what the query does now, with its numbers."""
        return query_page(self)

    def _ipython_display_(self) -> None:
        """Show the query in IPython; follow it while it runs."""
        follow(self)

    # -- the loop ---------------------------------------------------------------------

    def start(self) -> Query:
        """Run in a separate thread."""
        # Keep the error for a caller that waits, and log it before the query counts as ended.
        self._alone = self._logs.alone = True
        self._observers.tell(lambda one: one.started(self._run))
        threading.Thread(target=self._guarded, name="rowtime", daemon=True).start()
        stopped_at_exit(self)
        return self

    def run(self) -> None:
        """Run in this thread until there is no more input, or until ``stop`` is called."""
        forget_failures(self.checkpoint)
        if not self._alone:
            self._observers.tell(lambda one: one.started(self._run))
        try:
            self._ran()
        except BaseException as error:
            self.exception = error
            note_failure(self.checkpoint, error, self._retries.failures + 1, ended=True)
            raise
        finally:
            self._observers.tell(lambda one: one.ended(self._run, self.exception))
            self._done.set()

    def _ran(self) -> None:
        try:
            with Pulse(self.engine):
                self._loop()
            self.engine.settle(succeeded=True)  # there may have been nothing to do
        finally:
            self.engine.close()
            self.engine.stop()

    def _guarded(self) -> None:
        with suppress(BaseException):  # the last line of defence in this thread
            self.run()

    def _loop(self) -> None:
        while not self._stop.is_set():
            self._take_up()
            if self._driver().sources:
                if self._batched():
                    return
                continue
            report = self._try()
            if report is not None:
                self._tell(report)
            elif self._available_now:
                return
            else:
                self._idle()
                self._stop.wait(self._interval)

    def _driver(self) -> BatchDriver:
        return BatchDriver(self.engine, self._tell, self._idle, self._ordered)

    def _batched(self) -> bool:
        """Run the ticks that Spark's streaming queries cause; return False after a failure, or if orders wait."""
        try:
            self._batch = self._driver()
            return self._batch.run(self._stop, available_now=self._available_now)
        except Exception as error:
            if self._available_now or permanent(error):
                raise
            self._pause(error)
            return False

    def _ordered(self) -> bool:
        """Return True if orders to pumps wait; look once a second."""
        if self._pipeline is None or time.monotonic() < self._asks:
            return False
        waits = bool(waiting_orders(self.engine.checkpoint.folder, self.engine.plan.orders))
        if not waits:
            self._asks = time.monotonic() + ORDERS
        return waits

    def _take_up(self) -> None:
        """Take up orders to pumps; after a failure that a retry can overcome, the ticks go on until the next look."""
        if self._pipeline is None or not self._ordered():
            return
        try:
            for changes in take_up(self._pipeline, self.engine):
                if self._listener is not None:
                    self._listener({"changed": [*changes]})
        except Exception as error:
            if self._available_now or permanent(error):
                raise
            self._pause(error)
            self._asks = time.monotonic() + IDLE

    def _try(self) -> TickReport | None:
        """Run one tick; in continuous mode, try a failed tick again after a growing pause."""
        try:
            report = self.engine.tick()
        except Exception as error:
            if self._available_now or permanent(error):
                raise
            self._pause(error)
            return None
        self._succeeded()
        return report

    def _pause(self, error: Exception) -> None:
        self._retries.failed(error)
        note_failure(self.checkpoint, error, self._retries.failures, ended=False)
        self._observers.tell(lambda one: one.failed(self._run, self._retries))
        self.recentProgress.append({"failure": headline(error), "failures": self._retries.failures})
        if self._listener is not None:
            self._listener(self.recentProgress[-1])
        self._stop.wait(self._retries.pause)

    def _succeeded(self) -> None:
        if self._retries.failures:
            forget_failures(self.checkpoint)
        self._retries.succeeded()

    def _tell(self, report: TickReport) -> None:
        self._succeeded()
        for stream, files in report.noted.items():
            for file in files:
                extra = {"event": "file", "stream": stream, **file}
                LOG.warning("%s: %s %s: %s", stream, file["code"], file["file"], file["why"], extra=extra)
        progress = progress_of(self.engine, report, self.id, self.runId, self._began)
        self._began, self._last_event = report.cost.began, time.monotonic()
        self.recentProgress.append(progress)
        self._observers.tell(lambda one: one.ticked(self._run, report, progress))
        if self._listener is not None:
            self._listener(progress)

    def _idle(self) -> None:
        """Tell the listeners now and then that there was nothing to do."""
        if self._retries.error is None:
            self._looks += 1
        if time.monotonic() - self._last_event >= IDLE:
            self._last_event = time.monotonic()
            self._observers.tell(lambda one: one.idle(self._run))


def in_polars(table: pa.Table) -> pl.DataFrame:
    """Convert an Arrow table to a DataFrame of polars; raises ``Refused`` (R612) if polars is not installed."""
    try:
        import polars as pl  # noqa: PLC0415 - it is optional
    except ModuleNotFoundError as missing:
        what = "to_polars needs the package polars, which is not installed"
        raise refuse(
            "R612", what, "Install it: pip install polars. query.to_pandas(stream) needs nothing more."
        ) from missing
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


# Stops running queries before Python exits.
#
# At exit, Python ends daemon threads wherever they are. A thread inside deltalake then kills the process with a signal
# (SIGSEGV, or ``terminate called without an active exception``), and a good run looks like a crash.

_PATIENCE: Final = 30.0  # seconds to wait for the current tick


class Stoppable(Protocol):
    """Something that runs in a thread of its own."""

    def stop_soon(self) -> None:
        """Stop after the current tick."""
        ...

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 - Spark's name
        """Wait until it has ended."""
        ...


_running: weakref.WeakSet[Stoppable] = weakref.WeakSet()


def stopped_at_exit(query: Stoppable) -> None:
    """Stop a query when Python exits, before Spark and the interpreter end."""
    if not _running:
        atexit.unregister(_stop)  # handlers run in reverse order, so this one runs early
        atexit.register(_stop)
    _running.add(query)


def _stop() -> None:
    for query in (*_running,):
        query.stop_soon()
    for query in (*_running,):
        with suppress(Exception):  # the error is in the log, and nobody waits for it any more
            query.awaitTermination(_PATIENCE)
