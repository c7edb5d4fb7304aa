"""A Kafka topic as a sink whose ticks are transactions: consumers with ``read_committed`` see every row once.

The rows and the bound of a tick and a mark (`transactions`) are committed together, or not at all. After a crash the
mark says whether the last tick was committed; it is written again only if not.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.time import BEGINNING, END
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.plan.bind.sink_options import TopicOptions
from rowtime.plan.formats.kafka_transactions import client_settings
from rowtime.runtime.brokers import SERVERS, Extent, Partition
from rowtime.runtime.sinks.contract import Batch
from rowtime.runtime.sinks.kafka import OWNER_HEADER, SEQUENCE_HEADER, STREAM_HEADER, Target
from rowtime.runtime.sinks.kafka_framing import CHOSEN, Choice
from rowtime.runtime.sinks.kafka_topic import KNOWN, KafkaSink, shown_rows
from rowtime.runtime.sinks.ownership import Claim, Record, fenced
from rowtime.runtime.sinks.topic_owner import TopicEnds, TopicState, owner_header
from rowtime.runtime.sources.kafka_rows import BOUND_HEADER
from rowtime.state.files import make_folder, write_over
from rowtime.state.memory import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDS: Final = "ends"  # in the stored state: the end of each partition after the last transaction
CHUNK: Final = 100_000  # rows in Python's memory at once
_WAIT: Final = 10.0  # seconds to wait for other transactions to end
_PAUSE: Final = 0.1


class SettledEnds(TopicEnds):
    """The content of a topic's records once no transaction over them is open; aborted ones are ignored."""

    def __init__(self, options: Mapping[str, str], stream: str) -> None:
        super().__init__({**options, "kafka.isolation.level": "read_committed"}, stream)
        self._all = TopicEnds({**options, "kafka.isolation.level": "read_uncommitted"}, stream)

    def ask(self, *, everywhere: bool = False) -> tuple[dict[Partition, Extent], str]:
        """Ask as `TopicEnds` does, after all present records."""
        ends, _ = self._all.ask(everywhere=everywhere)
        until = time.monotonic() + _WAIT
        while True:
            settled, topic = super().ask(everywhere=everywhere)
            open_ = [
                partition for partition, at in ends.items() if partition in settled and settled[partition].end < at.end
            ]
            if not open_:
                return settled, topic
            if time.monotonic() > until:
                what = f"a transaction of another program is open in partition {open_[0].number} of {open_[0].topic}"
                hint = "Start again once it has ended, or end that program."
                raise Failure(Problem("R501", f"Kafka at {self._options[SERVERS]}: {what}", hint=hint))
            time.sleep(_PAUSE)

    def close(self) -> None:
        """Drop the connections."""
        super().close()
        self._all.close()


