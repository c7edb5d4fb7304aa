"""The writer of an embedded stream log: rows and bounds, durable before a call returns.

Any number of processes can write to a stream concurrently, each under its own writer name; the order of a writer's
items is the order of its calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.client import bound_items, log_items, stream_log
from rowtime.client.arrow_types import INSTANT, arrow_schema
from rowtime.client.given_rows import Given
from rowtime.client.home import Home
from rowtime.client.log_contract import Item, Pen, reading
from rowtime.client.log_items import Bound, ColumnBound, Leave, Order
from rowtime.client.rows import Batch, batch
from rowtime.core.clock import NOBODY
from rowtime.core.clock import strict as strictly
from rowtime.core.columns import ARRIVAL, POSITION, ROWTIME
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.ordered_columns import ordered_column
from rowtime.core.stores import Place, place_of
from rowtime.core.time import END, MAX_MICROS, to_micros, wall_clock

DEFAULT_WRITER: Final = "main"
EVERYONE: Final = "*"
"""The writer whose bounds apply to each present writer of a stream; it sends no rows (semantics 2.6)."""
_FIRST: Final = "That home is empty: a stream is defined when a script with its CREATE STREAM starts. Start it first."
_LAST: Final = (1 << 63) - 1  # the greatest position of a row


def open_writer(
    stream: str,
    *,
    home: Home | Place | str | None = None,
    writer: str | None = None,
    log: Place | str | None = None,
) -> Writer:
    """Open a writer of a stream, by default the one called ``main``.

    The stream is looked up in the home. ``log`` names another place for its log; the stream need not be defined then.
    Raises ``Refused``: R202 if the stream is not defined or is not a stream log, R207 for a reserved name, R204 if a
    process has this writer open. In a bucket there is no lock: there the slower of two processes with one name is
    refused when it writes (R214).
    """
    if writer is not None and writer.startswith(NOBODY):
        raise refuse("R207", "this writer's name is reserved", "Choose a name that begins with another character.")
    opened = home if isinstance(home, Home) else Home(home)
    definition = opened.definition(stream)
    if log is None:
        _check_embedded(stream, opened, definition)
        opened.create()
        log = opened.log_path(stream)
    schema = arrow_schema(definition) if definition else None
    return Writer(log, writer or DEFAULT_WRITER, schema, definition={**(definition or {}), "name": stream})


def present_writers(home: Home, stream: str) -> list[str]:
    """Return the writers of a stream's log that have not left, sorted."""
    last = stream_log.last(home.log_path(stream))
    return [name for name, entry in last.items() if name != EVERYONE and not isinstance(entry, Leave)]


def only_writer(home: Home, stream: str) -> str:
    """Return the one present writer, or ``main`` if there is none. Raises ``Refused`` (R144) for several."""
    names = present_writers(home, stream) or [DEFAULT_WRITER]
    if len(names) > 1:
        listed = ", ".join(names)
        what = f"{stream} has several writers, and a bound of a column follows the rows of one writer"
        raise refuse("R144", what, f"Name the writer; there are: {listed}.")
    return names[0]


def _check_embedded(stream: str, home: Home, definition: dict[str, Any] | None) -> None:
    if definition is None:
        names = ", ".join(home.names())
        hint = f"Streams there: {names}." if names else _FIRST
        raise refuse("R202", f"{home.path} defines no stream {stream}", home.elsewhere(stream) or hint)
    if definition.get("format"):
        raise refuse(
            "R202",
            f"the stream {stream} has the format {definition['format']}, and a writer needs an embedded stream log",
            "Put files into its folder, or write with the clients of that system. A stream over files is ended by "
            "rowtime run --end, by rowtime bound … end --checkpoint DIR, or by OPTIONS (ends 'true').",
        )


