"""Numbers in JSON for times, days and decimals: their units, and those that no value can hold."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.cli.status import status_of
from rowtime.core.columns import MALFORMED
from rowtime.core.errors import Refused
from rowtime.runtime.sources.envelopes import envelope_items
from rowtime.runtime.sources.json_numbers import JsonNumbers
from rowtime.runtime.sources.kafka_rows import RECORD, json_items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MICROS = 1_733_932_800_000_000
AT = datetime(2024, 12, 11, 16, tzinfo=UTC)
INFINITY = 9_223_372_036_825_200_000  # Debezium's, for a TIMESTAMP of PostgreSQL
FIRST, LAST = -62_135_596_800, 253_402_300_799  # seconds of the years 0001 and 9999
Rows = list[dict[str, Any]]


def run(spark: SparkSession, at: Path, columns: str, records: Sequence[str], more: str = "") -> tuple[Rows, Rows]:
    """The rows of a stream of JSON files, and the refused ones."""
    (at / "in").mkdir()
    (at / "in" / "1.json").write_text("".join(f"{record}\n" for record in records))
    query = (
        rt.Pipeline(spark, home=at / "home")
        .sql(
            f"CREATE STREAM s ({columns}) USING json OPTIONS (path '{at}/in'{more});"
            "CREATE STREAM bad (reason STRING, text STRING) USING memory;"
            "CREATE PUMP p AS INSERT INTO bad SELECT STREAM reason, raw_record FROM s.rejected;"
            f"CREATE STREAM good ({re.sub('RESOLUTION [A-Z]+', '', columns)}) USING memory;"
            "CREATE PUMP q AS INSERT INTO good SELECT STREAM * FROM s;"
        )
        .run_available(at / "check")
    )
    tables = (query.table(name) for name in ("good", "bad"))
    good, bad = ([] if table is None else table.drop_columns("rowtime").to_pylist() for table in tables)
    return good, bad


def test_a_number_outside_the_calendar_is_malformed_and_the_unit_to_declare_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    odd = [MICROS, INFINITY, 18_446_744_075_429_551, LAST + 1, FIRST - 1, 10**30]
    good = [0, -1, LAST, FIRST]
    records = [json.dumps({"i": i, "ts": n}) for i, n in enumerate([*odd, *good])]
    rows, bad = run(spark, tmp_path, "i INT, ts TIMESTAMP", records)
    assert [row["ts"].timestamp() for row in rows] == good
    assert [(row["reason"], json.loads(row["text"])) for row in bad] == [
        ("MALFORMED", {"i": i, "ts": n}) for i, n in enumerate(odd)
    ]
    (advice,) = status_of(tmp_path / "check")["advice"]
    assert f"ts has numbers such as {MICROS}" in advice
    assert advice.endswith("declare ts TIMESTAMP RESOLUTION MICROSECONDS")


def test_the_advice_can_be_followed(spark: SparkSession, tmp_path: Path) -> None:
    records = [json.dumps({"ts": MICROS + n}) for n in range(3)]
    rows, bad = run(spark, tmp_path, "ts TIMESTAMP RESOLUTION MICROSECONDS", records)
    assert [row["ts"] for row in rows] == [AT + timedelta(microseconds=n) for n in range(3)]
    assert bad == []
    assert status_of(tmp_path / "check")["advice"] == []


UNITS = {
    "SECONDS": (1_733_932_800, LAST, FIRST),
    "MILLISECONDS": (1_733_932_800_000, LAST * 1000 + 999, FIRST * 1000),
    "MICROSECONDS": (MICROS, LAST * 10**6 + 999_999, FIRST * 10**6),
    "NANOSECONDS": (MICROS * 1000 + 999, 2**63 - 1, -(2**63)),
}


def read(spark: SparkSession, columns: Sequence[tuple[str, str]], records: Sequence[str], **options: str) -> list[Any]:
    """What Spark's reader and the conversion give: a row, or the text of a malformed record."""
    numbers = JsonNumbers.of(columns, options)
    reading = {name: value for name, value in options.items() if name not in ("resolution", "decimal.handling.mode")}
    schema = ", ".join(f"`{name}` {numbers.kind(name, kind)}" for name, kind in columns)
    texts = spark.createDataFrame([(i, record) for i, record in enumerate(records)], "__i INT, __t STRING")
    rows = _parsed(texts, f"{schema}, {MALFORMED} STRING", reading)
    return [
        None if row[MALFORMED] is not None else tuple(row[name] for name, _ in columns)
        for row in numbers.converted(rows).collect()
    ]


