"""Store assignment compared with Spark's rules: which types may be assigned, and which values fit."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.expr.store_assignment import always_fits, is_padded, length_of, may_assign, same_type
from rowtime.frames.attempted import attempted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 0)",
    "DECIMAL(3, 0)", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL DAY TO SECOND",
    "INTERVAL YEAR TO MONTH", "ARRAY<INT>", "ARRAY<BIGINT>", "ARRAY<STRING>", "MAP<STRING, INT>", "MAP<INT, INT>",
    "STRUCT<a: INT>", "STRUCT<b: BIGINT>", "STRUCT<a: INT, b: STRING>", "VARIANT",
]  # fmt: skip
EXTREMES = {
    "BOOLEAN": ["true"],
    "TINYINT": ["-128Y", "127Y"],
    "SMALLINT": ["-32768S", "32767S"],
    "INT": ["-2147483648", "2147483647"],
    "BIGINT": ["-9223372036854775808L", "9223372036854775807L"],
    "FLOAT": ["FLOAT('NaN')", "FLOAT('-Infinity')", "FLOAT('3.4e38')"],
    "DOUBLE": ["DOUBLE('NaN')", "DOUBLE('Infinity')", "-1.7e308D"],
    "DECIMAL(10, 2)": ["-99999999.99BD", "99999999.99BD", "0.01BD"],
    "DECIMAL(38, 0)": ["99999999999999999999999999999999999999BD"],
    "DECIMAL(3, 0)": ["-999BD"],
    "STRING": ["'é'"],
    "BINARY": ["X'FF'"],
    "DATE": ["DATE '0001-01-01'", "DATE '9999-12-31'"],
    "TIMESTAMP": ["TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ '0001-01-01 00:00:00'", "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"],
    "ARRAY<INT>": ["array(2147483647)"],
    "ARRAY<BIGINT>": ["array(9223372036854775807L)"],
    "MAP<INT, INT>": ["map(2147483647, 1)"],
    "STRUCT<a: INT>": ["named_struct('a', 1)"],
    "STRUCT<b: BIGINT>": ["named_struct('b', 9223372036854775807L)"],
}


def test_assignments_are_allowed_as_in_spark(spark: SparkSession) -> None:
    catalyst: Any = spark._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    parser = spark._jsparkSession.sessionState().sqlParser()
    kinds = {text: parser.parseDataType(text) for text in TYPES}
    for given, target in product(TYPES, TYPES):
        theirs = catalyst.expressions.Cast.canANSIStoreAssign(kinds[given], kinds[target])
        assert (given, target, may_assign(given, target)) == (given, target, theirs)


def test_types_that_always_fit_fit_for_the_extremes(spark: SparkSession) -> None:
    """A type that is not checked value by value has a value that does not fit, so no check is needless."""
    spark.conf.set("spark.sql.ansi.enabled", "true")
    pairs = [(g, t) for g, t in product(EXTREMES, TYPES) if may_assign(g, t) and t != "VARIANT"]
    tried = {
        f"{n}/{i}": attempted(spark, [f"CAST(CAST({value} AS {given}) AS {target})"]).isNotNull().alias(f"{n}/{i}")
        for n, (given, target) in enumerate(pairs)
        for i, value in enumerate(EXTREMES[given])
    }
    found = spark.range(1).select(*tried.values()).collect()[0].asDict()
    for n, (given, target) in enumerate(pairs):
        fits = all(found[f"{n}/{i}"] for i in range(len(EXTREMES[given])))
        assert (given, target, fits) == (given, target, always_fits(given, target))


@pytest.mark.parametrize(
    ("given", "target", "fits"),
    [
        ("VARCHAR(3)", "VARCHAR(5)", True),
        ("VARCHAR(5)", "VARCHAR(3)", False),
        ("STRING", "CHAR(3)", False),
        ("INT", "VARCHAR(20)", False),
        ("CHAR(3)", "STRING", True),
        ("string collate UTF8_LCASE", "STRING", True),
        ("void", "INT", True),
        ("array<int>", "ARRAY<BIGINT>", True),
        ("a type of tomorrow", "INT", False),
    ],
)
def test_texts_and_types_about_which_the_plan_knows_less(given: str, target: str, *, fits: bool) -> None:
    assert always_fits(given, target) is fits
    assert may_assign(given, target) is (None if "tomorrow" in given else True)


def test_spellings_of_one_type() -> None:
    assert same_type("decimal(10,0)", "DECIMAL")
    assert same_type("LONG", "bigint")
    assert same_type("STRUCT<`a`: int>", "struct<A: INTEGER>")
    assert not same_type("STRUCT<a: INT>", "STRUCT<b: INT>")
    assert not same_type("TIMESTAMP", "TIMESTAMP_NTZ")
    assert (length_of("CHARACTER(4)"), is_padded("CHAR(4)"), is_padded("VARCHAR(4)"), length_of("STRING")) == (
        4, True, False, None,
    )  # fmt: skip
