"""The driver computes the same as Spark: every translated expression over the edge values of each type."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from conformance.edge_values import VALUES
from conformance.engines import compared
from rowtime.frames.kinds import arrow_of
from rowtime.frames.translated import parsed, scope_of
from rowtime.frames.values import Value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

NUMBERS = ("tinyint", "smallint", "int", "bigint", "double")
WHOLE = NUMBERS[:-1]

ANY = [
    "a",
    "a IS NULL",
    "a IS NOT NULL",
    "coalesce(a, b)",
    "CASE WHEN a IS NULL THEN b ELSE a END",
    "if(b IS NULL, a, b)",
]
ORDERED = [
    "a = b", "a <> b", "a < b", "a <= b", "a > b", "a >= b", "a <=> b", "a BETWEEN b AND a", "a IN (b, a)",
    "a NOT IN (b)", "CASE a WHEN b THEN 1 WHEN NULL THEN 2 ELSE 3 END",
    "greatest(a, b)", "least(b, a)", "NOT (a < b) OR a = b", "a < b AND b < a",
]  # fmt: skip
ARITHMETIC = [
    "a + b", "a - b", "a * b", "a / b", "- a", "positive(a)", "a + 1", "2 * a - b", "a / 2", "a + -3", "a - -2L",
    "-1 * a",
]  # fmt: skip
INTEGERS = ["a DIV b", "a % b", "pmod(a, 7L)", "pmod(a, 60)", "a DIV 3", "CAST(a AS BIGINT)", "CAST(a AS DOUBLE)",
            "CAST(a AS STRING)", "CAST(a AS TINYINT)", "get(array(5L), CAST(pmod(a, 1L) AS INT)) + a",
            "a + 9223372036854775807L"]  # fmt: skip
TIME = [
    "CAST(a AS DATE)", "a + INTERVAL '10' SECOND", "a - INTERVAL '2' DAY", "a + INTERVAL '3' MINUTE",
    "a + INTERVAL '0.5' SECOND", "a - INTERVAL '-1.000001' SECOND", "a + INTERVAL '-0.1' SECOND",
    *(f"DATE_TRUNC('{unit}', a)" for unit in ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")),
    *(f"DATE_TRUNC('{unit}', a)" for unit in ("MONTH", "QUARTER", "YEAR")),
]  # fmt: skip
PARTS = [
    "hour(a)", "minute(a)", "second(a)", "year(a)", "month(a)", "day(a)", "date_format(a, 'yyyy-MM-dd')",
    "date_format(a, 'HH:mm:ss')", "date_format(a, 'yyyy/MM/dd HH')", "date_format(a, 'y')", "nullif(a, b)",
]  # fmt: skip
TEXT = [
    "length(a)", "replace(a, 'a', b)", "replace(a, 'a')", "a LIKE 'a%'", "a NOT LIKE '_'", "startswith(a, b)",
    "endswith(a, b)", "contains(a, b)", "substring(a, 2, 1)", "substring(a, 1)", "nullif(a, b)",
    "translate(a, 'aB', 'Ab')",
]  # fmt: skip
INSTANT = ["unix_micros(a)", "unix_micros(a) - pmod(unix_micros(a), 3600000000L)", "unix_micros(a) DIV 1000000L"]
DECIMALS = ("decimal(10,2)", "decimal(5,4)")
COMPARED = [text for text in ORDERED if not text.startswith(("greatest", "least"))] + ["a * 0.5 > 3", "a < 2 * b"]
EXACT = ["a + b", "a - b", "a * b", "a * 0.908", "0.05 + a", "a - 1.5", "a * -0.25"]
WRITTEN = [
    f"a {sign} {kind} '{text}'" for sign in ("<", "=", ">=") for kind in ("TIMESTAMP", "TIMESTAMP_NTZ")
    for text in ("1969-12-31 23:59:59.999999", "2026-11-22", "1582-10-10T12:00:00", "2024-02-29 13:07:05.000001",
                 "0001-01-01 00:00:00", "9999-12-31 23:59:59.9", "2026-1-2", "2026-02-30", "10:00:00")
]  # fmt: skip
DAYS = [
    *(f"a >= DATE '{text}'" for text in ("1970-01-01", "1582-10-10", "2024-02-29", "2023-02-29", "2026-11-22 10:00")),
    *(f"EXTRACT({part} FROM a)" for part in ("YEAR", "QUARTER", "MONTH", "DAY", "DOW", "WEEK")),
]  # fmt: skip
EXTRACTED = [f"EXTRACT({part} FROM a)" for part in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")]
DIGITS = [
    "CAST(a AS DECIMAL(20, 2))", "CAST(a AS DECIMAL(38, 10))", "CAST(a AS DECIMAL(6, 4))", "CAST(a AS DECIMAL(3, 0))",
    "CAST(a AS DECIMAL(9, 2))", "CAST(a AS BIGINT)", "CAST(a AS INT)", "a * 2", "3 + a", "a - 100", "10 * a", "a + 0",
    "coalesce(a, 0)", "if(a > 1, a, 2.5)", "greatest(a, 1, 0.5)", "least(b, a, 7)", "- a", "abs(a)", "floor(a)",
]  # fmt: skip
BOTH = [*ANY, *ORDERED, *(text for text in ARITHMETIC if "L" not in text)]
ROUNDED = [
    "a > 1.5", "a = 0.1", "a <= 12345678.1234567", "a IN (0.1, 2, 2.5)", "a BETWEEN 0.1 AND 2.5", "a * 0.1",
    "1.1 + a", "a - 0.3", "a / 0.3", "0.7 / a", "coalesce(a, 0.1)", "if(a > 0.1, a, 1.5)", "greatest(a, 0.1)",
    "least(0.1, a, 1)", "nullif(a, 0.1)", "CAST(a AS DOUBLE)",
]  # fmt: skip
CASES = [
    *((kind, kind, ANY) for kind in VALUES),
    *((kind, kind, ORDERED) for kind in VALUES),
    *((one, other, [*ORDERED, *ARITHMETIC]) for one, other in product(NUMBERS, NUMBERS)),
    *((one, other, INTEGERS) for one, other in product(WHOLE, ("int", "bigint"))),
    *((one, other, EXACT) for one, other in product(DECIMALS, (*DECIMALS, *WHOLE))),
    *((one, other, EXACT) for one, other in product(WHOLE, DECIMALS)),
    *(pair for kind in DECIMALS for pair in [(kind, "double", BOTH), ("double", kind, BOTH)]),
    ("double", "double", [*ROUNDED, "CAST(a AS BIGINT)", "CAST(a AS INT)", "floor(a)", "ceil(a)"]),
    ("double", "double", ["floor(a * 1e15)", "CAST(a * 1000000 AS INT)", "ceil(-a / 3)"]),
    *((one, other, [*DIGITS, *ANY, "greatest(a, b)"]) for one in DECIMALS for other in (*DECIMALS, *WHOLE)),
    *((kind, kind, [text for text in DIGITS if "DECIMAL" in text]) for kind in WHOLE),
    *((one, other, [*ANY, "greatest(a, b)"]) for one in WHOLE for other in DECIMALS),
    ("timestamp", "timestamp", [*WRITTEN, *EXTRACTED]),
    ("timestamp_ntz", "timestamp_ntz", [*WRITTEN, *EXTRACTED]),
    ("date", "date", DAYS),
    ("bigint", "bigint", ["floor(a)", "ceil(a)"]),
    ("string", "string", ["trim(a)", "ltrim(a)", "rtrim(a)", "trim(concat('  ', a, ' x  '))", "trim(LEADING FROM a)"]),
    *((kind, kind, ["CAST(a AS DOUBLE)"]) for kind in DECIMALS),
    *((one, other, COMPARED) for one, other in product(DECIMALS, (*DECIMALS, *WHOLE))),
    *((one, other, ["abs(a)", "nullif(a, b)"]) for one, other in product(NUMBERS, ("int", "double"))),
    ("timestamp", "timestamp", [*TIME, *INSTANT, *PARTS]),
    ("timestamp_ntz", "timestamp_ntz", [*TIME, *PARTS]),
    ("date", "timestamp", ["CAST(a AS TIMESTAMP)", "year(a)", "month(a)", "day(a)"]),
    ("bigint", "bigint", ["timestamp_micros(a DIV 1000)", "make_dt_interval(0, 0, 0, 1)"]),
    ("string", "string", [*TEXT, "a || b", "concat(a, b, 'x')", "a = 'z\\''"]),
    (
        "boolean",
        "boolean",
        ["a AND b", "a OR b", "NOT a", "a AND NOT b OR b", "a = TRUE", "a IS TRUE", "a IS NOT TRUE"],
    ),
]


@pytest.mark.parametrize(("one", "other"), sorted({case[:2] for case in CASES}))
def test_an_expression_has_the_value_of_spark(spark: SparkSession, one: str, other: str) -> None:
    texts = [text for first, second, listed in CASES if (first, second) == (one, other) for text in listed]
    found = compared(spark, pairs(one, other), [("n", "bigint"), ("a", one), ("b", other)], texts)
    assert found.here
    assert not found.differ, found.differ[:10]


def pairs(one: str, other: str) -> pa.Table:
    """Return each edge value of a type beside each of another one."""
    rows = list(product(VALUES[one], VALUES[other]))
    return pa.table({
        "n": range(len(rows)),
        "a": pa.array([a for a, _ in rows], arrow_of(one)),
        "b": pa.array([b for _, b in rows], arrow_of(other)),
    })  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("timestamp", [*TIME, *INSTANT, *PARTS, *EXTRACTED[:-1], *WRITTEN[:6]]),
        ("string", [*TEXT, "trim(a)", "rtrim(a)"]),
        ("double", [*ROUNDED, "CAST(a AS INT)", "floor(a)", "ceil(a)"]),
        ("decimal(10,2)", [text for text in DIGITS if text not in ("CAST(a AS DECIMAL(3, 0))", "floor(a)")]),
    ],
)
def test_listed_functions_are_translated(kind: str, texts: list[str]) -> None:
    """The comparison with Spark covers every kind of expression."""
    scope = scope_of({name: Value(name, kind) for name in "ab"})
    for text in texts:
        assert scope.value(parsed(text)).sql
