"""``spark.read`` and ``spark.readStream.format("rowtime")``: the committed rows of a stream log, in Spark's tasks.

A position of a log can be read again, so Spark's checkpoint and the log agree after a crash of either. Spark pickles
these objects into its workers. `data_sink` has the other direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from rowtime.api.data_options import HOME, number_of, one_of, options_of, stream_of
from rowtime.api.data_sink import BatchSink, StreamSink, Writing
from rowtime.client.home import Home
from rowtime.core.columns import ARRIVAL, POSITION, ROWTIME, WRITER
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.time import BEGINNING, END
from rowtime.expr.store_assignment import as_read
from rowtime.frames.kinds import arrow_of, named
from rowtime.runtime.sources.contract import Limits, Slice, Source
from rowtime.runtime.sources.stream_log import LINKS, StreamLogSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxFiles,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark 4.0 and 4.1 take all that is there
    ReadAllAvailable = ReadLimit = ReadMaxFiles = ReadMaxRows = None  # type: ignore[assignment,misc]
    SupportsTriggerAvailableNow = object  # type: ignore[assignment,misc]

RELATION: Final = "relation"
START: Final = "startingFrom"
MOST_FILES: Final = "maxFilesPerTrigger"
MOST_ROWS: Final = "maxRowsPerTrigger"
PARTITIONS: Final = "partitions"
OPTIONS: Final = ("path", HOME, RELATION, START, MOST_FILES, MOST_ROWS, PARTITIONS)
ROWS: Final = "rows"
BOUNDS: Final = "bounds"
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
_OURS: Final = ("rowtime", "writer", "position", "arrival")
_BOUND_COLUMNS: Final = (("writer", "string"), ("position", "bigint"), ("bound", "timestamp"), ("ended", "boolean"))
_AFTER: Final = "after"

Offset = Mapping[str, Any]


class RowtimeDataSource(DataSource):
    """The data source ``rowtime``: ``load("clicks")`` names a stream of a home that has no USING.

    Options: ``home``, a folder or a URL (default: ROWTIME_HOME, else ``.rowtime``); ``relation``, ``rows`` or
    ``bounds``; ``startingFrom``, ``earliest`` or ``latest``; ``maxFilesPerTrigger`` and ``maxRowsPerTrigger``, of which
    one may be given (Spark 4.2); ``partitions``, the greatest number of tasks.

    Rows have the columns ``rowtime`` (the time that the writer has given, else the arrival), those of the stream, then
    ``writer``, ``position`` and ``arrival``; the position numbers the items of a writer. A column of the stream with
    one of these names hides ours. Bounds have ``writer``, ``position``, ``bound`` (NULL if the writer has ended) and
    ``ended``. Raises ``Refused``: R103 for an unknown stream, R540 and R541 for options. A query fails with R501 if the
    log has another history than the one that it has read.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "rowtime"

    def schema(self) -> str:
        """Return the columns as DDL."""
        return _Reading.of(self.options).schema

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:  # noqa: FBT001 - Spark's
        """Return what appends a DataFrame; the options are those of `data_sink`."""
        return BatchSink(Writing.of(self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: FBT001, N802 - Spark's
        """Return what appends the batches of a streaming query, each once."""
        return StreamSink(Writing.of(self.options, schema, overwrite=overwrite))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - it is ours
        """Return a reader of what is there now; raises ``Refused`` (R541) if it is to begin behind that."""
        reading = _Reading.of(self.options)
        if reading.start == LATEST:
            hint = f"Leave out {START}, or read a stream: spark.readStream."
            raise refuse("R541", f"a batch that begins with {LATEST} would have no rows", hint)
        return _BatchReader(reading)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's name
        """Return a reader that follows the log."""
        return _StreamReader(_Reading.of(self.options))


@dataclass(frozen=True)
class _Part(InputPartition):
    """What one task reads: whole files of the log, or bounds."""

    source: Source
    part: Slice


@dataclass(frozen=True)
class _Reading:
    """What the options ask for. ``columns``: those of the stream, with Spark's types."""

    stream: str
    home: str | None
    columns: tuple[tuple[str, str], ...]
    relation: str
    start: str
    limits: Limits
    most_parts: int

    @classmethod
    def of(cls, given: Mapping[str, str]) -> _Reading:
        options = options_of(given, OPTIONS)
        stream, definition = stream_of(options)
        columns = tuple((column["name"], named(as_read(column["type"]))) for column in definition["columns"])
        limits = Limits(rows=number_of(options, MOST_ROWS), files=number_of(options, MOST_FILES))
        if limits.rows and limits.files:
            raise refuse("R541", f"{MOST_ROWS} and {MOST_FILES} cannot be given together", "Leave out one of them.")
        relation, start = one_of(options, RELATION, ROWS, BOUNDS), one_of(options, START, EARLIEST, LATEST)
        return cls(stream, options.get(HOME), columns, relation, start, limits, number_of(options, PARTITIONS) or 8)

    @cached_property
    def source(self) -> StreamLogSource:
        return StreamLogSource(Home(self.home).log_path(self.stream), self.columns, from_now=self.start == LATEST)

    @property
    def given(self) -> list[tuple[str, str]]:
        """The columns with their types."""
        if self.relation == BOUNDS:
            return [*_BOUND_COLUMNS]
        hidden = {name.lower() for name, _ in self.columns}
        kinds = dict(zip(_OURS, ("timestamp", "string", "bigint", "timestamp"), strict=True))
        rowtime, *others = ((name, kind) for name, kind in kinds.items() if name not in hidden or name == "rowtime")
        first = [] if "rowtime" in hidden else [rowtime]
        return [*first, *self.columns, *others]

    @property
    def schema(self) -> str:
        return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in self.given)

    def parts(self, part: Slice) -> Sequence[InputPartition]:
        """Return what the tasks read."""
        if self.relation == BOUNDS:
            return [_Part(self.source, part)] if part.bounds else []
        if not part.rows:
            return []
        many = min(self.most_parts, len(part.detail["files"]))
        division = self.source.divided(part, many) if many > 1 else None
        return [_Part(self.source, part)] if division is None else [_Part(*of) for of in division.parts if of[1].rows]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        assert isinstance(partition, _Part)
        if self.relation == BOUNDS:
            yield from _bounds(partition.part).to_batches()
            return
        given = partition.source.given(partition.part)
        if given is None:
            what = f"files of the stream {self.stream} have other columns than the home declares"
            raise Failure(Problem("R501", what, hint="Restore the definition."))
        for table in given[1]:
            yield from self._shaped(table).to_batches()

    def _shaped(self, table: pa.Table) -> pa.Table:
        import pyarrow.compute as pc  # noqa: PLC0415 - in a task

        ours = {
            "rowtime": pc.coalesce(table[ROWTIME], table[ARRIVAL]),
            "writer": table[WRITER],
            "position": table[POSITION],
            "arrival": table[ARRIVAL],
        }
        stored = {name for name, _ in self.columns}
        columns = {name: table[name] if name in stored else ours[name] for name, _ in self.given}
        wanted = {name: arrow_of(kind) for name, kind in self.given}
        return pa.table({name: column.cast(wanted[name]) for name, column in columns.items()})


def _bounds(part: Slice) -> pa.Table:
    """Return the bounds in a part of a log."""
    bounds = [bound for bound in part.bounds if bound.at > BEGINNING]
    columns = {
        "writer": [bound.writer for bound in bounds],
        "position": [bound.position for bound in bounds],
        "bound": [None if bound.at >= END else bound.at for bound in bounds],
        "ended": [bound.at >= END for bound in bounds],
    }
    return pa.table({name: pa.array(columns[name], arrow_of(kind)) for name, kind in _BOUND_COLUMNS})


class _BatchReader(DataSourceReader):
    """Reads what is there when the query is planned."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        part, _ = self._reading.source.discover({}, Limits(), {})
        return self._reading.parts(part)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows a log. An offset has the next position of each writer, and the links of the items before these."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._target: Offset | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        if self._reading.start == EARLIEST:
            return _offset({}, {})
        part, state = self._reading.source.discover({}, Limits(), {})
        return _offset(part.end, state)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limits = self._reading.limits
        if limits.rows:
            return ReadMaxRows(limits.rows)
        return ReadMaxFiles(limits.files) if limits.files else ReadAllAvailable()

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:  # noqa: N802
        """Return how far a batch goes. Raises ``Failure`` (R501) if the log has other items than those before it."""
        at = _offset({}, {}) if start is None else start
        limits = Limits()
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            limits = Limits(rows=limit.max_rows)
        elif ReadMaxFiles is not None and isinstance(limit, ReadMaxFiles):
            limits = Limits(files=limit.max_files)
        part, state = self._source.discover(at[_AFTER], limits, {LINKS: at[LINKS]})
        return self._within(_offset(part.end, state))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        part, state = self._source.discover({}, Limits(), {})
        self._target = _offset(part.end, state)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start[_AFTER] == end[_AFTER]:
            return []
        return self._reading.parts(self._source.between(start[_AFTER], end[_AFTER], {LINKS: end[LINKS]}))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(partition)

    @cached_property
    def _source(self) -> StreamLogSource:
        """The log from any position."""
        source = self._reading.source
        return StreamLogSource(source.log, self._reading.columns)

    def _within(self, end: dict[str, Any]) -> dict[str, Any]:
        """Return an offset, but at most the target of this run: what came later is for the next run."""
        if self._target is None:
            return end
        after, links = dict[str, int](), dict[str, str]()
        for writer in set(end[_AFTER]) & set(self._target[_AFTER]):
            nearest = min((end, self._target), key=lambda of: int(of[_AFTER][writer]))
            after[writer] = nearest[_AFTER][writer]
            links |= {writer: nearest[LINKS][writer]} if writer in nearest[LINKS] else {}
        return {_AFTER: after, LINKS: links}


def _offset(after: Mapping[str, int], state: Mapping[str, Any]) -> dict[str, Any]:
    return {_AFTER: dict(after), LINKS: dict(state.get(LINKS, {}))}
