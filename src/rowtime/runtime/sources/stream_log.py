"""The embedded stream log as a source: whole files, chosen by their names alone.

The content of a tick is known without reading a row: positions, bounds, arrival times and the rowtimes' range are in
the names of the files (``client.stream_log``).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rowtime.client import stream_log
from rowtime.client.bound_items import item_text
from rowtime.client.file_names import unescape
from rowtime.client.log_contract import reading
from rowtime.client.log_items import Bound, ColumnBound, Entry, Leave, Order, Rows, link_of
from rowtime.client.stream_log import Seen
from rowtime.client.writer import EVERYONE
from rowtime.core.columns import ARRIVAL, POSITION, ROWTIME, WRITER
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.stores import ObjectPlace, Place
from rowtime.core.time import BEGINNING, END, wall_clock
from rowtime.frames.kinds import holds, named
from rowtime.frames.tables import has
from rowtime.operators.contract import quoted
from rowtime.runtime.sources import contract
from rowtime.runtime.sources.contract import Backlog, BoundItem, Division, Limits, Offsets, Slice, Source, in_shares
from rowtime.runtime.sources.file_places import as_pattern
from rowtime.runtime.sources.statistics import unskipped
from rowtime.sql.generate import literal

# A literal costs nothing per row, but each read adds to the plan; beyond this, the path is used.
FEW_WRITERS: Final = 8
# With limits, a backlog is listed piece by piece, not completely for each small tick.
SHARDS_A_TICK: Final = 2

_LENGTHS: Final = re.compile(r"\b(?:VAR)?CHAR(?:ACTER)?\s*\(\s*\d+\s*\)", re.IGNORECASE)
_WRITER_OF_PATH: Final = r"([^/]+)/(?:s-[0-9]{20}/)?[^/]+$"

_WRITER_FIELD: Final = (WRITER, "string")
FROM_NOW: Final = "from now"
"""In the source's notes once the present end has been found."""

LINKS: Final = "links"
"""In the source's notes: by writer, the link of the last item that was read (`client.log_items`)."""

Taken = Mapping[str, Sequence[Entry]]


