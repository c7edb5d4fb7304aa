"""Options of Kafka's topics, as sources and as sinks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rowtime.plan.formats import contract as takes
from rowtime.plan.formats import json_values, registry
from rowtime.plan.formats.contract import Format, Option, options_of, taking, unused
from rowtime.plan.formats.files import ORDERED, ROWTIME_COLUMN
from rowtime.plan.formats.kafka_clients import PLUGINS, SET_BY_SPARK, SETTINGS
from rowtime.plan.formats.kafka_transactions import TRANSACTIONS

PREFIX: Final = "kafka."
_RANGE: Final = "ticks choose their own ranges"


_ONE_OF: Final = "one of `subscribe`, `subscribePattern` and `assign` is required"
_NAMED: Final = (
    Option(
        f"{PREFIX}bootstrap.servers", takes.some, meaning="the brokers, as host:port, with commas", default="required"
    ),
    Option(
        f"{PREFIX}default.api.timeout.ms",
        SETTINGS["default.api.timeout.ms"],
        meaning="how long the brokers may take to answer a request for offsets, in milliseconds",
        default="`5000`",
    ),
    Option(
        f"{PREFIX}isolation.level",
        SETTINGS["isolation.level"],
        meaning="`read_committed`: rows of aborted transactions are not read",
        default="`read_uncommitted`",
        side="source",
    ),
    Option(
        f"{PREFIX}max.request.size",
        SETTINGS["max.request.size"],
        meaning="the greatest size of a record in bytes; a larger row is refused as `MALFORMED`",
        default="`1048576`",
        side="sink",
    ),
    Option(
        f"{PREFIX}transaction.timeout.ms",
        SETTINGS["transaction.timeout.ms"],
        meaning="how long a transaction may take, in milliseconds",
        default="`300000`",
        side="sink",
    ),
)
"""Settings of Kafka's clients with a default of rowtime, or that most topics need."""


def _partitions(value: str) -> str:
    try:
        fits = all(isinstance(n, int) for numbers in json.loads(value).values() for n in numbers)
    except (ValueError, TypeError, AttributeError):
        fits = False
    return "" if fits else 'JSON of topics and partitions, such as {"topic": [0, 1]}'


def _other(name: str, given: Sequence[str]) -> str | None:
    """Allow ``kafka.`` settings that no list has, if a class of the user may read them."""
    has_plugin = any(option.removeprefix(PREFIX) in PLUGINS for option in given if option.startswith(PREFIX))
    if name.lower().startswith(PREFIX):
        return None if has_plugin else f"Kafka's clients have no setting {name[len(PREFIX) :]}"
    return f"kafka has no option {name}"


KAFKA: Final = Format(
    "kafka",
    options_of(
        Option("subscribe", takes.some, meaning="the topics, separated by commas", default=_ONE_OF, side="source"),
        Option(
            "subscribePattern",
            takes.some,
            meaning="the topics whose whole names match",
            default=_ONE_OF,
            values="a Java regular expression",
            side="source",
        ),
        Option("assign", _partitions, meaning="single partitions", default=_ONE_OF, side="source"),
        Option(
            "format",
            takes.one_of("json", "raw", "avro", "json-schema", "protobuf", *registry.ENVELOPES),
            meaning="what a record is: a JSON object, its parts as they are (`raw`), Avro, Protobuf or JSON with "
            "a schema registry, or an envelope of Debezium",
            default="`json`",
            side="source",
        ),
        replace(
            ROWTIME_COLUMN,
            meaning="source: the field that gives the rowtime (not with `raw`); "
            "sink: the field to which ROWTIME is written, `''` for none",
            default="source: none, the rowtime is the timestamp of the record; sink: `rowtime`",
        ),
        Option(
            "startingOffsets",
            takes.one_of("earliest", "latest"),
            meaning="where the first start begins; `latest` is FROM NOW",
            default="`earliest`",
            side="source",
        ),
        Option(
            "failOnDataLoss",
            takes.boolean,
            meaning="`false`: the run continues if records that come next were deleted",
            default="`true`",
            side="source",
        ),
        Option("topic", takes.some, meaning="the topic", default="required", side="sink"),
        Option(
            "value.format",
            takes.one_of("json", "raw", "avro", "json-schema", "protobuf"),
            meaning="what the value of a record is; `raw` writes the column `value`, and `key` if there is one",
            default="`json`",
            side="sink",
        ),
        Option(
            "key.column",
            takes.some,
            meaning="the column that becomes the key",
            default="none",
            values="a name",
            side="sink",
        ),
        Option(
            "key.columns",
            takes.some,
            meaning="the columns that become the key, as one JSON object",
            default="none",
            values="names of columns, separated by commas",
            side="sink",
        ),
        Option(
            "mode",
            takes.anything,  # `TopicOptions` checks it, together with the keys
            meaning="`changes`, with `key.columns`: a row whose column `change` is `RETRACT` becomes a tombstone",
            default="`append`",
            values="append or changes",
            side="sink",
        ),
        Option("bounds", takes.boolean, meaning="whether bounds are written after rows", default="`true`", side="sink"),
        Option(
            TRANSACTIONS, takes.boolean, meaning="whether each tick is one transaction", default="`false`", side="sink"
        ),
        replace(ORDERED, default="`true`"),
        *taking(takes.whole(1), "minPartitions", "maxRecordsPerPartition"),
        Option("groupIdPrefix", takes.some),
        Option("kafkaConsumer.pollTimeoutMs", takes.whole(1)),
        *taking(takes.whole(0), "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
        *registry.OPTIONS,
        *json_values.OPTIONS,
        *unused("headers are always read", "includeHeaders", alike=("true", "false")),
        *unused(
            _RANGE,
            *("endingOffsets", "startingTimestamp", "endingTimestamp", "startingOffsetsByTimestamp"),
            *("endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "maxOffsetsPerTrigger"),
            *("minOffsetsPerTrigger", "maxTriggerDelay"),
        ),
        *(Option(f"{PREFIX}{name}", check) for name, check in sorted(SETTINGS.items())),
        *_NAMED,
        *(Option(f"{PREFIX}{name}", takes.anything, because=because) for name, because in SET_BY_SPARK.items()),
    ),
    _other,
    passed="Spark's Kafka connector and Kafka's clients",
)
