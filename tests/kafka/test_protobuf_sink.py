"""Protobuf with a schema registry as a sink: the records in the topic, the schema in the registry, and a crash."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.core.errors import Refused
from rowtime.core.time import to_micros
from tests.kafka.protobuf_bytes import class_of, framed, proto, registered
from tests.kafka.registry_sinks import COLUMNS, die, insert, pumped, seconds_written_with_the_schema_of_others
from tests.kafka.schema_servers import serving
from tests.kafka.test_kafka_sink import headers, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

FORM = "protobuf"
START = to_micros("2024-01-01")


ROWTIME = "optional google.protobuf.Timestamp rowtime"


def message(*lines: str, name: str = "M") -> str:
    """The text of a message."""
    return "\n".join([f"message {name} {{", *(f"  {line}" for line in lines), "}", ""])


def schemas(home: Path) -> dict[int, str]:
    """All schemas of the registry for tests."""
    files = sorted((home / "schema-registry" / "test").glob("*.json"), key=lambda file: int(file.stem))
    return {int(file.stem): json.loads(file.read_text())["schema"] for file in files}


def written(spark: SparkSession, home: Path, broker: Broker, topic: str, name: str = "") -> list[Any]:
    """The messages of a topic as Google's package reads them, in order, with the ids of their schemas."""
    known, found = schemas(home), {}
    for one in records(spark, broker, topic):
        if "rowtime-seq" in headers(one) and one["value"] is not None:
            value = bytes(one["value"])
            number = int.from_bytes(value[1:5], "big")
            assert (value[0], value[5]) == (0, 0)
            message = name or re.search(r"message (\w+)", known[number])[1]  # type: ignore[index]
            found[int(headers(one)["rowtime-seq"])] = (number, class_of(known[number], message).FromString(value[6:]))
    return [found[number] for number in sorted(found)]