class StreamLogSource(Source):
    """A stream log as a ``Source``; ``columns`` are the declared ones with Spark's type texts.

    ``clock`` returns the time of a reading (µs UTC); ``exclude`` names writers not to read; ``from_now``: items that
    exist at the first look are not read, but their bounds count. The detail of a slice: ``files``, relative to the log;
    ``ordered``, true if all their rows have a rowtime and those of no file go back; ``runs``, per writer and file
    ``[first position, count, least rowtime, greatest rowtime, order]`` (0 and 0 where none is given); ``columns``, the
    bounds of columns: ``[writer, position, text]``, if there are any.
    """

    in_band = False
    decodes = False
    gives_rowtime = True

    def __init__(
        self,
        log: Place,
        columns: Sequence[tuple[str, str]],
        clock: Callable[[], int] = wall_clock,
        exclude: Collection[str] = (),
        *,
        from_now: bool = False,
    ) -> None:
        self.log, self.exclude, self.from_now = log, frozenset(exclude), from_now
        self.steady = not stream_log.opened(log).doubt
        self._clock = clock
        self._declared = tuple(columns)
        declared = [f"{quoted(name)} {_LENGTHS.sub('STRING', kind)}" for name, kind in columns]
        self._stored = ", ".join([*declared, f"{POSITION} BIGINT", f"{ARRIVAL} TIMESTAMP", f"{ROWTIME} TIMESTAMP"])
        self._order = [*(quoted(name) for name, _ in columns), ROWTIME, WRITER, POSITION, ARRIVAL]

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:
        """Return the next whole files from ``start`` on, within the limits, but at least one."""
        if self.from_now and FROM_NOW not in state:
            part, links = self._end()
            return part, _linked({**state, FROM_NOW: True}, links)
        # The time comes first: items inserted after the survey began arrive after it.
        now = self._clock() - stream_log.opened(self.log).doubt
        most = None if limits == Limits() else SHARDS_A_TICK
        seen = stream_log.survey(self.log, start, self.exclude, most, state.get(LINKS))
        orders = _orders(seen)
        with reading(self.log):
            taken = _take(self.log, {writer: of_writer.entries for writer, of_writer in seen.items()}, limits)
        orders = _due(orders, seen, taken)
        last = [part[-1] for writer, part in taken.items() if part and part[-1] is seen[writer].entries[-1]]
        stream_log.settle(self.log, [*last, *orders[-1:]])
        part = _ordered(_slice(start, seen, taken, now), orders)
        part = replace(part, backlog=Backlog("rows", part.rows or 0, self._left(seen, taken)))
        state = _linked(state, _links(taken, orders))
        column_bounds = self._column_bounds(taken)
        return (replace(part, detail={**part.detail, "columns": column_bounds}) if column_bounds else part), state

    def between(self, start: Offsets, end: Offsets, state: Mapping[str, Any]) -> Slice:
        """Return the files between two positions; R407 if a start FROM NOW has skipped what was there then."""
        if self.from_now and FROM_NOW in state:
            raise refuse(
                "R407",
                f"{self.log.name} is read FROM NOW, and what held at that moment was not recorded",
                "Only streams that are read from their beginning can be read again.",
            )
        survey = stream_log.survey(self.log, start, self.exclude)
        orders = [entry for entry in _orders(survey) if entry.end <= end.get(EVERYONE, 0)]
        seen = {w: of_writer for w, of_writer in survey.items() if w in end}
        taken = {w: [entry for entry in of_writer.entries if entry.end <= end[w]] for w, of_writer in seen.items()}
        links = state.get(LINKS, {})
        gone = [w for w, at in end.items() if w != EVERYONE and not _covers(taken.get(w, ()), start.get(w), at)]
        gone += [w for w, link in _links(taken, orders).items() if links.get(w, link) != link]
        if gone:
            what = f"the stream log {self.log} does not hold the items of {', '.join(gone)} as they were read"
            raise Failure(Problem("R501", what, hint="Restore the log."))
        part = _ordered(_slice(start, {}, taken, BEGINNING), orders)
        column_bounds = self._column_bounds(taken)
        detail = {**part.detail, "columns": column_bounds} if column_bounds else part.detail
        return replace(part, end=dict(end), detail=detail)

    def _left(self, seen: Mapping[str, Seen], taken: Taken) -> int:
        """Return how many rows follow the taken ones; files not listed yet count by positions, including bounds."""
        listed = (entry for writer, of_writer in seen.items() for entry in of_writer.entries[len(taken[writer]) :])
        left = sum(entry.count for entry in listed if isinstance(entry, Rows))
        with reading(self.log):
            for writer, of_writer in seen.items():
                if not of_writer.to_end and of_writer.entries:
                    newest = stream_log.last_entry(self.log, writer)
                    left += 0 if newest is None else max(0, newest.end - of_writer.entries[-1].end)
        return left

    def _end(self) -> tuple[Slice, Mapping[str, str]]:
        """Return a slice without rows, and the links of the last items.

        It has each writer's last bound, whether it has left, or that it gives no rowtimes.
        """
        entries = stream_log.last(self.log, {*self.exclude, EVERYONE})
        orders = stream_log.entries_of(self.log, EVERYONE)
        stream_log.settle(self.log, [*entries.values(), *orders[-1:]])
        ends = {writer: entry.end for writer, entry in entries.items()}
        with reading(self.log):
            last_bounds = {writer: stream_log.last_entry(self.log, writer, Bound) for writer in entries}
        bounds = tuple(_bounds({writer: [entry] for writer, entry in last_bounds.items() if entry is not None}))
        left = tuple(writer for writer, entry in entries.items() if isinstance(entry, Leave))
        last = {w: e for w, e in entries.items() if isinstance(e, Rows) and e.order is Order.NONE}
        runs = {writer: [[entry.end, 0, 0, 0, entry.order.value]] for writer, entry in last.items()}
        arrived = {writer: entry.arrival for writer, entry in last.items()}
        part = Slice(ends, ends, bounds, arrived=arrived, left=left, rows=0, detail={**_detail({}), "runs": runs})
        return _ordered(part, orders), _links({writer: [entry] for writer, entry in entries.items()}, orders)

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return the rows of a slice: the declared columns, then rowtime, writer, position, arrival.

        Raises ``Failure`` (R524) for a file that is missing or damaged.
        """
        files = _by_writer(part.detail.get("files", ()))
        if not files:
            return spark.createDataFrame([], self._stored).selectExpr(*self._columns("''"))
        stream_log.check(self.log, part.detail["files"])
        if len(files) <= FEW_WRITERS:
            parts = [self._read(spark, paths, literal(unescape(name))) for name, paths in files.items()]
            return reduce(lambda one, other: one.unionAll(other), parts)
        # Once for the URL in which Spark gives the path, and once for the log's own escapes.
        named = f"url_decode(url_decode(regexp_extract(_metadata.file_path, '{_WRITER_OF_PATH}', 1)))"
        return self._read(spark, [path for paths in files.values() for path in paths], named)

    def given(self, part: Slice, columns: Collection[str] | None = None) -> contract.Given | None:  # noqa: ARG002
        """Return the rows of `read` with the types of their columns, read by Arrow; ``None`` if that is not certain."""
        files, fields = part.detail.get("files", ()), self._fields
        if not files or not all(holds(kind) for _, kind in fields):
            return None
        tables = stream_log.rows(self.log, files)
        if not all(has(table, fields) for table in tables):
            return None
        names = [name for name, _ in fields]
        writers = (pa.scalar(unescape(path.split("/", 1)[0]), pa.string()) for path in files)
        of_writers = zip(writers, tables, strict=True)
        placed = (of.select(names).append_column(WRITER, pa.repeat(writer, of.num_rows)) for writer, of in of_writers)
        return [*fields, _WRITER_FIELD], placed

    @property
    def _fields(self) -> list[tuple[str, str]]:
        """The columns of the files, with their types."""
        ours = [(ROWTIME, "timestamp"), (POSITION, "bigint"), (ARRIVAL, "timestamp")]
        return [*((name, named(_LENGTHS.sub("STRING", kind))) for name, kind in self._declared), *ours]

    def divided(self, part: Slice, many: int) -> Division | None:
        """Return parts of whole files, each with a part of each writer's."""
        if not part.detail.get("files") or not all(holds(kind) for _, kind in self._fields):
            return None
        files = iter(part.detail["files"])
        runs = {writer: [(run, next(files)) for run in of_writer] for writer, of_writer in part.detail["runs"].items()}
        shares = {w: in_shares(of_writer, [run[1] for run, _ in of_writer], many) for w, of_writer in runs.items()}
        parts = []
        for number in range(many):
            here = {writer: share for writer, of_writer in shares.items() if (share := of_writer[number])}
            detail = {
                "files": [path for share in here.values() for _, path in share],
                "runs": {writer: [run for run, _ in share] for writer, share in here.items()},
            }
            rows = sum(run[1] for share in here.values() for run, _ in share)
            parts.append((self, replace(part, rows=rows, detail={**part.detail, **detail})))
        return Division([*self._fields, _WRITER_FIELD], parts)

    def finished(self, at: Offsets) -> bool:
        """Return True if every writer has ended its part of the stream, and ``at`` is past that."""
        last = stream_log.last(self.log, {*self.exclude, EVERYONE})
        return bool(last) and all(
            isinstance(entry, Bound) and entry.at >= END and at.get(writer, 0) >= entry.end
            for writer, entry in last.items()
        )

    def _column_bounds(self, taken: Taken) -> list[list[Any]]:
        """Return the bounds of columns; from here on the journal has them."""
        paths = [entry.path for part in taken.values() for entry in part if isinstance(entry, ColumnBound)]
        stream_log.check(self.log, paths)
        reader = stream_log.opened(self.log)
        with reading(self.log):
            return [
                [writer, entry.first, item_text(reader.text(entry.path), self.log / entry.path)]
                for writer, part in taken.items()
                for entry in part
                if isinstance(entry, ColumnBound)
            ]

    def _read(self, spark: SparkSession, paths: Iterable[str], writer: str) -> DataFrame:
        whole = (as_pattern(f"{self.log}/{path}") for path in paths)
        # Arrow writes the proleptic calendar: years before 1900 are not shifted.
        rows = spark.read.schema(self._stored).option("datetimeRebaseMode", "CORRECTED").parquet(*whole)
        return unskipped(rows).selectExpr(*self._columns(writer))

    def _columns(self, writer: str) -> list[str]:
        return [f"{writer} AS {WRITER}" if column == WRITER else column for column in self._order]


