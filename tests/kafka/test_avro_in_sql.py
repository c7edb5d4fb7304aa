"""Avro with a schema registry through SQL: the example of the page, the ledger, and refusals of a first start."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.core.errors import Refused
from tests.kafka.avro_bytes import framed, record, registered
from tests.kafka.schema_servers import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)

DOCS = Path(__file__).parents[2] / "docs" / "schema-registry.md"
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
TRIP = record("Trip", vehicle="string", km=["null", "double"], ended=MILLIS)
DAY = 1_704_067_200_000
TRIPS = """CREATE STREAM trips ({columns}) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', subscribe '{topic}', format 'avro', schema.registry.url '{registry}'{more});
SELECT STREAM * FROM trips;"""


class Rows:
    """A sink that collects its rows in order."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __call__(self, batch: rt.Batch) -> None:
        if batch.count:
            self.rows.extend(batch.table().to_pylist())


def trip(number: int, vehicle: str, km: float | None, second: float, partition: int = 0) -> Record:
    value = {"vehicle": vehicle, "km": km, "ended": DAY + round(1000 * second)}
    return Record(framed(number, value, TRIP), partition)


def pipeline(
    spark: SparkSession,
    home: Path,
    broker: Broker,
    topic: str,
    columns: str,
    registry: str = "mock://test",
    more: str = "",
) -> tuple[rt.Pipeline, Rows]:
    rows = Rows()
    text = TRIPS.format(columns=columns, servers=broker.bootstrap, topic=topic, registry=registry, more=more)
    return rt.Pipeline(spark, home=home).sql(text).sink("result", rows), rows


