"""Brokers: metadata of a Kafka cluster's topics, through the connector's own client.

The client is the ``AdminClient`` of Spark's connector, called in the driver's JVM, so that every ``kafka.*`` option
(security, resolution, isolation) means the same as when Spark reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException

from rowtime.core.errors import Failure, Problem, refuse

T = TypeVar("T")

SERVERS: Final = "kafka.bootstrap.servers"
TIMEOUT_MILLIS: Final = "5000"

# Errors of Kafka's client, and of Spark's reader when a record does not come in time.
_NO_ANSWER: Final = re.compile(r"org\.apache\.kafka\.common\.[\w.]*Exception|Cannot fetch record for offset")

_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"  # Kafka's value for no id
_CLIENT: Final = "org.apache.kafka.clients.admin.AdminClient"

# Kafka's own default is a minute; the user's options override these.
_DEFAULTS: Final = {"default.api.timeout.ms": TIMEOUT_MILLIS, "request.timeout.ms": TIMEOUT_MILLIS}


class Partition(NamedTuple):
    """One partition of a topic; its writer names sort in the order of partitions."""

    topic: str
    number: int

    @property
    def writer(self) -> str:
        """The writer's name: ``<topic>/<partition, five digits>``."""
        return f"{self.topic}/{self.number:05d}"

    @classmethod
    def of(cls, writer: str) -> Partition:
        """Return the partition of a writer's name; topic names contain no slash."""
        topic, number = writer.rsplit("/", 1)
        return cls(topic, int(number))


class Extent(NamedTuple):
    """The offsets that a partition has: [first, end)."""

    first: int
    end: int