def _links(taken: Taken, orders: Sequence[Entry]) -> dict[str, str]:
    """Return the link of the last item of each writer."""
    return {writer: link_of(part[-1]) for writer, part in {**taken, EVERYONE: orders}.items() if part}


def _linked(state: Mapping[str, Any], links: Mapping[str, str]) -> Mapping[str, Any]:
    return {**state, LINKS: {**state.get(LINKS, {}), **links}} if links else state


def _covers(entries: Sequence[Entry], start: int | None, end: int) -> bool:
    """Return True if entries without gaps go from ``start`` to ``end``; without a start, from any position.

    A listing from 0 on begins at the first item that is there, so items before it may be lost.
    """
    if not entries:
        return end == (start or 0)
    return (start is None or entries[0].first == start) and entries[-1].end == end


def _take(log: Place, entries: Taken, limits: Limits) -> dict[str, list[Entry]]:
    """Return the entries within the limits, and the first file of rows even if it is not.

    In the order of arrival over all writers: they advance together, so that no writer's backlog holds back the clock of
    the stream while another's is read.
    """
    taken: dict[str, list[Entry]] = {writer: [] for writer in entries}
    used = Limits(rows=0, files=0, bytes=0)
    for writer, entry in _by_arrival(entries):
        if taken[writer] and isinstance(taken[writer][-1], Leave):
            break  # it comes back: what became certain when it left is certain before its next row
        grown = _with(used, log, entry, limits)
        if used.files and not _fits(grown, limits):
            break
        used = grown
        taken[writer].append(entry)
    return taken


