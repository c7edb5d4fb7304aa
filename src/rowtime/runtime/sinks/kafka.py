"""Kafka as a sink: rows with their sequence numbers, then bounds to every partition.

The guarantee is *at least once, in order*. Every row reaches the topic. One task writes them in the order of their
sequence numbers, with Kafka's idempotent producer, so in each partition the rows of an undisturbed run are in stream
order, and a bound comes after the rows it follows. After a crash or a failed tick, rows of the unfinished tick are
written once more, with the same sequence numbers and after their first writing; nothing else is ever repeated. A
consumer that wants each row once keeps, for each stream, the set (or, if the topic has one partition, the greatest) of
the ``rowtime-seq`` values that it has seen, and drops repeats. The connector has no transactions, so a consumer may see
a tick before it commits.

The last number in the topic does not tell which numbers of an unfinished tick exist: a partition may hold number 8
while number 7, meant for another, was lost. So rows are never skipped because of what is in the topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.core.columns import ROWTIME, SEQUENCE
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import quoted
from rowtime.plan.bind.sink_options import CHANGE, TopicOptions
from rowtime.runtime.brokers import SERVERS, Brokers, answering
from rowtime.runtime.sinks.kafka_framing import JSON_OPTIONS, Framing, row_columns
from rowtime.runtime.sinks.protobuf_framing import ProtobufFraming
from rowtime.runtime.sources.kafka_rows import BOUND_HEADER

STREAM_HEADER: Final = "rowtime-stream"
SEQUENCE_HEADER: Final = "rowtime-seq"
OWNER_HEADER: Final = "rowtime-owner"


def write_kafka(  # noqa: PLR0913 - sequence, columns and rowtime come from the caller
    rows: DataFrame,
    options: Mapping[str, str],
    *,
    stream: str,
    first_sequence: int,
    columns: Sequence[str],
    rowtime_column: str | None = "rowtime",
    framing: Framing | ProtobufFraming | None = None,
    owner: tuple[int, str] | None = None,
) -> None:
    """Write the rows from ``first_sequence`` on to the topic that ``options`` name.

    ``rows`` has the output ``columns``, ``__seq`` (BIGINT) and ``__t`` (TIMESTAMP). The value is one JSON object of the
    columns and the rowtime; with ``value.format 'raw'`` it is the column ``value``, and the key the column ``key`` if
    there is one; with a ``framing`` it is a record of its schema. ``owner``: the number of the row that records the
    owner of the stream, and the record, if no bound does. Raises ``Refused`` (R504) for options that do not fit and
    ``Failure`` (R501) if the brokers cannot be reached or the topic does not exist.
    """
    target = Target(options, framing)
    target.topic_options.fit([name for name in rows.columns if not name.startswith("__")])
    records = rows.where(F.col(SEQUENCE) >= first_sequence).select(
        F.col(SEQUENCE),
        target.key(rows).alias("key"),
        target.value(rows, columns, rowtime_column).alias("value"),
        _of_row(stream, owner).alias("headers"),
    )
    target.partitions()  # a few seconds at most; Spark's own producer would try for minutes
    # One writer: the rows of two would interleave, so that a partition would not be in stream order.
    ordered = records.repartition(1).sortWithinPartitions(SEQUENCE)
    target.save(target.written(ordered.drop(SEQUENCE)))


def write_bound(  # noqa: PLR0913 - the parts of a bound
    spark: SparkSession,
    options: Mapping[str, str],
    stream: str,
    at: int,
    owner: str | None = None,
    *,
    everywhere: bool = True,
) -> None:
    """Write the bound ``at`` (µs UTC, ``END`` for the end) to every partition, or to the first; call it after the rows.

    Raises as ``write_kafka``. The promise that there is no bound yet is not written. Writing a bound twice is harmless.
    ``owner``: the owner of the stream (`topic_owner`).
    """
    if at <= BEGINNING:
        return
    target = Target(options)
    headers = {BOUND_HEADER: F.lit("end" if at >= END else str(at)), STREAM_HEADER: F.lit(stream)}
    if owner is not None:
        headers[OWNER_HEADER] = F.lit(owner)
    bounds = spark.range(0, target.partitions() if everywhere else 1, 1, 1).select(
        F.col("id").cast("int").alias("partition"),
        F.lit(target.key_of_bounds).cast("binary").alias("key"),
        F.lit(None).cast("binary").alias("value"),
        _headers(headers).alias("headers"),
    )
    target.save(bounds)


class Target:
    """The topic that the options name, and how a row becomes a record of it."""

    def __init__(self, options: Mapping[str, str], framing: Framing | ProtobufFraming | None = None) -> None:
        self.topic_options, self._framing = TopicOptions.of(options), framing
        self._options = {name.lower(): value for name, value in options.items()}

    @property
    def key_of_bounds(self) -> str | None:
        """A topic whose records have keys may be compacted, and then takes no record without one."""
        return BOUND_HEADER if self.topic_options.keys else None

    def partitions(self) -> int:
        """Return the key for bounds: a topic with keys may be compacted, and then refuses records without one."""
        brokers = Brokers(self._options)
        try:
            return len(brokers.partitions(self.topic_options.topic))
        finally:
            brokers.close()

    def key(self, rows: DataFrame) -> Column:
        """Return the record's key: the column ``key.column``, a JSON object of ``key.columns``, or none."""
        if self.topic_options.keys:
            return F.to_json(F.struct(*map(quoted, self.topic_options.keys)), JSON_OPTIONS).cast("binary")
        name = self.topic_options.key or ("key" if self.topic_options.raw and "key" in rows.columns else None)
        return F.lit(None).cast("binary") if name is None else _bytes(rows, name)

    def value(self, rows: DataFrame, columns: Sequence[str], rowtime_column: str | None) -> Column:
        """Return the record's value: JSON or by a schema, the column ``value`` as it is, or none for a retraction."""
        if self.topic_options.raw:
            return _bytes(rows, "value")
        if self.topic_options.mode == "changes":
            gone = F.col(CHANGE) == "RETRACT"
            value = self._object([name for name in columns if name != CHANGE], rowtime_column)
            return F.when(~gone, value)
        return self._object(columns, rowtime_column)

    def _object(self, columns: Sequence[str], rowtime_column: str | None) -> Column:
        members = row_columns(columns, F.col(ROWTIME), rowtime_column)
        if self._framing is not None:
            return self._framing.value(members)
        struct = F.struct(*(column.alias(name) for name, column in members.items()))
        return F.to_json(struct, JSON_OPTIONS).cast("binary")

    def written(self, records: DataFrame) -> DataFrame:
        """Return records with a ``value`` of `value` in the written bytes."""
        return records if self._framing is None else self._framing.written(records)

    def save(self, records: DataFrame) -> None:
        """Write and wait; ``Failure`` (R501) if Kafka fails."""
        kafka = {name: value for name, value in self._options.items() if name.startswith("kafka.")}
        what = f"Kafka at {self._options[SERVERS]}: topic {self.topic_options.topic!r} cannot be written"
        with answering(what, "The rows of this tick are written again."):
            records.write.format("kafka").options(**kafka).option("topic", self.topic_options.topic).save()


def _bytes(rows: DataFrame, name: str) -> Column:
    """Return a column as bytes: binary as it is, everything else as its text."""
    column = F.col(quoted(name))
    return column if dict(rows.dtypes)[name] == "binary" else column.cast("string").cast("binary")


def _of_row(stream: str, owner: tuple[int, str] | None) -> Column:
    """Return the headers of a row."""
    plain = {STREAM_HEADER: F.lit(stream), SEQUENCE_HEADER: F.col(SEQUENCE).cast("string")}
    if owner is None:
        return _headers(plain)
    number, header = owner
    return F.when(F.col(SEQUENCE) == number, _headers({**plain, OWNER_HEADER: F.lit(header)})).otherwise(
        _headers(plain)
    )


def _headers(headers: Mapping[str, Column]) -> Column:
    """Return the array of headers for Spark's connector."""
    return F.array(
        *(F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in headers.items())
    )