class Brokers:
    """A connection to a cluster: opened by the first request, kept, and dropped when one fails.

    ``options`` are those of Spark's connector, with lower-case names. Every request raises ``Failure``: R501 if the
    brokers do not answer within a few seconds (``kafka.default.api.timeout.ms``), R502 if the connector is not on the
    class path.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        if not options.get(SERVERS):
            raise refuse("R504", f"the option {SERVERS} is missing", f"For example OPTIONS ({SERVERS} 'host:9092', …).")
        self.servers = options[SERVERS]
        given = {name.removeprefix("kafka."): v for name, v in options.items() if name.startswith("kafka.")}
        self._settings = {**_DEFAULTS, **given}
        self._admin: Any = None
        self._jvm: Any = None
        self._ids: dict[str, str] = {}

    def partitions(self, *topics: str) -> list[Partition]:
        """Return the partitions of topics, in order; ``Failure`` (R501) for an unknown topic."""
        self._ids.clear()
        return self._ask(lambda admin: [p for topic in topics for p in self._described(admin, topic)])

    def ids(self, *topics: str) -> dict[str, str]:
        """Return the ids of topics, which change when a topic is made again; none if a broker has no ids."""
        self._ask(lambda admin: [self._described(admin, topic) for topic in topics if topic not in self._ids])
        return {topic: self._ids[topic] for topic in topics if self._ids[topic] != _NO_ID}

    def matching(self, pattern: str) -> list[str]:
        """Return the topics whose whole name matches a Java regular expression; possibly none."""
        topics = self._ask(lambda admin: [str(topic) for topic in admin.listTopics().names().get()])
        matches = self._ask(lambda _: [t for t in topics if self._jvm.java.util.regex.Pattern.matches(pattern, t)])
        return sorted(matches)

    def extents(self, partitions: Iterable[Partition]) -> dict[Partition, Extent]:
        """Return which offsets each partition has now; with ``read_committed``, up to the open transaction."""
        listed = list(partitions)
        # Get the ends first: then concurrent writes or retention cannot put an end below its beginning.
        ends = self._ask(lambda admin: self._offsets(admin, listed, "latest"))
        firsts = self._ask(lambda admin: self._offsets(admin, listed, "earliest"))
        return {p: Extent(firsts[p], max(ends[p], firsts[p])) for p in listed}

    def _described(self, admin: Any, topic: str) -> list[Partition]:
        """Ask again each time: a consumer's ``partitionsFor`` may be minutes old."""
        future = admin.describeTopics(self._jvm.java.util.List.of(topic)).topicNameValues().get(topic)
        try:
            description = future.get()
            self._ids[topic] = str(description.topicId().toString())
            return [Partition(topic, int(info.partition())) for info in description.partitions()]
        except Py4JJavaError as error:
            if not _cause(error).startswith("UnknownTopicOrPartitionException"):
                raise
            raise self._failure(f"there is no topic {topic!r}", "Create the topic, or correct its name.") from error

    def _offsets(self, admin: Any, partitions: list[Partition], which: str) -> dict[Partition, int]:
        java = {p: self._jvm.org.apache.kafka.common.TopicPartition(p.topic, p.number) for p in partitions}
        spec = getattr(self._jvm.org.apache.kafka.clients.admin.OffsetSpec, which)()
        wanted = self._jvm.java.util.HashMap()
        for partition in java.values():
            wanted.put(partition, spec)
        offsets = admin.listOffsets(wanted, self._isolation()).all().get()
        return {p: int(offsets.get(java[p]).offset()) for p in partitions}

    def _isolation(self) -> Any:
        kafka = self._jvm.org.apache.kafka
        level = self._settings.get("isolation.level", "read_uncommitted").upper()
        return kafka.clients.admin.ListOffsetsOptions(kafka.common.IsolationLevel.valueOf(level))

    def close(self) -> None:
        """Drop the connection; the next request opens it again."""
        admin, self._admin = self._admin, None
        if admin is not None:
            try:
                admin.close(self._jvm.java.time.Duration.ofSeconds(1))
            except Py4JError:  # the JVM is gone, and so is the connection
                return

    def _ask(self, question: Callable[[Any], T]) -> T:
        try:
            return question(self._connected())
        except Py4JJavaError as error:
            self.close()
            hint = f"Check {SERVERS}, that the brokers run, and the security options (kafka.security.protocol, …)."
            raise self._failure(f"no answer: {_cause(error)}", hint) from error

    def _connected(self) -> Any:
        jvm = _jvm()
        if self._admin is None or self._jvm is not jvm:  # a new Spark has another JVM view
            self._jvm = jvm
            self._admin = self._open(jvm)
        return self._admin

    def _open(self, jvm: Any) -> Any:
        settings = jvm.java.util.HashMap()
        for name, value in self._settings.items():
            settings.put(name, value)
        try:
            return jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        except TypeError:  # py4j takes an unknown class name for a package
            raise _no_connector(f"{_CLIENT} is not on Spark's class path") from None

    def _failure(self, what: str, hint: str) -> Failure:
        return Failure(Problem("R501", f"Kafka at {self.servers}: {what}", hint=hint))


@contextmanager
def answering(what: str, hint: str) -> Iterator[None]:
    """Raise ``Failure`` (R501) if a Spark job fails in Kafka: ``what`` failed, with Kafka's message."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        message = next((line.strip() for line in str(error).splitlines() if _NO_ANSWER.search(line)), None)
        if message is None:
            raise
        raise Failure(Problem("R501", f"{what}: {message}", hint=hint)) from error


def _jvm() -> Any:
    context = SparkContext._active_spark_context  # noqa: SLF001 - the public way makes a new context
    if context is None:
        raise _no_connector("there is no Spark session with a JVM of its own in this process")
    return context._jvm  # noqa: SLF001 - PySpark has no public way to a class of a connector


def _no_connector(what: str) -> Failure:
    hint = "Start the session with spark.jars set to rowtime.runtime.jars.kafka_jars()."
    return Failure(Problem("R502", what, hint=hint))


def _cause(error: Py4JJavaError) -> str:
    """Return the message of the innermost Java exception, without its package."""
    exception = error.java_exception
    while exception.getCause() is not None:
        exception = exception.getCause()
    name = str(exception.getClass().getSimpleName())
    return f"{name}: {exception.getMessage()}"
