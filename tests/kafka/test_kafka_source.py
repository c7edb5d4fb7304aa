"""The Kafka source against a real broker: ranges, bounds, malformed records, lost offsets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from reliability.broker import Broker, Record, free_ports
from rowtime.core.errors import Failure, Refused
from rowtime.core.time import END, to_micros
from rowtime.runtime.sources.contract import Backlog, Limits, Slice
from rowtime.runtime.sources.kafka import KafkaSource, share

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.sampled(8)

NOW = 1_800_000_000_000_000
COLUMNS = [("a", "INT"), ("b", "STRING")]
GIVEN = {"rowtime.column": "rowtime"}
EMPTY_ROW = {"a": None, "b": None, "__t": None}


made: list[KafkaSource] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """An open client keeps asking its broker."""
    yield
    for src in made:
        src.close()
    made.clear()


def source(broker: Broker, topic: str, columns: Any = COLUMNS, **options: str) -> KafkaSource:
    given = {"kafka.bootstrap.servers": broker.bootstrap, **options}
    if not {"subscribePattern", "assign"} & set(options):
        given["subscribe"] = topic
    made.append(KafkaSource(given, columns, clock=lambda: NOW))
    return made[-1]


def discover(src: KafkaSource, start: Mapping[str, int] | None = None, rows: int | None = None) -> Slice:
    """One discovery; with a start, it is not the first."""
    return src.discover(start or {}, Limits(rows=rows), {"started": True} if start else {})[0]


def read(spark: SparkSession, src: KafkaSource, part: Slice) -> list[Row]:
    """The items, with times as µs, because an infinite bound is outside of Python's dates."""
    frame = src.read(spark, part)
    times = ("__t", "__a", "__b")
    chosen = [f"unix_micros({c}) AS {c}" if c in times else f"`{c}`" for c in frame.columns]
    return sorted(frame.selectExpr(*chosen).collect(), key=lambda row: (row["__w"], row["__p"]))


def items(spark: SparkSession, broker: Broker, topic: str, *records: Record, **options: str) -> list[Row]:
    """Send records to a new topic and read them all."""
    broker.send(topic, *records)
    src = source(broker, topic, **options)
    return read(spark, src, discover(src))


