"""The owner of a stream in a Kafka topic: a header of bounds in the first partition records it (semantics 10).

Every bound has the header ``rowtime-owner``: the record of the checkpoint (`ownership`) and the number of the next row.
A pump that begins writes such a bound before its first row, at the beginning of time, which excludes nothing; after a
takeover it names the former checkpoints there.

Law: of the records in their order, the last one counts whose checkpoint no other record has taken over from. So if an
old pipeline still writes during a takeover, it does not become the owner again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.core.time import END, MIN_MICROS
from rowtime.plan.bind.sink_options import TopicOptions
from rowtime.runtime.brokers import SERVERS, Brokers, Extent, Partition, answering
from rowtime.runtime.sinks.kafka import OWNER_HEADER, SEQUENCE_HEADER, STREAM_HEADER
from rowtime.runtime.sinks.ownership import Record
from rowtime.runtime.sources.kafka_rows import BOUND_HEADER

LOOK_BACK: Final = 10_000  # records of the first partition, one of which should be a bound
_LAST: Final = 20  # records of each other partition, one of which should be a row with its number


@dataclass(frozen=True)
class TopicState:
    """The information about a stream in a topic's records: ``owners`` in order, each with the number of its next row.

    ``next_row``: the number after those of its rows; ``rows``: the same for rows among these records; ``bound`` (µs
    UTC): the greatest; ``others``: pipelines that write other streams into the topic.
    """

    owners: Sequence[tuple[Record, int]] = ()
    next_row: int = 0
    bound: int | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0

    def owner(self, before: Record | None = None) -> Record | None:
        """Return the owner of the stream; ``before``: the owner before these records."""
        records = [*([before] if before is not None else []), *(record for record, _ in self.owners)]
        fenced = {former["identity"] for record in records for former in record.before}
        return next((record for record in reversed(records) if record.identity not in fenced), None)

    def next_row_of(self, identity: str) -> int:
        """Return the number of the next row, from the last record of a checkpoint."""
        return max((number for record, number in self.owners if record.identity == identity), default=0)


def owner_header(record: Record, next_row: int) -> str:
    """Return the text of the header."""
    return json.dumps({**asdict(record), "next_row": next_row}, separators=(",", ":"))


class TopicEnds:
    """The partitions of a topic, and the information about a stream in their last records."""

    def __init__(self, options: Mapping[str, str], stream: str) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._topic, self._stream = TopicOptions.of(options).topic, stream
        self._brokers = Brokers(self._options)

    @property
    def first(self) -> Partition:
        """Return the partition that has the record."""
        return Partition(self._topic, 0)

    def ask(self, *, everywhere: bool = False) -> tuple[dict[Partition, Extent], str]:
        """Return the extent of the first partition, or of each, and the topic's id. Raises ``Failure`` (R501)."""
        partitions = self._brokers.partitions(self._topic)
        topic = self._brokers.ids(self._topic).get(self._topic, "")
        return self._brokers.extents(partitions if everywhere else [self.first]), topic

    def close(self) -> None:
        """Drop the connection."""
        self._brokers.close()

    def last(self, extents: Mapping[Partition, Extent]) -> TopicState:
        """Return the information in the last records of all partitions."""
        counts = {partition: LOOK_BACK if partition == self.first else _LAST for partition in extents}
        return self.between(
            {partition: Extent(max(at.first, at.end - counts[partition]), at.end) for partition, at in extents.items()}
        )

    def since(self, offset: int, extents: Mapping[Partition, Extent]) -> TopicState:
        """Return the information in the first partition from an offset on."""
        extent = extents[self.first]
        return self.between({self.first: Extent(max(offset, extent.first), extent.end)})

    def between(self, extents: Mapping[Partition, Extent]) -> TopicState:
        """Return the information in records between offsets. Raises ``Failure`` (R501)."""
        filled = {partition: extent for partition, extent in extents.items() if extent.end > extent.first}
        if not filled:
            return TopicState()
        rows = self._records(filled)
        mine = [row for row in rows if row["stream"] == self._stream]
        owners = [(row["stream"], *_read(row["owner"])) for row in rows if row["owner"] is not None]
        numbers = [int(row["seq"]) + 1 for row in mine if row["seq"] is not None]
        bounds = [END if row["bound"] == "end" else int(row["bound"]) for row in mine if row["bound"] is not None]
        own = [(record, number) for stream, record, number in owners if stream == self._stream]
        others = {stream: record.place for stream, record, _ in owners if stream != self._stream}
        greatest = max((bound for bound in bounds if bound > MIN_MICROS), default=None)
        newest = max(numbers, default=0)
        return TopicState(own, max([newest, *(n for _, n in own)]), greatest, others, newest)

    def _records(self, extents: Mapping[Partition, Extent]) -> list[Any]:
        kafka = {name: value for name, value in self._options.items() if name.startswith("kafka.")}
        offsets = [
            json.dumps({self._topic: {str(partition.number): at[end] for partition, at in extents.items()}})
            for end in (0, 1)
        ]
        reader = SparkSession.active().read.format("kafka").options(**kafka)
        reader = reader.option("assign", json.dumps({self._topic: [partition.number for partition in extents]}))
        reader = reader.option("startingOffsets", offsets[0]).option("endingOffsets", offsets[1])
        names = {"stream": STREAM_HEADER, "seq": SEQUENCE_HEADER, "bound": BOUND_HEADER, "owner": OWNER_HEADER}
        with answering(f"Kafka at {self._options[SERVERS]}: topic {self._topic!r} cannot be read", _HINT):
            records = reader.option("includeHeaders", "true").option("failOnDataLoss", "false").load()
            owners = records.select("partition", "offset", *(_header(name).alias(to) for to, name in names.items()))
            rows = owners.where("stream IS NOT NULL").collect()
        return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


_HINT: Final = "The rows of this tick are written again."


def _header(name: str) -> Any:
    value = f"try_element_at(filter(headers, h -> h.key = '{name}'), -1).value"
    return F.expr(f"CAST({value} AS STRING)")


def _read(text: str) -> tuple[Record, int]:
    content = json.loads(text)
    return Record(**{name: content[name] for name in Record.__dataclass_fields__ if name in content}), content[
        "next_row"
    ]
