"""Transactions of Kafka: a reader with read_committed sees every row of a pump once, whichever process dies."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.broker import Broker
from rowtime.core.errors import Failure, Refused
from rowtime.runtime.brokers import Brokers
from rowtime.runtime.sinks import kafka_exactly_once
from rowtime.runtime.sinks.kafka_exactly_once import Mark, TransactionalSink, Transactions
from tests.deaths import Died, dying
from tests.kafka.test_kafka_sink import headers

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from rowtime.runtime.engine import Engine

pytestmark = pytest.mark.sampled(9)

SQL = """CREATE STREAM a (name STRING, n INT);
CREATE OR REPLACE STREAM o (name STRING, n INT) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', topic '{topic}', transactions '{transactions}'{more});
CREATE PUMP p AS INSERT INTO o SELECT STREAM name, n FROM a;"""


class Topic:
    """A pump of a stream into a topic."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, name: str) -> None:
        self.spark, self.broker, self.folder, self.name = spark, broker, folder, name

    def pipeline(self, more: str = "", transacted: str = "true") -> rt.Pipeline:
        given = {"servers": self.broker.bootstrap, "topic": self.name, "more": more, "transactions": transacted}
        return rt.Pipeline(self.spark, home=self.folder).sql(SQL.format(**given))

    def run(self, more: str = "", transacted: str = "true", check: str = "check", **how: Any) -> rt.Query:
        return self.pipeline(more, transacted).run_available(self.folder / check, **how)

    def engine(self, more: str = "", transacted: str = "true") -> Engine:
        return self.pipeline(more, transacted)._engine(self.folder / "check", rt.Limits(), ends=False)

    def send(self, *numbers: int) -> None:
        with rt.writer("a", home=self.folder, writer="w") as writer:
            at = [dt.datetime(2024, 1, 1, 0, n, tzinfo=dt.UTC) for n in numbers]
            rows = [{"name": f"k{n % 3}", "n": n, "rowtime": time} for n, time in zip(numbers, at, strict=True)]
            writer.insert(rows)
            writer.set_rowtime_bound(at[-1] + dt.timedelta(milliseconds=1))

    def records(self, level: str = "read_committed") -> list[Row]:
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.broker.bootstrap)
        reader = reader.option("subscribe", self.name).option("kafka.isolation.level", level)
        return reader.option("includeHeaders", "true").load().orderBy("partition", "offset").collect()

    def rows(self, level: str = "read_committed") -> list[int]:
        """The numbers of the rows as a consumer sees them, with repeats."""
        return sorted(int(headers(one)["rowtime-seq"]) for one in self.records(level) if "rowtime-seq" in headers(one))

    def values(self) -> list[int]:
        return sorted(json.loads(one["value"])["n"] for one in self.records() if "rowtime-seq" in headers(one))


