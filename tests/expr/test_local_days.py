"""Local dates: the zones in which they fall, against Spark and the zone data of its Java."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.core import java_zones
from rowtime.core.time import END, MIN_MICROS, SECOND, to_text
from rowtime.expr.facts import ROWTIME_FACT
from rowtime.expr.group_end import group_end
from rowtime.expr.monotonicity import order_of
from rowtime.expr.order import Order
from rowtime.expr.ranges import within
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ALASKA = {
    f"America/{city}" for city in ("Adak", "Anchorage", "Atka", "Juneau", "Metlakatla", "Nome", "Sitka", "Yakutat")
}
LISTED = {
    "America/St_Johns", "Canada/Newfoundland", "America/Goose_Bay", "America/Moncton", "America/Phoenix",
    "America/Creston", "US/Arizona", "Antarctica/Casey", "Pacific/Guam", "Pacific/Saipan",
}  # fmt: skip
LATER = range(1_800_000_000, 4_000_000_000, 86_400 * 30)
DAYS = "CAST(FROM_UTC_TIMESTAMP(ROWTIME, '{}') AS DATE)"
CONVERTED = "CAST(CONVERT_TIMEZONE({}, ROWTIME) AS DATE)"


@pytest.fixture(scope="module")
def data() -> Path:
    found = java_zones.java_data()
    assert found is not None
    return found


def falling(data: Path) -> dict[str, int]:
    falls = {zone: java_zones.last_fall(zone) for zone in java_zones.zones_in(data)}
    return {zone: fall for zone, fall in falls.items() if fall is not None and fall > MIN_MICROS}


def test_the_zones_whose_local_date_falls_are_those_of_semantics(data: Path) -> None:
    falls = falling(data)
    assert set(falls) <= LISTED | ALASKA | {"US/Alaska", "US/Aleutian"}
    assert len(set(falls) & LISTED) >= 9
    assert to_text(falls["America/St_Johns"]) == "2010-11-07 02:31:00"
    assert to_text(falls["US/Alaska"]) == "1867-10-19 00:31:13"


def test_without_java_the_answer_is_never_earlier(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    falls = falling(data)
    monkeypatch.setattr(java_zones, "java_data", lambda: None)
    for zone, fall in falls.items():
        assert (java_zones.last_fall(zone) or 0) >= fall, zone
    assert java_zones.last_fall("Europe/Berlin") == MIN_MICROS
    assert java_zones.last_fall("Nowhere/Else") is None


def changes_of(zone: str, data: Path) -> list[int]:
    """The changes of a zone (s UTC), those that are listed and some years of those of each year."""
    rules = java_zones.rules_of(data, zone)
    assert rules is not None
    return [*rules.changes]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(12))
def test_falls_are_those_that_spark_computes(spark: SparkSession, data: Path, part: int) -> None:
    """The oracle is Java's ``ZoneRules`` for the changes, and Spark for the dates around each of them."""
    zones = java_zones.zones_in(data)[part::12]
    ids = spark._jvm.java.time.ZoneId  # type: ignore[union-attr]
    for zone in random.Random(part).sample(zones, 4):
        rules = ids.of(zone).getRules()
        listed = [change.toEpochSecond() for change in rules.getTransitions()]
        assert changes_of(zone, data) == listed, zone
        ours = java_zones.rules_of(data, zone)
        assert ours is not None
        assert len(ours.yearly) == rules.getTransitionRules().size()
    rows = [(zone, at) for zone in zones for at in [*changes_of(zone, data), *LATER]]
    frame = spark.createDataFrame(rows, "zone STRING, at BIGINT")
    local = "CAST(from_utc_timestamp(timestamp_micros(at * 1000000 - {}), zone) AS DATE)"
    fell = frame.where(f"{local.format(1)} > {local.format(0)}").collect()
    expected = {(zone, at) for zone in zones for at in falls_of(zone, data)}
    assert {(row["zone"], row["at"]) for row in fell} == expected


def falls_of(zone: str, data: Path) -> list[int]:
    rules = java_zones.rules_of(data, zone)
    assert rules is not None
    falls = [*rules.falls()]
    assert END not in falls, zone
    return falls


def test_a_change_of_each_year_that_falls_is_noticed() -> None:
    """A planted fault: a zone whose clocks go back at one minute past midnight each autumn."""
    assert [*java_zones.Rules((), (0,), ((60, 3600, 0),)).falls()] == [END]
    assert [*java_zones.Rules((), (0,), ((0, 3600, 0), (3600, 3600, 0), (60, 0, 3600))).falls()] == []


