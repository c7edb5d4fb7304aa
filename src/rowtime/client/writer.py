"""The writer of an embedded stream log: rows and bounds, durable before a call returns.

Any number of processes write to a stream at a time, each under a writer name of its own;
the order of a writer's items is the order of its calls.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowtime.client import bound_items, stream_log
from rowtime.client.arrow_types import INSTANT, arrow_schema
from rowtime.client.file_names import escape
from rowtime.client.home import PRIVATE, Home
from rowtime.client.parquet_statistics import trusted
from rowtime.client.rows import Batch, Rows, batch
from rowtime.client.stream_log import Bound, ColumnBound, Entry, Leave, Order
from rowtime.core.checksums import checksum
from rowtime.core.clock import strict as strictly
from rowtime.core.columns import ARRIVAL, POSITION, ROWTIME
from rowtime.core.errors import refuse
from rowtime.core.ordered_columns import ordered_column
from rowtime.core.shared_paths import sync
from rowtime.core.time import END, to_micros

DEFAULT_WRITER: Final = "main"
EVERYONE: Final = "*"
"""The writer whose bounds are given to each present writer of a stream; it sends no rows (SPEC 2.6)."""

RESERVED: Final = "\U0010ffff"
"""What no name of a writer begins with: streams without a present writer use it inside."""

_TRIES: Final = 5
_PAUSE: Final = 0.02  # seconds


def open_writer(
    stream: str,
    *,
    home: Home | Path | str | None = None,
    writer: str | None = None,
    log: Path | str | None = None,
) -> Writer:
    """Open a writer of a stream, by default the one called ``main``.

    The stream is looked up in the home directory; ``log`` names another directory for its
    log, and then the stream need not be defined. Raises ``Refused``: R202 for a stream that
    is not defined or is no embedded one, R207 for a reserved name, R204 where a process has this writer open.
    """
    if writer is not None and writer.startswith(RESERVED):
        raise refuse("R207", "this writer's name is reserved", "Take a name that begins with another character.")
    found = home if isinstance(home, Home) else Home(home)
    definition = found.definition(stream)
    if log is None:
        _check_embedded(stream, found, definition)
        found.create()
        log = found.log_path(stream)
    schema = arrow_schema(definition) if definition else None
    return Writer(log, writer or DEFAULT_WRITER, schema, definition={**(definition or {}), "name": stream})


def present_writers(home: Home, stream: str) -> list[str]:
    """The writers of a stream's log that have not left, sorted."""
    last = stream_log.last(home.log_path(stream))
    return [name for name, entry in last.items() if name != EVERYONE and not isinstance(entry, Leave)]


def only_writer(home: Home, stream: str) -> str:
    """The one writer that is present, or ``main`` where there is none. Raises ``Refused`` (R144) for several."""
    names = present_writers(home, stream) or [DEFAULT_WRITER]
    if len(names) > 1:
        listed = ", ".join(names)
        what = f"{stream} has several writers, and a bound of a column stands behind the rows of one"
        raise refuse("R144", what, f"Name the writer; there are: {listed}.")
    return names[0]


def _check_embedded(stream: str, home: Home, definition: dict[str, Any] | None) -> None:
    if definition is None:
        known = ", ".join(home.names()) or "none"
        raise refuse("R202", f"{home.path} defines no stream {stream}", f"Streams there: {known}.")
    if definition.get("format"):
        raise refuse(
            "R202",
            f"the stream {stream} is {definition['format']}, not an embedded stream log",
            "Write to it with that system's own clients. A stream over files is ended by rowtime run --end, "
            "by rowtime bound … end --checkpoint DIR, or by OPTIONS (ends 'true').",
        )


