"""JSON with schemas of a registry: reading, refusals of a first start, and writing."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.core.errors import Refused
from tests.kafka.avro_bytes import record, registered
from tests.kafka.registry_sinks import die, insert
from tests.kafka.test_avro_source import made, read, source
from tests.kafka.test_kafka_sink import headers, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)

TRIP = {
    "type": "object",
    "properties": {
        "vehicle": {"type": "string"},
        "km": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "ended": {"type": "string", "format": "date-time"},
        "n": {"type": ["integer", "null"]},
        "tags": {"type": "array"},
        "place": {"$ref": "#/definitions/place"},
    },
}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    for src in made:
        src.close()
    made.clear()


def framed(number: int, value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value)
    return b"\0" + number.to_bytes(4, "big") + text.encode()


def test_records_are_json_after_a_schema_id(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    number = registered(tmp_path, "s", TRIP, kind="JSON")
    avro = registered(tmp_path, "s", record("R", vehicle="string"))
    broken = [
        framed(9, {"vehicle": "a"}),
        framed(avro, {"vehicle": "a"}),
        framed(number, '{"vehicle": "a"} rest'),
        framed(number, {"vehicle": "a", "km": "far"}),
        framed(number, "null"),
        b'{"vehicle": "a"}',
        framed(number, "")[:4],
    ]
    given = {"vehicle": "a", "km": 1.5, "ended": "2024-01-01T00:00:00.5Z", "more": [1]}
    broker.send(topic, Record(framed(number, given)), Record(framed(number, {"vehicle": "b"})), *map(Record, broken))
    broker.send(topic, Record(None, headers=[("rowtime-bound", "5")]))
    columns = [("vehicle", "STRING"), ("km", "DOUBLE")]
    for options in ({}, {"rowtime.column": "ended"}):
        rows = read(spark, source(broker, topic, tmp_path, columns, form="json-schema", **options))
        assert [(r["vehicle"], r["km"]) for r in rows[:2]] == [("a", 1.5), ("b", None)]
        assert [r["__t"] for r in rows[:2]] == [1_704_067_200_500_000 if options else None, None]
        assert [r["__m"] for r in rows] == [None, None, *(base64.b64encode(b).decode() for b in broken), None]
        assert rows[-1]["__b"] == 5


READ = """CREATE STREAM trips ({columns}) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', subscribe '{topic}', format 'json-schema', schema.registry.url 'mock://test');
SELECT STREAM * FROM trips;"""


@pytest.mark.parametrize(
    ("columns", "said", "taken", "repaired"),
    [
        ("vehicle INT", "vehicle is of the type string, which does not fit INT", "Declare (vehicle STRING),", "{0}"),
        ("km BOOLEAN", "km is of the type number, which does not fit BOOLEAN", "Declare (km DOUBLE),", "{0}"),
        ("n DATE", "n is of the type integer, which does not fit DATE", "Declare (n BIGINT),", "{0}"),
        ("tags STRUCT<a: INT>", "tags is of the type array", "Declare (tags STRING),", "{0}"),
        ("VEHICLE STRING", "there is no field VEHICLE", r"Did you mean (vehicle)\?", "{0} STRING"),
        ("speed INT", "there is no field speed", "vehicle, (km), ended", "{0} DOUBLE"),
    ],
)
def test_a_first_start_refuses_columns_that_no_record_fits(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, columns: str, said: str, taken: str, repaired: str
) -> None:
    registered(tmp_path, f"{topic}-value", TRIP, kind="JSON")

    def run(text: str, checkpoint: str) -> None:
        sql = READ.format(columns=text, servers=broker.bootstrap, topic=topic)
        rt.Pipeline(spark, home=tmp_path).sql(sql).sink("result", lambda _: None).run_available(tmp_path / checkpoint)

    with pytest.raises(Refused) as refused:
        run(columns, "refused")
    (problem,) = refused.value.problems
    assert (problem.code, said in problem.message) == ("R548", True), problem
    assert problem.place is not None
    assert problem.place.text[problem.place.column - 1 :].startswith(columns.split(maxsplit=1)[0])
    found = re.search(taken, problem.hint)
    assert found is not None, problem.hint
    run(f"{repaired.format(*found.groups())}, ended TIMESTAMP, place STRUCT<city: STRING>", "check")


def test_a_subject_of_another_kind_is_refused(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    registered(tmp_path, f"{topic}-value", record("R", vehicle="string"))
    sql = READ.format(columns="vehicle STRING", servers=broker.bootstrap, topic=topic)
    with pytest.raises(Refused, match=r"R548 .*the kind is AVRO, not JSON(.|\n)*a schema of JSON"):
        rt.Pipeline(spark, home=tmp_path).sql(sql).sink("result", lambda _: None).run_available(tmp_path / "check")


WRITE = """CREATE STREAM a (name STRING, n INT);
CREATE STREAM o (name STRING, n INT, x DOUBLE, tags ARRAY<STRING>, inner STRUCT<t: TIMESTAMP, d: DECIMAL(5, 2)>,
  m MAP<STRING, BOOLEAN>) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', topic '{topic}',
  value.format 'json-schema', schema.registry.url 'mock://test'{more});
