"""``df.write`` and ``df.writeStream.format("rowtime")``: a Spark job is a writer of a stream log.

Tasks check that the values fit the stream, and the rows of a batch become one insert, all or none. Its item names the
batch and a hash of its content (the *delivery*), so a batch that Spark repeats after a crash is there once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from rowtime.api.data_options import HOME, options_of, stream_of
from rowtime.client.arrow_types import INSTANT, arrow_schema
from rowtime.client.log_items import Bound, Entry, Rows
from rowtime.client.rows import ROWTIME_NAME, batch
from rowtime.client.stream_log import entries_of, last_entry
from rowtime.client.writer import Writer, open_writer
from rowtime.core.errors import Refused, refuse
from rowtime.kernels.hashes import hashes

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # Spark 4.0
    DataSourceStreamArrowWriter = object  # type: ignore[assignment,misc]

WRITER: Final = "writer"
ORDER: Final = "orderBy"
UNORDERED: Final = "unordered"
TIME: Final = "rowtime"
BOUND: Final = "boundColumn"
OPTIONS: Final = ("path", HOME, WRITER, ORDER, UNORDERED, TIME, BOUND)
_OF_SPARK: Final = ("checkpointLocation", "queryName")  # which Spark passes on
_DIGITS: Final = 7  # of a batch's number in a delivery, hexadecimal; nine are left for the hash of its content

_ORDERED: Final = (
    f'Name the columns that order them: .option("{ORDER}", "at, id"). If any order will do, say so: '
    f'.option("{UNORDERED}", "true").'
)


class Present(Enum):
    """What a log has of a batch; its bound may be missing after a crash."""

    NOTHING = 0
    ROWS = 1
    ALL = 2


@dataclass(frozen=True)
class Sent(WriterCommitMessage):
    """The rows of one task, as a stream of Arrow."""

    rows: bytes


@dataclass(frozen=True)
class Writing:
    """What the options of a write ask for; names of columns are in lower case.

    ``order``: columns that order the rows of a batch; none if they keep the order of the tasks. ``bound``: the column
    whose greatest value in a batch is the bound behind it.
    """

    stream: str
    home: str | None
    writer: str
    order: tuple[str, ...]
    rowtime: str | None
    bound: str | None
    schema: pa.Schema

    @classmethod
    def of(cls, given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> Writing:
        """Return it; raises ``Refused``: R103, R205, R540 to R542 for names and options, R207 for a writer."""
        if overwrite:
            raise refuse("R542", "a stream log cannot be overwritten", 'Write mode("append").')
        options = options_of(given, OPTIONS, _OF_SPARK)
        if not options.get(WRITER):
            hint = f'Name it: .option("{WRITER}", "…"). Each query that writes to the stream needs a name of its own.'
            raise refuse("R541", "a write to a stream log needs the name of its writer", hint)
        if options[WRITER].startswith("pump."):
            raise refuse("R207", "this writer's name is reserved", "Choose a name that does not begin with pump.")
        names = [part.strip().lower() for part in options.get(ORDER.lower(), "").split(",") if part.strip()]
        unordered = options.get(UNORDERED, "false").lower()
        if unordered not in ("true", "false") or (unordered == "true") == bool(names):
            what = f"rows of Spark have no order, and the options {ORDER} and {UNORDERED} do not give them one"
            raise refuse("R541", what, _ORDERED)
        stream, definition = stream_of(options)
        column, bound = (options[name].lower() if (name := key.lower()) in options else None for key in (TIME, BOUND))
        declared = arrow_schema(definition)
        writing = cls(stream, options.get(HOME), options[WRITER], tuple(names), column, bound, declared)
        writing._check(schema)
        return writing

    def _check(self, schema: StructType) -> None:
        kinds = {field.name.lower(): field.dataType.simpleString() for field in schema}
        for name in filter(None, (*self.order, self.rowtime, self.bound)):
            if name not in kinds:
                raise refuse("R205", f"there is no column {name} in what is written", f"There are: {', '.join(kinds)}.")
        for name in self.order:
            if kinds[name].startswith(("array", "map", "struct", "variant")):
                raise refuse("R541", f"{ORDER} names the column {name}, whose type has no order", "Leave it out.")
        if self.bound and kinds[self.bound] != "timestamp":
            hint = f"Cast it: CAST({self.bound} AS TIMESTAMP)."
            raise refuse("R541", f"{BOUND} names the column {self.bound}, which is no TIMESTAMP", hint)
        self.checked(pa.table({name: pa.nulls(0) for name in kinds}))

    def checked(self, rows: pa.Table) -> pa.Table:
        """Return what is inserted; raises ``Refused`` (R205, R206) for columns and values that do not fit."""
        known = {*(name.lower() for name in self.schema.names), self.rowtime or ROWTIME_NAME}
        if self.bound and self.bound not in known:
            rows = rows.drop_columns([name for name in rows.column_names if name.lower() == self.bound])
        batch(rows, self.schema, self.rowtime)
        return rows

    def sent(self, batches: Iterator[pa.RecordBatch]) -> Sent:
        """Check the rows of a task and return them."""
        given = [one for one in batches if one.num_rows]
        if not given:
            return Sent(b"")  # Spark 4.2 fails for None, which its documentation allows
        rows = pa.Table.from_batches(given)
        self.checked(rows)
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_stream(buffer, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
            stream.write_table(rows)
        return Sent(buffer.getvalue().to_pybytes())

    def append(self, messages: Sequence[WriterCommitMessage | None], number: int | None = None) -> None:
        """Insert the rows of all tasks and their bound, unless the batch of this ``number`` is there already.

        Raises ``Refused`` (R219) if it is there with other rows.
        """
        tables = [pa.ipc.open_stream(one.rows).read_all() for one in messages if isinstance(one, Sent) and one.rows]
        rows = pa.concat_tables(tables) if tables else None
        with open_writer(self.stream, home=self.home, writer=self.writer) as writer:
            present = Present.NOTHING
            if number is not None:
                writer.delivery = self._delivery(rows, number)
                present = self._present(writer, number, empty=rows is None)
            if rows is None or present is Present.ALL:
                return
            if present is Present.NOTHING:
                writer.insert(self.checked(self._in_order(rows)), rowtime=self.rowtime)
            if (at := self._bound(rows)) is not None:
                writer.set_rowtime_bound(at)

    def _in_order(self, rows: pa.Table) -> pa.Table:
        """Return the rows by the columns of the order, NULLs last; equal ones by what else they have."""
        if not self.order:
            return rows
        at = {name.lower(): n for n, name in enumerate(rows.column_names)}
        keys = {f"c{n}": rows.column(at[name]) for n, name in enumerate(self.order)} | {
            "hash": pa.array(self._hashes(rows))
        }
        return rows.take(pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys]))

    def _hashes(self, rows: pa.Table) -> Any:
        ready = batch(self.checked(rows), self.schema, self.rowtime)
        times = ready.rowtimes.combine_chunks() if isinstance(ready.rowtimes, pa.ChunkedArray) else ready.rowtimes
        return hashes([*ready.columns.combine_chunks().to_batches()[0].columns, times])

    def _delivery(self, rows: pa.Table | None, number: int) -> str:
        """Return the name of a batch and its content, whatever the order of the rows."""
        if number >= 16**_DIGITS:
            raise refuse(
                "R541", f"the query has reached batch {number:,}", "Start it with a new checkpoint and writer."
            )
        content = (
            b"" if rows is None else np.sum(self._hashes(rows).view(np.uint64)).tobytes() + str(len(rows)).encode()
        )
        return f"{number:0{_DIGITS}x}{blake2b(content, digest_size=8).hexdigest()[_DIGITS:]}"

    def _present(self, writer: Writer, number: int, *, empty: bool) -> Present:
        """Return what the log has of a batch; raises ``Refused`` (R219) if it has, or has passed, other rows."""
        last = last_entry(writer.log, writer.name)
        if last is None or (_is_delivered(last) and _number(last) < number):
            return Present.NOTHING
        items = [one for one in entries_of(writer.log, writer.name) if _is_delivered(one)]
        latest = max(map(_number, items), default=-1)
        if latest < number:
            return Present.NOTHING
        sent = [one for one in items if _number(one) == number]
        if any(one.delivery != writer.delivery for one in sent) or not (sent or empty):
            raise self._other(number, latest)
        return Present.ROWS if number == latest and isinstance(sent[-1], Rows) else Present.ALL

    def _other(self, number: int, last: int) -> Refused:
        what = (
            f"the writer {self.writer} of {self.stream} is at batch {last}, and has sent batch {number} with other rows"
        )
        hint = (
            "A query with a new checkpoint begins at batch 0 again: give it a writer of its own. A query that goes on "
            "has to compute the same rows again: leave out functions such as rand() and current_timestamp()."
        )
        return refuse("R219", what, hint)

    def _bound(self, rows: pa.Table) -> int | None:
        if self.bound is None:
            return None
        [column] = [rows.column(n) for n, name in enumerate(rows.column_names) if name.lower() == self.bound]
        at: int | None = pc.max(column.cast(INSTANT).cast(pa.int64())).as_py()
        return at


class BatchSink(DataSourceArrowWriter):
    """Appends the rows of a DataFrame."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Return the rows of a task."""
        return self._writing.sent(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Append the rows of all tasks."""
        self._writing.append(messages)


class StreamSink(DataSourceStreamArrowWriter):
    """Appends each batch of a streaming query once; raises ``Refused`` (R212) before Spark 4.1."""

    def __init__(self, writing: Writing) -> None:
        if DataSourceStreamArrowWriter is object:
            hint = "Use Spark 4.1 or later, or rt.writer(…) in foreachBatch."
            raise refuse("R212", "Spark 4.0 gives the rows of streaming queries to Python one by one", hint)
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Return the rows of a task."""
        return self._writing.sent(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Append the rows of all tasks, unless the batch is there."""
        self._writing.append(messages, batchId)


def _is_delivered(entry: Entry) -> TypeGuard[Rows | Bound]:
    return isinstance(entry, Rows | Bound) and bool(entry.delivery)


def _number(entry: Rows | Bound) -> int:
    return int(entry.delivery[:_DIGITS], 16)
