"""A Kafka broker that is killed and restarted while a pipeline reads a topic and writes to topics and files.

The result is compared with that of a run beside a broker that lives. Files, the log and the ledger are equal after
every tick. In the topics every row is there under its number, once or more, and a compacted one ends as the same table.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import rowtime as rt
from reliability.broker import KAFKA, Broker, Record, find_connector
from reliability.crash.cases import START, Case, State, close, once
from reliability.crash.inside import Tally
from rowtime.core.errors import Failure, RowtimeError
from rowtime.runtime.jars import fetch
from rowtime.runtime.sinks.kafka import SEQUENCE_HEADER
from rowtime.runtime.sources.kafka_rows import BOUND_HEADER

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

PARTITIONS = 3
ROWS = 40  # in each
ROWS_A_TICK = 30
PATIENCE = "4000"  # ms: what Kafka's clients wait for a broker that is gone
SQL = """
CREATE STREAM rides (k STRING, v BIGINT, ev TIMESTAMP) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}',
  subscribe 'rides', format 'json', kafkaConsumer.pollTimeoutMs '{patience}',
  kafka.default.api.timeout.ms '{patience}', kafka.request.timeout.ms '{patience}');
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM rides ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE VIEW timed EVENT TIME (ev) AS SELECT STREAM k, v, ev FROM rides;
CREATE STREAM kept (k STRING, v BIGINT) USING parquet OPTIONS (path '{out}/kept');
CREATE STREAM minutes (k STRING, c BIGINT, total BIGINT) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}',
  topic 'minutes-{run}', key.column 'k', {producer});
CREATE STREAM latest (k STRING, s TIMESTAMP, c BIGINT, change STRING) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', topic 'latest-{run}', mode 'changes', key.columns 'k, s', {producer});
CREATE PUMP p1 AS INSERT INTO kept SELECT STREAM k, v FROM sorted;
CREATE PUMP p2 AS INSERT INTO minutes SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM sorted AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
CREATE PUMP p3 AS INSERT INTO latest SELECT STREAM k, PANE_START AS s, COUNT(*) AS c FROM timed
  GROUP BY PANES(ev, DURATION INTERVAL '1' MINUTE, DISCARD AGE INTERVAL '1' MINUTE), k EMIT CHANGES;
