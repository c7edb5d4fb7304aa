"""A real Kafka broker for tests and crashes: one Java process in KRaft mode, on free ports of 127.0.0.1.

As a context manager it leaves no process and no file behind. The Python client is imported where it is used, so that
this module can be imported without it.
"""

from __future__ import annotations

import functools
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from rowtime.core.errors import Failure
from rowtime.runtime.jars import artifact, avro_jars, connector, fetch, kafka_jars, shipped

KAFKA: Final = "org.apache.kafka:kafka_2.13:3.9.1"
CLUSTER: Final = "rowtimeAAAAAAAAAAAAAAA"  # 16 bytes in base64, as the storage tool wants it
START_SECONDS: Final = 60
STOP_SECONDS: Final = 15

# If the connector of this Spark is not published (yet), tests run on this one. It is not what users of that Spark get,
# so the run says so (``Connector.note``). The second coordinate is there because 4.2.0 of that library is not published
# either.
STAND_IN: Final = (
    connector("4.2.0"),
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.spark:spark-avro_2.13:4.2.0",
)

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={home}/data
log.retention.ms=-1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
"""  # without end of retention: records of tests are dated long ago


class Connector(NamedTuple):
    """The connector's jars for the session of a test run, or none; ``note`` says what is wrong."""

    jars: list[str] | None
    note: str


@functools.cache
def find_connector() -> Connector:
    """Return the connector of this Spark, else the stand-in, else none."""
    try:
        return Connector([*kafka_jars(), *avro_jars()], "")
    except Failure as failure:
        exact = failure.problems[0].message
    try:
        jars = [jar for jar in fetch(STAND_IN) if artifact(jar) not in shipped()]
    except Failure as failure:
        return Connector(None, f"{exact}; {failure.problems[0].message}")
    return Connector(jars, f"{exact}; in its place: {', '.join(STAND_IN)}")


class Broker:
    """A broker; ``with Broker() as broker`` starts it, and stops it at the end."""

    def __init__(self) -> None:
        jars = fetch([KAFKA])  # before there is anything to tidy up
        self._java = ["java", "-Xmx512m", "-cp", ":".join(jars)]
        self._home = Path(tempfile.mkdtemp(prefix="rowtime-kafka-"))
        port, controller = free_ports(2)
        self.bootstrap = f"127.0.0.1:{port}"
        text = _PROPERTIES.format(broker=port, controller=controller, home=self._home)
        self._properties = self._home / "server.properties"
        self._properties.write_text(text, encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._format()
            self._launch()
            self._wait()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic and wait until it is there; ``config`` has underscores for dots."""
        from confluent_kafka.admin import NewTopic

        settings = {key.replace("_", "."): value for key, value in config.items()}
        _settle(self._admin.create_topics([NewTopic(name, partitions, 1, config=settings)]))

    def add_partitions(self, name: str, total: int) -> None:
        """Increase the partitions of a topic to ``total``."""
        from confluent_kafka.admin import NewPartitions

        _settle(self._admin.create_partitions([NewPartitions(name, total)]))

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        _settle(self._admin.delete_topics([name]))

    def delete_before(self, name: str, partition: int, offset: int) -> None:
        """Delete the records below an offset, as retention does."""
        from confluent_kafka import TopicPartition

        _settle(self._admin.delete_records([TopicPartition(name, partition, offset)]))

    def topics(self) -> set[str]:
        """Return the names of all topics."""
        return set(self._admin.list_topics(timeout=STOP_SECONDS).topics)

    def records(self, topic: str) -> list[Any]:
        """Return the committed records that a topic of one partition has now, in their order."""
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self.bootstrap, "group.id": "records", "isolation.level": "read_committed"}
        consumer, place, found = Consumer(settings), TopicPartition(topic, 0, 0), list[Any]()
        try:
            consumer.assign([place])
            end = consumer.get_watermark_offsets(place, timeout=STOP_SECONDS)[1]
            until = time.monotonic() + STOP_SECONDS
            while consumer.position([place])[0].offset < end and time.monotonic() < until:
                record = consumer.poll(0.1)
                if record is not None and record.error() is None:
                    found.append(record)
        finally:
            consumer.close()
        return found

    def send(self, topic: str, *records: Record) -> None:
        """Write records and wait until they are there."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap})
        for record in records:
            producer.produce(topic, **record.as_arguments())
        left = producer.flush(STOP_SECONDS)
        if left:
            message = f"{left} records were not written"
            raise RuntimeError(message)

    def crash(self) -> None:
        """End the process at once and keep its data."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def restart(self) -> None:
        """Start it again over its data, under the same address, and wait until it answers."""
        self._launch()
        self._wait()

    def stop(self) -> None:
        """Stop the process in order, and delete its data."""
        self._end(gently=True)

    def kill(self) -> None:
        """Kill the process, as a crash would, and delete its data."""
        self._end(gently=False)

    @functools.cached_property
    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": "0"})  # a broker may be away

    def _format(self) -> None:
        command = [*self._java, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._properties)]
        subprocess.run(command, check=True, capture_output=True, timeout=START_SECONDS)

    def _launch(self) -> None:
        command = [*self._java, "kafka.Kafka", str(self._properties)]
        with (self._home / "broker.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._home)

    def _wait(self) -> None:
        """Wait until the broker lists its topics: an open port is not yet an answer."""
        from confluent_kafka import KafkaException

        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self._process is not None and self._process.poll() is None:
            try:
                self._admin.list_topics(timeout=2)
            except KafkaException:
                continue
            return
        message = "the broker did not start:\n" + (self._home / "broker.log").read_text(encoding="utf-8")[-2000:]
        raise RuntimeError(message)

    def _end(self, *, gently: bool) -> None:
        if gently and self._process is not None:
            self._process.terminate()
            _wait_for(self._process)
        self.crash()
        shutil.rmtree(self._home, ignore_errors=True)


class Record(NamedTuple):
    """One record to send; ``at`` is its timestamp in milliseconds, headers are text."""

    value: bytes | str | None
    partition: int = 0
    at: int = 1_704_067_200_000  # 2024-01-01
    key: str | None = None
    headers: Sequence[tuple[str, str]] = ()

    def as_arguments(self) -> dict[str, Any]:
        """The arguments of the client's ``produce``."""
        headers = [(name, value.encode()) for name, value in self.headers]
        return {
            "value": self.value,
            "key": self.key,
            "partition": self.partition,
            "timestamp": self.at,
            "headers": headers,
        }


def free_ports(count: int) -> list[int]:
    """Return ports on which nobody listens; held together, so that they differ."""
    holders = [socket.socket() for _ in range(count)]
    try:
        for holder in holders:
            holder.bind(("127.0.0.1", 0))
        return [int(holder.getsockname()[1]) for holder in holders]
    finally:
        for holder in holders:
            holder.close()


def _settle(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(STOP_SECONDS)


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        return
