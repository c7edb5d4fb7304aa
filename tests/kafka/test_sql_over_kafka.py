"""Kafka through SQL: from topics to groups, files and functions, and from pipeline to pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.core.errors import Refused
from rowtime.core.time import END, to_micros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

# Names of options are unchanged, also those with dots and SQL keywords.
CLICKS = """\
CREATE STREAM clicks (page STRING, ev TIMESTAMP)
USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', subscribe '{topic}');
CREATE VIEW sorted AS
  SELECT STREAM ev AS ROWTIME, page FROM clicks ORDER BY ev WITHIN INTERVAL '10' SECOND;
"""
PER_MINUTE = (
    "SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, COUNT(*) AS n FROM {} s GROUP BY FLOOR(s.ROWTIME TO MINUTE)"
)


class Rows:
    """A sink that collects its rows in order."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.bound = 0

    def __call__(self, batch: rt.Batch) -> None:
        self.bound = batch.bound
        if batch.count:
            self.rows.extend(batch.table().to_pylist())

    def counts(self, name: str = "n") -> dict[str, int]:
        """The counts, by minute."""
        return {f"{row['m']:%H:%M}": row[name] for row in self.rows}


def click(at: str, partition: int = 0, page: str = "a") -> Record:
    return Record(json.dumps({"page": page, "ev": f"2024-01-01T{at}Z"}), partition)


def bound(at: str, partition: int = 0) -> Record:
    return Record(None, partition, headers=[("rowtime-bound", at)])


def pipeline(spark: SparkSession, home: Path, text: str, broker: Broker, topic: str) -> tuple[rt.Pipeline, Rows]:
    rows = Rows()
    sql = text.replace("{servers}", broker.bootstrap).replace("{topic}", topic)
    return rt.Pipeline(spark, home=home).sql(sql).sink("result", rows), rows


