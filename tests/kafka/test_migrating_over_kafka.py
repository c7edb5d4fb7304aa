"""``rowtime migrate`` from a topic into topics: offsets are read again, and a target is taken over or new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.core.errors import Refused
from rowtime.core.time import to_text
from rowtime.runtime.sinks.kafka_exactly_once import TransactionalSink
from rowtime.runtime.sinks.kafka_topic import KafkaSink
from tests.deaths import Died
from tests.kafka.test_kafka_sink import headers
from tests.upgrades.migrating import BEFORE_ENTRY, BEFORE_ROWS, BEHIND_ENTRY, BEHIND_ROWS, EVEN, die_at, hours

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

MINUTE = 60_000_000  # µs
STREAM = """CREATE STREAM a (n BIGINT, at TIMESTAMP) USING kafka OPTIONS
  (kafka.bootstrap.servers '{servers}', subscribe '{topic}', rowtime.column 'at');"""
PUMP = """CREATE STREAM {name} (c BIGINT, total BIGINT) USING kafka OPTIONS
  (kafka.bootstrap.servers '{servers}', topic '{topic}-{name}', transactions '{transactions}');
CREATE PUMP to_{name} AS INSERT INTO {name}
  SELECT STREAM COUNT(*) AS c, SUM(n) AS total FROM a{where} GROUP BY FLOOR(a.ROWTIME TO HOUR);"""
BACK = """CREATE STREAM s (c BIGINT, total BIGINT) USING kafka OPTIONS
  (kafka.bootstrap.servers '{servers}', subscribe '{topic}-{name}', rowtime.column 'rowtime',
   kafka.isolation.level 'read_committed');
SELECT STREAM c, total FROM s;"""


class Topics:
    """A pipeline from one topic into others, with a checkpoint."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, topic: str, transactions: str) -> None:
        self.spark, self.broker, self.folder, self.topic = spark, broker, folder, topic
        self.transactions = transactions
        for name in ("o", "other"):
            broker.create_topic(f"{topic}-{name}", 2)

    def sql(self, text: str, name: str = "", where: str = "") -> str:
        given = {"servers": self.broker.bootstrap, "topic": self.topic, "transactions": self.transactions}
        return text.format(name=name, where=where, **given)

    def pipeline(self, *texts: str) -> rt.Pipeline:
        return rt.Pipeline(self.spark, home=self.folder / "home").sql("".join([self.sql(STREAM), *texts]))

    def send(self, *numbers: int) -> None:
        """Number n at minute n, in alternating partitions; all partitions then have the bound of the last one."""
        rows = [(n, json.dumps({"n": n, "at": to_text(n * MINUTE)})) for n in range(*numbers)]
        self.broker.send(self.topic, *(Record(text, n % 3) for n, text in rows))
        last = to_text((numbers[1] - 1) * MINUTE)
        self.broker.send(self.topic, *(Record(None, n, headers=[("rowtime-bound", last)]) for n in range(3)))

    def run(self, *texts: str) -> None:
        self.pipeline(*texts).run_available(self.folder / "check")

    def migrate(self, *texts: str, take_over: str = "to_o") -> Any:
        return rt.migrate(self.folder / "check", self.pipeline(*texts), take_over=[take_over])

    def rows(self, name: str) -> list[tuple[int, int]]:
        """The rows of a topic by their sequence numbers, which have no gap; a repeat is the same row."""
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.broker.bootstrap)
        reader = reader.option("subscribe", f"{self.topic}-{name}").option("kafka.isolation.level", "read_committed")
        records = reader.option("includeHeaders", "true").load().collect()
        found: dict[int, tuple[int, int]] = {}
        count = 0
        for one in records:
            if "rowtime-seq" in headers(one):
                row, number = json.loads(one["value"]), int(headers(one)["rowtime-seq"])
                count += 1
                assert found.setdefault(number, (row["c"], row["total"])) == (row["c"], row["total"])
        assert sorted(found) == [*range(len(found))]
        assert self.transactions == "false" or count == len(found), "each row once"
        return [found[number] for number in sorted(found)]

    def read(self, name: str) -> list[tuple[int, int]]:
        """The rows as another pipeline reads them, by rowtime."""
        found: list[tuple[int, int]] = []
        made = rt.Pipeline(self.spark, home=self.folder / f"read-{name}").sql(self.sql(BACK, name))
        made.sink("result", lambda batch: found.extend((r["c"], r["total"]) for r in batch.table().to_pylist()))
        query = made.run_available(self.folder / f"read-{name}" / "check")
        told = query.ledger["s"]
        assert told["in"] == told["accepted"], "no row is below a bound of the topic"
        return found

    def differences(self, *texts: str) -> list[str]:
        found = rt.verify(self.folder / "check", self.pipeline(*texts))
        return [line for one in found.outputs for line in one.first]