def test_rows_are_messages_of_a_schema_that_the_registry_gets(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    made = pumped(FORM, spark, tmp_path, broker, topic, more=", protobuf.message 'shop.Trip'")
    made.run_available(tmp_path / "check")
    assert list(schemas(tmp_path).values()) == [
        'syntax = "proto3";\npackage shop;\nimport "google/protobuf/timestamp.proto";\n\n'
        + message("optional string name = 1;", "optional int32 n = 2;", f"{ROWTIME} = 3;", name="Trip")
    ]  # before the first row
    insert(tmp_path, ("x", 1), (None, None), ("", 0), ("é", -3))
    made.run_available(tmp_path / "check")
    found = written(spark, tmp_path, broker, topic)
    assert [number for number, _ in found] == [1] * 4
    assert [one.rowtime.ToMicroseconds() for _, one in found] == [START + n * 1_000_000 for n in range(4)]
    assert [one.name if one.HasField("name") else None for _, one in found] == ["x", None, "", "é"]
    assert [one.n if one.HasField("n") else None for _, one in found] == [1, None, 0, -3]


def test_numbers_stay_and_those_of_removed_columns_are_reserved(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    with serving(tmp_path, "test") as server:
        changes = [
            ("name STRING, n INT", "name, n"),
            ("m STRUCT<x: INT>, name STRING, n INT", "NAMED_STRUCT('x', n), name, n"),
            ("m STRUCT<y: STRING, x: INT>, n BIGINT", "NAMED_STRUCT('y', name, 'x', n), n"),
            ("m STRUCT<y: STRING, x: INT>, n BIGINT", "NAMED_STRUCT('y', name, 'x', n), n"),
        ]
        for number, (columns, query) in enumerate(changes):
            broker.create_topic(f"{topic}-{number}", 1)
            home, more = tmp_path / f"{number}", ", protobuf.message 'M', schema.registry.subject 's'"
            made = pumped(FORM, spark, home, broker, f"{topic}-{number}", columns, query, server.url, more)
            made.run_available(home / "check")
    found = [re.sub(r".*\n\n", "", text, flags=re.DOTALL) for text in schemas(tmp_path).values()]
    assert found == [
        message("optional string name = 1;", "optional int32 n = 2;", f"{ROWTIME} = 3;"),
        message(
            *("optional M_ m = 4;", "optional string name = 1;", "optional int32 n = 2;", f"{ROWTIME} = 3;"),
            *("message M_ {", "  optional int32 x = 1;", "}"),
        ),
        message(
            *("reserved 1, 2;", "optional M_ m = 4;", "optional int64 n = 5;", f"{ROWTIME} = 3;"),
            *("message M_ {", "  optional string y = 2;", "  optional int32 x = 1;", "}"),
        ),
    ]


def theirs(fields: str) -> str:
    return proto(f"message Other {{ int32 z = 1; }} message T {{ {fields} google.protobuf.Timestamp rowtime = 15; }}")


@pytest.mark.parametrize(
    ("schema", "said", "taken", "repaired"),
    [
        (
            theirs("string name = 4; optional int64 n = 5;"),
            "the field name is never null",
            r"Declare (name) (NOT NULL)",
            "{0} STRING {1}, n INT",
        ),
        (theirs("optional int64 n = 1;"), "there is no field name", "Leave the column out", "n INT"),
        (theirs("optional string name = 1; optional string n = 3;"), "", "", COLUMNS),
        (
            theirs("optional string name = 1; optional bool n = 3;"),
            "the field n is BOOLEAN, which does not take every INT",
            "Declare n (BOOLEAN)",
            "name STRING, n {0}",
        ),
        (
            theirs("optional string name = 1; optional uint32 n = 3;"),
            "the field n is of the kind uint32, and the column may have other values",
            r"Declare (n INT CHECK \(n >= 0\))",
            "name STRING, {0}",
        ),
        (
            proto("message Other {} message T { optional string name = 4; optional int32 n = 5; "
                  "required string kind = 6; optional google.protobuf.Timestamp rowtime = 15; }", "proto2"),
            "the field kind is never null, and no column has it",
            "Declare a column (kind STRING NOT NULL)",
            "name STRING, n INT, {0}",
        ),
    ],
    ids=["null", "missing", "fits", "type", "unsigned", "more"],
)  # fmt: skip
def test_the_schema_may_be_that_of_others(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, schema: str, said: str, taken: str, repaired: str
) -> None:
    registered(tmp_path, f"{topic}-value", schema)
    more = ", schema.registry.auto.register.schemas 'false', protobuf.message 'T'"
    run = partial(pumped, FORM, spark, tmp_path, broker, topic, more=more)
    expected = seconds_written_with_the_schema_of_others(run, tmp_path, said, taken, repaired)
    assert list(schemas(tmp_path)) == [1]  # it is written with that schema, and there is no other
    rows = []
    for one in records(spark, broker, topic):
        if "rowtime-seq" in headers(one):
            value = bytes(one["value"])
            assert value[:7] == b"\0\0\0\0\1\2\2"
            rows.append(class_of(schema, "T").FromString(value[7:]))
    seconds = sorted(row.rowtime.seconds for row in rows)
    assert seconds == [START // 1_000_000 + s for s in expected]


def test_an_enum_and_unsigned_numbers_are_written_if_checks_limit_the_columns(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    kind = "enum Kind { NONE = 0; x = 1; z = 7; } "
    schema = theirs(f"{kind} Kind name = 4; optional uint32 n = 5; fixed64 m = 6; ")
    registered(tmp_path, f"{topic}-value", schema)
    more = ", schema.registry.auto.register.schemas 'false', protobuf.message 'T'"
    columns, query = "name STRING NOT NULL, n BIGINT, m BIGINT NOT NULL", "name, CAST(n AS BIGINT), n * 4000000000"
    with pytest.raises(Refused) as refused:
        pumped(FORM, spark, tmp_path, broker, topic, columns, query, more=more).run_available(tmp_path / "refused")
    hints = [problem.hint for problem in refused.value.problems]
    assert hints == [
        "Declare name STRING CHECK (name IN ('NONE', 'x', 'z')).",
        "Declare n BIGINT CHECK (n >= 0 AND n <= 4294967295).",
        "Declare m BIGINT CHECK (m >= 0).",
    ]
    first, *others = [hint.removeprefix("Declare ").removesuffix(".") for hint in hints]
    columns = ", ".join([f"{first} NOT NULL", others[0], f"{others[1]} NOT NULL"])
    made = pumped(FORM, spark, tmp_path, broker, topic, columns, query, more=more)
    made.run_available(tmp_path / "check")
    insert(tmp_path, ("x", 1), ("y", 2), ("z", -3), ("NONE", None), ("z", 2))
    done = made.run_available(tmp_path / "check")
    assert done.ledger["p"]["MALFORMED"] == 3  # y is not a name, -3 is negative, and m is NULL
    rows = [
        class_of(schema, "T").FromString(bytes(one["value"])[7:])
        for one in records(spark, broker, topic)
        if "rowtime-seq" in headers(one)
    ]
    assert sorted((row.name, row.n, row.m) for row in rows) == [(1, 1, 4_000_000_000), (7, 2, 8_000_000_000)]


@pytest.mark.parametrize(
    ("columns", "query", "said", "hint"),
    [
        ("`my name` STRING", "name", "Protobuf has no field called 'my name'", "letters, digits and _"),
        ("d DATE", "DATE '2024-01-01'", "Protobuf has no type for d, which is DATE", "Declare d STRING"),
        ("d DECIMAL(5, 2)", "1.5BD", "Protobuf has no type for d, which is DECIMAL", "Declare d STRING"),
        ("d ARRAY<ARRAY<INT>>", "ARRAY(ARRAY(n))", "Protobuf has no type for d", "Declare d STRING"),
        ("d MAP<DOUBLE, INT>", "MAP(1.5D, n)", "Protobuf has no type for d, which is a map", "Declare d STRING"),
        ("a_b INT, aB INT", "n, n", "Protobuf's compiler rejects it", "with another subject"),
    ],
)
def test_columns_that_protobuf_cannot_have(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, columns: str, query: str, said: str, hint: str
) -> None:
    with pytest.raises(Refused) as refused:
        pumped(FORM, spark, tmp_path, broker, topic, columns, query).run_available(tmp_path / "check")
    (problem,) = refused.value.problems
    assert (problem.code, said in problem.message, hint in problem.hint) == ("R549", True, True), problem
    assert not schemas(tmp_path)
    if hint.startswith("Declare"):
        pumped(FORM, spark, tmp_path, broker, topic, "d STRING", f"to_json(NAMED_STRUCT('d', {query}))").run_available(
            tmp_path / "repaired"
        )


def test_a_null_inside_of_an_array_is_malformed_at_the_gate(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    columns = "tags ARRAY<STRING>, m MAP<STRING, INT>, inner ARRAY<STRUCT<l: ARRAY<INT>>>"
    query = "ARRAY(name), MAP('k', n), ARRAY(NAMED_STRUCT('l', IF(n = 3, ARRAY(n, NULL), NULL)))"
    made = pumped(FORM, spark, tmp_path, broker, topic, columns, query, more=", protobuf.message 'R'")
    made.run_available(tmp_path / "check")
    insert(tmp_path, ("x", 1), (None, 2), ("z", 3), ("w", None), ("v", 5))
    query_ = made.run_available(tmp_path / "check")
    found = [one for _, one in written(spark, tmp_path, broker, topic)]
    assert [(list(one.tags), dict(one.m), len(one.inner)) for one in found] == [
        (["x"], {"k": 1}, 1),
        (["v"], {"k": 5}, 1),
    ]
    assert query_.ledger["p"]["MALFORMED"] == 3


SCRIPT = """CREATE STREAM trips (vehicle STRING, km DOUBLE, ended TIMESTAMP) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', subscribe '{topic}', format 'protobuf', schema.registry.url 'mock://test');
CREATE VIEW sorted AS
  SELECT STREAM ended AS ROWTIME, vehicle, km FROM trips ORDER BY ended WITHIN INTERVAL '10' SECOND;
CREATE STREAM minutes (vehicle STRING NOT NULL, trips BIGINT, km DOUBLE, most STRUCT<km: DOUBLE>, kms ARRAY<DOUBLE>)
USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', topic '{out}', key.column 'vehicle', value.format 'protobuf',
  schema.registry.url 'mock://test'{more});
CREATE PUMP p AS INSERT INTO minutes
  SELECT STREAM vehicle, COUNT(*), SUM(km), NAMED_STRUCT('km', MAX(km)), ARRAY(MIN(km))
  FROM sorted AS w GROUP BY FLOOR(w.ROWTIME TO MINUTE), vehicle;"""
BACK = """CREATE STREAM back (vehicle STRING, trips INT, km DOUBLE, most STRUCT<km: DOUBLE>, kms ARRAY<DOUBLE>)
USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', subscribe '{out}', format 'protobuf', schema.registry.url 'mock://test',
  rowtime.column 'rowtime'{isolated}); SELECT STREAM m.ROWTIME AS at, * FROM back AS m;"""
TRIP = proto("message Trip { string vehicle = 1; optional double km = 2; google.protobuf.Timestamp ended = 3; }")


@pytest.mark.parametrize("dies", ["", "before journal", "after journal", "after output", "transactions"])
def test_from_protobuf_through_operators_into_protobuf_with_a_crash(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, dies: str
) -> None:
    broker.create_topic(f"{topic}-out", 1)
    number, once = registered(tmp_path, f"{topic}-value", TRIP), dies == "transactions"
    given = {
        "servers": broker.bootstrap, "topic": topic, "out": f"{topic}-out",
        "more": ", transactions 'true'" if once else "",
        "isolated": ", kafka.isolation.level 'read_committed'" if once else "",
    }  # fmt: skip

    def run() -> Any:
        return rt.Pipeline(spark, home=tmp_path).sql(SCRIPT.format(**given))

    def trip(vehicle: str, km: float | None, second: float, partition: int) -> Record:
        value = class_of(TRIP, "Trip")(vehicle=vehicle, km=km)
        value.ended.FromMicroseconds(START + round(1_000_000 * second))
        return Record(framed(number, value), partition)

    run().run_available(tmp_path / "check")
    for start in (0, 60, 120):
        for partition in range(3):
            broker.send(topic, *(trip(v, n, start + n, partition) for n, v in enumerate("abac")))
        if dies and start == 60:
            die(run(), tmp_path / "check", "after journal" if once else dies)
        run().run_available(tmp_path / "check")
    end = [("rowtime-bound", "end")]
    broker.send(topic, *(Record(None, n, headers=end) for n in range(3)), Record(b"\0\0", 1))
    query = run().run_available(tmp_path / "check")
    assert query.ledger["trips"] == {"in": 37, "accepted": 36, "MALFORMED": 1}
    found: dict[tuple[str, str], Any] = {}

    def keep(batch: rt.Batch) -> None:
        for row in batch.table().to_pylist() if batch.count else ():
            assert row["kms"] == [{"a": 0.0, "b": 1.0, "c": 3.0}[row["vehicle"]]]
            found[f"{row['at']:%H:%M}", row["vehicle"]] = (row["trips"], row["km"], row["most"]["km"])

    back = rt.Pipeline(spark, home=tmp_path).sql(BACK.format(**given))
    back.sink("result", keep).run_available(tmp_path / "back-check")
    each = {"a": (6, 6.0, 2.0), "b": (3, 3.0, 1.0), "c": (3, 9.0, 3.0)}
    assert found == {(f"00:0{m}", vehicle): row for m in (1, 2, 3) for vehicle, row in each.items()}
    assert len([text for text in schemas(tmp_path).values() if "Trip" not in text]) == 1