def test_sorted_counts_of_disordered_partitions_go_to_a_function(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    made, rows = pipeline(spark, tmp_path, CLICKS + PER_MINUTE.format("sorted"), broker, topic)
    broker.send(topic, click("10:00:30"), click("10:00:25"), click("10:00:10"), click("10:01:20"))
    broker.send(topic, click("10:00:59", 1), click("10:01:15", 1), click("10:01:11", 2))
    query = made.run_available(tmp_path / "check")
    assert rows.counts() == {"10:00": 3}
    assert query.ledger["sorted"] == {"in": 7, "accepted": 6, "LATE": 1}
    broker.send(topic, *(click("10:02:10", n) for n in range(3)))
    made.run_available(tmp_path / "check")
    assert rows.counts() == {"10:00": 3, "10:01": 3}
    assert rows.bound == to_micros("2024-01-01 10:03:00")


def test_counts_go_to_a_directory_and_continue_there(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    text = f"""{CLICKS}
        CREATE STREAM per_minute (m TIMESTAMP, n BIGINT) USING parquet OPTIONS (path '{out}');
        CREATE PUMP p AS INSERT INTO per_minute {PER_MINUTE.format("sorted")};"""
    made, _ = pipeline(spark, tmp_path, text, broker, topic)
    for minute in range(4):
        broker.send(topic, *(click(f"10:0{minute}:0{n}", n) for n in range(3)), click(f"10:0{minute}:40"))
        made.run_available(tmp_path / "check")
    broker.send(topic, bound("end", 1), bound("end", 2))
    made.run_available(tmp_path / "check")
    found = spark.read.parquet(str(out)).selectExpr("date_format(m, 'HH:mm') AS m", "n").collect()
    assert dict(found) == {"10:00": 4, "10:01": 4, "10:02": 4}
    broker.send(topic, bound("end"))
    made.run_available(tmp_path / "check")
    assert dict(spark.read.parquet(str(out)).selectExpr("date_format(m, 'HH:mm')", "n").collect())["10:03"] == 4


def test_malformed_records_are_counted_and_are_a_stream(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    text = CLICKS + "SELECT STREAM reason, raw_record, writer, position FROM clicks.rejected"
    made, rows = pipeline(spark, tmp_path, text, broker, topic)
    broken = ["nonsense", '{"page": "a", "ev": "soon"}']
    broker.send(topic, click("10:00:00"), Record(broken[0]), Record(broken[1], 2))
    query = made.run_available(tmp_path / "check")
    assert query.ledger["clicks"] == {"in": 3, "accepted": 1, "MALFORMED": 2}
    kept = spark.read.parquet(*map(str, query.rejected("clicks"))).select("raw_record", "writer", "position")
    assert sorted(map(tuple, kept.collect())) == sorted(
        [(broken[0], f"{topic}/00000", 1), (broken[1], f"{topic}/00002", 0)]
    )
    assert sorted(row["raw_record"] for row in rows.rows) == sorted(broken)


GIVEN = """\
CREATE STREAM clicks (page STRING)
USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', subscribe '{topic}', rowtime.column 'ev');
"""


@pytest.mark.slow
def test_bounds_in_headers_close_groups(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    made, rows = pipeline(spark, tmp_path, GIVEN + PER_MINUTE.format("clicks"), broker, topic)
    broker.send(topic, click("10:00:00"), click("10:00:30", 1), click("10:00:10", 1))
    query = made.run_available(tmp_path / "check")
    assert (rows.rows, query.ledger["clicks"]) == ([], {"in": 3, "accepted": 2, "OUT_OF_ORDER": 1})
    broker.send(topic, *(bound("2024-01-01 10:01:00", n) for n in range(3)))
    made.run_available(tmp_path / "check")
    assert rows.counts() == {"10:00": 2}
    broker.send(topic, click("10:01:00", 2), *(bound("end", n) for n in range(3)))
    made.run_available(tmp_path / "check")
    assert (rows.counts(), rows.bound) == ({"10:00": 2, "10:01": 1}, END)


def test_without_a_rowtime_column_the_arrival_is_the_rowtime_and_a_reading_moves_the_clock(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    text = CLICKS + PER_MINUTE.format("clicks")
    made, rows = pipeline(spark, tmp_path, text, broker, topic)
    broker.send(topic, click("10:00:00"), click("09:00:00", 1), Record('{"page": "b"}', 1, at=1_704_067_260_000))
    made.run_available(tmp_path / "check")
    assert rows.counts() == {"00:00": 2, "00:01": 1}  # the records' timestamps; the third partition is empty


@pytest.mark.parametrize("head", [CLICKS, GIVEN], ids=["arrival", "given"])
@pytest.mark.parametrize("ticks", [1, 3])
def test_nothing_comes_after_the_end(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, head: str, ticks: int
) -> None:
    made, rows = pipeline(spark, tmp_path, head + "SELECT STREAM page FROM clicks", broker, topic)
    items = [[click("10:00:00")], [bound("end", n) for n in range(3)], [click("10:00:01"), Record('{"page": "b"}', 1)]]
    if ticks == 1:
        items = [[item for part in items for item in part]]
    for part in items:
        broker.send(topic, *part)
        query = made.run_available(tmp_path / "check")
    assert query.ledger["clicks"] == {"in": 3, "accepted": 1, "OUT_OF_ORDER": 2}
    assert (len(rows.rows), rows.bound) == (1, END)


def test_pipelines_chain_through_a_topic(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    between = f"{topic}-out"
    broker.create_topic(between, 2)
    servers = f"kafka.bootstrap.servers '{broker.bootstrap}'"
    first, _ = pipeline(
        spark,
        tmp_path / "one",
        f"""{CLICKS}
        CREATE STREAM out (page STRING) USING kafka OPTIONS ({servers}, topic '{between}', key.column 'page');
        CREATE PUMP p AS INSERT INTO out SELECT STREAM page FROM sorted;""",
        broker,
        topic,
    )
    second, rows = pipeline(
        spark,
        tmp_path / "two",
        f"""CREATE STREAM clicks (page STRING) USING kafka
            OPTIONS ({servers}, subscribe '{between}', rowtime.column 'rowtime');
            {PER_MINUTE.format("clicks")}""",
        broker,
        topic,
    )
    sent = [("10:00:09", 0), ("10:00:01", 0), ("10:00:30", 1), ("10:00:31", 2), ("10:00:58", 0)]
    broker.send(topic, *(click(at, n, page=at) for at, n in sent))
    first.run_available(tmp_path / "check1")
    second.run_available(tmp_path / "check2")
    assert rows.rows == []
    # Only the bound of the first pipeline advances: its own rows at 10:01:10 wait there.
    broker.send(topic, *(click("10:01:10", n) for n in range(3)))
    first.run_available(tmp_path / "check1")
    query = second.run_available(tmp_path / "check2")
    assert rows.counts() == {"10:00": 5}
    assert query.ledger["clicks"] == {"in": 5, "accepted": 5}
    broker.send(topic, *(bound("end", n) for n in range(3)))
    first.run_available(tmp_path / "check1")
    second.run_available(tmp_path / "check2")
    assert (rows.counts(), rows.bound) == ({"10:00": 5, "10:01": 3}, END)


def test_refused_rows_go_to_a_topic_each_once(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    lost = f"{topic}-refused"
    broker.create_topic(lost, 1)
    servers = f"kafka.bootstrap.servers '{broker.bootstrap}'"
    text = f"""{CLICKS.replace("'10' SECOND", "'10' SECOND EARLY BEYOND INTERVAL '1' HOUR")}
        CREATE STREAM lost (page STRING, reason STRING, refused_time TIMESTAMP, writer STRING, position BIGINT)
          USING kafka OPTIONS ({servers}, topic '{lost}');
        CREATE PUMP p AS INSERT INTO lost
          SELECT STREAM page, reason, refused_time, writer, position FROM sorted.rejected;
        SELECT STREAM page FROM sorted"""
    ends = [bound("end", n) for n in range(3)]
    for sent in (
        [click("10:00:30"), click("10:00:00", page="late"), click("10:00:20", 1)],
        [click("12:00:00", page="early"), click("10:00:09", 1, page="late too"), *ends],
        [],
    ):
        broker.send(topic, *sent)
        made, _ = pipeline(spark, tmp_path / "one", text, broker, topic)
        query = made.run_available(tmp_path / "check")
    assert query.ledger["sorted"] == {"in": 5, "accepted": 2, "LATE": 2, "EARLY": 1}
    read = f"""CREATE STREAM lost (page STRING, reason STRING, refused_time TIMESTAMP, writer STRING, position BIGINT)
      USING kafka OPTIONS ({servers}, subscribe '{lost}', rowtime.column 'rowtime');
      SELECT STREAM page, reason, CAST(refused_time AS STRING) AS at, writer, position FROM lost"""
    back, rows = pipeline(spark, tmp_path / "two", read, broker, topic)
    query = back.run_available(tmp_path / "check2")
    assert [tuple(row.values())[-5:] for row in rows.rows] == [
        ("late too", "LATE", "2024-01-01 10:00:09", f"{topic}/00001", 1),
        ("late", "LATE", "2024-01-01 10:00:00", f"{topic}/00000", 1),
        ("early", "EARLY", "2024-01-01 12:00:00", f"{topic}/00000", 2),
    ]
    assert query.ledger["lost"] == {"in": 3, "accepted": 3}


def test_a_topic_is_not_read_where_a_pump_fills_it(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    text = CLICKS + "CREATE PUMP p AS INSERT INTO clicks SELECT STREAM page, ev FROM other; SELECT STREAM * FROM clicks"
    made, _ = pipeline(spark, tmp_path, "CREATE STREAM other (page STRING, ev TIMESTAMP);" + text, broker, topic)
    with pytest.raises(Refused, match=r"R504 .*pump"):
        made.run_available(tmp_path / "check")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO clicks VALUES ('a', TIMESTAMP '2024-01-01 00:00:00')",
        "ALTER STREAM clicks SET ROWTIME BOUND TIMESTAMP '2024-01-01 00:00:00'",
        "ALTER STREAM clicks END",
    ],
)
def test_statements_that_write_to_the_log_are_refused_for_a_topic(tmp_path: Path, statement: str) -> None:
    made = rt.Pipeline(home=tmp_path).sql(CLICKS + statement)
    with pytest.raises(Refused, match=r"R137 .*clicks.*kafka"):
        made.compile()


@pytest.mark.parametrize("quote", ["", "'", '"', "`"])
def test_names_of_options_may_be_quoted(tmp_path: Path, quote: str) -> None:
    given = dict.fromkeys(["kafka.bootstrap.servers", "subscribe", "rowtime.column"], "x")
    given |= {"kafka.default.api.timeout.ms": "100", "failOnDataLoss": "false"}
    options = ", ".join(f"{quote}{name}{quote} '{value}'" for name, value in given.items())
    made = rt.Pipeline(home=tmp_path).sql(f"CREATE STREAM c (a INT) USING kafka OPTIONS ({options})")
    (stream,) = made.compile().defines
    assert dict(stream.options) == given


def test_a_given_session_needs_no_jars(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> list[str]:
        pytest.fail("the session has the connector already")

    monkeypatch.setattr("rowtime.runtime.jars.kafka_jars", refuse)
    made, rows = pipeline(spark, tmp_path, GIVEN + "SELECT STREAM page FROM clicks", broker, topic)
    broker.send(topic, *(click("10:00:00", n) for n in range(3)))
    made.run_available(tmp_path / "check")
    assert len(rows.rows) == 1  # the others wait for earlier partitions, which may send more rows of the same time


@pytest.mark.slow
def test_the_guard_of_a_stream_judges_records_and_uses_bounds_among_them(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    sql = """CREATE STREAM clicks (page STRING, ev TIMESTAMP)
      USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', subscribe '{topic}', rowtime.column 'ev')
      EARLY BEYOND INTERVAL '1' HOUR;
      SELECT STREAM page FROM clicks;"""
    made, rows = pipeline(spark, tmp_path, sql, broker, topic)
    last = [bound("2024-01-01T20:00:00Z", partition) for partition in range(3)]
    broker.send(topic, click("10:00:00"), click("18:00:00", page="early"), click("10:30:00"))
    broker.send(topic, bound("2024-01-01T12:00:00Z"), click("12:45:00"), click("13:45:01", page="early"), *last)
    query = made.run_available(tmp_path / "check")
    assert [row["page"] for row in rows.rows] == ["a", "a", "a"]
    assert query.ledger["clicks"] == {"in": 5, "accepted": 3, "EARLY": 2}
