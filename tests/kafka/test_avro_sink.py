"""Avro with a schema registry as a sink: the records in the topic, the schema in the registry, and a crash."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.core.errors import Refused
from rowtime.core.time import to_micros
from tests.kafka.avro_bytes import decoded, framed, record, registered
from tests.kafka.registry_sinks import COLUMNS, die, insert, pumped, seconds_written_with_the_schema_of_others
from tests.kafka.schema_servers import serving
from tests.kafka.test_kafka_sink import headers, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)

FORM = "avro"


def schemas(home: Path, registry: str = "test") -> dict[int, Any]:
    """All schemas of a registry for tests."""
    files = sorted((home / "schema-registry" / registry).glob("*.json"), key=lambda file: int(file.stem))
    return {int(file.stem): json.loads(json.loads(file.read_text())["schema"]) for file in files}


def written(spark: SparkSession, home: Path, broker: Broker, topic: str) -> list[dict[str, Any]]:
    """The rows of a topic in the order of their numbers, decoded by hand with the schemas of their ids."""
    known, found = schemas(home), {}
    for one in records(spark, broker, topic):
        if "rowtime-seq" in headers(one) and one["value"] is not None:
            value = bytes(one["value"])
            number = int.from_bytes(value[1:5], "big")
            assert value[0] == 0
            found[int(headers(one)["rowtime-seq"])] = {"id": number, **decoded(value[5:], known[number])}
    return [found[number] for number in sorted(found)]


def test_rows_are_records_of_a_schema_that_the_registry_gets(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    made = pumped(FORM, spark, tmp_path, broker, topic)
    made.run_available(tmp_path / "check")
    assert len(schemas(tmp_path)) == 1  # before the first row
    insert(tmp_path, ("x", 1), (None, None), ("z", -3))
    made.run_available(tmp_path / "check")
    insert(tmp_path, ("later", 9), second=10)
    made.run_available(tmp_path / "check")
    ((number, schema),) = schemas(tmp_path).items()
    assert [(one["name"], one["type"], one["default"]) for one in schema["fields"]] == [
        ("name", ["null", "string"], None),
        ("n", ["null", "int"], None),
        ("rowtime", ["null", {"type": "long", "logicalType": "timestamp-micros"}], None),
    ]
    start = to_micros("2024-01-01")
    assert written(spark, tmp_path, broker, topic) == [
        {"id": number, "name": "x", "n": 1, "rowtime": start},
        {"id": number, "name": None, "n": None, "rowtime": start + 1_000_000},
        {"id": number, "name": "z", "n": -3, "rowtime": start + 2_000_000},
        {"id": number, "name": "later", "n": 9, "rowtime": start + 10_000_000},
    ]


def test_later_ticks_and_starts_need_no_registry(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    with serving(tmp_path, "test") as server:
        made = pumped(FORM, spark, tmp_path, broker, topic, registry=server.url)
        made.run_available(tmp_path / "check")
        insert(tmp_path, ("x", 1))
        made.run_available(tmp_path / "check")
    insert(tmp_path, ("y", 2), second=10)
    made = pumped(FORM, spark, tmp_path, broker, topic, registry="http://127.0.0.1:1")
    made.run_available(tmp_path / "check")
    assert [row["name"] for row in written(spark, tmp_path, broker, topic)] == ["x", "y"]


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def theirs(**fields: Any) -> Any:
    return record("T", **fields, rowtime=["null", MILLIS])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "said", "taken", "repaired"),
    [
        (
            theirs(name="string", n=["null", "int"]),
            "the field name is never null",
            r"Declare (name) (NOT NULL)",
            "{0} STRING {1}, n INT",
        ),
        (
            theirs(n=["null", "int"]),
            "there is no field name",
            "Leave the column out",
            "n INT",
        ),
        (
            theirs(name=["null", "string"], n=["null", "string"]),
            "",
            "",
            COLUMNS,
        ),
        (
            theirs(name=["null", "string"], n=["null", "boolean"]),
            "the field n is BOOLEAN, which does not take every INT",
            "Declare n (BOOLEAN)",
            "name STRING, n {0}",
        ),
        (
            theirs(name=["null", "string"], n=["null", "int"], kind="string"),
            "the field kind is never null, and no column has it",
            "Declare a column (kind STRING NOT NULL)",
            "name STRING, n INT, {0}",
        ),
    ],
    ids=["null", "missing", "fits", "type", "more"],
)  # fmt: skip
def test_the_schema_may_be_that_of_others(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, schema: Any, said: str, taken: str, repaired: str
) -> None:
    registered(tmp_path, f"{topic}-value", schema)
    more = ", schema.registry.auto.register.schemas 'false'"
    run = partial(pumped, FORM, spark, tmp_path, broker, topic, more=more)
    seconds = seconds_written_with_the_schema_of_others(run, tmp_path, said, taken, repaired)
    assert list(schemas(tmp_path)) == [1]  # it is written with that schema, and there is no other
    rows = written(spark, tmp_path, broker, topic)
    assert [row["rowtime"] for row in rows] == [1_704_067_200_000 + 1000 * s for s in seconds]


def test_schemas_that_the_registry_does_not_accept_are_refused_before_the_first_row(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    with serving(tmp_path, "test") as server:
        run = partial(pumped, FORM, spark, tmp_path, broker, topic, registry=server.url)
        server.refuses = "Schema being registered is incompatible with an earlier schema"
        with pytest.raises(Refused, match=r"R549 .*incompatible with an earlier schema(.|\n)*o \(name"):
            run().run_available(tmp_path / "check")
        server.refuses = ""
        more = ", schema.registry.auto.register.schemas 'false'"
        with pytest.raises(Refused, match=r"R549 .*has no schema of these columns(.|\n)*Register it, or set"):
            run(more=more).run_available(tmp_path / "check")
        more = ", schema.registry.auto.register.schemas 'true', schema.registry.subject 'other'"
        run(more=more).run_available(tmp_path / "check")
    odd = pumped(FORM, spark, tmp_path / "odd", broker, topic, "`my name` STRING, n INT")
    with pytest.raises(Refused, match=r"R549 .*Avro has no schema(.|\n)*letters, digits and _"):
        odd.run_available(tmp_path / "odd" / "check")
    assert [one for one in records(spark, broker, topic) if "rowtime-seq" in headers(one)] == []


SCRIPT = """CREATE STREAM trips (vehicle STRING, km DOUBLE, ended TIMESTAMP) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', subscribe '{topic}', format 'avro', schema.registry.url 'mock://test');
CREATE TABLE owners (vehicle STRING, owner STRING) USING parquet OPTIONS (path '{owners}');
CREATE VIEW sorted AS
  SELECT STREAM ended AS ROWTIME, vehicle, km FROM trips ORDER BY ended WITHIN INTERVAL '10' SECOND;