def _with(used: Limits, log: Place, entry: Entry, limits: Limits) -> Limits:
    """Return what is used once the entry is taken; bounds and leaves cost nothing."""
    if not isinstance(entry, Rows):
        return used
    size = _size(log / entry.path) if limits.bytes is not None else 0
    return Limits((used.rows or 0) + entry.count, (used.files or 0) + 1, (used.bytes or 0) + size)


def _size(path: Place) -> int:
    return path.size()[0] if isinstance(path, ObjectPlace) else path.stat().st_size


def _fits(used: Limits, limits: Limits) -> bool:
    pairs = ((used.rows, limits.rows), (used.files, limits.files), (used.bytes, limits.bytes))
    return all(limit is None or (amount or 0) <= limit for amount, limit in pairs)


def _by_arrival(entries: Taken) -> Iterator[tuple[str, Entry]]:
    merged = heapq.merge(*(_stamped(writer, of_writer) for writer, of_writer in entries.items()))
    return ((writer, entries[writer][index]) for _, writer, index in merged)


def _stamped(writer: str, entries: Sequence[Entry]) -> Iterator[tuple[int, str, int]]:
    """Yield (arrival, writer, index); a bound arrives with the rows before it."""
    arrival = BEGINNING
    for index, entry in enumerate(entries):
        arrival = entry.arrival if isinstance(entry, Rows) else arrival
        yield arrival, writer, index