class TransactionalSink(KafkaSink):
    """Exactly once. Of the processes that write a stream, only the last one to begin can commit."""

    def __init__(self, options: Mapping[str, str], stream: str, choice: Choice | None = None) -> None:
        super().__init__(options, stream, choice)
        self._session = Transactions(options, TopicOptions.of(options).topic, stream)
        self._settled = SettledEnds(options, stream)
        self._mark: Mark | None = None  # what this checkpoint has written, as far as the brokers know
        self._extents: Mapping[str, int] = {}

    # -- ownership --------------------------------------------------------------------

    def _entitled(self, claim: Claim) -> Record:
        """Return the record; a process that may not write is refused before it aborts an open transaction."""
        super()._entitled(claim)
        plain, self._ends = self._ends, self._settled
        try:
            self._begin()
            record, last = super()._entitled(claim), self._session.mark()
            self._mark = last if last is not None and last.identity == claim.identity else None
            if self._record is None and last is not None and self._mark is None:  # continue exactly after it
                clock = max(last.bound, BEGINNING if record.clock is None else record.clock)
                record = replace(
                    record, base=max(record.base, last.next_row), clock=clock if clock > BEGINNING else None
                )
        except Exception:
            self._state = self._record = None  # the first tick asks again
            raise
        finally:
            self._ends = plain
        return record

    def claim(self, claim: Claim) -> Record:
        """Claim as `KafkaSink` does; it needs the right to read, to know which rows exist (R504).

        Refused too if a tick was begun without transactions (R451): some of its rows may exist.
        """
        least, most = claim.sent or (0, 0)
        if least < most and ENDS not in (self._remembered() or {}) and self._staged():
            what = f"{most - least:,} rows of the last tick may be in {self._target}, written without a transaction"
            raise refuse(
                "R451", what, "Start once without transactions, which writes all of them; then add the option."
            )
        record = super().claim(claim)
        if self._blind:
            what = f"{self._target} cannot be read, which transactions need"
            raise refuse("R504", what, "Give the user the right to read the topic, or leave transactions out.")
        return record

    def _staged(self) -> bool:
        return self._folder.exists() and any(file.name not in (KNOWN, CHOSEN) for file in self._folder.iterdir())

    def beyond(self, tick: int, rows: int) -> str:
        """Report rows of this checkpoint that its journal does not know."""
        claim, mark = self._claim, self._mark
        if claim is not None and mark is not None and claim.sent is not None and mark.next_row > claim.next_row:
            return f"{self._target} has {mark.next_row - claim.next_row:,} more of its rows"
        return super().beyond(tick, rows)

    def _take(self, record: Record, ends: TopicState) -> None:
        """Record the owner in a mark too: no other process can overlook it."""
        assert self._claim is not None
        super()._take(record, ends)
        if self._mark is None:
            number = self._counted(self._remembered() or {})
            with self._alone():
                self._write((), Mark.of(record, max(record.base, number)))
        self._look()
        self._remember()

    def _counted(self, remembered: Mapping[str, Any]) -> int:
        """Return the number of the next row by the topic's records since the last stored transaction.

        This is needed only if the brokers have dropped the mark, which they do some days after it was written.
        """
        if ENDS not in remembered:
            return 0
        extents, topic = self._settled.ask(everywhere=True)
        if topic != remembered["topic"]:
            return 0
        ends = {
            partition: Extent(max(remembered[ENDS].get(str(partition.number), 0), at.first), at.end)
            for partition, at in extents.items()
        }
        return self._settled.between(ends).rows

    def _begin(self) -> None:
        with self._alone():
            self._session.open()

    def _again(self, claim: Claim) -> None:
        """Begin again after an error, unless another checkpoint has begun since: R441."""
        for look in (self._begin, lambda: None):
            self._mark = self._session.mark()
            if self._mark is not None and self._mark.identity != claim.identity:
                raise fenced(self._mark.record, self._target, shared=True)
            look()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise R441 if another process has begun to write."""
        try:
            yield
        except FencedError as error:
            raise self._taken() from error

    def _taken(self) -> Refused:
        assert self._claim is not None
        mark = self._session.mark()
        if mark is not None and mark.identity != self._claim.identity:
            return fenced(mark.record, self._target, shared=True)
        what = f"another process has begun to write {self._target}, and this one can no longer commit"
        return refuse("R441", what, "Let that process run. If there is none, a transaction took too long: start again.")

    # -- stored state -----------------------------------------------------------------

    def _look(self) -> None:
        extents, _ = self._ends.ask(everywhere=True)
        self._extents = {str(partition.number): at.end for partition, at in extents.items()}
        self._seen = extents[self._ends.first].end

    def _known(self, record: Record) -> dict[str, Any]:
        return {**super()._known(record), ENDS: self._extents}

    def _remember(self) -> None:
        if self._record is not None and self._extents:
            make_folder(self._folder)
            write_over(self._folder / KNOWN, json.dumps(self._known(self._record)).encode())

    # -- rows -------------------------------------------------------------------------

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:
        """Write the missing rows and the bound in one transaction. Raises ``Refused`` (R441, R451)."""
        assert self._claim is not None
        self._check(batch.first - batch.skipped)
        if not self._session.is_open:
            self._again(self._claim)
        assert self._record is not None
        after = batch.first + batch.count
        mark = self._mark or Mark.of(self._record, 0)
        rows = batch.count > 0 and mark.next_row < after and all(file.exists() for file in batch.files)
        bound = self._bounds and batch.bound > mark.bound
        if rows or bound:
            new = Mark.of(self._record, max(after, mark.next_row), max(batch.bound, mark.bound))
            with self._alone():
                self._write(self._records(spark, node, batch, rows=rows, bound=bound), new)
        self._look()
        self._remember()
        for file in batch.files:
            file.unlink(missing_ok=True)

    def _write(self, records: Iterable[Sent], mark: Mark) -> None:
        self._session.write(records, mark)
        self._mark = mark

    def _records(self, spark: SparkSession, node: SinkNode, batch: Batch, *, rows: bool, bound: bool) -> Iterator[Sent]:
        assert self._record is not None
        owner = owner_header(self._record, batch.first + batch.count).encode()
        stream = (STREAM_HEADER, self._stream.encode())
        target = Target(self._options)
        if rows:
            last = batch.first + batch.count - 1
            for number, (key, value) in enumerate(self._pairs(spark, node, batch), batch.first):
                headers = [stream, (SEQUENCE_HEADER, b"%d" % number)]
                if number == last and not self._bounds:
                    headers.append((OWNER_HEADER, owner))
                yield Sent(key, value, headers)
        if bound:
            at = b"end" if batch.bound >= END else b"%d" % batch.bound
            name = target.key_of_bounds
            key = None if name is None else name.encode()
            for partition in range(target.partitions()):
                headers = [(BOUND_HEADER, at), stream, (OWNER_HEADER, owner)]
                yield Sent(key, None, headers, partition)

    def _pairs(self, spark: SparkSession, node: SinkNode, batch: Batch) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yield the key and the value of each row, as Spark makes them; a large tick in parts."""
        target: Target | None = None
        for table in _chunks(batch):
            rows, names = shown_rows(spark, node, table)
            if target is None:
                target = Target(self._options, self._framing(spark, node, rows))
                target.topic_options.fit(names)
            value = target.value(rows, names, node.rowtime or None)
            records = target.written(rows.select(target.key(rows).alias("key"), value.alias("value"))).toArrow()
            for part in records.to_batches():
                yield from zip(part["key"].to_pylist(), part["value"].to_pylist(), strict=True)

    def close(self) -> None:
        """Abort an open transaction, and drop the connections."""
        super().close()
        self._settled.close()
        self._session.close()