def _parsed(texts: DataFrame, schema: str, options: dict[str, str]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 - the customary name

    given = {**options, "columnNameOfCorruptRecord": MALFORMED}
    return texts.orderBy("__i").select(F.from_json("__t", schema, given).alias("e")).select("e.*")


@pytest.mark.parametrize("unit", UNITS)
def test_a_number_counts_in_its_declared_unit(spark: SparkSession, unit: str) -> None:
    at, last, first = UNITS[unit]
    per = {"SECONDS": 10**-6, "MILLISECONDS": 10**-3, "MICROSECONDS": 1, "NANOSECONDS": 10**3}[unit]
    whole = [at, last, first, 0, -1, 1]
    beyond = [] if unit == "NANOSECONDS" else [last + 1, first - 1]
    records = [json.dumps({"t": n}) for n in [*whole, *beyond, 1.5]]
    micros = [row and (row[0],) for row in as_micros(spark, unit, records)]
    expected = [(n * round(1 / per),) if per < 1 else (n // int(per),) for n in whole]
    assert micros == [*expected, *([None] * len(beyond)), None]


def as_micros(spark: SparkSession, unit: str, records: Sequence[str]) -> list[Any]:
    numbers = JsonNumbers.of([("t", "TIMESTAMP")], {"resolution": f"t {unit}"})
    texts = spark.createDataFrame([(i, record) for i, record in enumerate(records)], "__i INT, __t STRING")
    rows = numbers.converted(_parsed(texts, f"t VARIANT, {MALFORMED} STRING", {}))
    return [
        None if row[MALFORMED] is not None else (row["t"],)
        for row in rows.selectExpr("unix_micros(t) AS t", MALFORMED).collect()
    ]


TEXTS = (
    "2024-12-11T16:00:00Z", "2024-12-11 16:00:00.123456", "2024-12-11", "2024", "2024-12", "2024-12-11T16:00",
    "2024-12-11T16:00:00+01:00", "2024-12-11 16:00:00.123456789", " 2024-12-11 ", "", "x", "2024-13-01",
    "2024-12-11T16:00:00GMT+01:00", "2024-12-11T16:00:00 Europe/Berlin", "12345-01-01", "-0001-01-01", "16:00", "now",
    "1733932800", "0001-01-01", "9999-12-31 23:59:59.999999", "2024-12-11T16:00:00.5Z", "20241211", "11/12/2024 16:00",
)  # fmt: skip
OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {"timestampFormat": "dd/MM/yyyy HH:mm"},
    {"timestampFormat": "yyyy-MM-dd[['T'][ ]HH:mm[:ss[.SSSSSS]]][XXX]", "timeZone": "UTC"},
    {"timeZone": "Europe/Berlin"},
    {"locale": "de-DE"},
    {"enableDateTimeParsingFallback": "false"},
)


def near_times(count: int) -> list[str]:
    """Texts that are times, or nearly."""
    chance = random.Random(1)

    def text() -> str:
        year = chance.choice(("2024", "1999", "0999", "0000", "3024", "12024", "+2024", "24", "2023"))
        month = chance.choice(("02", "12", "00", "13", "6"))
        day = f"{year}-{month}-{chance.choice(('28', '29', '30', '31', '00', '1'))}"
        between = chance.choice(("T", " ", "T ", "", "  ", "t"))
        hour, minute, second = (chance.choice(("00", "23", "24", "59", "60", "7")) for _ in range(3))
        part = "".join(chance.choice("0123456789") for _ in range(chance.randint(0, 8)))
        zone = chance.choice(("", "Z", "z", "+01:00", "-18:00", "+18:01", "+0100", "+01", "-00:00", " Z", "+01:00:30"))
        clock = chance.choice((f"{hour}:{minute}:{second}", f"{hour}:{minute}", f"{hour}:{minute}:{second}.{part}"))
        return chance.choice((f"{day}{between}{clock}{zone}", f"{day}{between}{clock}{zone}", day, f"{day}{zone}"))

    return [text() for _ in range(count)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_texts_are_read_as_spark_reads_them(spark: SparkSession, options: dict[str, str]) -> None:
    """The oracle is Spark's own reader, of the same records with a TIMESTAMP in its schema."""
    records = [json.dumps({"i": 1, "t": text}) for text in (*TEXTS, *near_times(4000))]
    records += [
        '{"i": 1, "t": null}',
        '{"i": 1}',
        '{"i": 1, "t": true}',
        '{"i": 1, "t": {"a": 1}}',
        '{"i": 1, "t": [1]}',
    ]
    records += ['{"i": 1, "t": 17}', '{"i": 1, "t": -5}', '{"i": 1, "t": 1e3}', '{"i": "x", "t": 1}', "{", "[]"]
    texts = spark.createDataFrame([(i, record) for i, record in enumerate(records)], "__i INT, __t STRING")
    oracle = _parsed(texts, f"i INT, t TIMESTAMP, {MALFORMED} STRING", options)
    as_text = ["i", "CAST(unix_micros(t) AS STRING) AS t", f"{MALFORMED} IS NOT NULL AS bad"]
    expected = [(row["bad"] or (row["i"], row["t"])) for row in oracle.selectExpr(*as_text).collect()]
    numbers = JsonNumbers.of([("i", "INT"), ("t", "TIMESTAMP")], options)
    rows = numbers.converted(_parsed(texts, f"i INT, t VARIANT, {MALFORMED} STRING", options))
    assert [(row["bad"] or (row["i"], row["t"])) for row in rows.selectExpr(*as_text).collect()] == expected


def test_values_inside_of_others_are_read_too(spark: SparkSession) -> None:
    kind = "STRUCT<at: TIMESTAMP, n: INT, more: ARRAY<STRUCT<day: DATE>>, by: MAP<STRING, TIMESTAMP>>"
    units = {"resolution": "r.at MILLISECONDS, r.more.day DAYS, r.by MICROSECONDS"}
    good = {"at": 1_733_932_800_000, "n": 1, "more": [{"day": 20_068}, {"day": "2024-12-11"}, {}], "by": {"x": MICROS}}
    bad = [{**good, "at": LAST * 10**6}, {**good, "more": [{"day": 10**9}]}, {**good, "by": {"x": INFINITY}}]
    nothing = [{"r": None}, {}, {"r": {"at": None, "more": [None], "by": {"x": None}}}]
    records = [json.dumps(one) for one in [{"r": good}, *({"r": one} for one in bad), *nothing]]
    first, *others = read(spark, [("r", kind)], records, **units)
    (row,) = first
    assert (row["at"].replace(tzinfo=UTC), row["n"]) == (AT, 1)
    assert [inner["day"] for inner in row["more"]] == [date(2024, 12, 11), date(2024, 12, 11), None]
    assert row["by"]["x"].replace(tzinfo=UTC) == AT
    assert others[:3] == [None, None, None]
    assert others[3:5] == [(None,), (None,)]
    (last,) = others[5]
    assert (last["at"], last["more"], last["by"]) == (None, [None], {"x": None})


def unscaled(number: int) -> str:
    size = max(1, (number.bit_length() + 8) // 8)
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


def test_unscaled_decimals_of_debezium(spark: SparkSession) -> None:
    draw = random.Random(5)
    edges = [0, 1, -1, 127, 128, -128, -129, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**64), 10**38 - 1, 1 - 10**38]
    drawn = [draw.randrange(-(10**digits), 10**digits) for digits in range(1, 39) for _ in range(3)]
    for scale in (0, 2, 38):
        records = [json.dumps({"d": unscaled(n)}) for n in [*edges, *drawn]]
        rows = read(spark, [("d", f"DECIMAL(38, {scale})")], records, **{"decimal.handling.mode": "precise"})
        assert rows == [(Decimal(f"{n}e-{scale}"),) for n in [*edges, *drawn]]
    others = [{"d": {"scale": 1, "value": unscaled(-15)}}, {"d": 2.5}, {"d": 7}, {"d": None}, {}]
    bad = [{"d": "?"}, {"d": ""}, {"d": unscaled(10**20)}, {"d": unscaled(10**38)}, {"d": True}, {"d": {"scale": 1}}]
    bad += [{"d": {"scale": -1, "value": "AQ=="}}, {"d": unscaled(2**130)}]
    rows = read(
        spark,
        [("d", "DECIMAL(10, 2)")],
        [json.dumps(one) for one in [*others, *bad]],
        **{"decimal.handling.mode": "precise"},
    )
    assert rows == [(Decimal("-1.50"),), (Decimal("2.50"),), (Decimal("7.00"),), (None,), (None,), *([None] * len(bad))]


def records_of(spark: SparkSession, values: Sequence[str]) -> DataFrame:
    rows = [(None, value.encode(), "t", 0, offset, AT, []) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, ", ".join(f"`{name}` {kind}" for name, kind in RECORD.items()))


def test_numbers_in_records_of_a_topic(spark: SparkSession) -> None:
    values = [json.dumps({"t": n, "at": n}) for n in (1_733_932_800, MICROS, INFINITY)]
    rows: Any = json_items(records_of(spark, values), [("t", "TIMESTAMP")], None).collect()
    assert [row[MALFORMED] for row in rows] == [None, *values[1:]]
    assert rows[0]["t"].replace(tzinfo=UTC) == AT
    units = {"resolution": "t MICROSECONDS, at MICROSECONDS"}
    rows = json_items(
        records_of(spark, values), [("t", "TIMESTAMP"), ("at", "TIMESTAMP")], "at", options=units
    ).collect()
    assert [row[MALFORMED] for row in rows] == [None, None, values[2]]
    assert rows[1]["t"].replace(tzinfo=UTC) == rows[1]["at"].replace(tzinfo=UTC) == AT
    milli = json_items(
        records_of(spark, ['{"at": 1733932800000}']),
        [("at", "TIMESTAMP")],
        "at",
        options={"resolution": "at MILLISECONDS"},
    )
    assert milli.collect()[0]["at"].replace(tzinfo=UTC) == AT


def test_an_envelope_with_the_defaults_of_debezium(spark: SparkSession) -> None:
    """PostgreSQL's NUMERIC(10, 2), DATE and TIMESTAMP, as the connector's defaults write them."""
    row = {"id": 1, "price": unscaled(1999), "day": 20_068, "at": MICROS}
    values = [json.dumps({"op": "c", "before": None, "after": one}) for one in (row, {**row, "at": INFINITY})]
    values.append(json.dumps({"schema": {}, "payload": json.loads(values[0])}))
    kind = "STRUCT<id: INT, price: DECIMAL(10, 2), day: DATE, at: TIMESTAMP>"
    options = {"resolution": "after.day DAYS, after.at MICROSECONDS", "decimal.handling.mode": "precise"}
    rows = envelope_items(records_of(spark, values), [("op", "STRING"), ("after", kind)], options).collect()
    assert [row[MALFORMED] is None for row in rows] == [True, False, True]
    for found in (rows[0]["after"], rows[2]["after"]):
        assert (found["id"], found["price"], found["day"]) == (1, Decimal("19.99"), date(2024, 12, 11))
        assert found["at"].replace(tzinfo=UTC) == AT


def test_a_unit_inside_of_a_struct_is_declared_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    columns = "id INT, r STRUCT<at: TIMESTAMP RESOLUTION MICROSECONDS, d: DATE RESOLUTION DAYS>"
    rows, bad = run(spark, tmp_path, columns, [json.dumps({"id": 1, "r": {"at": MICROS, "d": 20_068}})])
    assert rows == [{"id": 1, "r": {"at": AT, "d": date(2024, 12, 11)}}]
    assert bad == []


def test_a_static_table_reads_numbers_by_their_unit(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "1.json").write_text(f'{{"k": 1, "at": {MICROS}}}\n{{"k": 2, "at": {INFINITY}}}\n')
    query = (
        rt.Pipeline(spark, home=tmp_path / "home")
        .sql(
            "CREATE STREAM s (k INT);"
            f"CREATE TABLE t (k INT, at TIMESTAMP RESOLUTION MICROSECONDS) USING json OPTIONS (path '{tmp_path}/t');"
            "CREATE STREAM o (k INT, at TIMESTAMP) USING memory;"
            "INSERT INTO s (ROWTIME, k) VALUES (TIMESTAMP '2024-01-01 00:00:00', 1);"
            "INSERT INTO s (ROWTIME, k) VALUES (TIMESTAMP '2024-01-01 00:00:01', 2);"
            "CREATE PUMP p AS INSERT INTO o SELECT STREAM s.k, t.at FROM s JOIN t ON s.k = t.k;"
        )
        .run_available(tmp_path / "check")
    )
    table = query.table("o")
    assert table is not None
    assert table.drop_columns("rowtime").to_pylist() == [{"k": 1, "at": AT}, {"k": 2, "at": None}]


@pytest.mark.parametrize(
    ("column", "using", "code", "hint"),
    [
        ("t TIMESTAMP RESOLUTION DAYS", "json OPTIONS (path 'x')", "R541", "Use SECONDS"),
        ("t INT RESOLUTION SECONDS", "json OPTIONS (path 'x')", "R541", "TIMESTAMP and DATE"),
        ("t DATE RESOLUTION SECONDS", "json OPTIONS (path 'x')", "R541", "Use DAYS"),
        ("t TIMESTAMP", "json OPTIONS (path 'x', resolution 'u SECONDS')", "R541", "There are: t."),
        ("t TIMESTAMP", "json OPTIONS (path 'x', resolution 't HOURS')", "R541", ""),
        ("t TIMESTAMP RESOLUTION SECONDS", "json OPTIONS (path 'x', resolution 't SECONDS')", "R541", "Keep one"),
        ("t TIMESTAMP RESOLUTION SECONDS", "csv OPTIONS (path 'x')", "R542", "Leave it out"),
        ("t TIMESTAMP RESOLUTION SECONDS", "", "R542", "Leave it out"),
        ("t TIMESTAMP RESOLUTION HOURS", "json OPTIONS (path 'x')", "R101", ""),
    ],
)
def test_what_units_are_refused(column: str, using: str, code: str, hint: str) -> None:
    with pytest.raises(Refused) as refused:
        rt.Pipeline().sql(f"CREATE STREAM s ({column}) {using and 'USING '}{using}; SELECT STREAM * FROM s;").compile()
    (problem,) = refused.value.problems
    assert problem.code == code
    assert hint in problem.hint