def test_three_partitions_of_which_one_is_empty(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.send(topic, Record('{"a": 1, "b": "x"}', 0, at=5), Record('{"a": 2}', 2, at=7), Record('{"a": 3}', 2, at=6))
    src = source(broker, topic)
    part, state = src.discover({}, Limits(), {})
    writers = [f"{topic}/00000", f"{topic}/00001", f"{topic}/00002"]
    assert dict(part.start) == dict.fromkeys(writers, 0)
    assert dict(part.end) == dict(zip(writers, [1, 0, 2], strict=True))
    assert dict(part.arrived) == dict.fromkeys(writers, NOW)
    assert part.rows == 3
    rows = read(spark, src, part)
    assert [(r["a"], r["b"], r["__w"][-1], r["__p"], r["__a"]) for r in rows] == [
        (1, "x", "0", 0, 5000),
        (2, None, "2", 0, 7000),
        (3, None, "2", 1, 6000),
    ]
    assert all(r["__m"] is None and r["__b"] is None and r["__t"] is None for r in rows)
    assert src.discover(part.end, Limits(), state)[0].empty


def test_an_empty_range_has_the_columns_of_a_full_one(spark: SparkSession, broker: Broker, topic: str) -> None:
    src = source(broker, topic)
    empty = src.read(spark, discover(src))
    broker.send(topic, Record('{"a": 1}'))
    assert empty.dtypes == src.read(spark, discover(src)).dtypes
    assert empty.count() == 0


def test_a_range_is_read_again_unchanged(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.send(topic, *(Record(f'{{"a": {i}}}', i % 2) for i in range(10)))
    src = source(broker, topic)
    part = discover(src)
    before = read(spark, src, part)
    broker.send(topic, Record('{"a": 99}'))
    assert read(spark, src, part) == before


BOUNDS = {
    "2024-01-31 23:59:59.5": "2024-01-31 23:59:59.5",
    "2024-01-31T23:59:59Z": "2024-01-31 23:59:59",
    "2024-01-31T23:59:59+02:00": "2024-01-31 21:59:59",
    "2024-01-31": "2024-01-31",
    "1706745599000001": 1706745599000001,
    "-1": -1,
    " end ": END,
    "Infinity": END,
    str(END): END,
}


def test_a_header_makes_a_record_a_bound(spark: SparkSession, broker: Broker, topic: str) -> None:
    sent = [Record(None, headers=[("rowtime-bound", text)]) for text in BOUNDS]
    rows = items(spark, broker, topic, *sent, Record('{"a": 1}', headers=[("other", "x")]))
    assert [r["__b"] for r in rows] == [*(to_micros(v) for v in BOUNDS.values()), None]
    assert [r["__m"] for r in rows] == [None] * len(rows)
    assert [r["a"] for r in rows] == [None] * len(BOUNDS) + [1]


def test_a_strict_bound_is_one_microsecond_later(spark: SparkSession, broker: Broker, topic: str) -> None:
    cases = [("1000", "true"), ("1000", "false"), ("end", "TRUE")]
    sent = [Record(None, headers=[("rowtime-bound", at), ("rowtime-bound-strict", s)]) for at, s in cases]
    assert [r["__b"] for r in items(spark, broker, topic, *sent)] == [1001, 1000, END]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_the_zone_of_the_session_decides_nothing(spark: SparkSession, broker: Broker, topic: str, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = items(
            spark,
            broker,
            topic,
            Record('{"rowtime": "2024-01-01 00:00:00"}'),
            Record(None, headers=[("rowtime-bound", "2024-01-01 00:00:00")]),
            **GIVEN,
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert rows[0]["__t"] == rows[1]["__b"] == to_micros("2024-01-01")


@pytest.mark.parametrize(
    "headers",
    [
        [("rowtime-bound", "soon")],
        [("rowtime-bound", "")],
        [("rowtime-bound", "T10:00")],
        [("rowtime-bound", "2024-02-30")],
        [("rowtime-bound", "99999999999999999999999")],
        [("rowtime-bound", "999999999999999999")],
        [("rowtime-bound", "1000"), ("rowtime-bound-strict", "maybe")],
    ],
)
def test_a_bound_that_does_not_parse_is_malformed(
    spark: SparkSession, broker: Broker, topic: str, headers: list[tuple[str, str]]
) -> None:
    (row,) = items(spark, broker, topic, Record('{"a": 1}', headers=headers))
    assert (row["__m"], row["__b"], row["a"]) == ('{"a": 1}', None, None)


MALFORMED = [
    "",
    "null",
    "5",
    "nonsense",
    '{"a": 1} rest',
    '{"a": 1} {"a": 2}',
    '{"a": 1}, {"a": 2}',
    '[{"a": 1}]',
    "{'a': 1}",
    '{"a": "one", "b": "x"}',
    '{"a": 1.5}',
    '{"a": 99999999999}',
    '{"a": 1, "rowtime": "soon"}',
    '{"a": 1, "rowtime": "10:00"}',
    '{"a": 1, "rowtime": "0000-01-01"}',
    '{"a": 1, "rowtime": 999999999999999999}',
]


def test_records_that_do_not_decode_are_malformed_and_shown_completely(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    rows = items(spark, broker, topic, *(Record(text) for text in MALFORMED), Record('{"a": null, "c": 1}'), **GIVEN)
    assert [r["__m"] for r in rows] == [*MALFORMED, None]
    assert all(r.asDict().items() >= EMPTY_ROW.items() for r in rows)


def test_the_verdict_does_not_depend_on_the_columns_read(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.send(topic, Record('{"a": "one", "b": "x"}'))
    src = source(broker, topic)
    part = discover(src)
    assert [r["b"] for r in src.read(spark, part).select("b").collect()] == [None]
    assert src.read(spark, part).where("__m IS NULL").count() == 0


def test_a_tombstone_and_bytes_that_are_not_text_are_malformed(spark: SparkSession, broker: Broker, topic: str) -> None:
    rows = items(spark, broker, topic, Record(None), Record(b'{"b": "\xff"}'))
    assert [r["__m"] for r in rows] == ["NULL", '{"b": "�"}']


def test_a_field_that_the_stream_does_not_name_is_not_the_rowtime(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    broker.send(topic, Record('{"a": 1, "rowtime": "2024-01-01 00:00:00"}', at=5), Record('{"rowtime": "soon"}', at=6))
    src = source(broker, topic)
    assert not src.gives_rowtime
    assert [(r["__t"], r["__a"], r["__m"]) for r in read(spark, src, discover(src))] == [
        (None, 5000, None),
        (None, 6000, None),
    ]
    declared = source(broker, topic, [("rowtime", "STRING")])
    assert [(r["rowtime"], r["__t"]) for r in read(spark, declared, discover(declared))] == [
        ("2024-01-01 00:00:00", None),
        ("soon", None),
    ]


def test_a_rowtime_in_the_value_is_given(spark: SparkSession, broker: Broker, topic: str) -> None:
    texts = ['"2024-01-01T00:00:00.000001Z"', "1704067200000002", '"1704067200000003"', "null"]
    rows = items(spark, broker, topic, *(Record(f'{{"a": 1, "rowtime": {text}}}') for text in texts), **GIVEN)
    base = to_micros("2024-01-01")
    assert [r["__t"] for r in rows] == [base + 1, base + 2, base + 3, None]
    assert [r["a"] for r in rows] == [1] * 4


def test_the_rowtime_may_have_another_name_and_be_a_column(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.send(topic, Record('{"Seen": "2024-01-01 00:00:00"}'), Record('{"Seen": "x"}'))
    src = source(broker, topic, [("Seen", "TIMESTAMP")], **{"rowtime.column": "seen"})
    first, second = read(spark, src, discover(src))
    assert (first["Seen"].replace(tzinfo=UTC).year, first["__t"]) == (2024, to_micros("2024-01-01"))
    assert (second["Seen"], second["__m"]) == (None, '{"Seen": "x"}')


def test_raw_columns_are_the_parts_of_the_record(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.send(
        topic,
        Record("12", 1, at=1000, key="k", headers=[("h", "v")]),
        Record("twelve", 1),
        Record(None, 1),
        Record(None, 1, headers=[("rowtime-bound", "5")]),
    )
    names = [("value", "INT"), ("key", "STRING"), ("topic", "STRING"), ("partition", "BIGINT"), ("offset", "BIGINT")]
    names += [("timestamp", "TIMESTAMP"), ("headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>")]
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    src = KafkaSource(options, names, "raw")
    assert not src.gives_rowtime
    row, broken, tombstone, bound = read(spark, src, discover(src))
    assert (row["value"], row["key"], row["topic"], row["partition"], row["offset"]) == (12, "k", topic, 1, 0)
    assert row["timestamp"] == datetime.fromtimestamp(1, UTC).astimezone().replace(tzinfo=None)
    assert [(h.key, bytes(h.value)) for h in row["headers"]] == [("h", b"v")]
    assert (broken["value"], broken["__m"]) == (None, "twelve")
    assert (tombstone["value"], tombstone["__m"]) == (None, None)
    assert (bound["__b"], bound["topic"]) == (5, None)


def test_a_limit_is_shared_in_proportion(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.send(topic, *(Record('{"a": 1}', 0) for _ in range(90)), Record('{"a": 2}', 1))
    src = source(broker, topic)
    part = discover(src, rows=10)
    assert [part.end[w] for w in sorted(part.end)] == [9, 1, 0]
    assert set(part.arrived) == {f"{topic}/00001", f"{topic}/00002"}  # the first is not read completely
    assert len(read(spark, src, part)) == 10
    assert part.backlog == Backlog("rows", sum(part.end.values()), 91 - sum(part.end.values()))
    rest = discover(src, part.end, rows=1000)
    assert sum(rest.end.values()) == 91
    assert rest.backlog == Backlog("rows", 91 - sum(part.end.values()), 0)


@pytest.mark.parametrize("rows", [1, 2, 7, 100, None])
def test_sharing_takes_something_from_everyone(rows: int | None) -> None:
    begin, end = {"a": 10, "b": 0, "c": 5}, {"a": 10, "b": 3, "c": 1005}
    ends = share(begin, end, rows)
    assert ends["a"] == 10
    assert all(begin[w] < ends[w] <= end[w] for w in "bc")
    assert rows is None or sum(ends[w] - begin[w] for w in ends) < rows + len(ends)


def test_latest_begins_at_the_end_and_a_new_partition_at_its_beginning(broker: Broker, topic: str) -> None:
    broker.send(topic, Record("{}", 0))
    src = source(broker, topic, startingOffsets="latest")
    part, state = src.discover({}, Limits(), {})
    assert part.empty
    assert part.end[f"{topic}/00000"] == 1
    broker.add_partitions(topic, 4)
    broker.send(topic, Record("{}", 3))
    later, _ = src.discover(part.end, Limits(), state)
    assert (later.start[f"{topic}/00003"], later.end[f"{topic}/00003"]) == (0, 1)


def test_a_pattern_finds_topics_that_come_later(broker: Broker, topic: str) -> None:
    src = source(broker, topic, subscribePattern=f"{topic}-.*")
    part, state = src.discover({}, Limits(), {})
    assert (dict(part.end), part.empty) == ({}, True)
    broker.create_topic(f"{topic}-x")
    broker.create_topic(f"not-{topic}-x")
    later, _ = src.discover(part.end, Limits(), state)
    assert list(later.end) == [f"{topic}-x/00000"]


def test_assign_takes_only_what_it_names(broker: Broker, topic: str) -> None:
    src = source(broker, topic, assign=f'{{"{topic}": [2, 0]}}')
    assert sorted(discover(src).end) == [f"{topic}/00000", f"{topic}/00002"]


def test_lost_offsets_are_named_and_may_be_skipped(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.send(topic, *(Record(f'{{"a": {i}}}') for i in range(5)))
    start = {f"{topic}/{n:05d}": at for n, at in enumerate([1, 0, 0])}
    broker.delete_before(topic, 0, 3)
    with pytest.raises(Failure, match=rf"R503 .*{topic}/00000 from 1 to 2") as caught:
        discover(source(broker, topic), start)
    assert "failOnDataLoss 'false'" in str(caught.value)
    src = source(broker, topic, failOnDataLoss="false")
    assert [r["a"] for r in read(spark, src, discover(src, start))] == [3, 4]


def test_a_recreated_topic_is_never_continued(broker: Broker, topic: str) -> None:
    start = {f"{topic}/{n:05d}": 7 for n in range(3)}
    with pytest.raises(Failure, match=r"R503 .*created again"):
        discover(source(broker, topic, failOnDataLoss="false"), start)


def test_a_deleted_topic_leaves_once(broker: Broker, topic: str) -> None:
    broker.create_topic(f"{topic}-x")
    start = {f"{topic}-x/00000": 0, f"{topic}-y/00000": 4}
    pattern = {"subscribePattern": f"{topic}-.*"}
    with pytest.raises(Failure, match=rf"R503 .*{topic}-y/00000 from 4 on"):
        discover(source(broker, topic, **pattern), start)
    src = source(broker, topic, **pattern, failOnDataLoss="false")
    part, state = src.discover(start, Limits(), {"started": True})
    assert (part.left, part.end[f"{topic}-y/00000"]) == ((f"{topic}-y/00000",), 4)
    assert src.discover(part.end, Limits(), state)[0].left == ()


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_an_unreachable_broker_is_reported_within_seconds() -> None:
    (port,) = free_ports(1)
    options = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "subscribe": "t"}
    begun = time.monotonic()
    with pytest.raises(Failure, match=rf"R501 Kafka at 127.0.0.1:{port}"):
        discover(KafkaSource(options, COLUMNS))
    assert time.monotonic() - begun < 12


@pytest.mark.usefixtures("spark")
def test_a_host_that_has_no_address_is_unreachable_too() -> None:
    options = {"kafka.bootstrap.servers": "nowhere.invalid:9092", "subscribe": "t"}
    with pytest.raises(Failure, match=r"R501 .*nowhere.invalid"):
        discover(KafkaSource(options, COLUMNS))


def test_a_missing_topic_is_reported_and_not_created(broker: Broker) -> None:
    for _ in range(2):
        with pytest.raises(Failure, match=r"R501 .*no topic 'absent'"):
            discover(source(broker, "absent"))


def test_a_source_continues_after_it_was_closed(broker: Broker, topic: str) -> None:
    src = source(broker, topic)
    src.close()
    before = discover(src)
    src.close()
    assert discover(src) == before
    assert not src.finished(before.end)


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": "t"},
        {"kafka.bootstrap.servers": "h:1"},
        {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "assign": "{}"},
        {"kafka.bootstrap.servers": "h:1", "assign": "t"},
        {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "startingOffsets": "middle"},
        {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "maxOffsetsPerTrigger": "5"},
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(Refused, match=r"R504"):
        KafkaSource(options, COLUMNS)


def test_a_format_that_is_unknown_is_refused() -> None:
    with pytest.raises(Refused, match=r"R504 .*'thrift'"):
        KafkaSource({"kafka.bootstrap.servers": "h:1", "subscribe": "t"}, COLUMNS, "thrift")


def test_a_raw_record_has_no_field_for_the_rowtime() -> None:
    options = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", **GIVEN}
    with pytest.raises(Refused, match=r"R504 .*rowtime.column"):
        KafkaSource(options, [("value", "STRING")], "raw")


def test_a_raw_record_has_no_other_columns() -> None:
    with pytest.raises(Refused, match=r"R504 .*'price'"):
        KafkaSource({"kafka.bootstrap.servers": "h:1", "subscribe": "t"}, [("price", "INT")], "raw")