def test_the_rule_and_where_it_ends() -> None:
    facts = {"ROWTIME": ROWTIME_FACT}
    fall = "2010-11-07 02:31:00"
    orders = {
        DAYS.format("Europe/Berlin"): Order.ASCENDING,
        "FLOOR(FROM_UTC_TIMESTAMP(ROWTIME, 'Europe/Berlin') TO DAY)": Order.ASCENDING,
        "FLOOR(FROM_UTC_TIMESTAMP(ROWTIME, 'Europe/Berlin') TO MONTH)": Order.ASCENDING,
        "YEAR(FROM_UTC_TIMESTAMP(ROWTIME, 'Europe/Berlin'))": Order.ASCENDING,
        "FLOOR(CAST(FROM_UTC_TIMESTAMP(ROWTIME, 'Europe/Berlin') AS DATE) TO MONTH)": Order.ASCENDING,
        "FLOOR(FROM_UTC_TIMESTAMP(ROWTIME, 'Europe/Berlin') TO HOUR)": Order.NONE,
        "FROM_UTC_TIMESTAMP(ROWTIME, 'Europe/Berlin')": Order.NONE,
        DAYS.format("Europe/Nowhere"): Order.NONE,
        DAYS.format("America/St_Johns"): Order.NONE,
        DAYS.format("America/Anchorage"): Order.ASCENDING,
        DAYS.format("+05:30"): Order.ASCENDING,
        DAYS.format("UTC"): Order.ASCENDING,
        "FLOOR(FROM_UTC_TIMESTAMP(ROWTIME, '+05:30') TO HOUR)": Order.ASCENDING,
        "FROM_UTC_TIMESTAMP(ROWTIME, 'Etc/GMT-5')": Order.ASCENDING,
        "FLOOR(FROM_UTC_TIMESTAMP(ROWTIME, 'Asia/Kolkata') TO HOUR)": Order.NONE,  # it had summer time in 1945
        "FROM_UTC_TIMESTAMP(-ROWTIME, '+05:30')": Order.NONE,
        CONVERTED.format("'UTC', 'Europe/Berlin'"): Order.ASCENDING,
        CONVERTED.format("'Europe/Berlin'"): Order.ASCENDING,
        CONVERTED.format("'+02:00', 'Europe/Berlin'"): Order.ASCENDING,
        CONVERTED.format("'UTC', 'America/St_Johns'"): Order.NONE,
        CONVERTED.format("'Europe/Berlin', 'UTC'"): Order.NONE,  # an hour that is skipped is an hour later in UTC
        "FLOOR(CONVERT_TIMEZONE('UTC', '+05:30', ROWTIME) TO HOUR)": Order.ASCENDING,
        "FLOOR(CONVERT_TIMEZONE('UTC', 'Europe/Berlin', ROWTIME) TO HOUR)": Order.NONE,
    }
    assert {text: order_of(parse_expression(text), facts) for text in orders} == orders
    for at, order in ((fall, Order.ASCENDING), ("2010-11-07 02:30:59.999999", Order.NONE)):
        later = within(ROWTIME_FACT, "ROWTIME", parse_expression(f"ROWTIME >= TIMESTAMP '{at}' AND 1 = 1"))
        assert order_of(parse_expression(DAYS.format("America/St_Johns")), {"ROWTIME": later}) is order
        assert order_of(parse_expression(CONVERTED.format("'America/St_Johns'")), {"ROWTIME": later}) is order
        # The instant is two hours earlier.
        elsewhere = parse_expression(CONVERTED.format("'+02:00', 'America/St_Johns'"))
        assert order_of(elsewhere, {"ROWTIME": later}) is Order.NONE
    for at, order in (("1880-01-01 00:00:00", Order.NONE), ("1950-01-01 00:00:00", Order.ASCENDING)):
        earlier = within(ROWTIME_FACT, "ROWTIME", parse_expression(f"ROWTIME < TIMESTAMP '{at}' AND 1 = 1"))
        assert order_of(parse_expression(DAYS.format("America/Sitka")), {"ROWTIME": earlier}) is order, at


