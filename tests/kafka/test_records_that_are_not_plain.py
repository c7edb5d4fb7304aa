"""Plain records of a topic are decoded outside of Spark; the others are Spark's, and nobody sees a difference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.runtime.executors.tasks import Tasks
from rowtime.runtime.sources.kafka import KafkaSource
from tests.kafka.test_sql_over_kafka import CLICKS, PER_MINUTE, Rows, bound, click, pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAYS = ("on the driver", "in tasks", "operator by operator")
PAGES = "SELECT STREAM * FROM sorted; CREATE PUMP p AS INSERT INTO n " + PER_MINUTE.format("sorted") + ";"
MINUTES = "CREATE STREAM n (m TIMESTAMP, n BIGINT) USING parquet OPTIONS (path '{out}');"
PLAIN = [click(f"10:00:{second:02}", second % 2, f"page {second}") for second in range(0, 50, 5)]
OTHERS = [
    click("10:01:10"),
    Record("no JSON"),
    Record('{"page": "a",\n "ev": "2024-01-01T10:01:11Z"}'),
    Record('{"page": 17, "ev": "2024-01-01T10:01:12Z"}', 1),
    Record('{"page": "b", "ev": "2024-01-01 10:01"}', 1),
    Record('{"page": "c", "ev": "noon"}'),
    Record(None),
    Record(None, headers=[("rowtime-bound", "no time")]),
    Record('{"page": "d", "ev": 1704103274}'),
    bound("2024-01-01T10:01:00Z", 2),
    click("10:01:40", 1),
    click("10:01:41"),
]


def ticks_of(spark: SparkSession, place: Path, way: str, broker: Broker, topic: str) -> tuple[Rows, dict[str, Any]]:
    """Run to the present end of a topic."""
    text = CLICKS + MINUTES.format(out=place / "out") + PAGES
    made, rows = pipeline(spark, place / "home", text, broker, topic)
    engine = made._engine(place / "check", rt.Limits(), ends=False)
    engine.available_now = True
    engine.tasks = Tasks() if way == "in tasks" else None
    jobs = 0
    while True:
        engine._here = way != "operator by operator"
        before = engine._job_times.next()
        if engine.tick() is None:
            break
        jobs = jobs or engine._job_times.next() - before
    needs = engine.tasks.needs if engine.tasks is not None else ""
    clocks = {name: engine.entry["clocks"][name] for name in ("sorted", "p")}  # those below are of the brokers
    facts = {"totals": engine.entry["totals"], "clocks": clocks}
    engine.stop()
    return rows, {"facts": facts, "jobs": jobs, "needs": needs}


def test_every_way_has_the_same_rows_and_few_jobs(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Each part is a run of its own, so the second one continues from a checkpoint."""
    for part, jobs in ((PLAIN, (1, 1)), (OTHERS, (2, 2)), ([click("10:03:00", n) for n in range(3)], (1, 1))):
        broker.send(topic, *part)
        ways = [ticks_of(spark, tmp_path / way, way, broker, topic) for way in WAYS]
        first, _, apart = ways
        for rows, found in ways:
            assert rows.rows == apart[0].rows
            assert found["facts"] == apart[1]["facts"]
            assert found["needs"] == ""
        assert tuple(found["jobs"] for _, found in ways[:2]) == jobs
    assert first[1]["facts"]["totals"]["clicks"] == {"in": 24, "accepted": 20, "MALFORMED": 4}


def test_a_topic_of_other_records_is_soon_left_to_spark(spark: SparkSession, broker: Broker, topic: str) -> None:
    """The first ranges are read twice, then fewer and fewer."""
    broker.send(topic, *(Record('{"page":\n"a"}') for _ in range(20)))
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    source = KafkaSource(options, [("page", "STRING")])
    part, _ = source.discover({}, rt.Limits(), {})
    tried = []
    for _ in range(140):
        scan = source.scan(spark, part)
        tried.append(scan.decoding is not None)
        _ = scan.by_spark
    assert [n for n, one in enumerate(tried) if one] == [0, 2, 6, 14, 30, 62, 126]
    source.close()
