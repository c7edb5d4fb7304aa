"""Avro with a schema registry as a source: decoded by id, or MALFORMED, and the same on every read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reliability.broker import Broker, Record, free_ports
from rowtime.core.errors import Failure
from rowtime.core.time import to_micros
from rowtime.plan.formats.registry import RegistryOptions
from rowtime.runtime.schemas.pinned import PinnedSchemas
from rowtime.runtime.schemas.registry import HttpRegistry, MockRegistry
from rowtime.runtime.sources.contract import Limits
from rowtime.runtime.sources.kafka import KafkaSource
from tests.kafka.avro_bytes import framed, record, registered

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.sampled(8)

TRIP = record("Trip", vehicle="string", km=["null", "double"])
made: list[KafkaSource] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """An open client keeps asking its broker."""
    yield
    for src in made:
        src.close()
    made.clear()


def source(broker: Broker, topic: str, home: Path, columns: Any, form: str = "avro", **options: str) -> KafkaSource:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}
    schemas = PinnedSchemas(MockRegistry(home / "schema-registry" / "test"), home / "notes", lambda _: None)
    made.append(KafkaSource(given, columns, form, schemas=None if form == "debezium-json" else schemas))
    return made[-1]


def read(spark: SparkSession, src: KafkaSource, state: Mapping[str, Any] | None = None) -> list[Row]:
    """All items; times as µs."""
    frame = src.read(spark, src.discover({}, Limits(), state or {})[0])
    chosen = [f"unix_micros({c}) AS {c}" if c in ("__t", "__b") else f"`{c}`" for c in frame.columns]
    return sorted(frame.selectExpr(*chosen).collect(), key=lambda row: (row["__w"], row["__p"]))


@pytest.mark.slow
def test_each_record_is_read_by_the_schema_of_its_id(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    first = registered(tmp_path, "s", TRIP)
    other = record(
        "Trip", km=["null", "float"], speed="int", vehicle={"type": "enum", "name": "V", "symbols": ["x", "y"]}
    )
    second = registered(tmp_path, "s", other)
    third = registered(tmp_path, "s", record("Trip", vehicle="string"))
    broker.send(
        topic,
        Record(framed(first, {"vehicle": "a", "km": 1.5}, TRIP)),
        Record(framed(second, {"km": 2.5, "speed": 9, "vehicle": "y"}, other)),
        Record(framed(third, {"vehicle": "c"}, record("Trip", vehicle="string"))),
        Record(framed(first, {"vehicle": "d", "km": None}, TRIP)),
        Record(None, headers=[("rowtime-bound", "5")]),
    )
    rows = read(spark, source(broker, topic, tmp_path, [("vehicle", "STRING"), ("km", "DOUBLE")]))
    assert [(r["vehicle"], r["km"]) for r in rows] == [("a", 1.5), ("y", 2.5), ("c", None), ("d", None), (None, None)]
    assert [(r["__m"], r["__b"]) for r in rows] == [(None, None)] * 4 + [(None, 5)]


def test_types(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    inner = record("Inner", x="int", y=["null", "string"])
    schema = record(
        "All",
        b="boolean",
        n="int",
        at={"type": "long", "logicalType": "timestamp-millis"},
        fine={"type": "long", "logicalType": "timestamp-micros"},
        day={"type": "int", "logicalType": "date"},
        price={"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        raw={"type": "fixed", "name": "Two", "size": 2},
        tags={"type": "array", "items": "string"},
        counts={"type": "map", "values": "long"},
        inner=inner,
    )
    number = registered(tmp_path, "s", schema)
    value = {
        "b": True, "n": -7, "at": 1_704_067_200_001, "fine": 1_704_067_200_000_001, "day": 19723,
        "price": (12345).to_bytes(2, "big"), "raw": b"\x00\xff", "tags": ["u", "v"], "counts": {"k": 1 << 40},
        "inner": {"x": 1, "y": None},
    }  # fmt: skip
    broker.send(topic, Record(framed(number, value, schema)))
    columns = [
        ("b", "BOOLEAN"), ("n", "BIGINT"), ("at", "TIMESTAMP"), ("fine", "TIMESTAMP"), ("day", "DATE"),
        ("price", "DECIMAL(10, 2)"), ("raw", "BINARY"), ("tags", "ARRAY<STRING>"), ("counts", "MAP<STRING, BIGINT>"),
        ("inner", "STRUCT<x: INT, y: STRING>"),
    ]  # fmt: skip
    (row,) = read(spark, source(broker, topic, tmp_path, columns))
    assert row["__m"] is None
    times = [row[name].astimezone(UTC) for name in ("at", "fine")]
    assert times == [datetime(2024, 1, 1, 0, 0, 0, n, UTC) for n in (1000, 1)]
    assert (row["b"], row["n"], row["day"], row["price"]) == (True, -7, date(2024, 1, 1), Decimal("123.45"))
    assert (bytes(row["raw"]), row["tags"], row["counts"]) == (b"\x00\xff", ["u", "v"], {"k": 1 << 40})
    assert tuple(row["inner"]) == (1, None)


def test_records_that_do_not_decode_are_malformed_and_shown_completely(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    number = registered(tmp_path, "s", TRIP)
    wide = record("Wide", vehicle="string", km="string")
    misfit = registered(tmp_path, "s", wide)
    no_record = registered(tmp_path, "s", "string")
    of_json = registered(tmp_path, "s", {"type": "object"}, kind="JSON")
    whole = framed(number, {"vehicle": "abc", "km": 1.5}, TRIP)
    broken = [
        framed(99, {"vehicle": "a", "km": 1.5}, TRIP),  # no registry has the schema
        whole[:-1],
        whole[:6],
        whole + b"x",
        b"\x01" + whole[1:],
        b'{"vehicle": "a"}',
        whole[:4],
        b"",
        framed(misfit, {"vehicle": "a", "km": "far"}, wide),
        framed(no_record, "abc", "string"),
        framed(of_json, "abc", "string"),
    ]
    broker.send(topic, *map(Record, broken), Record(None), Record(whole))
    src = source(broker, topic, tmp_path, [("vehicle", "STRING"), ("km", "DOUBLE")])
    rows = read(spark, src)
    assert [r["__m"] for r in rows] == [*(base64.b64encode(b).decode() for b in broken), "NULL", None]
    assert all(r["vehicle"] is None and r["km"] is None for r in rows[:-1])
    assert (rows[-1]["vehicle"], rows[-1]["km"]) == ("abc", 1.5)
    # The verdict does not depend on the columns that are read.
    part = src.discover({}, Limits(), {})[0]
    assert src.read(spark, part).where("__m IS NULL").select("vehicle").count() == 1


def test_a_value_that_does_not_fit_its_column_is_malformed(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    schema = record("N", n="long")
    number = registered(tmp_path, "s", schema)
    broker.send(topic, *(Record(framed(number, {"n": n}, schema)) for n in (1, 1 << 40, -5)))
    rows = read(spark, source(broker, topic, tmp_path, [("n", "INT")]))
    assert [(r["n"], r["__m"] is None) for r in rows] == [(1, True), (None, False), (-5, True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, 1_704_067_200_000),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1_704_067_200_000_000),
        ("long", 1_704_067_200_000_000),
        ("string", "2024-01-01T00:00:00Z"),
    ],
)
def test_a_field_gives_the_rowtime(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, kind: Any, given: Any
) -> None:
    schema = record("R", a="int", At=["null", kind])
    number = registered(tmp_path, "s", schema)
    broker.send(topic, *(Record(framed(number, {"a": 1, "At": at}, schema)) for at in (given, None)))
    options = {"rowtime.column": "at"}
    declared = source(broker, topic, tmp_path, [("a", "INT"), ("At", "TIMESTAMP")], **options)
    rows = read(spark, declared)
    assert [r["__t"] for r in rows] == [to_micros("2024-01-01"), None]
    assert [r["At"] is None for r in rows] == [False, True]
    beside = source(broker, topic, tmp_path, [("a", "INT")], **{"rowtime.column": "At"})
    assert [r["__t"] for r in read(spark, beside)] == [to_micros("2024-01-01"), None]


def test_names_of_other_schemas_are_found(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    place = {**record("Place", city="string"), "namespace": "geo"}
    schema = {**record("Trip", start="geo.Place", stop=["null", "geo.Place"]), "namespace": "trips"}
    whole = record("Trip", start=place, stop=["null", place])
    number = registered(tmp_path, "s", schema, references=(("geo.Place", json.dumps(place)),))
    broker.send(topic, Record(framed(number, {"start": {"city": "Ulm"}, "stop": {"city": "Bonn"}}, whole)))
    columns = [("start", "STRUCT<city: STRING>"), ("stop", "STRUCT<city: STRING>")]
    (row,) = read(spark, source(broker, topic, tmp_path, columns))
    assert (row["start"]["city"], row["stop"]["city"]) == ("Ulm", "Bonn")


def test_records_are_read_again_unchanged_whatever_the_registry_says_later(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    number = registered(tmp_path, "s", TRIP)
    broker.send(topic, Record(framed(number, {"vehicle": "a", "km": 1.5}, TRIP)))
    broker.send(topic, Record(framed(2, {"vehicle": "b", "km": 1.5}, TRIP)))
    src = source(broker, topic, tmp_path, [("vehicle", "STRING")])
    part, state = src.discover({}, Limits(), {})
    before = [(r["vehicle"], r["__m"]) for r in src.read(spark, part).collect()]
    registered(tmp_path, "s", TRIP)  # number 2, too late
    other = tmp_path / "schema-registry" / "test" / "1.json"
    other.write_text(json.dumps({"subject": "s", "schema": record("Other", vehicle="int")}))
    again = source(broker, topic, tmp_path, [("vehicle", "STRING")])
    state = json.loads(json.dumps(state))
    assert [(r["vehicle"], r["__m"]) for r in again.read(spark, again.between({}, part.end, state)).collect()] == before
    assert sorted(vehicle for vehicle, _ in before if vehicle) == ["a"]
    whole, _ = again.discover({}, Limits(), state)
    assert [r["vehicle"] for r in again.read(spark, whole).where("__m IS NULL").collect()] == ["a"]


def test_a_registry_that_does_not_answer_is_transient(broker: Broker, topic: str, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    options = RegistryOptions.of({"schema.registry.url": f"http://127.0.0.1:{port}"})
    schemas = PinnedSchemas(HttpRegistry(options), tmp_path)
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    made.append(KafkaSource(given, [("vehicle", "STRING")], "avro", schemas=schemas))
    assert made[-1].discover({}, Limits(), {})[0].empty  # there is no registry to ask
    broker.send(topic, Record(framed(1, {"vehicle": "a", "km": 1.5}, TRIP)))
    with pytest.raises(Failure, match=r"R501 the schema registry .*does not answer"):
        made[-1].discover({}, Limits(), {})
