"""Sizes, places and digits are tested in Spark's text, each call for itself, and once."""

from __future__ import annotations

import pytest

from rowtime.sql.generate import to_spark, to_stored
from rowtime.sql.script import parse_expression

LEAST = "-2147483648"


@pytest.mark.parametrize(
    "text",
    [
        "l[n]",
        "IF(n IS NULL, l[n], 0)",
        "IF(NOT n IS NULL, 0, l[n])",
        "CASE WHEN NOT n IS NULL OR m > 0 THEN l[n] END",
        "CASE WHEN NOT n IS NULL THEN l[m] END",
        "CASE WHEN NOT n IS NULL THEN l[CASE WHEN m > 0 THEN NULL ELSE n END] END",
    ],
)
def test_an_element_is_null_at_no_place_if_no_case_around_it_has_tested_that(text: str) -> None:
    written = to_spark(parse_expression(text))
    assert written.count("IS NOT NULL THEN l[") == 1
    assert to_spark(parse_expression(written)).count("THEN l[") == 1


@pytest.mark.parametrize(
    "text", ["ELEMENT_AT(l, n)", "ELEMENT_AT(l, ELEMENT_AT(k, n))", "CASE WHEN m IS NULL THEN ELEMENT_AT(l, k[n]) END"]
)
def test_each_place_is_tested_once(text: str) -> None:
    written = to_spark(parse_expression(text))
    assert "IS NOT NULL THEN ELEMENT_AT(l, CASE WHEN typeof(l) LIKE 'array<%' AND" in written
    assert to_spark(parse_expression(written)).upper().count(LEAST) == written.count(LEAST)


@pytest.mark.parametrize(
    ("text", "inner", "outer"),
    [
        ("REPEAT(s, LENGTH(REPEAT(t, n)))", "octet_length(t)", "octet_length(s)"),
        ("SEQUENCE(1, ELEMENT_AT(SEQUENCE(1, n), 1))", "CAST(n AS STRING)", "CAST(ELEMENT_AT("),
    ],
)
def test_a_size_is_tested_around_one_that_is_tested(text: str, inner: str, outer: str) -> None:
    written = to_spark(parse_expression(text))
    assert inner in written
    assert outer in written


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("SLICE(l, 1, 3)", "SLICE(l, 1, 3)"),
        (
            "SLICE(l, 1, n + 1000000000)",
            "SLICE(l, 1, CASE WHEN n + 1000000000 > 1000000000 THEN 1000000000 ELSE n + 1000000000 END)",
        ),
        ("ROUND(d, 3)", "ROUND(d, 3)"),
        ("ROUND(d, 2000000000)", "ROUND(d, 2000)"),
        ("BROUND(d, -2147483648)", "BROUND(d, -2000)"),
        ("ROUND(d, n)", "ROUND(d, n)"),
        (
            "FLOOR(d, 9 * 9)",
            "FLOOR(d, CASE WHEN 9 * 9 > 2000 THEN 2000 WHEN 9 * 9 < -2000 THEN -2000 ELSE 9 * 9 END)",
        ),
    ],
)
def test_a_length_and_digits_are_at_most_those_that_a_value_has(text: str, spark: str) -> None:
    assert to_spark(parse_expression(text)) == spark
    assert to_spark(parse_expression(spark)) == spark


def test_the_text_that_names_an_expression_has_no_tests() -> None:
    for text in ("l[n]", "ELEMENT_AT(l, n)", "SLICE(l, 1, n)", "ROUND(d, 5000)", "BROUND(d, 5000)", "FLOOR(d, 5000)"):
        assert to_stored(parse_expression(text)) == text