class Writer:
    """One writer of a stream log; a context manager; its calls may come from any thread.

    ``schema`` has the declared columns; without one the types are inferred at each insert.
    ``clock`` is the arrival clock, µs UTC: it is raised to its last value where it goes back.
    ``definition`` is that of the stream, with its name; only the bounds of columns need it.
    Operating system errors are raised as ``Failure`` (R501).
    """

    def __init__(
        self,
        log: Path | str,
        name: str = DEFAULT_WRITER,
        schema: pa.Schema | None = None,
        clock: Callable[[], int] = stream_log.wall_clock,
        definition: Mapping[str, Any] | None = None,
    ) -> None:
        self.log, self.name, self.schema = Path(log), name, schema
        self._clock, self._definition = clock, definition or {}
        self._turn = threading.Lock()
        self._directory = self.log / escape(name)
        with stream_log.reading(self.log):
            _make_directory(self._directory)
            self._lock: IO[str] | None = _locked(self._directory / stream_log.LOCK, name)
            try:
                self._recover()
            except BaseException:
                self._lock.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def position(self) -> int:
        """The position of the next item."""
        return self._next

    def insert(self, rows: Rows, rowtime: str | None = None) -> int:
        """Write rows, all or none; returns the position of the first.

        ``rows`` are mappings from column to value, or an Arrow table. The key ``rowtime``,
        or the column that the argument names, gives rowtimes: datetime, ISO text or µs,
        UTC where no zone is said. A row without one gets its arrival time.
        Raises ``Refused``: R205 for an unknown column, R206 for a value that does not fit.
        After a ``Failure``, ``position`` says whether the rows are there.
        """
        ready = batch(rows, self.schema, rowtime)
        with self._writing():
            first = self._next
            if len(ready):
                self._insert(ready)
            return first

    def set_rowtime_bound(self, at: datetime | str | int, strict: bool = False) -> None:  # noqa: FBT001, FBT002 - the published signature
        """Promise that no later row of this writer is earlier than ``at``.

        A strict bound promises that the next row is later. A bound that is weaker than an
        earlier one is written all the same; readers ignore it.
        """
        micros = to_micros(at)
        with self._writing():
            self._stage(lambda _: Bound(self._next, strictly(micros) if strict else micros, arrival=self._tick()))

    def set_bound(self, column: str, at: object, strict: bool = False) -> None:  # noqa: FBT001, FBT002 - as above
        """Promise that no later row of the stream lies behind ``at`` in a column of declared order.

        Behind is below where the column ascends, above where it descends. Later are the rows
        that in stream order come after what this writer has sent. A strict bound rules ``at``
        out as well. Raises ``Refused``: R143 for a column without declared order, R190 where such
        bounds are not read, R206 for a value that does not fit.
        """
        found = ordered_column(self._definition, self._definition.get("name", str(self.log)), column)
        kind = arrow_schema(self._definition).field(found.name).type
        text = bound_items.item(found, kind, at, strict=strict)

        def write(file: IO[bytes]) -> Entry:
            file.write(text.encode())
            return ColumnBound(self._next)

        with self._writing():
            self._stage(write)

    def end(self) -> None:
        """Promise that this writer is done: a bound at infinity."""
        self.set_rowtime_bound(END)

    def close(self, leave: bool = False) -> None:  # noqa: FBT001, FBT002 - the published signature
        """Release the name; with ``leave`` the stream does not wait for this writer any more."""
        if self._lock is None:
            return
        try:
            if leave:
                with self._writing():
                    self._mark(Leave(self._next))
        finally:
            self._lock.close()  # which unlocks
            self._lock = None

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._turn, stream_log.reading(self.log):
            if self._lock is None:
                raise ValueError(f"the writer {self.name} is closed")
            yield

    def _recover(self) -> None:
        """Where the last writer of this name stopped, read from the names of its files."""
        (self._directory / stream_log.UNDER_WAY).unlink(missing_ok=True)
        last = stream_log.last_entry(self.log, self.name)
        timed = [stream_log.last_entry(self.log, self.name, kind) for kind in (stream_log.Rows, Bound)]
        arrivals = [entry.arrival for entry in timed if isinstance(entry, stream_log.Rows | Bound)]
        self._next = last.end if last else 0
        self._arrival = max((at for at in arrivals if at is not None), default=None)
        present = stream_log.shards(self._directory)
        self._shard = present[-1] if present else None
        self._in_shard = len(stream_log.shard_entries(self.log, self.name, present[-1])) if present else 0

    def _insert(self, ready: Batch) -> None:
        def write(file: IO[bytes]) -> Entry:
            # Only now, with the file in sight: see the law of ``stream_log.survey``.
            arrival = self._tick()
            rows = self._stored(ready, arrival)
            pq.write_table(rows, file, store_schema=False, write_statistics=trusted(rows.schema, rows))
            return _entry(self._next, ready, arrival)

        self._stage(write)

    def _stage(self, write: Callable[[IO[bytes]], Entry]) -> None:
        """An entry that arrives, or has a content: its file gets its name when it is complete."""
        staged = self._directory / stream_log.UNDER_WAY
        shard = self._room()
        try:
            with staged.open("wb") as file:
                entry = write(file)
                file.flush()
                if file.tell():
                    os.fsync(file.fileno())
            if isinstance(entry, stream_log.Rows | ColumnBound):
                entry = replace(entry, sum=checksum(staged))
            staged.rename(shard / stream_log.file_name(entry))
            self._written(entry, shard)
        finally:
            staged.unlink(missing_ok=True)

    def _mark(self, entry: Leave) -> None:
        shard = self._room()
        (shard / stream_log.file_name(entry)).touch(exist_ok=False)
        self._written(entry, shard)

    def _written(self, entry: Entry, shard: Path) -> None:
        """Go on after an entry that readers may see from now on, durable or not."""
        self._next = entry.end
        self._in_shard += 1
        sync(shard)

    def _room(self) -> Path:
        """The shard for the next file: a new one where the last one is full."""
        if self._shard is None or self._in_shard >= stream_log.SHARD_FILES:
            _make_directory(self._directory / stream_log.shard_name(self._next))
            self._shard, self._in_shard = self._next, 0
        return self._directory / stream_log.shard_name(self._shard)

    def _tick(self) -> int:
        now = self._clock()
        self._arrival = now if self._arrival is None else max(now, self._arrival)
        return self._arrival

    def _stored(self, ready: Batch, arrival: int) -> pa.Table:
        count = len(ready)
        control = {
            POSITION: pa.array(range(self._next, self._next + count), pa.int64()),
            ARRIVAL: pa.repeat(pa.scalar(arrival, INSTANT), count),
            ROWTIME: ready.rowtimes,
        }
        columns = dict(zip(ready.columns.column_names, ready.columns.columns, strict=True))
        fields = [pa.field(name, array.type) for name, array in control.items()]
        return pa.Table.from_arrays(
            [*control.values(), *columns.values()], schema=pa.schema([*fields, *ready.columns.schema])
        )


def _entry(first: int, ready: Batch, arrival: int) -> stream_log.Rows:
    times = ready.rowtimes.cast(pa.int64())
    least, greatest = pc.min_max(times).as_py().values()
    return stream_log.Rows(first, len(ready), least or 0, greatest or 0, _order(times), arrival)


def _order(times: pa.Array) -> Order:
    if times.null_count == len(times):
        return Order.NONE
    if times.null_count == 0 and not pc.any(pc.less(times[1:], times[:-1])).as_py():
        return Order.ORDERED
    return Order.UNORDERED


def _make_directory(directory: Path) -> None:
    """Create a directory and what is missing above it, durably, private to their owner."""
    if directory.is_dir():
        return
    _make_directory(directory.parent)
    directory.mkdir(mode=PRIVATE, exist_ok=True)
    sync(directory.parent)


def _locked(path: Path, name: str) -> IO[str]:
    """The open lock file; a reader may hold it for a moment (``stream_log.survey``)."""
    file = path.open("a")
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        else:
            return file
    file.close()
    raise refuse(
        "R204",
        f"the writer {name} is open already, in this process or another",
        'Give this one a name of its own, for example writer="second".',
    )