def _chunks(batch: Batch) -> Iterator[pa.Table]:
    """Yield the rows of a tick, in order."""
    if batch.count <= CHUNK:
        yield batch.table()
        return
    for file in batch.files:
        for part in pq.ParquetFile(opened(file)).iter_batches(CHUNK):
            yield pa.Table.from_batches([part])


# Kafka transactions: the records of a tick and a mark that identifies them, both or neither.
#
# The client is librdkafka, on the driver; Spark's connector has no transactions. All pipelines that write a stream into
# a topic have one ``transactional.id``, so a new one aborts the open transaction of another, which then cannot commit
# any more. The mark is the offset of a consumer group with the same name: the number of the next row, and its writer.

HINT: Final = "The rows of this tick are written again."
_FENCED: Final = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_SOON: Final = (
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "UNSTABLE_OFFSET_COMMIT",
)
"""A broker's errors while it takes over a consumer group, or ends a transaction."""
_ANSWER: Final = 30.0  # seconds to wait for an answer; ending another process's transaction may take some
_ABORT: Final = 5.0
_POLL: Final = 0.05  # seconds, while the client's buffer is full
_LONGEST: Final = 1_000  # characters of a path in a mark, which has to be below 4 KB
_QUIET: Final = logging.getLogger("rowtime.librdkafka")
_QUIET.setLevel(logging.CRITICAL)  # relevant errors are raised


