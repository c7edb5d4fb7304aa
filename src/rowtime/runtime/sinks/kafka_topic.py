"""A Kafka topic as a sink: rows, then the bound to every partition, with the owner's record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession

from rowtime.core.columns import ROWTIME, SEQUENCE
from rowtime.core.counts import counted
from rowtime.core.errors import Failure
from rowtime.core.log import LOG
from rowtime.core.stores import Place
from rowtime.core.time import BEGINNING, MIN_MICROS
from rowtime.operators.contract import quoted
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.plan.bind.sink_options import TopicOptions
from rowtime.runtime.sinks.contract import Batch
from rowtime.runtime.sinks.kafka import write_bound, write_kafka
from rowtime.runtime.sinks.kafka_framing import CHOSEN, Choice, Framing, record_of
from rowtime.runtime.sinks.ownership import Claim, Contents, Record, changed, entitled
from rowtime.runtime.sinks.protobuf_framing import ProtobufFraming
from rowtime.runtime.sinks.topic_owner import TopicEnds, TopicState, owner_header
from rowtime.state.checkpoint import folder_of
from rowtime.state.files import make_folder, sweep

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

KNOWN: Final = "owner.json"  # beside the staged files: the record, and how far the first partition was read
_FORBIDDEN: Final = "AuthorizationException"


class KafkaSink:
    """At least once: after a crash the last tick's rows come again, with the same sequence numbers.

    There is no lock and no transaction, so a pipeline detects a takeover before its next write: it asks for the end of
    the first partition, and reads what others have written there.
    """

    def __init__(self, options: Mapping[str, str], stream: str, choice: Choice | None = None) -> None:
        self._options, self._stream, self._choice = dict(options), stream, choice
        self._bound, self._bounds = BEGINNING, TopicOptions.of(options).bounds
        self._folder: Place = Path()
        self._ends = TopicEnds(options, stream)
        self._target = f"the stream {stream} of the topic {TopicOptions.of(options).topic}"
        self._claim: Claim | None = None
        self._state: TopicState | None = None  # the content at the end of the topic, once it is known
        self._record: Record | None = None
        self._seen, self._topic = 0, ""
        self._blind = False  # the user may not read the topic

    def folder(self, checkpoint: Place) -> Place:
        """Return a folder in the checkpoint, until the next commit."""
        self._folder = checkpoint / "handover" / folder_of(f"kafka-{self._stream}")
        return self._folder

    # -- ownership --------------------------------------------------------------------

    def claim(self, claim: Claim) -> Record:
        """Return the record with which the pump may write. Raises ``Refused``, see `ownership`.

        A pump that has written before may start while the brokers do not answer: then its first tick claims the topic.
        """
        self._claim = claim
        try:
            return self._entitled(claim)
        except Failure as failure:
            self._blind = any(_FORBIDDEN in problem.message for problem in failure.problems)
            if self._blind:
                warning = "rowtime cannot see who writes %s: %s"
                LOG.warning(warning, self._target, failure.problems[0].message, extra={"event": "topic"})
            elif claim.sent is None or any(problem.code != "R501" for problem in failure.problems):
                raise
            remembered = self._remembered()
            return (
                Record(**remembered["record"])
                if remembered
                else Record(claim.pump, claim.identity, claim.place, claim.at)
            )

    def record(self, record: Record) -> None:
        """Record the owner, before the first row."""
        if self._state is not None:
            self._take(record, self._state)

    def beyond(self, tick: int, rows: int) -> str:  # noqa: ARG002 - records have numbers
        """Report rows of this checkpoint that its journal does not know."""
        claim, mine = self._claim, self._record
        if claim is None or mine is None or self._state is None:
            return ""
        expected = mine.base if claim.sent is None else claim.next_row
        more = self._state.next_row_of(mine.identity) - expected
        return f"{self._target} has {more:,} more of its rows" if more > 0 else ""

    def _entitled(self, claim: Claim) -> Record:
        remembered = self._remembered()
        extents, topic = self._ends.ask(everywhere=remembered is None)
        self._compare("" if remembered is None else remembered["topic"], topic, claim.least)
        if remembered is not None and (
            remembered["topic"] != topic or remembered["seen"] > extents[self._ends.first].end
        ):
            remembered, extents = None, self._ends.ask(everywhere=True)[0]  # another topic with that name
        self._topic, self._seen = topic, extents[self._ends.first].end
        if remembered is None:
            owners, before = self._ends.last(extents), None
        else:
            owners, before = self._ends.since(remembered["seen"], extents), Record(**remembered["record"])
        for stream, place in owners.others.items():
            LOG.warning(
                "the pipeline of %s writes the stream %s into the topic of %s: who reads the topic by rowtime loses "
                "rows of the one that is behind; give each a topic of its own",
                place,
                stream,
                self._stream,
                extra={"event": "topic"},
            )
        self._state = owners

        def contents() -> Contents | None:
            rows = counted(owners.next_row, "rows")
            return Contents(None, owners.bound, rows, next_row=owners.next_row) if owners.next_row else None

        record = owners.owner(before)
        self._record = record if record is not None and record.identity == claim.identity else None
        return entitled(record, claim, self._target, contents)

    def _compare(self, before: str, topic: str, rows: int) -> None:
        """Raise ``Refused`` (R564) for another topic with this name, if the one ``before`` had rows of the pump."""
        if rows and topic != before and "" not in (topic, before):
            assert self._claim is not None
            raise changed(self._claim.pump, self._target, rows, "was deleted and created again")

    def _take(self, record: Record, owners: TopicState) -> None:
        """Record the owner, unless it is recorded; of two that begin at once one is refused."""
        assert self._claim is not None
        if self._record is None and not self._bounds:
            self._record = record  # the last row of each tick has it
        elif self._record is None:
            number = max(record.base, self._claim.next_row)
            written = owner_header(record, number)
            write_bound(SparkSession.active(), self._options, self._stream, MIN_MICROS, written, everywhere=False)
            extents, _ = self._ends.ask()
            after = self._ends.since(self._seen, extents)
            self._stay(after.owner(owners.owner()))
            self._record, self._seen = record, extents[self._ends.first].end
        self._remember()

    def _check(self, rows: int) -> None:
        """Raise ``Refused`` (R440, R441) if another checkpoint writes the stream now; claim it if that was not done.

        R564 if the topic has lost the ``rows`` that were written before.
        """
        assert self._claim is not None
        if self._record is None:
            record = self._entitled(self._claim)
            assert self._state is not None
            self._take(record, self._state)
        extents, topic = self._ends.ask()
        self._compare(self._topic, topic, rows)
        if topic != self._topic:  # it was created again
            self._topic, self._seen = topic, 0
        if extents[self._ends.first].end > self._seen:
            owner = self._ends.since(self._seen, extents).owner(self._record)
            self._stay(owner)
        self._seen = extents[self._ends.first].end

    def _stay(self, owner: Record | None) -> None:
        """Raise ``Refused`` (R440, R441) if somebody else is the owner now, whatever the start found."""
        assert self._claim is not None
        content = Contents(None, None, "records")
        entitled(owner, replace(self._claim, take_over=False), self._target, lambda: content)

    def _remembered(self) -> dict[str, Any] | None:
        """Return the state stored by the last write; nothing if it cannot be read; then the topic is read."""
        try:
            content = json.loads((self._folder / KNOWN).read_text())
            Record(**content["record"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return dict(content) if content.keys() >= {"topic", "seen"} else None

    def _remember(self) -> None:
        if self._record is not None:
            make_folder(self._folder)
            (self._folder / KNOWN).write_text(json.dumps(self._known(self._record)))

    def _known(self, record: Record) -> dict[str, Any]:
        """Return the state to store."""
        return {"record": asdict(record), "seen": self._seen, "topic": self._topic}

    # -- rows -------------------------------------------------------------------------

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:
        """Write the rows with their sequence numbers, then the bound; then remove the staged files."""
        guarded = self._claim is not None and not self._blind
        if guarded:
            self._check(batch.first - batch.skipped)
        owner = owner_header(self._record, batch.first + batch.count) if self._record is not None else None
        if batch.count and all(file.exists() for file in batch.files):
            rows, names = shown_rows(spark, node, batch.table())
            number = f"{batch.first}L + monotonically_increasing_id() AS {SEQUENCE}"
            write_kafka(
                rows.coalesce(1).selectExpr("*", number),
                self._options,
                stream=self._stream,
                first_sequence=batch.first,
                columns=names,
                rowtime_column=node.rowtime or None,
                framing=self._framing(spark, node, rows),
                owner=None if owner is None or self._bounds else (batch.first + batch.count - 1, owner),
            )
        if self._bounds and batch.bound > self._bound:
            write_bound(spark, self._options, self._stream, batch.bound, owner)
            self._bound = batch.bound
        if guarded:
            self._seen = self._ends.ask()[0][self._ends.first].end
            self._remember()
        for file in batch.files:
            file.unlink(missing_ok=True)

    def _framing(self, spark: SparkSession, node: SinkNode, rows: DataFrame) -> Framing | ProtobufFraming | None:
        """Return the schema with which rows are written, if they have one."""
        if self._choice is None:
            return None
        types = {field.name: field.dataType for field in rows.schema}
        return self._choice.kept(spark, record_of(node, types), self._folder)

    def recover(self, staged: Sequence[str]) -> None:
        """Remove staged files of crashed ticks; nothing in a topic can be undone."""
        sweep(self._folder, (*staged, KNOWN, CHOSEN))

    def close(self) -> None:
        """Drop the connection to the brokers."""
        self._ends.close()


def shown_rows(spark: SparkSession, node: SinkNode, table: pa.Table) -> tuple[DataFrame, list[str]]:
    """Return a tick's rows as they are written, with their rowtime as ``__t``, and the names of the other columns."""
    names = [name for name in table.column_names if name != node.rowtime]
    time = f"{quoted(node.rowtime)} AS {ROWTIME}" if node.rowtime else f"CAST(NULL AS TIMESTAMP) AS {ROWTIME}"
    return spark.createDataFrame(table).selectExpr(*map(quoted, names), time), names
