"""The servers that the examples of pages name: a Kafka broker, a schema registry and an S3 store of this machine.

A block ``json topic NAME [PARTITION]`` has the records of a partition, one per line, as JSON. If the page has a schema
for the topic (``json subject NAME-value``, ``protobuf subject NAME-value``), they are written by it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format
from obstore import store

from reliability.broker import Broker, Record, free_ports
from rowtime.core.time import to_micros
from rowtime.runtime.schemas.registry import MockRegistry, Schema
from rowtime.runtime.sources.kafka_rows import BOUND_HEADER
from tests.docs.page_blocks import Block
from tests.kafka import avro_bytes, protobuf_bytes
from tests.kafka.schema_servers import serving

BROKERS: Final = re.compile(r"broker-1:9092(?:,broker-2:9092)?|localhost:9092")
PORT: Final = "9464"  # at which metrics are served
BUCKET: Final = "s3://bucket"
REGISTRY, S3 = "https://registry:8081", "http://localhost:9000"
_TOPIC: Final = re.compile(r"\b(?:topic|subscribe)['\", ]+(\w[\w.]*)['\"]")
_SECONDS: Final = 20  # within which the broker answers


@dataclass(frozen=True)
class Servers:
    """The servers that are there for a page: the broker, and the URL of the store."""

    broker: Broker | None = None
    store: str = ""

    def emptied(self) -> Servers:
        """Remove everything in the bucket of the pages."""
        if self.store:
            bucket = store.from_url(BUCKET, client_options={"allow_http": True})
            for objects in bucket.list():
                bucket.delete([one["path"] for one in objects])
        return self

    @contextmanager
    def prepared(self, blocks: Sequence[Block], sent: str) -> Iterator[Prepared]:
        """Return what an example needs: its topics with their records, all of the time ``sent``, and a registry."""
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder), "page") as served:
            addresses = {REGISTRY: served.url} | ({S3: self.store} if self.store else {})
            made = Prepared(addresses, self.broker, MockRegistry(Path(folder) / "schema-registry" / "page"))
            if self.broker is not None:
                made.fill(self.broker, blocks, to_micros(sent) // 1000)
            yield made


@dataclass(frozen=True)
class Prepared:
    """The addresses of an example, its broker and its registry."""

    addresses: Mapping[str, str]
    broker: Broker | None
    registry: MockRegistry

    def addressed(self, text: str) -> str:
        """Return the text of an example with the addresses of this machine."""
        if self.broker is not None:
            text = BROKERS.sub(self.broker.bootstrap, text)
        for shown, real in self.addresses.items():
            text = text.replace(shown, real)
        return text.replace(PORT, str(free_ports(1)[0])) if PORT in text else text

    def fill(self, broker: Broker, blocks: Sequence[Block], at: int) -> None:
        """Register the schemas of an example, and make its topics anew, with their records."""
        topics: dict[str, dict[int, list[str]]] = {}
        for block in blocks:
            match block.kind.split():
                case ["sql" | "python", *_]:
                    for name in _TOPIC.findall(block.text):
                        topics.setdefault(name, {0: []})
                case ["json", "topic", name, *partition]:
                    number = int(partition[0]) if partition else 0
                    topics.setdefault(name, {})[number] = block.text.splitlines()
                case [language, "subject", subject]:
                    kind = "PROTOBUF" if language == "protobuf" else "AVRO"
                    self.registry.add(subject, Schema(block.text, kind))
        there = broker.topics()
        for name, partitions in topics.items():
            if name in there:
                broker.delete_topic(name)
            broker.create_topic(name, max(partitions) + 1)
            for number, lines in partitions.items():
                broker.send(name, *(Record(self._encoded(name, line), number, at) for line in lines))

    def received(self, options: Mapping[str, str]) -> list[dict[str, str | None]]:
        """Return the rows of a topic that a pump has written, as a consumer finds them."""
        assert self.broker is not None
        found = []
        for record in self.broker.records(options["topic"]):
            headers = dict(record.headers() or ())
            if BOUND_HEADER not in headers:
                key = record.key()
                found.append({"key": key and key.decode(), "value": self._decoded(record.value(), options)})
        return found if any(row["key"] for row in found) else [{"value": row["value"]} for row in found]

    def _encoded(self, topic: str, line: str) -> bytes:
        schema = self.registry.latest(f"{topic}-value")
        if schema is None:
            return line.encode()
        number = self.registry.id_of(f"{topic}-value", schema, register=False)
        if schema.kind == "AVRO":
            described = json.loads(schema.text)
            return avro_bytes.framed(number, _instants(json.loads(line), described), described)
        [name] = re.findall(r"^message (\w+)", schema.text, re.MULTILINE)
        message = protobuf_bytes.class_of(schema.text, name)()
        return protobuf_bytes.framed(number, json_format.Parse(line, message))

    def _decoded(self, value: bytes, options: Mapping[str, str]) -> str:
        if options.get("value.format", "json") == "json":
            return value.decode()
        schema = self.registry.by_id(int.from_bytes(value[1:5], "big"))
        assert schema is not None
        return json.dumps(avro_bytes.decoded(value[5:], json.loads(schema.text)))


def _instants(record: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its texts that are timestamps as numbers."""
    logical = {field["name"]: field["type"] for field in schema["fields"]}
    return {name: to_micros(value) if _is_time(logical[name]) else value for name, value in record.items()}


def _is_time(kind: Any) -> bool:
    return isinstance(kind, dict) and kind.get("logicalType") == "timestamp-micros"