class Sent(NamedTuple):
    """One record; ``partition`` -1: by its key."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    partition: int = -1


@dataclass(frozen=True)
class Mark:
    """The content of the last transaction: ``next_row`` is the number after its rows, ``bound`` (µs UTC) the last one.

    ``pump``, ``identity``, ``place``, ``since``: of the checkpoint, as in `Record`.
    """

    pump: str
    identity: str
    place: str
    since: int
    next_row: int = 0
    bound: int = BEGINNING

    @classmethod
    def of(cls, record: Record, next_row: int, bound: int = BEGINNING) -> Mark:
        """Return the mark of a checkpoint."""
        return cls(record.pump, record.identity, record.place[-_LONGEST:], record.since, next_row, bound)

    @property
    def record(self) -> Record:
        """Return its owner."""
        return Record(self.pump, self.identity, self.place, self.since)

    def text(self) -> str:
        """Return the text beside the offset."""
        content = vars(self).copy()
        del content["next_row"]
        return json.dumps(content, separators=(",", ":"))


class FencedError(Exception):
    """Another process writes the stream into the topic now."""


class Transactions:
    """Writes a stream into a topic by transactions. Raises ``Failure`` (R501, R502) and `FencedError`."""

    def __init__(self, options: Mapping[str, str], topic: str, stream: str) -> None:
        given = {name.lower(): value for name, value in options.items()}
        self.name = f"rowtime-{topic}-{stream}"
        self._kafka, self._topic = _client(), topic
        self._settings = {**client_settings(given), "log_level": 0}
        self._what = f"Kafka at {given[SERVERS]}: topic {topic!r} cannot be written by transactions"
        self._producer: Any = None
        self._consumer: Any = None

    @property
    def is_open(self) -> bool:
        """Return True if no other process has begun since, as far as is known."""
        return self._producer is not None

    def open(self) -> None:
        """Begin: abort an open transaction; the process that opened it can commit no more."""
        if self._producer is None:
            settings = {**self._settings, "transactional.id": self.name}
            with self._answering():
                producer = self._kafka.Producer(settings, logger=_QUIET)
                producer.init_transactions(_ANSWER)
                self._producer = producer

    def mark(self) -> Mark | None:
        """Return the mark of the last transaction, if the brokers still have it."""
        with self._answering():
            committed = self._committed()
        try:
            return Mark(**json.loads(committed.metadata), next_row=committed.offset)
        except (TypeError, ValueError):
            return None

    def _committed(self) -> Any:
        """Return the group's offset, as soon as a broker knows it."""
        until = time.monotonic() + _ANSWER
        while True:
            offset, error = None, None
            try:
                offset = self._reader().committed([self._kafka.TopicPartition(self._topic, 0)], _ANSWER)[0]
                error = offset.error
            except self._kafka.KafkaException as raised:
                error = raised.args[0]
            if error is None:
                return offset
            if error.name() not in _SOON or time.monotonic() > until:
                raise self._kafka.KafkaException(error)
            time.sleep(_POLL)

    def write(self, records: Iterable[Sent], mark: Mark) -> None:
        """Write records and a mark in one transaction."""
        self.open()
        with self._answering():
            producer = self._producer
            producer.begin_transaction()
            for number, record in enumerate(records):
                self._produce(producer, record)
                if not number % 1_000:
                    producer.poll(0)
            offset = self._kafka.TopicPartition(self._topic, 0, mark.next_row, mark.text())
            producer.send_offsets_to_transaction([offset], self._reader().consumer_group_metadata(), _ANSWER)
            producer.commit_transaction()  # it waits for the records, up to the timeout of a transaction

    def _produce(self, producer: Any, record: Sent) -> None:
        while True:
            try:
                producer.produce(self._topic, record.value, record.key, record.partition, headers=list(record.headers))
            except BufferError:
                producer.poll(_POLL)
            else:
                return

    def _reader(self) -> Any:
        """Return a client outside of any group, to read offsets."""
        if self._consumer is None:
            consumer = {"group.id": self.name, "enable.auto.commit": False, "isolation.level": "read_committed"}
            settings = {name: value for name, value in self._settings.items() if name in _SHARED or _common(name)}
            self._consumer = self._kafka.Consumer({**settings, **consumer}, logger=_QUIET)
        return self._consumer

    def close(self) -> None:
        """Abort an open transaction, and drop the connections."""
        producer, self._producer = self._producer, None
        consumer, self._consumer = self._consumer, None
        if producer is not None:
            with suppress(self._kafka.KafkaException):  # it may be fenced, or nothing is open, or nobody answers
                producer.purge()
                producer.abort_transaction(_ABORT)
        if consumer is not None:
            consumer.close()

    def _reason(self, error_code: Any) -> Any:
        """Return the reason of a fatal error; the producer hides it, but its transaction tells it."""
        if getattr(error_code, "name", str)() == "_FATAL" and self._producer is not None:
            try:
                self._producer.commit_transaction(_ABORT)
            except self._kafka.KafkaException as error:
                return error.args[0]
        return error_code

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Translate errors, which end the transaction; the mark then tells whether it was committed."""
        try:
            yield
        except self._kafka.KafkaException as error:
            reason = self._reason(error.args[0])
            fenced = getattr(reason, "name", str)() in _FENCED
            self.close()
            if fenced:
                raise FencedError(reason.str()) from error
            what = f"{self._what}: {reason.str() if hasattr(reason, 'str') else reason}"
            raise Failure(Problem("R501", what, hint=HINT)) from error
        except Exception:
            self.close()
            raise


_SHARED: Final = ("bootstrap.servers", "client.dns.lookup", "client.id", "log_level", "metadata.max.age.ms")


def _common(name: str) -> bool:
    return name.startswith(("ssl.", "sasl.", "security.", "socket.", "reconnect.", "connections."))


def _client() -> Any:
    try:
        import confluent_kafka  # noqa: PLC0415 - an extra
    except ImportError as error:
        what = "transactions are written with the package confluent-kafka, which is not installed"
        raise refuse("R502", what, "Install it: pip install 'rowtime[kafka]'.") from error
    return confluent_kafka