CREATE PUMP p AS INSERT INTO o SELECT STREAM name, n, IF(n = 3, DOUBLE('NaN'), n / 2), ARRAY(name, NULL),
  IF(n = 2, NULL, NAMED_STRUCT('t', a.ROWTIME, 'd', NULLIF(1.5BD, 0BD))), MAP('k', n > 1) FROM a;"""


@pytest.mark.parametrize("dies", ["", "after journal"])
def test_rows_are_valid_by_the_schema_that_the_registry_gets(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, dies: str
) -> None:
    def run() -> rt.Pipeline:
        return rt.Pipeline(spark, home=tmp_path).sql(WRITE.format(servers=broker.bootstrap, topic=topic, more=""))

    run().run_available(tmp_path / "check")
    insert(tmp_path, ("x", 1), (None, 2), ("z", 3))
    if dies:
        die(run(), tmp_path / "check", dies)
    run().run_available(tmp_path / "check")
    (file,) = (tmp_path / "schema-registry" / "test").glob("*.json")
    kept = json.loads(file.read_text())
    schema = json.loads(kept["schema"])
    assert (file.stem, kept["schemaType"], kept["subject"]) == ("1", "JSON", f"{topic}-value")
    jsonschema.Draft7Validator.check_schema(schema)
    found = {}
    for one in records(spark, broker, topic):
        if "rowtime-seq" in headers(one):
            value = bytes(one["value"])
            assert value[:5] == b"\0\0\0\0\1"
            found[int(headers(one)["rowtime-seq"])] = json.loads(value[5:])
            jsonschema.validate(json.loads(value[5:]), schema)
    assert [(found[n]["name"], found[n]["n"], found[n]["tags"]) for n in sorted(found)] == [
        ("x", 1, ["x", None]),
        (None, 2, [None, None]),
        ("z", 3, ["z", None]),
    ]
    assert (found[1]["inner"], found[0]["inner"]["d"]) == (None, 1.5)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": 5}, schema)


def test_the_schema_may_be_that_of_others(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    theirs = {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "boolean"}}}
    number = registered(tmp_path, f"{topic}-value", theirs, kind="JSON")
    text = WRITE.format(servers=broker.bootstrap, topic=topic, more=", schema.registry.auto.register.schemas 'false'")
    with pytest.raises(Refused, match=r"R549 .*n is of the type boolean, which does not fit int"):
        rt.Pipeline(spark, home=tmp_path).sql(text).run_available(tmp_path / "check")
    free = {"type": "object"}
    assert registered(tmp_path, f"{topic}-value", free, kind="JSON") == number + 1
    rt.Pipeline(spark, home=tmp_path).sql(text).run_available(tmp_path / "check")
    insert(tmp_path, ("x", 1))
    rt.Pipeline(spark, home=tmp_path).sql(text).run_available(tmp_path / "check")
    values = [bytes(one["value"]) for one in records(spark, broker, topic) if "rowtime-seq" in headers(one)]
    assert [value[:5] for value in values] == [b"\0\0\0\0\2"]