def test_a_condition_on_another_column_says_nothing() -> None:
    other = parse_expression("b > TIMESTAMP '2020-01-01 00:00:00'")
    assert within(ROWTIME_FACT, "ROWTIME", other) == ROWTIME_FACT
    for text in (
        "a > TIMESTAMP '2020-01-01'",
        "TIMESTAMP '2020-01-01 00:00:00' < a",
        "b = 1 AND (a > DATE '2020-01-01')",
    ):
        assert within(ROWTIME_FACT, "a", parse_expression(text)).low == 1_577_836_800 * SECOND


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        ("Europe/Berlin", [(2025, 3, 29), (2025, 3, 30), (2025, 10, 26), (2025, 10, 27)]),
        ("America/Sao_Paulo", [(2018, 11, 3), (2018, 11, 4), (2018, 2, 17)]),  # midnight did not exist; came twice
        ("Pacific/Apia", [(2011, 12, 29), (2011, 12, 31)]),  # 30 December did not exist
        ("America/St_Johns", [(2024, 11, 2), (2024, 11, 3)]),
        ("Australia/Lord_Howe", [(2025, 4, 5), (2025, 4, 6), (2025, 10, 5)]),
        ("America/Havana", [(2024, 11, 2), (2024, 11, 3), (2024, 3, 9)]),
        ("Asia/Beirut", [(2024, 3, 30), (2024, 10, 26), (2024, 10, 27)]),
        ("+05:45", [(2024, 1, 1)]),
        (
            "America/St_Johns",
            [(2010, 11, 6), (2010, 11, 7)],
        ),  # its midnight came twice, and in between it was today again
        ("Antarctica/Casey", [(2010, 3, 4)]),
        ("US/Arizona", [(1944, 9, 30)]),
        ("America/Sitka", [(1867, 10, 18), (1867, 10, 19)]),
    ],
)
def test_a_group_ends_at_the_first_instant_of_a_later_local_day(
    spark: SparkSession, zone: str, days: list[tuple[int, int, int]]
) -> None:
    """The oracle asks Spark for the date at each second around the end."""
    end = group_end(parse_expression(DAYS.format(zone)), "d")
    month = group_end(parse_expression(f"FLOOR(FROM_UTC_TIMESTAMP(ROWTIME, '{zone}') TO MONTH)"), "m")
    assert (end.seen, end.closed, month.seen) == (False, False, False)
    for zones in (f"'UTC', '{zone}'", f"'{zone}'"):
        assert group_end(parse_expression(CONVERTED.format(zones)), "d") == end
    for day in days:
        middle = datetime(*day, 12, tzinfo=UTC)
        begin = round(middle.timestamp()) - 36 * 3600
        frame = spark.range(96 * 3600).selectExpr(f"timestamp_seconds({begin} + id) AS t")
        local = f"CAST(from_utc_timestamp(t, '{zone}') AS DATE)"
        fall = java_zones.last_fall(zone)
        later = f"unix_micros(t) >= {fall} AND {local}"  # before, the date does not ascend
        first = frame.where(f"{later} > DATE '{middle:%Y-%m-%d}'").selectExpr("unix_micros(min(t))").collect()[0][0]
        ours = spark.sql(f"SELECT {end.text} FROM (SELECT DATE '{middle:%Y-%m-%d}' AS d)").collect()[0][0]
        assert to_text(ours) == to_text(first), day


@pytest.mark.parametrize("where", ["", "WHERE s.amt > 0 "])
def test_the_hint_of_a_zone_whose_date_falls_is_accepted(where: str) -> None:
    key = DAYS.format("America/St_Johns").replace("ROWTIME", "s.ROWTIME")
    sql = f"CREATE STREAM sale (amt INT); SELECT STREAM {key} AS d, SUM(amt) AS t FROM sale AS s {where}GROUP BY {key};"
    (problem,) = rt.check(sql)
    assert problem.code == "R104"
    later = problem.hint.partition("WHERE ")[2].rstrip(".")
    followed = (
        sql.replace(where, f"{where}AND {later} ") if where else sql.replace("GROUP BY", f"WHERE {later} GROUP BY")
    )
    assert rt.check(followed) == []


def test_short_names_mean_what_they_mean_to_spark(spark: SparkSession, data: Path) -> None:
    given = spark._jvm.java.time.ZoneId.SHORT_IDS
    names = {str(name): str(given.get(name)) for name in given.keySet().toArray()}
    assert {name: java_zones._meant(name, data) for name in names} == {
        name: name if name in java_zones.zones_in(data) else zone for name, zone in names.items()
    }
    assert java_zones.is_fixed("EST")
    assert java_zones.last_fall("CNT") == java_zones.last_fall("America/St_Johns")
    assert java_zones.midnight_after_fall("CNT") == java_zones.midnight_after_fall("America/St_Johns")