class Writer:
    """One writer of a stream log; a context manager; its calls may come from any thread.

    ``schema`` has the declared columns; without one the types are inferred at each insert.
    ``clock`` is the arrival clock, µs UTC: it is raised to its last value where it goes back.
    ``definition`` is that of the stream, with its name; only the bounds of columns need it. A pump sets ``delivery``
    (`log_items`).
    Operating system errors are raised as ``Failure`` (R501; R422 for a full disk), those of a store with their own
    codes. Each call raises ``Refused``: R217 once the writer is closed, R214 once another process has written in a
    bucket under the same name.
    """

    def __init__(
        self,
        log: Place | str,
        name: str = DEFAULT_WRITER,
        schema: pa.Schema | None = None,
        clock: Callable[[], int] = wall_clock,
        definition: Mapping[str, Any] | None = None,
    ) -> None:
        self.log, self.name, self.schema = place_of(log, "the log"), name, schema
        self._clock, self._definition = clock, definition or {}
        self._turn = threading.Lock()
        self._pen: Pen = stream_log.opened(self.log).pen(name)
        self._open, self._arrival = True, self._pen.arrival
        self.delivery = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def position(self) -> int:
        """The position of the next item; a store is asked whether the last one is there if its answer was lost."""
        with self._turn:
            self._pen.settle()
            return self._pen.next

    @property
    def link(self) -> str:
        """The link of the last item (`log_items`); empty before the first one."""
        return self._pen.link

    def insert(self, rows: Given, rowtime: str | None = None) -> int:
        """Write rows, all or none; returns the position of the first.

        ``rows`` are mappings from column to value, a table of Arrow, pandas or Polars, or lines of JSON (text or UTF-8
        bytes). Of pandas, NaN and NaT are null, and an index becomes columns if it has names. The key ``rowtime``,
        or the column that the argument names, gives rowtimes: datetime, ISO text or µs,
        UTC if it has no zone. A row without one gets its arrival time.
        Raises ``Refused``: R205 for an unknown column, R206 for a value that does not fit, R216 for what are
        no rows. After a ``Failure``, ``position`` says whether the rows are there.
        """
        ready = batch(rows, self.schema, rowtime)
        with self._writing() as pen:
            first = pen.next
            if len(ready):
                pen.put(lambda: self._item(ready, first))
            return first

    def set_rowtime_bound(self, at: datetime | str | int, strict: bool = False) -> None:  # noqa: FBT001, FBT002 - the published signature
        """Promise that no later row of this writer is earlier than ``at``.

        A strict bound promises that the next row is later. A bound that is weaker than an
        earlier one is written nevertheless; readers ignore it.
        """
        micros = to_micros(at)
        at = strictly(micros) if strict else micros
        with self._writing() as pen:
            pen.put(lambda: (Bound(pen.next, at, arrival=self._tick(), delivery=self.delivery), b""))

    def set_bound(self, column: str, at: object, strict: bool = False) -> None:  # noqa: FBT001, FBT002 - as above
        """Promise that no later row of the stream lies behind ``at`` in a column of declared order.

        Behind is below where the column ascends, above where it descends. Later are the rows
        that in stream order come after what this writer has sent. A strict bound rules ``at``
        out as well. Raises ``Refused``: R143 for a column without declared order, R190 where such
        bounds are not read, R206 for a value that does not fit.
        """
        ordered = ordered_column(self._definition, self._definition.get("name", str(self.log)), column)
        kind = arrow_schema(self._definition).field(ordered.name).type
        text = bound_items.item(ordered, kind, at, strict=strict)
        with self._writing() as pen:
            pen.put(lambda: (ColumnBound(pen.next), text.encode()))

    def end(self) -> None:
        """Promise that this writer is done: a bound at infinity."""
        self.set_rowtime_bound(END)

    def close(self, leave: bool = False) -> None:  # noqa: FBT001, FBT002 - the published signature
        """Release the name; with ``leave`` the stream does not wait for this writer any more."""
        if not self._open:
            return
        try:
            if leave:
                with self._writing() as pen:
                    pen.put(lambda: (Leave(pen.next), b""))
        finally:
            self._open = False
            self._pen.close()

    def fence(self) -> None:
        """See to it that a process which opened this writer before writes nothing more; on a disk the lock does."""
        with self._writing() as pen:
            pen.fence()

    @contextmanager
    def _writing(self) -> Iterator[Pen]:
        with self._turn, reading(self.log):
            if not self._open:
                raise refuse("R217", f"the writer {self.name} of {self.log} is closed", "Open a new one: rt.writer(…).")
            self._pen.settle()
            yield self._pen

    def _item(self, ready: Batch, first: int) -> Item:
        if first + len(ready) > _LAST:
            raise self._unusable(f"has reached position {first:,}")
        arrival = self._tick()
        return replace(_entry(first, ready, arrival), delivery=self.delivery), self._stored(ready, first, arrival)

    def _unusable(self, why: str) -> Failure:
        return Failure(Problem("R501", f"the stream log {self.log} cannot be used: its writer {self.name} {why}"))

    def _tick(self) -> int:
        now = self._clock()
        self._arrival = now if self._arrival is None else max(now, self._arrival)
        if self._arrival > MAX_MICROS:
            raise self._unusable("has an arrival time after the year 9999")
        return self._arrival

    def _stored(self, ready: Batch, first: int, arrival: int) -> pa.Table:
        count = len(ready)
        control = {
            POSITION: pa.array(range(first, first + count), pa.int64()),
            ARRIVAL: pa.repeat(pa.scalar(arrival, INSTANT), count),
            ROWTIME: ready.rowtimes,
        }
        columns = dict(zip(ready.columns.column_names, ready.columns.columns, strict=True))
        fields = [pa.field(name, array.type) for name, array in control.items()]
        return pa.Table.from_arrays(
            [*control.values(), *columns.values()], schema=pa.schema([*fields, *ready.columns.schema])
        )


def _entry(first: int, ready: Batch, arrival: int) -> log_items.Rows:
    times = ready.rowtimes.cast(pa.int64())
    least, greatest = pc.min_max(times).as_py().values()
    return log_items.Rows(first, len(ready), least or 0, greatest or 0, _order(times), arrival)


def _order(times: pa.Array) -> Order:
    if times.null_count == len(times):
        return Order.NONE
    if times.null_count == 0 and not pc.any(pc.less(times[1:], times[:-1])).as_py():
        return Order.ORDERED
    return Order.UNORDERED