@pytest.fixture
def target(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> Topic:
    return Topic(spark, broker, tmp_path, topic)


def leave_open(patch: pytest.MonkeyPatch) -> None:
    """A process that dies aborts nothing: its transaction stays open."""
    patch.setattr(Transactions, "close", lambda _: None)


def dies_in(target: Topic, point: str, more: str) -> None:
    """Run one tick up to a point of the engine or of the transaction."""
    with pytest.MonkeyPatch.context() as patch:
        leave_open(patch)
        if point == "begun":
            whole = TransactionalSink._records

            def some(*given: Any, **how: Any) -> Any:
                for number, one in enumerate(whole(*given, **how)):
                    if number == 2:
                        given[0]._session._producer.flush(10)
                        raise Died
                    yield one

            patch.setattr(TransactionalSink, "_records", some)
        if point == "committed":
            write = Transactions.write

            def then(session: Transactions, records: Any, mark: Mark) -> None:
                write(session, records, mark)
                raise Died

            engine = target.engine(more)
            patch.setattr(Transactions, "write", then)
        else:
            engine = target.engine(more)
        engine.hook = dying(point)
        with pytest.raises(Died):
            engine.tick()
        engine.stop()


POINTS = ("before state", "after state", "before journal", "after journal", "begun", "committed", "after output")


@pytest.mark.parametrize("more", ["", ", bounds 'false', key.column 'name'"])
@pytest.mark.parametrize("point", POINTS)
def test_every_row_is_there_once_wherever_the_driver_dies(target: Topic, point: str, more: str) -> None:
    target.run(more)
    target.send(0, 1, 2)
    target.run(more)
    target.send(3, 4, 5)
    dies_in(target, point, more)
    if point == "begun":
        assert target.rows("read_uncommitted") == [0, 1, 2, 3, 4], "the test writes nothing before it dies"
        assert target.rows() == [0, 1, 2], "what is not committed is not seen"
    target.run(more)
    assert target.rows() == target.values() == [0, 1, 2, 3, 4, 5]
    target.run(more)
    target.send(6)
    target.run(more)
    assert target.rows() == target.values() == [*range(7)]
    assert {"rowtime-bound" in headers(one) for one in target.records()} == ({False} if more else {True, False})
    for number in range(3):
        values = [int(headers(one)["rowtime-seq"]) for one in target.records()
                  if one["partition"] == number and "rowtime-seq" in headers(one)]  # fmt: skip
        assert values == sorted(values), "a partition is in stream order"


def ends(target: Topic) -> list[tuple[int, int]]:
    """The end offset of each partition, with records that readers do not see."""
    brokers = Brokers(options(target))
    found = brokers.extents(brokers.partitions(target.name))
    brokers.close()
    return sorted((one.number, at.end) for one, at in found.items())


def test_a_start_without_new_rows_writes_nothing(target: Topic) -> None:
    target.run()
    target.send(0, 1, 2)
    target.run()
    before = ends(target)
    target.run()
    assert ends(target) == before


def options(target: Topic) -> dict[str, str]:
    return {"kafka.bootstrap.servers": target.broker.bootstrap, "topic": target.name, "transactions": "true"}


@pytest.mark.parametrize("more", ["", ", bounds 'false'"])
def test_another_process_of_the_checkpoint_or_one_that_takes_over_is_the_only_one_that_commits(
    target: Topic, more: str
) -> None:
    target.run(more)
    target.send(0, 1)
    engine = target.engine(more)
    second = Transactions(options(target), target.name, "o")
    second.open()
    with pytest.raises(Refused, match="R441 another process has begun to write the stream o of the topic") as told:
        engine.tick()
    assert told.value.problems[0].hint.startswith("Let that process run.")
    engine.stop()
    second.close()
    assert target.rows() == []
    target.run(more)  # if no other is open, as the hint says
    assert target.rows() == [0, 1]

    old = target.engine(more)
    with pytest.raises(Refused, match="R440"):
        target.run(more, check="other")
    target.send(2)
    target.run(more, check="other", take_over=["p"])
    assert target.rows() == [0, 1, 2]
    sink = old.stages["p.sink"].sink
    assert isinstance(sink, TransactionalSink)
    sink._check = lambda: None  # type: ignore[method-assign]  # both write at the same moment
    with pytest.raises(Refused, match=r"R441 the pipeline of .*other has taken over the stream o of the topic"):
        old.tick()
    old.stop()
    target.send(3)
    target.run(more, check="other")
    assert target.rows() == target.values() == [0, 1, 2, 3]


def test_a_process_that_lost_the_brokers_does_not_stop_its_successor(target: Topic) -> None:
    more = ", bounds 'false'"
    target.run(more)
    target.send(0)
    target.run(more)
    old = target.engine(more)
    sink = old.stages["p.sink"].sink
    assert isinstance(sink, TransactionalSink)
    sink._session.close()  # as an error does
    with pytest.MonkeyPatch.context() as patch:
        leave_open(patch)
        new = target.pipeline(more)._engine(target.folder / "new", rt.Limits(), ends=False, take_over=["p"])
        target.send(1)
        with pytest.raises(Refused, match=r"R441 the pipeline of .*new has taken over"):
            old.tick()
        new.tick()
        new.stop()
    old.stop()
    assert target.rows() == [0, 1]


def test_the_option_may_be_added_if_no_tick_is_incomplete(target: Topic) -> None:
    target.run(transacted="false")
    target.send(0, 1)
    target.run(transacted="false")
    target.run()
    target.send(2)
    target.run()
    assert target.rows() == target.values() == [0, 1, 2]
    target.run(transacted="false")  # and be removed
    target.send(3)
    engine = target.engine(transacted="false")
    engine.hook = dying("after journal")
    with pytest.raises(Died):
        engine.tick()
    engine.stop()
    for _ in range(2):
        with pytest.raises(Refused, match="R451 1 rows of the last tick may be in the stream o of the topic") as told:
            target.run()
    assert (
        told.value.problems[0].hint == "Start once without transactions, which writes all of them; then add the option."
    )
    target.run(transacted="false")
    target.send(4)
    target.run()
    assert target.rows() == target.values() == [0, 1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("more", ["", ", bounds 'false', key.column 'name'"])
def test_without_a_mark_the_topic_says_which_rows_exist(target: Topic, more: str) -> None:
    target.run(more)
    target.send(0, 1, 2, 3)
    dies_in(target, "committed", more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transactions, "mark", lambda _: None)
        target.run(more)
    assert target.rows() == [0, 1, 2, 3]
    target.send(4)
    dies_in(target, "after journal", more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transactions, "mark", lambda _: None)
        target.run(more)
    assert target.rows() == target.values() == [0, 1, 2, 3, 4]


def test_records_are_those_that_spark_writes(target: Topic, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_exactly_once, "CHUNK", 3)  # a tick in several parts
    broker.create_topic(f"{target.name}-plain", 3)
    more, found = ", key.column 'name'", []
    both = [(Topic(target.spark, broker, target.folder, f"{target.name}{plain}"), plain) for plain in ("", "-plain")]
    for one, plain in both:
        one.run(more, str(not plain).lower(), check=one.name)
    target.send(*range(10))
    for one, plain in both:
        one.run(more, str(not plain).lower(), check=one.name)
        told = [(r["partition"], r["key"], r["value"], headers(r)) for r in one.records()]
        found.append([(p, k, v, h.get("rowtime-seq"), h.get("rowtime-bound"), [*h]) for p, k, v, h in told])
    assert len([one for one in found[0] if one[3]]) == 10
    assert found[0] == found[1]


def test_a_transaction_of_others_that_is_open_holds_a_start(target: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    target.run()
    target.send(0)
    target.run()
    other = Transactions(options(target), target.name, "other")
    other.open()
    other._producer.begin_transaction()
    other._producer.produce(target.name, b"{}", partition=0)
    other._producer.flush(10)
    monkeypatch.setattr(kafka_exactly_once, "_WAIT", 0.5)
    with pytest.raises(Failure, match=r"R501 .*a transaction of another program is open in partition 0") as told:
        target.run(check="second", take_over=["p"])
    assert told.value.problems[0].hint == "Start again once it has ended, or end that program."
    other.close()
    target.run(check="second", take_over=["p"])


def test_without_the_package_the_error_says_how_to_install_it(target: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(Refused, match=r"R502 .*the package confluent-kafka") as told:
        target.run()
    assert told.value.problems[0].hint == "Install it: pip install 'rowtime[kafka]'."
