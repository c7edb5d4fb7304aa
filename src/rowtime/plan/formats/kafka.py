"""Options of Kafka's topics, as sources and as sinks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from rowtime.plan.formats import contract as takes
from rowtime.plan.formats import registry
from rowtime.plan.formats.contract import Format, Option, options_of, taking, unused
from rowtime.plan.formats.files import ORDERED, ROWTIME_COLUMN
from rowtime.plan.formats.kafka_clients import PLUGINS, SET_BY_SPARK, SETTINGS
from rowtime.plan.formats.kafka_transactions import TRANSACTIONS

PREFIX: Final = "kafka."
_RANGE: Final = "ticks choose their own ranges"


def _partitions(value: str) -> str:
    try:
        fits = all(isinstance(n, int) for numbers in json.loads(value).values() for n in numbers)
    except (ValueError, TypeError, AttributeError):
        fits = False
    return "" if fits else 'JSON of topics and partitions, such as {"topic": [0, 1]}'


def _other(name: str, given: Sequence[str]) -> str | None:
    """Behind ``kafka.`` a class of the user's own may have settings that no list has."""
    has_plugin = any(one.removeprefix(PREFIX) in PLUGINS for one in given if one.startswith(PREFIX))
    if name.lower().startswith(PREFIX):
        return None if has_plugin else f"Kafka's clients have no setting {name[len(PREFIX) :]}"
    return f"kafka has no option {name}"


KAFKA: Final = Format(
    "kafka",
    options_of(
        *taking(takes.some, "kafka.bootstrap.servers", "subscribe", "subscribePattern"),
        Option("assign", _partitions),
        Option("format", takes.one_of("json", "raw", "avro", "json-schema", *registry.ENVELOPES)),
        Option("value.format", takes.one_of("json", "raw", "avro", "json-schema")),
        ROWTIME_COLUMN,
        ORDERED,
        Option("startingOffsets", takes.one_of("earliest", "latest")),
        Option("failOnDataLoss", takes.boolean),
        *taking(takes.whole(1), "minPartitions", "maxRecordsPerPartition"),
        Option("groupIdPrefix", takes.some),
        Option("kafkaConsumer.pollTimeoutMs", takes.whole(1)),
        *taking(takes.whole(0), "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
        *taking(takes.some, "topic", "key.column", "key.columns"),
        *taking(takes.boolean, "bounds", TRANSACTIONS),
        Option("mode", takes.anything),  # `TopicOptions` looks at it, beside the keys
        *registry.OPTIONS,
        *unused("headers are always read", "includeHeaders", alike=("true", "false")),
        *unused(
            _RANGE,
            *("endingOffsets", "startingTimestamp", "endingTimestamp", "startingOffsetsByTimestamp"),
            *("endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "maxOffsetsPerTrigger"),
            *("minOffsetsPerTrigger", "maxTriggerDelay"),
        ),
        *(Option(f"{PREFIX}{name}", check) for name, check in sorted(SETTINGS.items())),
        *(Option(f"{PREFIX}{name}", takes.anything, because=because) for name, because in SET_BY_SPARK.items()),
    ),
    _other,
)
