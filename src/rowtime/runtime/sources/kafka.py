"""Kafka as a source: a partition is a writer, its offsets are the positions.

A range is read by the batch reader of Spark's connector with explicit offsets, so it can
be read again as long as the brokers keep it. Bounds are among the records, as headers
(``docs/kafka.md``); a record's own timestamp is its arrival time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.time import wall_clock
from rowtime.plan.formats.registry import ENVELOPES, KIND_OF, MESSAGE
from rowtime.plan.formats.registry import PREFIX as REGISTRY
from rowtime.runtime.brokers import Brokers, Extent, Partition, answering
from rowtime.runtime.schemas.pinned import KEY, PinnedSchemas, known_of
from rowtime.runtime.sources.attempts import Attempts
from rowtime.runtime.sources.contract import Backlog, Limits, Offsets, Scan, Slice, Source
from rowtime.runtime.sources.envelopes import check_envelope, envelope_items, without_tombstones
from rowtime.runtime.sources.framed_rows import Declared, Reading, framed_items, ids_in, reading_of, text_behind
from rowtime.runtime.sources.kafka_decoding import PlainRecords, records_of
from rowtime.runtime.sources.kafka_rows import RECORD, Columns, check_raw, json_items, raw_items, values_of

TOPICS: Final = ("subscribe", "subscribepattern", "assign")
_OURS: Final = (*TOPICS, "startingoffsets", "format", "value.format", "rowtime.column", "includeheaders", MESSAGE)
_FORMATS: Final = ("json", "raw", "avro", "json-schema", "protobuf", *ENVELOPES)
# Options of the connector that would choose the range; the driver chooses and journals it.
_REFUSED: Final = (
    "endingoffsets",
    "startingtimestamp",
    "endingtimestamp",
    "startingoffsetsbytimestamp",
    "endingoffsetsbytimestamp",
    "maxoffsetspertrigger",
    "minoffsetspertrigger",
    "maxtriggerdelay",
)


class KafkaSource(Source):
    """The partitions of some topics. ``options`` are those of Spark's connector, in any case.

    ``columns`` are the declared ones: name and Spark type. ``value_format`` is one of ``_FORMATS``, in any case, those
    of a registry with ``schemas``. ``clock`` returns the time of a reading (µs UTC). Raises ``Refused`` (R504) for
    options that do not fit together.
    """

    in_band = True
    decodes = True
    steady = False  # timestamps come from producers, or from several brokers

    def __init__(
        self,
        options: Mapping[str, str],
        columns: Columns,
        value_format: str = "json",
        clock: Callable[[], int] = wall_clock,
        schemas: PinnedSchemas | None = None,
    ) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._columns = list(columns)
        form = _known(value_format)
        self._raw, self._envelopes, self._texts = form == "raw", form in ENVELOPES, form == "json-schema"
        self._kind = KIND_OF.get(form, "")
        self._schemas, self._readings = schemas, dict[str, Reading]()
        self._clock = clock
        self._rowtime = self._options.get("rowtime.column") or None
        # Semantics 2.4: only a field that the stream names gives the rowtime, whatever the names of others.
        self.gives_rowtime = self._rowtime is not None
        self._check_options()
        if self._raw:
            check_raw(self._columns)
        if self._envelopes:
            check_envelope(self._columns)
        plain = form == "json" and schemas is None
        self._plain = PlainRecords.of(self._columns, self._declared.rowtime, self._options) if plain else None
        self._attempts = Attempts()
        self._brokers = Brokers(self._options)

    @property
    def keeps_writers_together(self) -> bool:
        """True unless an option lets Spark divide a partition of a topic."""
        return not {"minpartitions", "maxrecordsperpartition"} & {*self._options}

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:
        """Return the next range; new partitions begin at their earliest record, also with ``latest``.

        Besides R501 raises ``Failure`` R503 if the brokers no longer have the next records; with ``failOnDataLoss
        'false'`` such a range begins at the first record they have.
        """
        asked_at = self._clock()  # before the request: later records have not been read
        partitions = self._partitions()
        ids = self._same_topics(partitions, state)
        extents = {p.writer: extent for p, extent in self._brokers.extents(partitions).items()}
        begin = self._begin(start, extents, first=not state)
        end = share(begin, {w: extent.end for w, extent in extents.items()}, limits.rows)
        gone = self._gone(start, extents)
        rows = sum(end[w] - begin[w] for w in end)
        part = Slice(
            start={**begin, **{w: start[w] for w in gone}},
            end={**end, **{w: start[w] for w in gone}},
            arrived={w: asked_at for w, extent in extents.items() if end[w] == extent.end},
            left=tuple(w for w in gone if w not in state.get("left", ())),
            rows=rows,
            backlog=Backlog("rows", rows, sum(extent.end - end[w] for w, extent in extents.items())),
        )
        notes = {"started": True, "left": gone, "topics": {**state.get("topics", {}), **ids}}
        if self._schemas is None:
            return part, notes
        schemas = known_of(state)
        if rows:
            with answering("a topic of Kafka cannot be read", "It is tried again."):
                schemas = self._schemas.completed(ids_in(self._records(SparkSession.active(), part)), schemas)
        return replace(part, detail={KEY: schemas}), {**notes, KEY: schemas}

    def between(self, start: Offsets, end: Offsets, state: Mapping[str, Any]) -> Slice:
        """Return the records between offsets; raises ``Failure`` (R503) if the brokers no longer have them."""
        partitions = self._partitions()
        self._same_topics(partitions, state)
        extents = {p.writer: extent for p, extent in self._brokers.extents(partitions).items()}
        starts = {w: start.get(w, 0) for w in end}
        lost = [w for w in end if starts[w] < end[w] and not (w in extents and extents[w].first <= starts[w])]
        if lost:
            raise _lost(f"offsets are no longer there: {', '.join(f'{w} from {starts[w]}' for w in lost)}", _AGED)
        detail = {KEY: known_of(state)} if self._schemas is not None else {}
        return Slice(starts, dict(end), rows=sum(end[w] - starts[w] for w in end), detail=detail)

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return the items of a range. If records have expired meanwhile, Spark raises its own error."""
        records = self._records(spark, part)
        if self._schemas is not None:
            readings = self._read_by(spark, part.detail[KEY])
            if self._texts:
                return json_items(records, self._columns, self._rowtime, text_behind(readings), self._options)
            valued = without_tombstones(records) if self._envelopes else records
            return framed_items(valued, self._declared, readings)
        if self._envelopes:
            return envelope_items(records, self._columns, self._options)
        if self._raw:
            return raw_items(records, self._columns)
        return json_items(records, self._columns, self._rowtime, options=self._options)

    def scan(self, spark: SparkSession, part: Slice) -> Scan:
        """Return the same for one job; any process decodes the values if they are plain JSON."""
        plain = self._plain
        if plain is None or not self._attempts.worth():
            return Scan(self.read(spark, part))
        return Scan(
            values_of(self._records(spark, part)),
            plain,
            lambda rest: json_items(records_of(spark, rest), self._columns, plain.rowtime, options=self._options),
            partial(self._whole, spark, part),
        )

    def _whole(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return a range of which many records are not plain."""
        self._attempts.failed()
        return self.read(spark, part)

    def finished(self, at: Offsets) -> bool:  # noqa: ARG002 - the contract's
        """Return False: a topic stays open."""
        return False

    def close(self) -> None:
        """Drop the connection to the brokers; the next ``discover`` opens it again."""
        self._brokers.close()

    @property
    def _declared(self) -> Declared:
        """Return the columns, and the field for the rowtime, in the spelling of a declared column."""
        wanted = (self._rowtime or "").lower()
        rowtime = next((name for name, _ in self._columns if name.lower() == wanted), self._rowtime)
        return Declared(self._columns, rowtime, self._envelopes, self._kind, self._options.get(MESSAGE, ""))

    def _read_by(self, spark: SparkSession, schemas: Mapping[str, str | None]) -> list[Reading]:
        assert self._schemas is not None
        topic = next(self._options[name] for name in TOPICS if name in self._options)
        for number in schemas:
            if number not in self._readings:
                schema = self._schemas.schema(number, schemas)
                reading = reading_of(spark, int(number), schema, self._declared, topic)
                self._readings[number] = reading
        return [self._readings[number] for number in schemas]

    def _check_options(self) -> None:
        if sum(name in self._options for name in TOPICS) != 1:
            raise refuse(
                "R504", "a Kafka source needs exactly one of the options subscribe, subscribePattern and assign"
            )
        if self._starting not in {"earliest", "latest"}:
            raise refuse("R504", f"startingOffsets is 'earliest' or 'latest', not {self._starting!r}")
        for name in _REFUSED:
            if name in self._options:
                raise refuse("R504", f"the option {name} has no effect here: ticks choose their own ranges")
        if self._envelopes and self._rowtime:
            hint = "Promote a time of the envelope: SELECT STREAM timestamp_millis(ts_ms) AS ROWTIME, … ORDER BY …."
            raise refuse("R504", "rowtime.column cannot be combined with envelopes of Debezium", hint)
        if self._raw and self._rowtime:
            raise refuse("R504", "rowtime.column names a field of JSON; a raw record has its timestamp as arrival time")
        if "assign" in self._options:
            assigned(self._options["assign"])

    @property
    def _starting(self) -> str:
        return self._options.get("startingoffsets", "earliest").lower()

    @property
    def _strict(self) -> bool:
        return self._options.get("failondataloss", "true").lower() != "false"

    def _partitions(self) -> list[Partition]:
        if "assign" in self._options:
            wanted = assigned(self._options["assign"])
            self._brokers.partitions(*dict.fromkeys(partition.topic for partition in wanted))
            return wanted
        if "subscribepattern" in self._options:
            topics = self._brokers.matching(self._options["subscribepattern"])
        else:
            topics = [topic.strip() for topic in self._options["subscribe"].split(",")]
        return self._brokers.partitions(*topics)

    def _same_topics(self, partitions: Iterable[Partition], state: Mapping[str, Any]) -> dict[str, str]:
        """Return the present ids of the topics; raises ``Failure`` (R503) if a topic was made again under its name."""
        before = state.get("topics", {})
        ids = self._brokers.ids(*dict.fromkeys(partition.topic for partition in partitions))
        anew = [topic for topic, now in ids.items() if before.get(topic, now) != now]
        if anew:
            what = f"{', '.join(anew)} was deleted and created again: it now holds other records"
            raise _lost(what, "Start with a new checkpoint.")
        return ids

    def _begin(self, start: Offsets, extents: Mapping[str, Extent], *, first: bool) -> dict[str, int]:
        """Return where each partition's range begins."""
        latest = first and self._starting == "latest"
        begin = {w: start.get(w, extent.end if latest else extent.first) for w, extent in extents.items()}
        anew = [f"{w} ends at {e.end}, {begin[w]} was reached" for w, e in extents.items() if begin[w] > e.end]
        if anew:  # positions never go back, so this cannot be continued
            raise _lost(f"topics were created again or truncated: {', '.join(anew)}", "Start with a new checkpoint.")
        aged = [f"{w} from {begin[w]} to {e.first - 1}" for w, e in extents.items() if begin[w] < e.first]
        if aged and self._strict:
            raise _lost(f"offsets are no longer there: {', '.join(aged)}", _GO_ON)
        return {w: max(begin[w], extent.first) for w, extent in extents.items()}

    def _gone(self, start: Offsets, extents: Mapping[str, Extent]) -> list[str]:
        """Return the writers whose topics were deleted."""
        gone = sorted(set(start) - set(extents))
        if gone and self._strict:
            raise _lost(f"topics are gone: {', '.join(f'{w} from {start[w]} on' for w in gone)}", _GO_ON)
        return gone

    def _records(self, spark: SparkSession, part: Slice) -> DataFrame:
        wanted = {w: end for w, end in part.end.items() if end > part.start[w]}
        if not wanted:  # the connector does not accept an empty assignment
            return spark.range(0).selectExpr(*(f"CAST(NULL AS {kind}) AS {name}" for name, kind in RECORD.items()))
        passed = {n: value for n, value in self._options.items() if n not in _OURS and not n.startswith(REGISTRY)}
        ranges = {
            "assign": json.dumps(_by_topic(wanted, lambda items: [number for number, _ in items])),
            "startingOffsets": _offsets({w: part.start[w] for w in wanted}),
            "endingOffsets": _offsets(wanted),
            "includeHeaders": "true",
        }
        return spark.read.format("kafka").options(**{**_FETCHES, **passed, **ranges}).load()


_FETCHES: Final = {
    # A task asks for offsets behind a fetch at the end of the topic, to which the broker answers after this time: by
    # default half a second for each partition of each tick.
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.max.poll.records": "20000",
}
_AGED: Final = "Records that the brokers have dropped cannot be read again."
_GO_ON: Final = "To go on without them, set the option failOnDataLoss 'false'."


def share(begin: Offsets, end: Offsets, rows: int | None) -> dict[str, int]:
    """Return ends for about ``rows`` in all, from each in proportion to its backlog, at least 1.

    So a small backlog is never starved by a large one; the limit is exceeded by less than the number of partitions.
    """
    waiting = {w: end[w] - begin[w] for w in end}
    total = sum(waiting.values())
    if rows is None or total <= rows:
        return dict(end)
    return {w: begin[w] + (max(1, n * rows // total) if n else 0) for w, n in waiting.items()}


def _known(value_format: str) -> str:
    if value_format.lower() not in _FORMATS:
        raise refuse("R504", f"the format of a Kafka stream is one of {', '.join(_FORMATS)}, not {value_format!r}")
    return value_format.lower()


def assigned(text: str) -> list[Partition]:
    """Return the partitions of an ``assign`` option: ``{"topic": [0, 1]}``; R504 for other text."""
    try:
        return [Partition(str(t), int(n)) for t, numbers in json.loads(text).items() for n in numbers]
    except (ValueError, TypeError, AttributeError):
        raise refuse("R504", f"assign is not JSON of topics and partitions: {text}", '{"topic": [0, 1]}') from None


def _offsets(offsets: Offsets) -> str:
    return json.dumps(_by_topic(offsets, lambda items: {str(number): at for number, at in items}))


def _by_topic(offsets: Offsets, shape: Callable[[list[tuple[int, int]]], object]) -> dict[str, object]:
    topics: dict[str, list[tuple[int, int]]] = {}
    for partition, at in _named(offsets):
        topics.setdefault(partition.topic, []).append((partition.number, at))
    return {topic: shape(items) for topic, items in topics.items()}


def _named(offsets: Offsets) -> Iterable[tuple[Partition, int]]:
    return ((Partition.of(writer), at) for writer, at in offsets.items())


def _lost(what: str, hint: str) -> Failure:
    return Failure(Problem("R503", f"Kafka has lost the next records: {what}", hint=hint))
