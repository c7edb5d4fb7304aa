"""Protobuf with a schema registry as a source: decoded by id and message, or MALFORMED, for every type."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reliability.broker import Broker, Record
from rowtime.core.time import to_micros
from rowtime.runtime.sources.contract import Limits
from tests.kafka.avro_bytes import record
from tests.kafka.avro_bytes import registered as registered_avro
from tests.kafka.protobuf_bytes import class_of, framed, proto, registered
from tests.kafka.test_avro_source import made, read
from tests.kafka.test_avro_source import source as any_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sources.kafka import KafkaSource

pytestmark = pytest.mark.sampled(12)

TRIP = proto("message Trip { string vehicle = 1; optional double km = 2; }")
COLUMNS = [("vehicle", "STRING"), ("km", "DOUBLE")]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    for src in made:
        src.close()
    made.clear()


def source(broker: Broker, topic: str, home: Path, columns: Any, **options: str) -> KafkaSource:
    return any_source(broker, topic, home, columns, form="protobuf", **options)


def trip(text: str = TRIP, name: str = "Trip", **fields: Any) -> Any:
    return class_of(text, name)(**fields)


def test_each_record_is_read_by_the_schema_of_its_id(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    other = proto("message Trip { enum V { X = 0; Y = 1; } float km = 7; int32 speed = 1; V vehicle = 2; }")
    third = proto("message Trip { string vehicle = 9; }")
    numbers = [registered(tmp_path, "s", text) for text in (TRIP, other, third)]
    broker.send(
        topic,
        Record(framed(numbers[0], trip(vehicle="a", km=1.5))),
        Record(framed(numbers[1], trip(other, km=2.5, speed=9, vehicle=1))),
        Record(framed(numbers[2], trip(third, vehicle="c"))),
        Record(framed(numbers[0], trip(vehicle="d"), b"\2\0")),
        Record(framed(numbers[1], trip(other))),
        Record(None, headers=[("rowtime-bound", "5")]),
    )
    rows = read(spark, source(broker, topic, tmp_path, COLUMNS))
    expected = [("a", 1.5), ("Y", 2.5), ("c", None), ("d", None), ("X", 0.0), (None, None)]
    assert [(r["vehicle"], r["km"]) for r in rows] == expected
    assert [(r["__m"], r["__b"]) for r in rows] == [(None, None)] * 5 + [(None, 5)]


ALL = proto("""package shop; import "geo/place.proto";
message Other { int32 x = 1; }
message All {
  bool b = 1; int32 n = 2; uint32 u = 3; uint64 w = 4; sint64 z = 5; fixed32 f = 6; sfixed64 s = 7; float r = 8;
  google.protobuf.Timestamp at = 9; google.protobuf.Duration took = 10; bytes raw = 11; Kind kind = 12;
  repeated string tags = 13; map<string, int64> counts = 14; geo.Place place = 15; google.protobuf.Int64Value many = 16;
  google.protobuf.StringValue note = 17; google.protobuf.Any any = 18; oneof which { string a = 19; int32 c = 20; }
  Other other = 21; repeated google.protobuf.Timestamp stops = 22; All again = 23; google.protobuf.Struct free = 24;
  enum Kind { NONE = 0; SOME = 1; }
}""")
PLACE = 'syntax = "proto3"; package geo; message Place { string city = 1; optional int32 n = 2; }'
REFERENCES = (("geo/place.proto", PLACE),)


def test_types(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    number = registered(tmp_path, "s", ALL, references=REFERENCES)
    value = class_of(ALL, "All", references=REFERENCES)(
        b=True, n=-7, u=2**32 - 1, w=2**64 - 1, z=-(1 << 40), f=2**32 - 1, s=-5, r=0.5, raw=b"\x00\xff", kind=1,
        tags=["u", "é"], counts={"k": 1 << 40}, place={"city": "Ulm"}, many={"value": 0}, a="x", other={"x": 3},
    )  # fmt: skip
    value.at.FromNanoseconds(1_704_067_200_000_001_999)
    value.took.FromNanoseconds(-1_500_001_999)
    value.stops.add(seconds=1)
    value.again.n = 5
    value.any.type_url = "u"
    empty = class_of(ALL, "All", references=REFERENCES)(kind=7)
    head = b"\2\2"  # one index, which is 1
    broker.send(topic, Record(framed(number, value, head)), Record(framed(number, empty, head)))
    broker.send(topic, Record(framed(number, value)), Record(framed(number, value, b"\4\2\0")))
    columns = [
        ("b", "BOOLEAN"), ("n", "INT"), ("u", "BIGINT"), ("w", "DECIMAL(20, 0)"), ("z", "BIGINT"), ("f", "BIGINT"),
        ("s", "BIGINT"), ("r", "FLOAT"), ("at", "TIMESTAMP"), ("took", "INTERVAL DAY TO SECOND"), ("raw", "BINARY"),
        ("kind", "STRING"), ("tags", "ARRAY<STRING>"), ("counts", "MAP<STRING, BIGINT>"),
        ("place", "STRUCT<city: STRING>"), ("many", "BIGINT"), ("note", "STRING"), ("any", "STRUCT<type_url: STRING>"),
        ("a", "STRING"), ("c", "INT"), ("other", "STRUCT<x: BIGINT>"), ("stops", "ARRAY<TIMESTAMP>"),
    ]  # fmt: skip
    rows = read(spark, source(broker, topic, tmp_path, columns, **{"protobuf.message": "All"}))
    assert [row["__m"] is None for row in rows] == [True, True, False, False]
    full, bare = (row.asDict(recursive=True) for row in rows[:2])
    full["at"], full["stops"] = full["at"].astimezone(UTC), [one.astimezone(UTC) for one in full["stops"]]
    assert {name: full[name] for name, _ in columns} == {
        "b": True, "n": -7, "u": 2**32 - 1, "w": Decimal(2**64 - 1), "z": -(1 << 40), "f": 2**32 - 1, "s": -5, "r": 0.5,
        "at": datetime(2024, 1, 1, 0, 0, 0, 1, UTC), "took": timedelta(microseconds=-1_500_001), "raw": b"\x00\xff",
        "kind": "SOME", "tags": ["u", "é"], "counts": {"k": 1 << 40}, "place": {"city": "Ulm"}, "many": 0,
        "note": None, "any": {"type_url": "u"}, "a": "x", "c": None, "other": {"x": 3},
        "stops": [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)],
    }  # fmt: skip
    assert {name: bare[name] for name, _ in columns} == {
        "b": False, "n": 0, "u": 0, "w": Decimal(0), "z": 0, "f": 0, "s": 0, "r": 0.0, "at": None, "took": None,
        "raw": b"", "kind": "7", "tags": [], "counts": {}, "place": None, "many": None, "note": None, "any": None,
        "a": None, "c": None, "other": None, "stops": [],
    }  # fmt: skip


def test_records_that_do_not_decode_are_malformed_and_shown_completely(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    number = registered(tmp_path, "s", TRIP)
    wide = registered(tmp_path, "s", proto("message Trip { string vehicle = 1; repeated string km = 2; }"))
    endless = registered(tmp_path, "s", proto("message Trip { Trip vehicle = 1; double km = 2; }"))
    text = registered(tmp_path, "s", "message Trip {")
    avro = registered_avro(tmp_path, "s", record("Trip", vehicle="string"))
    whole = framed(number, trip(vehicle="abc", km=1.5))
    broken = [
        framed(99, trip(vehicle="a")),
        whole[:-1],
        whole[:8],
        whole + b"x",
        whole + b"\0",
        b"\x01" + whole[1:],
        b'{"vehicle": "a"}',
        whole[:5],
        whole[:4],
        b"",
        framed(number, trip(vehicle="abc"), b"\2\2"),  # there is no second message
        framed(number, trip(vehicle="abc"), b"\x80\0"),
        framed(number, b"\x08\1"),  # another wire type
        framed(number, b"\x0a\1\xff"),
        framed(wide, b""),
        framed(endless, b""),
        framed(text, b""),
        framed(avro, b""),
    ]
    broker.send(topic, *map(Record, broken), Record(None), Record(whole), Record(whole[:6]))
    src = source(broker, topic, tmp_path, COLUMNS)
    rows = read(spark, src)
    assert [r["__m"] for r in rows] == [*(base64.b64encode(b).decode() for b in broken), "NULL", None, None]
    assert all(r["vehicle"] is None and r["km"] is None for r in rows[:-2])
    assert [(r["vehicle"], r["km"]) for r in rows[-2:]] == [("abc", 1.5), ("", None)]
    part = src.discover({}, Limits(), {})[0]
    assert src.read(spark, part).where("__m IS NULL").select("vehicle").count() == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("google.protobuf.Timestamp", {"seconds": 1_704_067_200}),
        ("google.protobuf.Int64Value", {"value": 1_704_067_200_000_000}),
        ("optional int64", 1_704_067_200_000_000),
        ("optional string", "2024-01-01T00:00:00Z"),
    ],
)
def test_a_field_gives_the_rowtime(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, kind: str, given: Any
) -> None:
    text = proto(f"message R {{ int32 a = 1; {kind} At = 2; }}")
    number = registered(tmp_path, "s", text)
    broker.send(topic, *(Record(framed(number, trip(text, "R", a=1, At=at))) for at in (given, None)))
    declared = source(broker, topic, tmp_path, [("a", "INT"), ("At", "TIMESTAMP")], **{"rowtime.column": "at"})
    rows = read(spark, declared)
    assert [r["__t"] for r in rows] == [to_micros("2024-01-01"), None]
    assert [r["At"] is None for r in rows] == [False, True]
    beside = source(broker, topic, tmp_path, [("a", "INT")], **{"rowtime.column": "At"})
    assert [r["__t"] for r in read(spark, beside)] == [to_micros("2024-01-01"), None]


def test_records_of_many_schemas_in_one_batch_are_those_of_each(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    texts = [proto(f"message Trip {{ optional int64 n = {field}; }}") for field in range(1, 6)]
    numbers = [registered(tmp_path, "s", text) for text in texts]
    sent = [(numbers[n % 5], trip(texts[n % 5], n=n)) for n in range(500)]
    broker.send(topic, *(Record(framed(number, one) if n % 7 else b"\0\0") for n, (number, one) in enumerate(sent)))
    rows = read(spark, source(broker, topic, tmp_path, [("n", "BIGINT")]))
    assert [row["n"] for row in rows] == [n if n % 7 else None for n in range(500)]