"""
PRODUCER = ", ".join(f"kafka.{name}.ms '{PATIENCE}'" for name in ("max.block", "request.timeout", "delivery.timeout"))


@dataclass(frozen=True)
class Topics(Case):
    """A pipeline between topics; ``run`` is part of the names of those that it writes."""

    servers: str = ""
    run: str = ""

    @property
    def name(self) -> str:
        return "topics"

    @property
    def limits(self) -> rt.Limits:
        return rt.Limits(rows=ROWS_A_TICK)

    def pipeline(self, spark: SparkSession | None) -> rt.Pipeline:
        given = {"servers": self.servers, "run": self.run, "producer": PRODUCER, "patience": PATIENCE}
        return rt.Pipeline(spark, home=self.folder / "home").sql(SQL.format(out=self.folder / "out", **given))


def why_no_broker() -> str:
    """Return why a broker cannot be started, or an empty text."""
    found = find_connector()
    if found.jars is None:
        return found.note
    try:
        fetch([KAFKA])
    except Failure as failure:
        return failure.problems[0].message
    return ""


def broker_kills(spark: SparkSession, folder: Path, tally: Tally, number: int, more: Callable[[], bool]) -> None:
    """Kill a broker while more kills are wanted, in as many runs as that takes."""
    chance = random.Random(f"broker {number}")
    with Broker() as broker:
        broker.create_topic("rides", PARTITIONS)
        _fill(broker, chance)
        states, wanted = _calm(spark, broker, Topics(number, folder / "calm", broker.bootstrap, "calm"))
        turn = 0
        while more() and not tally.losses:
            case = Topics(number, folder / f"run {turn}", broker.bootstrap, f"run-{turn}")
            _disturbed(spark, broker, case, states, tally, chance, more)
            if not tally.losses:
                tally.check(_written(spark, case), wanted, f"broker {number}, run {turn}, topics")
            turn += 1
        tally.add("runs beside a broker that dies", turn)


def _fill(broker: Broker, chance: random.Random) -> None:
    """Write rows, some of them late, and the end of each partition."""
    for partition in range(PARTITIONS):
        rows = [_row(chance, turn) for turn in range(ROWS)]
        values = [json.dumps({"k": f"k{chance.randint(0, 2)}", **row}) for row in rows]
        times = [START // 1000 + turn * 2_000 for turn in range(ROWS)]
        records = [Record(value, partition, at) for value, at in zip(values, times, strict=True)]
        end = Record(None, partition, times[-1], headers=[(BOUND_HEADER, "end")])
        broker.send("rides", *records, end)


def _row(chance: random.Random, turn: int) -> dict[str, Any]:
    seconds = turn * 4 - chance.choice((0, 0, 0, 5, 60, 300))
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START // 1_000_000 + seconds))
    return {"v": chance.randint(0, 9), "ev": at}


def _calm(spark: SparkSession, broker: Broker, case: Topics) -> tuple[list[State], State]:
    """Return the states after each tick beside a broker that lives, and the content of the topics at the end."""
    _prepare(broker, case)
    states, engine = [case.state()], case.engine(spark)
    while engine.tick() is not None:
        states.append(case.state())
    close(engine)
    return states, _written(spark, case)


def _prepare(broker: Broker, case: Topics) -> None:
    case.folder.mkdir(parents=True)
    case.define()
    broker.create_topic(f"minutes-{case.run}", 2)
    broker.create_topic(f"latest-{case.run}", 1, cleanup_policy="compact")


def _disturbed(  # noqa: PLR0913 - what runs, beside what, and what it is held against
    spark: SparkSession,
    broker: Broker,
    case: Topics,
    states: Sequence[State],
    tally: Tally,
    chance: random.Random,
    more: Callable[[], bool],
) -> None:
    """Run to the end while the broker dies; a driver that fails tries again, or another one takes over."""
    _prepare(broker, case)
    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(_killing, broker, tally, random.Random(chance.random()), more, over)
        try:
            while case.tick < len(states) - 2 and not tally.losses:
                _tried(spark, case, states, tally, chance)
        finally:
            over.set()
            killing.result()
    # The rest that a tick has to write, once the broker is back.
    close(case.engine(spark))
    tally.check(case.state(), states[-1], f"broker {case.number}, {case.run}, at the end")


def _killing(
    broker: Broker, tally: Tally, chance: random.Random, more: Callable[[], bool], over: threading.Event
) -> None:
    while not over.wait(chance.uniform(0.0, 4.0)) and more():
        broker.crash()
        tally.add("broker kills")
        over.wait(chance.uniform(0.0, 6.0))
        broker.restart()


def _tried(spark: SparkSession, case: Topics, states: Sequence[State], tally: Tally, chance: random.Random) -> None:
    """Start and tick until something fails, and once more after that."""
    engine, where = None, f"broker {case.number}, {case.run}"
    try:
        engine = case.engine(spark)
        while True:
            try:
                ended = engine.tick() is None
            except RowtimeError as failure:
                _told(failure, tally, where)
                if chance.random() < 0.5:
                    break
                ended = engine.tick() is None
            tally.check(case.state(), states[case.tick + 1], f"{where}, tick {case.tick}")
            if ended:
                break
    except RowtimeError as failure:
        _told(failure, tally, where)
    except Exception as error:  # noqa: BLE001 - what has no code is a finding
        tally.losses.append(f"{where}: {type(error).__name__} {error}"[:3000])
    finally:
        if engine is not None:
            close(engine)


def _told(failure: RowtimeError, tally: Tally, where: str) -> None:
    tally.add("failures beside a broker that died")
    code = failure.problems[0].code
    if code != "R501":
        tally.losses.append(f"{where}: {code} {failure}"[:1500])


def _written(spark: SparkSession, case: Topics) -> State:
    """Return what a reader of the topics has who drops repeated rows, or keeps the last of each key; and the bounds."""
    minutes, latest = (_records(spark, case.servers, f"{name}-{case.run}") for name in ("minutes", "latest"))
    return {
        "minutes": once(_rows(record for partition in minutes for record in partition)),
        "order": [_in_order(partition) for partition in minutes],
        "changes": once(_rows(latest[0])),
        "latest": sorted({record.key: record.value for record in latest[0] if record.number is not None}.items()),
        "ends": [partition[-1].bound for partition in (*minutes, *latest)],
    }


class Written(NamedTuple):
    """A record of a topic: a row with its number, or a bound."""

    key: str | None
    value: str | None
    number: int | None
    bound: str | None


def _records(spark: SparkSession, servers: str, topic: str) -> list[list[Written]]:
    """Return the records of each partition, in their order."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", topic).option("includeHeaders", "true").load().collect()
    found: dict[int, list[Written]] = {}
    for row in sorted(rows, key=lambda row: (row["partition"], row["offset"])):
        found.setdefault(row["partition"], []).append(_record(row))
    return list(found.values())


def _record(row: Row) -> Written:
    headers = {header.key: bytes(header.value).decode() for header in row["headers"]}
    key, value = (None if row[name] is None else bytes(row[name]).decode() for name in ("key", "value"))
    number = headers.get(SEQUENCE_HEADER)
    return Written(key, value, None if number is None else int(number), headers.get(BOUND_HEADER))


def _rows(records: Iterable[Written]) -> Iterator[tuple[int, str]]:
    return ((record.number, repr((record.key, record.value))) for record in records if record.number is not None)


def _in_order(records: Sequence[Written]) -> bool:
    """Return True if the first copies of the rows of a partition are in the order of their numbers."""
    firsts = list(dict.fromkeys(record.number for record in records if record.number is not None))
    return firsts == sorted(firsts)