def _slice(start: Offsets, seen: Mapping[str, Seen], taken: Taken, now: int) -> Slice:
    rows = {writer: [entry for entry in part if isinstance(entry, Rows)] for writer, part in taken.items()}
    clocks = {writer: _arrived(of_writer, taken[writer], now) for writer, of_writer in seen.items()}
    return Slice(
        start={**{writer: part[0].first for writer, part in taken.items() if part}, **start},
        end={**start, **{writer: part[-1].end for writer, part in taken.items() if part}},
        bounds=tuple(_bounds(taken)),
        arrived={writer: at for writer, at in clocks.items() if at is not None},
        left=tuple(writer for writer, part in taken.items() if part and isinstance(part[-1], Leave)),
        rows=sum(file.count for part in rows.values() for file in part),
        detail=_detail(rows),
    )


def _orders(seen: dict[str, Seen]) -> Sequence[Entry]:
    """Remove the bounds for every present writer from what was seen, and return them."""
    of_everyone = seen.pop(EVERYONE, None)
    return [] if of_everyone is None else of_everyone.entries


def _due(orders: Sequence[Entry], seen: Mapping[str, Seen], taken: Taken) -> Sequence[Entry]:
    """Return the bounds for every present writer that no unread row precedes: a limit may leave rows for later."""
    first = min((_unread(of, len(taken.get(writer, ()))) for writer, of in seen.items()), default=END)
    return [*takewhile(lambda order: isinstance(order, Bound) and (order.arrival or BEGINNING) < first, orders)]


def _unread(seen: Seen, count: int) -> int:
    """Return the least arrival time that a row behind the first ``count`` entries may have, as far as they tell."""
    left = [entry.arrival for entry in seen.entries[count:] if isinstance(entry, Rows)]
    last = [] if seen.to_end else [entry.arrival for entry in seen.entries[:count] if isinstance(entry, Rows)]
    return min([*left, *last[-1:]], default=END)


def _ordered(part: Slice, orders: Sequence[Entry]) -> Slice:
    """Return the slice with the bounds for every present writer."""
    if not orders:
        return part
    bound = max(entry.at for entry in orders if isinstance(entry, Bound))
    return replace(part, end={**part.end, EVERYONE: orders[-1].end}, bound=bound)


def _bounds(taken: Taken) -> Iterator[BoundItem]:
    for writer, part in taken.items():
        for entry in part:
            if isinstance(entry, Bound):
                yield BoundItem(writer, entry.first, entry.at, entry.arrival)


def _arrived(seen: Seen, taken: Sequence[Entry], now: int) -> int | None:
    """Return the arrival clock of a writer: its last row's, or ``now`` if no earlier row can come."""
    last = max((entry.arrival for entry in taken if isinstance(entry, Rows)), default=None)
    if not seen.to_end or len(taken) < len(seen.entries):
        return last
    return now if last is None else max(now, last)


def _detail(rows: Mapping[str, Sequence[Rows]]) -> dict[str, Any]:
    files = [file for part in rows.values() for file in part]
    return {
        "files": [file.path for file in files],
        "ordered": all(file.order is Order.ORDERED for file in files),
        "runs": {
            writer: [[file.first, file.count, file.least, file.greatest, file.order.value] for file in part]
            for writer, part in rows.items()
            if part
        },
    }


def _by_writer(files: Iterable[str]) -> dict[str, list[str]]:
    """Return the files of each writer's directory."""
    by_writer: dict[str, list[str]] = {}
    for path in files:
        by_writer.setdefault(path.split("/", 1)[0], []).append(path)
    return by_writer
