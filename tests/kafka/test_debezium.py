"""Debezium's envelopes: as rows, and as lifetimes of the versions of each key."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.broker import Broker, Record
from rowtime.core.errors import Refused
from rowtime.core.time import to_micros
from rowtime.runtime.sources.contract import Limits
from rowtime.runtime.sources.kafka import KafkaSource
from tests.kafka.avro_bytes import framed, record, registered
from tests.kafka.test_avro_source import read, source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(3)

DOCS = Path(__file__).parents[2] / "docs" / "debezium.md"
DAY = 1_704_067_200_000
ROW = record("Row", id="int", city=["null", "string"])
ENVELOPE = record(
    "Envelope",
    before=["null", ROW],
    after=["null", "Row"],
    source=record("Source", ts_ms="long", table="string"),
    op="string",
    ts_ms=["null", "long"],
)
WHOLE = record(
    "Envelope",
    before=["null", ROW],
    after=["null", ROW],
    source=record("Source", ts_ms="long", table="string"),
    op="string",
    ts_ms=["null", "long"],
)
COLUMNS = [("op", "STRING"), ("after", "STRUCT<city: STRING, id: BIGINT>"), ("before", "STRUCT<id: INT>")]
COLUMNS += [("source", "STRUCT<table: STRING>"), ("ts_ms", "BIGINT")]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    from tests.kafka.test_avro_source import made

    yield
    for src in made:
        src.close()
    made.clear()


def envelope(op: str, before: Any, after: Any, at: int) -> dict[str, Any]:
    source_of = {"ts_ms": DAY + at, "table": "customers"}
    return {"before": before, "after": after, "source": source_of, "op": op, "ts_ms": DAY + at}


A, B = {"id": 1, "city": "Ulm"}, {"id": 1, "city": None}
CHANGES = [envelope("c", None, A, 0), envelope("u", A, B, 5), envelope("d", B, None, 9), envelope("t", None, None, 9)]
ROWS = [("c", ("Ulm", 1), None), ("u", (None, 1), (1,)), ("d", None, (1,)), ("t", None, None)]


def shown(rows: Sequence[Any]) -> list[Any]:
    return [(r["op"], r["after"] and tuple(r["after"]), r["before"] and tuple(r["before"])) for r in rows]


def test_envelopes_in_json_with_and_without_a_schema(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.send(topic, *(Record(json.dumps(one)) for one in CHANGES))
    broker.send(topic, *(Record(json.dumps({"schema": {"type": "struct"}, "payload": one}), 1) for one in CHANGES))
    broker.send(topic, Record(None, key="1"), Record(None, headers=[("rowtime-bound", "5")]))
    broken = ["", "{}", json.dumps(A), json.dumps(envelope("x", None, A, 0)), '{"op": "c", "after": {"id": "one"}}']
    broker.send(topic, *(Record(one, 2) for one in broken))
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    src = KafkaSource(options, COLUMNS, "debezium-json")
    rows = read(spark, src)
    src.close()
    good = [r for r in rows if r["__m"] is None and r["__b"] is None]
    assert shown(good) == ROWS * 2
    assert {(r["source"]["table"], r["ts_ms"] >= DAY) for r in good} == {("customers", True)}
    assert [r["__b"] for r in rows if r["__b"] is not None] == [5]  # neither a bound nor a tombstone is a row
    assert [r["__m"] for r in rows if r["__m"] is not None] == broken


def test_envelopes_in_avro(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    number = registered(tmp_path, f"{topic}-value", ENVELOPE)
    flat = registered(tmp_path, "flat", ROW)
    broker.send(topic, *(Record(framed(number, one, WHOLE)) for one in CHANGES), Record(None, key="1"))
    broker.send(topic, Record(framed(number, envelope("x", None, A, 0), WHOLE)), Record(framed(flat, A, ROW)))
    src = source(broker, topic, tmp_path, COLUMNS, form="debezium-avro")
    rows = read(spark, src)
    assert shown(rows[:-2]) == ROWS
    assert [r["__m"] is None for r in rows] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("form", ["debezium-json", "debezium-avro"])
def test_columns_that_an_envelope_lacks_are_refused(broker: Broker, topic: str, tmp_path: Path, form: str) -> None:
    with pytest.raises(
        Refused, match=r"R504 an envelope of Debezium has no field 'city'(.|\n)*Its fields are before, after, op"
    ):
        source(broker, topic, tmp_path, [("city", "STRING")], form=form)
    with pytest.raises(Refused, match=r"R504 rowtime.column(.|\n)*timestamp_millis\(ts_ms\) AS ROWTIME"):
        source(broker, topic, tmp_path, COLUMNS, form=form, **{"rowtime.column": "ts_ms"})
    made = f"CREATE STREAM x (op STRING) USING kafka OPTIONS (topic 't', value.format '{form}')"
    (problem,) = rt.check(made)
    assert problem.code == "R541"
    empty = source(broker, topic, tmp_path, COLUMNS, form=form)
    assert empty.discover({}, Limits(), {})[0].empty


def history(chance: random.Random) -> list[dict[str, Any]]:
    """Changes of some keys in the order of their times, as in the log of a database."""
    there: dict[int, dict[str, Any]] = {}
    found, at = [], 0
    for _ in range(60):
        at += chance.choice([0, 1, 700, 4000])
        key = chance.randrange(4)
        old = there.pop(key, None)
        if old is not None and chance.random() < 0.3:
            found.append(envelope("d", old, None, at))
            continue
        there[key] = {"id": key, "city": chance.choice(["Ulm", "Bonn", None])}
        # PostgreSQL sends the row before the change only with REPLICA IDENTITY FULL.
        before = old if chance.random() < 0.5 else None
        found.append(envelope("u" if old else chance.choice("cr"), before, there[key], at))
    return found


def lifetimes(changes: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The versions of keys, worked out by hand: (id, city, since, until), in µs."""
    open_: dict[int, tuple[Any, int]] = {}
    found = []
    for one in changes:
        key, at = (one["after"] or one["before"])["id"], 1000 * one["ts_ms"]
        if key in open_:
            row, since = open_.pop(key)
            found += [(key, row["city"], since, at)] if since < at else []
        if one["after"] is not None:
            open_[key] = one["after"], at
    return [*found, *((key, row["city"], since, None) for key, (row, since) in open_.items())]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("form", ["debezium-json", "debezium-avro"])
