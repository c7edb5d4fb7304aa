"""Predicts how many rows of an insert the gate of their stream will refuse, as far as the log alone tells.

A writer's own clock is known from its log: a row below it is OUT_OF_ORDER, whatever else the stream has (semantics
2.3). The clocks of other writers, guards and event shapes decide about further rows; a forecast counts none of those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from rowtime.client import stream_log
from rowtime.client.log_items import Bound, Entry, Order, Rows
from rowtime.client.writer import EVERYONE
from rowtime.core.columns import ROWTIME
from rowtime.core.stores import Place, content_of
from rowtime.core.time import BEGINNING, END

_UNCERTAIN = ("early", "ahead", "shape")
"""Settings of a stream with which a row need not raise its writer's clock."""


def clock_of(log: Place, writer: str) -> int:
    """Return the strongest bound that a writer has shown so far (µs UTC), from the names of its files.

    END for every writer of a stream that has ended.
    """
    if EVERYONE in stream_log.writers(log):
        everyone = stream_log.last_entry(log, EVERYONE, Bound)
        if isinstance(everyone, Bound) and everyone.at >= END:
            return END
    return max(map(_shown, stream_log.entries_of(log, writer)), default=BEGINNING)


class Forecast:
    """Counts the rows of a writer's inserts that are below its clock. ``definition`` is that of the stream."""

    def __init__(self, log: Place, writer: str, definition: Mapping[str, Any]) -> None:
        self._log, self._writer = log, writer
        self._certain = not any(definition.get(name) is not None for name in _UNCERTAIN)
        self.clock = clock_of(log, writer)
        self.refused = 0

    @property
    def ended(self) -> bool:
        """Return True if the stream, or the writer, has ended: every row is refused."""
        return self.clock >= END

    def take_last(self) -> None:
        """Count the rows of the newest insert, and raise the clock by them."""
        entry = stream_log.last_entry(self._log, self._writer, Rows)
        assert isinstance(entry, Rows)
        if self.ended:
            self.refused += entry.count
        elif self._certain and entry.order is not Order.NONE:
            fits = entry.order is Order.ORDERED and entry.least >= self.clock
            self.refused += 0 if fits else self._below(entry)
        self.clock = max(self.clock, _shown(entry))

    def _below(self, entry: Rows) -> int:
        """Return how many rows are below the clock or a row before them; one without a rowtime has its arrival time."""
        rows = pq.read_table(content_of(self._log / entry.path), partitioning=None, columns=[ROWTIME])
        given = rows[ROWTIME].combine_chunks()
        arrivals = np.int64(entry.arrival)
        times = given.cast("int64").fill_null(arrivals).to_numpy()
        missing = given.is_null().to_numpy(zero_copy_only=False)
        reached = np.maximum.accumulate(np.concatenate([[np.int64(max(self.clock, -(2**63)))], times]))[:-1]
        return int(np.count_nonzero((times < reached) & ~missing))


def _shown(entry: Entry) -> int:
    match entry:
        case Bound(at=at):
            return at
        case Rows(order=Order.NONE, arrival=arrival):
            return arrival
        case Rows(greatest=greatest):
            return greatest
    return BEGINNING