CREATE VIEW owned AS SELECT STREAM o.owner, s.km FROM sorted AS s JOIN owners AS o ON s.vehicle = o.vehicle;
CREATE STREAM minutes (owner STRING NOT NULL, trips BIGINT, km DOUBLE, most STRUCT<km: DOUBLE>) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', topic '{out}', key.column 'owner', value.format 'avro',
  schema.registry.url 'mock://test');
CREATE PUMP p AS INSERT INTO minutes SELECT STREAM owner, COUNT(*), SUM(km), NAMED_STRUCT('km', MAX(km))
  FROM owned AS w GROUP BY FLOOR(w.ROWTIME TO MINUTE), owner;"""
BACK = """CREATE STREAM back (owner STRING, trips INT, km DOUBLE, most STRUCT<km: DOUBLE>) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', subscribe '{out}', format 'avro', schema.registry.url 'mock://test',
  rowtime.column 'rowtime'); SELECT STREAM m.ROWTIME AS at, * FROM back AS m;"""
TRIP = record("Trip", vehicle="string", km=["null", "double"], ended=MILLIS)
DAY = 1_704_067_200_000


@pytest.mark.parametrize("dies", ["", "before journal", "after journal", "after output"])
def test_from_avro_through_operators_into_avro_with_a_crash(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, dies: str
) -> None:
    broker.create_topic(f"{topic}-out", 1)
    spark.createDataFrame([("a", "Ada"), ("b", "Bob")], "vehicle STRING, owner STRING").write.parquet(
        str(tmp_path / "t")
    )
    number = registered(tmp_path, f"{topic}-value", TRIP)
    given = {"servers": broker.bootstrap, "topic": topic, "out": f"{topic}-out", "owners": tmp_path / "t"}

    def run() -> Any:
        return rt.Pipeline(spark, home=tmp_path).sql(SCRIPT.format(**given))

    def trip(vehicle: str, km: float | None, second: float, partition: int) -> Record:
        return Record(
            framed(number, {"vehicle": vehicle, "km": km, "ended": DAY + round(1000 * second)}, TRIP), partition
        )

    run().run_available(tmp_path / "check")
    for start in (0, 60, 120):
        for partition in range(3):
            broker.send(topic, *(trip(v, n, start + n, partition) for n, v in enumerate("abac")))
        if dies and start == 60:
            die(run(), tmp_path / "check", dies)
        run().run_available(tmp_path / "check")
    end = [("rowtime-bound", "end")]
    broker.send(topic, *(Record(None, n, headers=end) for n in range(3)), Record(b"\0\0", 1))
    query = run().run_available(tmp_path / "check")
    assert query.ledger["trips"] == {"in": 37, "accepted": 36, "MALFORMED": 1}
    found: dict[tuple[str, str], Any] = {}

    def keep(batch: rt.Batch) -> None:
        for row in batch.table().to_pylist() if batch.count else ():
            found[f"{row['at']:%H:%M}", row["owner"]] = (row["trips"], row["km"], row["most"]["km"])

    back = rt.Pipeline(spark, home=tmp_path).sql(BACK.format(**given))
    back.sink("result", keep).run_available(tmp_path / "back-check")
    minutes = ("00:01", "00:02", "00:03")
    assert found == {(m, o): w for m in minutes for o, w in (("Ada", (6, 6.0, 2.0)), ("Bob", (3, 3.0, 1.0)))}
    assert len([one for one in schemas(tmp_path).values() if one["name"] != "Trip"]) == 1