def test_the_versions_of_each_key_are_events(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, form: str, seed: int
) -> None:
    found = re.search(r"```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    text = found[1].replace("broker-1:9092", broker.bootstrap).replace("shop.public.customers", topic)
    if form == "debezium-avro":
        text = text.replace("'debezium-json'", "'debezium-avro', schema.registry.url 'mock://test'")
        number = registered(tmp_path, f"{topic}-value", ENVELOPE)
    changes, rows = history(random.Random(seed)), []

    def keep(batch: rt.Batch) -> None:
        rows.extend(batch.table().to_pylist() if batch.count else ())

    def sent(one: dict[str, Any]) -> list[Record]:
        key = (one["after"] or one["before"])["id"]
        value = json.dumps(one) if form == "debezium-json" else framed(number, one, WHOLE)
        forgotten = [Record(None, key % 3, key=str(key))] if one["op"] == "d" else []
        return [Record(value, key % 3, key=str(key)), *forgotten]

    made = rt.Pipeline(spark, home=tmp_path).sql(text).sink("result", keep)
    for part in (changes[:25], changes[25:40], changes[40:]):
        broker.send(topic, *(item for one in part for item in sent(one)))
        made.run_available(tmp_path / "check")
    broker.send(topic, *(Record(None, n, headers=[("rowtime-bound", "end")]) for n in range(3)))
    query = made.run_available(tmp_path / "check")
    assert query.ledger["changes"] == {"in": 60, "accepted": 60}
    assert query.ledger["versions.events"].keys() == {"in", "accepted"}
    times = [(r["since"] and to_micros(r["since"]), r["until"] and to_micros(r["until"])) for r in rows]
    seen = [(r["id"], r["city"], *at) for r, at in zip(rows, times, strict=True)]
    assert sorted(seen, key=repr) == sorted(lifetimes(changes), key=repr)
