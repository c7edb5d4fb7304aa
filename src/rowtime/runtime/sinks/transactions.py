"""Kafka transactions: the records of a tick and a mark that identifies them, both or neither.

The client is librdkafka, on the driver; Spark's connector has no transactions. All pipelines that write a stream into a
topic have one ``transactional.id``, so a new one aborts the open transaction of another, which then cannot commit any
more. The mark is the offset of a consumer group with the same name: the number of the next row, and its writer.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.time import BEGINNING
from rowtime.plan.formats.kafka_transactions import client_settings
from rowtime.runtime.brokers import SERVERS
from rowtime.runtime.sinks.ownership import Record

HINT: Final = "The rows of this tick are written again."
_FENCED: Final = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_SOON: Final = (
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "UNSTABLE_OFFSET_COMMIT",
)
"""A broker's errors while it takes over a consumer group, or ends a transaction."""
_WAIT: Final = 30.0  # seconds to wait for an answer; ending another process's transaction may take some
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
                producer.init_transactions(_WAIT)
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
        until = time.monotonic() + _WAIT
        while True:
            offset, error = None, None
            try:
                offset = self._reader().committed([self._kafka.TopicPartition(self._topic, 0)], _WAIT)[0]
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
            producer.send_offsets_to_transaction([offset], self._reader().consumer_group_metadata(), _WAIT)
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
