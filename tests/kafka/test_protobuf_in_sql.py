"""Protobuf with a schema registry through SQL: the example of the page, refusals, and other schema versions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.core.errors import Refused
from rowtime.runtime.schemas import protobuf
from tests.kafka.protobuf_bytes import class_of, framed, proto, registered
from tests.kafka.schema_servers import serving
from tests.kafka.test_avro_in_sql import DOCS, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

TRIP = proto("""package shop; message Trip { string vehicle = 1; optional double km = 2;
google.protobuf.Timestamp ended = 3; repeated string tags = 4; Trip last = 5; Inner inner = 6;
google.protobuf.Struct f = 7;
message Inner { int32 n = 1; Inner below = 2; } }""")
TRIPS = """CREATE STREAM trips ({columns}) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', subscribe '{topic}', format '{form}', schema.registry.url 'mock://test'{more});
SELECT STREAM * FROM trips;"""


def pipeline(
    spark: SparkSession, home: Path, broker: Broker, topic: str, columns: str, more: str = "", form: str = "protobuf"
) -> tuple[rt.Pipeline, Rows]:
    rows = Rows()
    text = TRIPS.format(columns=columns, servers=broker.bootstrap, topic=topic, more=more, form=form)
    if form == "raw":
        text = text.replace(", schema.registry.url 'mock://test'", "")
    return rt.Pipeline(spark, home=home).sql(text).sink("result", rows), rows


def trip(**fields: Any) -> Any:
    return class_of(TRIP, "Trip")(**fields)


def test_the_example_of_the_page(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    found = re.search(r"## Protobuf\n.*?```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    number = registered(tmp_path, f"{topic}-value", TRIP)
    with serving(tmp_path, "test") as server:
        text = found[1].replace("broker-1:9092", broker.bootstrap).replace("'trips'", f"'{topic}'")
        rows = Rows()
        sql = text.replace("https://registry:8081", server.url)
        made = rt.Pipeline(spark, home=tmp_path).sql(sql).sink("result", rows)
        broker.send(topic, Record(framed(number, trip(vehicle="v", km=1.5, inner={"n": 1}))))
        broker.send(topic, Record(framed(number, trip(vehicle="w"))), Record(b"{}", 1))
        query = made.run_available(tmp_path / "check")
    assert query.ledger["trips"] == {"in": 3, "accepted": 2, "MALFORMED": 1}
    assert [(r["vehicle"], r["km"]) for r in rows.rows] == [("v", 1.5), ("w", None)]


@pytest.mark.parametrize(
    ("columns", "more", "said", "taken", "repaired"),
    [
        (
            "vehicle STRING, km ARRAY<INT>", "",
            "the field km is DOUBLE, which does not fit",
            "Declare (km DOUBLE), and cast in the query", "vehicle STRING, {0}",
        ),
        ("Vehicle STRING", "", "there is no field Vehicle", r"Did you mean (vehicle)\?", "{0} STRING"),
        (
            "vehicle STRING, last STRUCT<km: DOUBLE>", "",
            "the field last is a shop.Trip in a shop.Trip, and so on without end",
            "Leave the column out, or read with format 'raw'", "vehicle STRING",
        ),
        (
            "inner STRUCT<n: INT, below: STRUCT<n: INT>>", "",
            "the field inner.below is a shop.Trip.Inner in a shop.Trip.Inner",
            "Declare inner without it, or read the topic with format 'raw', as bytes", "inner STRUCT<n: INT>",
        ),
        (
            "f STRUCT<fields: MAP<STRING, STRING>>", "",
            "the field f is a google.protobuf.Struct", "read with format 'raw'", "value BINARY",
        ),
        (
            "vehicle STRING", ", protobuf.message 'Trap'",
            "there is no message Trap; there are shop.Trip, shop.Trip.Inner",
            "Read the topic with format 'raw', as bytes",
            "value BINARY",
        ),
    ],
    ids=["type", "case", "endless", "inside", "struct", "message"],
)  # fmt: skip
def test_a_first_start_refuses_columns_that_no_record_fits(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path,
    columns: str, more: str, said: str, taken: str, repaired: str,
) -> None:  # fmt: skip
    number = registered(tmp_path, f"{topic}-value", TRIP)
    broker.send(topic, Record(framed(number, trip(vehicle="v", inner={"n": 1, "below": {"n": 2}}))))
    with pytest.raises(Refused) as refused:
        pipeline(spark, tmp_path, broker, topic, columns, more)[0].run_available(tmp_path / "check")
    (problem,) = refused.value.problems
    assert (problem.code, said in problem.message) == ("R548", True), problem
    assert problem.place is not None
    found = re.search(taken, problem.hint)
    assert found is not None, problem.hint
    form = "raw" if repaired.startswith("value") else "protobuf"
    repaired = repaired.format(*found.groups())
    made, rows = pipeline(spark, tmp_path / "repaired", broker, topic, repaired, form=form)
    registered(tmp_path / "repaired", f"{topic}-value", TRIP)
    made.run_available(tmp_path / "repaired" / "check")
    assert len(rows.rows) == 1


@pytest.mark.slow
def test_a_later_start_works_with_any_newest_schema(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    number = registered(tmp_path, f"{topic}-value", TRIP)
    made, rows = pipeline(spark, tmp_path, broker, topic, "vehicle STRING, km DOUBLE")
    broker.send(topic, Record(framed(number, trip(vehicle="a", km=1.5))))
    made.run_available(tmp_path / "check")
    fewer = proto("message Trip { string vehicle = 1; }")
    other = proto("message Trip { bytes vehicle = 1; repeated double km = 2; }")
    second, third = (registered(tmp_path, f"{topic}-value", one) for one in (fewer, other))
    broker.send(topic, Record(framed(second, class_of(fewer, "Trip")(vehicle="b"))))
    broker.send(
        topic, Record(framed(third, class_of(other, "Trip")())), Record(framed(number, trip(vehicle="d", km=2.5)))
    )
    query = made.run_available(tmp_path / "check")
    assert [(r["vehicle"], r["km"]) for r in rows.rows] == [("a", 1.5), ("b", None), ("d", 2.5)]
    assert query.ledger["trips"] == {"in": 4, "accepted": 3, "MALFORMED": 1}


@pytest.mark.parametrize(
    ("missing", "what"), [("grpc_tools", "Protobuf's compiler"), ("ptars", "the reader of Protobuf")]
)
def test_without_a_package_the_start_ends_with_what_to_install(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
    what: str,
) -> None:
    monkeypatch.setattr(protobuf, "find_spec", lambda name: None if name == missing else object())
    made, _ = pipeline(spark, tmp_path, broker, topic, "vehicle STRING")
    with pytest.raises(rt.Failure, match=rf"R502 {what}(.|\n)*pip install 'rowtime\[protobuf\]'"):
        made.run_available(tmp_path / "check")
