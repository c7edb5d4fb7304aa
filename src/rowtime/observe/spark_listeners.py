"""Listeners with the methods of Spark's ``StreamingQueryListener``, which get Spark's own events."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)

from rowtime.core.errors import RowtimeError
from rowtime.core.time import wall_clock
from rowtime.observe.observer import Observer, Run
from rowtime.runtime.progress import timestamp

if TYPE_CHECKING:
    from rowtime.runtime.report import TickReport

_UNMEASURED = dict.fromkeys(
    (
        "allUpdatesTimeMs",
        "allRemovalsTimeMs",
        "commitTimeMs",
        "numShufflePartitions",
        "numStateStoreInstances",
    ),
    0,
)
"""Parts of Spark's events that no tick measures: rowtime's state is not a state store of Spark."""


class QueryListener(Protocol):
    """The methods of a listener; a subclass of ``pyspark.sql.streaming.StreamingQueryListener`` has them."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None: ...  # noqa: N802, D102 - Spark's name
    def onQueryProgress(self, event: QueryProgressEvent) -> None: ...  # noqa: N802, D102 - Spark's name
    def onQueryIdle(self, event: QueryIdleEvent) -> None: ...  # noqa: N802, D102 - Spark's name
    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None: ...  # noqa: N802, D102 - Spark's name


class SparkListener(Observer):
    """Tells one such listener."""

    def __init__(self, listener: QueryListener) -> None:
        self.listener = listener

    def started(self, run: Run) -> None:
        """As ``onQueryStarted``."""
        self.listener.onQueryStarted(QueryStartedEvent(*_ids(run), run.name, timestamp(wall_clock()), set()))

    def ticked(self, run: Run, report: TickReport, progress: Mapping[str, Any]) -> None:  # noqa: ARG002
        """As ``onQueryProgress``."""
        self.listener.onQueryProgress(QueryProgressEvent(as_spark(progress)))

    def idle(self, run: Run) -> None:
        """As ``onQueryIdle``."""
        self.listener.onQueryIdle(QueryIdleEvent(*_ids(run), timestamp(wall_clock())))

    def ended(self, run: Run, error: BaseException | None) -> None:
        """As ``onQueryTerminated``; the class of an error is its code."""
        code = error.problems[0].code if isinstance(error, RowtimeError) else None
        self.listener.onQueryTerminated(QueryTerminatedEvent(*_ids(run), None if error is None else str(error), code))


def as_spark(progress: Mapping[str, Any]) -> StreamingQueryProgress:
    """Return the progress of a tick as Spark's object; values that no tick measures are 0, and offsets are JSON."""
    operators = [{**_UNMEASURED, **operator} for operator in progress["stateOperators"]]
    sources = [{"latestOffset": None, **source} for source in progress["sources"]]
    return StreamingQueryProgress.fromJson({**progress, "stateOperators": operators, "sources": sources})


def _ids(run: Run) -> tuple[uuid.UUID, uuid.UUID]:
    return uuid.UUID(run.id), uuid.UUID(run.run_id)