def test_the_example_of_the_page(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    found = re.search(r"```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    number = registered(tmp_path, f"{topic}-value", TRIP)
    with serving(tmp_path, "test") as server:
        text = found[1].replace("broker-1:9092", broker.bootstrap).replace("'trips'", f"'{topic}'")
        text = text.replace("https://registry:8081", server.url)
        rows = Rows()
        made = rt.Pipeline(spark, home=tmp_path).sql(text, {"registry_password": "pw"}).sink("result", rows)
        broker.send(topic, *(trip(number, "v", 1.5, second, n) for n in range(3) for second in (0, 30, 75)))
        broker.send(topic, Record(b"\0\0\0\0\x09nonsense"), Record(b"{}", 1))
        query = made.run_available(tmp_path / "check")
        assert query.ledger["trips"] == {"in": 11, "accepted": 9, "MALFORMED": 2}
        assert [(r["trips"], r["km"]) for r in rows.rows] == [(6, 9.0)]
        broker.send(topic, *(trip(number, "v", None, 130, n) for n in range(3)))
        made.run_available(tmp_path / "check")
        assert [(r["trips"], r["km"]) for r in rows.rows] == [(6, 9.0), (3, 4.5)]
        assert server.authorizations == {"Basic cm93dGltZTpwdw=="}
        asked = [path for path in server.asked if path.startswith("/schemas/ids/")]
        assert asked.count(f"/schemas/ids/{number}") == 1  # once per id; a process caches it


COLUMNS = "vehicle STRING, km DOUBLE"


@pytest.mark.parametrize(
    ("columns", "more", "said", "under", "taken", "repaired"),
    [
        (
            "vehicle STRING, ended DATE, km INT ARRAY",
            "",
            "the field km is DOUBLE, which does not fit",
            "km",
            r"Declare (km DOUBLE), and cast in the query",
            "vehicle STRING, ended DATE, {0}",
        ),
        (
            "vehicle STRING, ended BIGINT",
            "",
            "the field ended is TIMESTAMP, which does not fit BIGINT",
            "ended",
            r"Declare (ended TIMESTAMP), and cast in the query",
            "vehicle STRING, {0}",
        ),
        ("Vehicle STRING", "", "there is no field Vehicle", "Vehicle", r"Did you mean (vehicle)\?", "{0} STRING"),
        (
            "vehicle STRING, speed INT",
            "",
            "there is no field speed",
            "speed",
            r"Its fields are vehicle, (km), ended. Leave the column out, or name one",
            "vehicle STRING, {0} DOUBLE",
        ),
        (
            "vehicle STRING",
            ", rowtime.column 'km'",
            "rowtime.column names km, which is DOUBLE, not a time",
            "trips",
            "Name a field that is a timestamp",
            "vehicle STRING",
        ),
    ],
    ids=["type", "time", "case", "name", "rowtime"],
)
def test_a_first_start_refuses_columns_that_no_record_fits(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path,
    columns: str, more: str, said: str, under: str, taken: str, repaired: str,
) -> None:  # fmt: skip
    registered(tmp_path, f"{topic}-value", TRIP)
    columns = columns.replace("INT ARRAY", "ARRAY<INT>")
    made, _ = pipeline(spark, tmp_path, broker, topic, columns, more=more)
    with pytest.raises(Refused) as refused:
        made.run_available(tmp_path / "check")
    (problem,) = refused.value.problems
    assert (problem.code, said in problem.message) == ("R548", True), problem
    assert problem.place is not None
    assert problem.place.text[problem.place.column - 1 :].startswith(under)
    found = re.search(taken, problem.hint)
    assert found is not None, problem.hint
    made, _ = pipeline(
        spark, tmp_path / "repaired", broker, topic, repaired.format(*found.groups()),
        more=more and ", rowtime.column 'ended'",
    )  # fmt: skip
    registered(tmp_path / "repaired", f"{topic}-value", TRIP)
    made.run_available(tmp_path / "repaired" / "check")


def test_a_later_start_works_with_any_newest_schema(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    number = registered(tmp_path, f"{topic}-value", TRIP)
    made, rows = pipeline(spark, tmp_path, broker, topic, COLUMNS)
    broker.send(topic, trip(number, "a", 1.5, 0))
    made.run_available(tmp_path / "check")
    fewer, other = record("Trip", vehicle="string"), record("Trip", vehicle="string", km="string")
    second, third = (registered(tmp_path, f"{topic}-value", one) for one in (fewer, other))
    broker.send(topic, Record(framed(second, {"vehicle": "b"}, fewer)))
    broker.send(topic, Record(framed(third, {"vehicle": "c", "km": "9"}, other)), trip(number, "d", 2.5, 0))
    query = made.run_available(tmp_path / "check")
    assert [(r["vehicle"], r["km"]) for r in rows.rows] == [("a", 1.5), ("b", None), ("d", 2.5)]
    assert query.ledger["trips"] == {"in": 4, "accepted": 3, "MALFORMED": 1}


def test_a_subject_of_another_kind_or_without_a_record_is_refused(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    for subject, schema, kind, said in [
        ("j", {"type": "object"}, "JSON", "the kind is JSON, not AVRO"),
        ("s", "string", "AVRO", "a record is expected, and the schema is string"),
        ("r", record("R", next=["null", "R"]), "AVRO", "no record can be read"),
    ]:
        registered(tmp_path, subject, schema, kind=kind)
        made, _ = pipeline(spark, tmp_path, broker, topic, COLUMNS, more=f", schema.registry.subject '{subject}'")
        with pytest.raises(Refused, match=said):
            made.run_available(tmp_path / f"check-{subject}")


def test_a_registry_that_refuses_to_answer_is_reported_and_asked_again(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    number = registered(tmp_path, f"{topic}-value", TRIP)
    with serving(tmp_path, "test") as server:
        made, rows = pipeline(spark, tmp_path, broker, topic, COLUMNS, server.url)
        broker.send(topic, trip(number, "a", 1.5, 0))
        server.fails = 3
        with pytest.raises(rt.Failure, match=r"R501 the schema registry .* 503"):
            made.run_available(tmp_path / "check")
        server.fails = 0
        query = made.start(tmp_path / "check")
        try:
            assert Served.comes(lambda: len(rows.rows) == 1)
            other = record("Trip", vehicle="string")
            server.fails = 2
            second = registered(tmp_path, f"{topic}-value", other)
            broker.send(topic, Record(framed(second, {"vehicle": "b"}, other)))
            assert Served.comes(lambda: len(rows.rows) == 2)
            assert server.fails == 0
        finally:
            query.stop()
    assert query.exception is None
    assert [r["vehicle"] for r in rows.rows] == ["a", "b"]