@pytest.fixture(params=["false", "true"])
def topics(request: pytest.FixtureRequest, spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> Topics:
    return Topics(spark, broker, tmp_path, topic, request.param)


@pytest.mark.parametrize("point", ["nowhere", BEFORE_ENTRY, BEHIND_ENTRY, BEFORE_ROWS, BEHIND_ROWS])
def test_a_topic_is_taken_over_or_is_new_whenever_the_driver_dies(
    topics: Topics, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, even = topics.sql(PUMP, "o"), topics.sql(PUMP, "o", EVEN)
    after = (even, topics.sql(PUMP, "other", EVEN))
    topics.send(0, 150)
    topics.run(before)
    topics.send(150, 160)
    topics.run(before)
    there = hours(range(160), 120)
    assert topics.rows("o") == there
    with pytest.raises(Refused, match=r"(?s)R401 .* rowtime migrate FILE --checkpoint DIR --take-over to_o"):
        topics.run(*after)
    with pytest.raises(Refused, match=r"(?s)R447 to_o has written rows to o, .* --take-over to_o"):
        topics.migrate(*after, take_over="to_other")
    if point != "nowhere":
        sink = TransactionalSink if topics.transactions == "true" else KafkaSink
        with monkeypatch.context() as patch:
            die_at(point, (sink, "publish"), patch)
            with pytest.raises(Died):
                topics.migrate(*after)
    if point == BEFORE_ENTRY:
        assert topics.rows("o") == there
        topics.run(before)
        assert topics.differences(before) == []
    if point in (BEFORE_ENTRY, "nowhere"):
        found = topics.migrate(*after)
        assert dict(found.sinks) == {"to_o": "continues after 2 rows", "to_other": "is new"}
    topics.run(*after)
    assert topics.differences(*after) == []
    topics.send(160, 250)
    topics.run(*after)
    new = hours(range(0, 250, 2), 240)
    assert topics.rows("o") == topics.read("o") == [*there, *new[2:]]
    assert topics.rows("other") == topics.read("other") == new
    assert topics.differences(*after) == []


def test_records_that_kafka_has_deleted_end_a_migration_before_anything_changes(topics: Topics) -> None:
    before, after = topics.sql(PUMP, "o"), topics.sql(PUMP, "o", EVEN)
    topics.send(0, 150)
    topics.run(before)
    topics.broker.delete_before(topics.topic, 1, 20)
    with pytest.raises(Refused, match=r"R448 some of the input that was read is gone: "):
        topics.migrate(after)
    topics.send(150, 190)
    topics.run(before)
    assert topics.rows("o") == hours(range(190), 180)


def test_of_pumps_into_one_topic_one_that_takes_over_is_enough(topics: Topics) -> None:
    second = "CREATE PUMP also AS INSERT INTO o SELECT STREAM 0 AS c, n AS total FROM a WHERE n = 100;"
    before, after = (topics.sql(PUMP, "o", where) + second for where in ("", EVEN))
    topics.send(0, 150)
    topics.run(before)
    there = topics.rows("o")
    assert there == [hours(range(150), 60)[0], (0, 100), hours(range(150), 120)[1]]
    with pytest.raises(Refused, match=r"(?s)R447 o has written rows to o, .* --take-over to_o"):
        topics.migrate(after, take_over="o2")
    topics.migrate(after, take_over="also")
    topics.send(150, 190)
    topics.run(after)
    assert topics.rows("o") == topics.read("o") == [*there, hours(range(0, 190, 2), 180)[2]]
    assert topics.differences(after) == []
