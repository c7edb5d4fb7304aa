"""Regular expressions and formats that are refused are refused by Java, and the usual faults are found."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException

from rowtime.core.java_zones import is_zone
from rowtime.core.text_patterns import check_format, check_regex
from rowtime.core.time_patterns import PatternFault

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRONG = ("(", "a)", "[a", "[^", "*a", "a|*", "(?:a", "(*)", "a\\", "[a[b]", "(a]", "[a-z&&[^b]", "x(?=", "+")
PARTS = ("a", "b1", ".", "*", "+", "?", "|", "^", "$", "(", ")", "(?:", "(?=", "(?i)", "(?<n>", "[", "]", "[^", "-",
         "&&", "{2}", "\\(", "\\[", "\\\\", "\\d", "\\Q", "\\E", "é", "#", " ")  # fmt: skip
FORMATS = ("%d", "%q", "%s %s", "%2$s", "%", "100%", "%%", "%5d|%-3d", "%n", "%,d", "%<d", "%1$d %1$d",
           "%x%X", "%b", "%t")  # fmt: skip


def accepted(check: object, *given: object) -> bool:
    try:
        check(*given)  # type: ignore[operator]
    except PatternFault:
        return False
    return True


def by_java(spark: SparkSession, pattern: str) -> bool:
    try:
        spark._jvm.java.util.regex.Pattern.compile(pattern)
    except (Py4JJavaError, IllegalArgumentException):
        return False
    return True


@pytest.mark.parametrize("pattern", WRONG)
def test_a_wrong_regex_is_refused(spark: SparkSession, pattern: str) -> None:
    assert not accepted(check_regex, pattern)
    assert not by_java(spark, pattern)


def test_no_regex_that_java_compiles_is_refused(spark: SparkSession) -> None:
    chance, tried = Random(4), 0
    for _ in range(1500):
        pattern = "".join(chance.choice(PARTS) for _ in range(chance.randint(1, 6)))
        if not accepted(check_regex, pattern):
            assert not by_java(spark, pattern), pattern
            tried += 1
    assert tried > 300


@pytest.mark.parametrize("pattern", FORMATS)
def test_a_format_is_refused_if_java_refuses_it(spark: SparkSession, pattern: str) -> None:
    values = spark._sc._gateway.new_array(spark._jvm.java.lang.Object, 1)
    values[0] = 7
    try:
        spark._jvm.java.lang.String.format(pattern, values)
    except (Py4JJavaError, IllegalArgumentException):
        assert not accepted(check_format, pattern, 1)
    else:
        assert accepted(check_format, pattern, 1)


def known_to_spark(spark: SparkSession, zone: str) -> bool:
    try:
        spark._jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils.getZoneId(zone)
    except PySparkException:
        return False
    return True


@pytest.mark.slow
def test_no_time_zone_that_spark_knows_is_refused(spark: SparkSession) -> None:
    java = spark._jvm.java.time.ZoneId
    names = {*java.getAvailableZoneIds(), *java.SHORT_IDS.keySet()}
    assert len(names) > 500
    assert [name for name in names if not is_zone(name) and known_to_spark(spark, name)] == []
    chance, refused = Random(7), 0
    parts = ("UTC", "GMT", "UT", "Z", "+", "-", ":", "0", "1", "9", "18", "00", "30", "Europe/Berlin", " ", "x", "pst")
    for _ in range(1000):
        name = "".join(chance.choice(parts) for _ in range(chance.randint(1, 4)))
        if not is_zone(name):
            assert not known_to_spark(spark, name), name
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("zone", ["Nowhere", "", "Europe/berlin", "utc", "+19", "UTC-18:01", "+05:60"])
def test_a_wrong_time_zone_is_refused(spark: SparkSession, zone: str) -> None:
    assert not is_zone(zone)
    assert not known_to_spark(spark, zone)
