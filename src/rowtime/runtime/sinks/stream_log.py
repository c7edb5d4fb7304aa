"""An embedded stream log as a sink: exactly once, with bounds after the rows.

The position in the log is the sequence number of the output, so rows repeated after a crash are skipped; the bound
follows the rows, so pipelines can be chained.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from rowtime.client.arrow_types import arrow_schema
from rowtime.client.file_names import escape
from rowtime.client.home import Home
from rowtime.client.log_contract import OPEN_ALREADY, OVERTAKEN
from rowtime.client.log_items import Bound, Entry, Leave, Order, Rows, link_of
from rowtime.client.rows import batch as rows_of
from rowtime.client.stream_log import entries_of, last_entry
from rowtime.client.writer import Writer
from rowtime.core.counts import counted
from rowtime.core.errors import Refused
from rowtime.core.stores import TRIES, ObjectPlace, Place
from rowtime.core.time import BEGINNING, to_text
from rowtime.runtime.sinks.ownership import Claim, Contents, Proof, Record, changed, check_owner, owner, read, running
from rowtime.state.checkpoint import folder_of
from rowtime.state.files import sweep
from rowtime.state.memory import opened

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rowtime.operators.sinks.sink import Sink as SinkNode
    from rowtime.runtime.sinks.contract import Batch


def writer_of(pump: str) -> str:
    """Return the name under which a pump writes to a log."""
    return f"pump.{pump}"


def count_of(entries: Iterable[Entry]) -> int:
    """Return the number of rows; bounds take positions too."""
    return sum(entry.count for entry in entries if isinstance(entry, Rows))


class StreamLogSink:
    """Writes as one writer of the stream, with the name of the pump."""

    def __init__(self, home: Home, stream: str, pump: str) -> None:
        self._home, self._stream, self._name = home, stream, writer_of(pump)
        self._writer: Writer | None = None
        self._record: Record | None = None
        self._bound = BEGINNING
        self._rows = 0
        self._staging: Place | None = None
        self._before: Record | None = None
        self._least = 0  # rows that the log has by the journal
        self.proof: Proof | None = None  # the content of the log after the last delivery
        self._delivery = ""  # the link of the tick that may be there after it

    def folder(self, checkpoint: Place) -> Place:
        """Return a folder in the checkpoint, until the rows are in the log."""
        self._staging = checkpoint / "handover" / folder_of(self._name)
        return self._staging

    @property
    def _own(self) -> Place:
        return self._home.log_path(self._stream) / escape(self._name)

    def claim(self, claim: Claim) -> Record:
        """Return the record with which the pump may write, and lock its writer. Raises ``Refused``, see `ownership`."""
        target, self._before = f"the stream {self._stream}", read(self._own)
        owner(self._own, claim, target, self._contents)
        self.proof, self._least, self._delivery = claim.proof, claim.least, claim.link
        try:
            self._open()
        except Refused as refused:
            raise (running(claim, target) if refused.problems[0].code == OPEN_ALREADY else refused) from None
        if self._rows < claim.least:
            raise self._changed(claim.least, f"has {self._rows:,} of them")
        # Read it again: another process may have written its record before this one had the lock.
        return owner(self._own, claim, target, self._contents)

    def record(self, record: Record) -> None:
        """Record the owner, before the first row."""
        self._record = record
        if isinstance(self._own, ObjectPlace):
            self._take_place(self._own, record)
        else:
            record.write(self._own)

    def _take_place(self, own: ObjectPlace, record: Record) -> None:
        """Write the record where there are no locks, and make sure that its predecessor writes no more.

        Raises ``Refused`` (R442) if the predecessor has written since this pump asked: the next start continues after
        its rows.
        """
        before = self._before
        if before is not None and before.identity == record.identity:
            return
        record.instead(own, before)
        if before is None:
            return
        try:
            self._open().fence()
        except Refused as refused:
            if refused.problems[0].code != OVERTAKEN:
                raise
            self.close()
            self._open().fence()
            content = self._contents()
            assert content is not None
            replace(record, base=content.rows or 0, clock=content.clock).instead(own, record)
            claim = Claim(record.pump, record.identity, record.place, record.since)
            raise running(claim, f"the stream {self._stream}") from None

    def beyond(self, tick: int, rows: int) -> str:  # noqa: ARG002 - a log counts rows
        """Report rows that the journal does not know; they would be taken for repeats."""
        self._open()
        return f"the log of {self._stream} has {self._rows:,} of its rows" if self._rows > rows else ""

    def _contents(self) -> Contents | None:
        """Return what the writer has written, whoever that was."""
        entries = entries_of(self._home.log_path(self._stream), self._name)
        if not entries:
            return None
        times = [entry.greatest for entry in entries if isinstance(entry, Rows) and entry.order is not Order.NONE]
        bounds = [entry.at for entry in entries if isinstance(entry, Bound) and entry.at > BEGINNING]
        rows, clock = count_of(entries), max([*times, *bounds], default=None)
        return Contents(rows, clock, counted(rows, "rows") + (f" up to {to_text(clock)}" if clock is not None else ""))

    def leave(self, claim: Claim) -> None:
        """Let the writer of a dropped pump leave, unless it has; the stream would wait for it."""
        if self._own.is_dir() and not isinstance(last_entry(self._own.parent, self._name), Leave | None):
            try:
                self.record(self.claim(claim))
            except Refused:
                return  # it belongs to another checkpoint now
            assert self._writer is not None
            self._writer.close(leave=True)
            self._writer = None

    def check(self, node: SinkNode, batch: Batch) -> None:
        """Refuse (R206) rows whose values do not fit the stream, before anything of their tick is committed.

        Values of a declared type all fit, so rows are checked only if a column has another type.
        """
        schema = arrow_schema(self._home.definition(self._stream) or {})
        types = pq.read_schema(opened(batch.files[0])).types[1 if node.rowtime else 0 :]
        if types != schema.types:
            rows_of(self._named(node, batch.table()), schema, node.rowtime or None)

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002
        """Append the missing rows, then the bound; after a failure the present rows are counted again.

        In a bucket an older driver of the same checkpoint may deliver the same rows: each of them is stored once.
        """
        for left in reversed(range(TRIES)):
            try:
                self._append(node, batch)
            except Refused as refused:
                self.close()
                if refused.problems[0].code != OVERTAKEN or not left:
                    raise
            except BaseException:
                self.close()
                raise
            else:
                return

    def _append(self, node: SinkNode, batch: Batch) -> None:
        self._delivery = batch.link
        writer = self._open()
        writer.delivery = batch.link
        end = self._rows + batch.skipped
        if end < batch.first:
            raise self._changed(batch.first - batch.skipped, f"has {self._rows:,} of them")
        if end < batch.first + batch.count:
            table = self._named(node, batch.table())
            table = table.slice(end - batch.first)
            writer.insert(table, rowtime=node.rowtime or None)
            self._rows = batch.first + batch.count - batch.skipped
        if batch.bound > self._bound:
            writer.set_rowtime_bound(batch.bound)
            self._bound = batch.bound
        self.proof = Proof(self._rows, writer.link)
        for file in batch.files:
            file.unlink(missing_ok=True)

    def _named(self, node: SinkNode, table: pa.Table) -> pa.Table:
        """Return the rows with the names of the stream: columns are assigned by position."""
        names = [field["name"] for field in (self._home.definition(self._stream) or {})["columns"]]
        return table.rename_columns([*([node.rowtime] if node.rowtime else []), *names])

    def _open(self) -> Writer:
        if self._writer is None:
            log = self._home.log_path(self._stream)
            schema = arrow_schema(self._home.definition(self._stream) or {})
            self._writer = Writer(log, self._name, schema)
            if self._record is not None:
                check_owner(self._own, self._record, f"the stream {self._stream}")
            entries = entries_of(log, self._name)
            self._rows = self._counted(entries)
            self.proof = Proof(self._rows, self._writer.link)
            self._bound = max((entry.at for entry in entries if isinstance(entry, Bound)), default=BEGINNING)
        return self._writer

    def _counted(self, entries: Sequence[Entry]) -> int:
        """Return how many rows were written: those of the proof, and those after its item.

        Bounds take positions too, so rows are counted, not items. Without a proof, a log whose first items were removed
        has what the journal says. Raises ``Refused`` (R564) if the log does not have
        the item, or if others than those of the last tick follow it. If it was removed with all before it, the next one
        tells.
        """
        begins, known = not entries or entries[0].first == 0, self.proof
        if known is None:
            return count_of(entries) if begins else max(count_of(entries), self._least)
        links = [*map(link_of, entries)] if known.link else []
        at = links.index(known.link) + 1 if known.link in links else 0
        rows = count_of(entries[at:])
        if known.link and not at and not (entries and entries[0].follows == known.link):
            raise self._changed(known.rows, f"has {rows:,} of them" if rows < known.rows else "has others")
        if self._delivery and self._of_another(entries[at:]):
            raise self._changed(max(known.rows, self._least), "has those of another copy of the checkpoint")
        return known.rows + rows if known.link or begins else max(rows, self._least)

    def _of_another(self, entries: Sequence[Entry]) -> bool:
        """Return True if another tick than the last one has delivered the first of these; a fence is no delivery.

        Behind its own are those of later ticks, if the checkpoint is an older copy: `beyond` reports them.
        """
        items = (one for one in entries if isinstance(one, Rows) or (isinstance(one, Bound) and one.at > BEGINNING))
        first = next(items, None)
        return first is not None and first.delivery != self._delivery

    def _changed(self, rows: int, state: str) -> Refused:
        self.close()
        return changed(self._name.removeprefix("pump."), f"the log of the stream {self._stream}", rows, state)

    def close(self) -> None:
        """Release the writer's name for the next run."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def recover(self, staged: Sequence[str]) -> None:
        """Remove staged files of crashed ticks: they never reached the log."""
        if self._staging is not None:
            sweep(self._staging, staged)
