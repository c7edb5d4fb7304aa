"""The driver computes the same as Spark: every translated expression over the edge values of each type."""

from __future__ import annotations

import math
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
CASED = [
    "upper(a)", "lower(a)", "upper(a) = upper(b)", "left(a, 2)", "left(a, 0)", "right(a, 2)", "lpad(a, 4, 'xé')",
    "rpad(a, 4)", "lpad(a, 0, '*')", "instr(a, b)", "locate('a', a)", "position(b IN a)", "concat_ws('-', a, b, a)",
    "split_part(a, 'b', 1)", "split_part(a, 'a', -1)", "split_part(a, ' ', 9)", "split(a, 'b')", "split(a, '[ab]+')[0]",
    "sha2(a, 256)", "sha2(a, 0)", "sha1(a)", "md5(a)", "concat(a, 1)", "a || length(b)",
]  # fmt: skip
PATTERNS = (
    "a", "^a|b$", "[^a-z]+", r"\\d+", r"(\\w)(\\s?)", ".", "(a)?b", "a*?b", "(?i)a", "(.+)[ ,](.*)", "😀|é", "ab{0,2}",
    r"\\|", r"[\\s,.-]", "(?:ab|a)b?$", r"^\\s+|\\s+$",
)  # fmt: skip
MATCHED = [
    *(form.format(pattern) for pattern in PATTERNS
      for form in ("a RLIKE '{}'", "regexp_extract(a, '{}', 0)", "regexp_replace(a, '{}', '<$0>')")),
    *(f"split(a, '{pattern}')" for pattern in PATTERNS if not {*"^$"} & {*pattern.replace("[^", "")}),
    "regexp_extract(a, '(a)|(.)', 2)", "regexp_replace(a, '(.)(.)', '$2$1')", "regexp_extract(a, '(a)?b', 1)",
]  # fmt: skip
READ = [
    *(f"{cast}(a AS {kind})" for cast in ("CAST", "TRY_CAST") for kind in
      ("TINYINT", "INT", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")),
    "CAST(a AS BOOLEAN)", "to_date(a)", "to_timestamp(a)", "to_date(a, 'yyyy-MM-dd')",
    "to_timestamp(a, 'yyyy-MM-dd HH:mm:ss')", "to_timestamp(a, 'dd.MM.yyyy')", "CAST(concat(a, b) AS INT)",
]  # fmt: skip
JSON = [
    "get_json_object(a, '$.a')", "get_json_object(a, '$.b.a')", "from_json(a, 'a INT').a", "from_json(a, 'a STRING')",
    "from_json(a, 'a DOUBLE, c BOOLEAN')", "to_json(named_struct('a', a, 'b', b))", "to_json(struct(a))",
]  # fmt: skip
NEAREST = [
    *(f"round(a, {places})" for places in (0, 1, 2, 5, 9)), "round(a)", "round(a * 3, 2)", "sqrt(a)", "sign(a)",
    "power(a, 2)", "pow(a, 1)", "pow(a, 0)", "CAST(a AS DECIMAL(10, 2))", "CAST(a AS DECIMAL(38, 9))",
    "CAST(a AS DECIMAL(3, 0))",
]  # fmt: skip
QUOTIENTS = ["a / b", "a / 3", "a / 7", "1 / a", "a / 0.3", "- a / 6"]
PLACES = ["round(a)", "round(a, 1)", "round(a, 3)", "round(a, 7)", "sqrt(a)", "sign(a)", "power(a, 2)"]
NUMBERS_OF_TIMES = [
    "dayofweek(a)", "dayofyear(a)", "weekofyear(a)", "weekday(a)", "quarter(a)", "to_date(a)", "datediff(a, b)",
    "date_add(a, 1)", "date_sub(a, 31)",
]  # fmt: skip
SINCE = [
    "unix_millis(a)", "unix_seconds(a)", "unix_timestamp(a)", "to_timestamp(a)",
    *(f"timestampdiff({unit}, a, b)" for unit in ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")),
]  # fmt: skip
OF_NUMBERS = ["from_unixtime(a)", "from_unixtime(a, 'yyyy-MM-dd')", "timestamp_seconds(a)", "timestamp_millis(a)",
              "round(a)", "TRY_CAST(a AS TINYINT)", "TRY_CAST(a AS BIGINT)", "from_unixtime(a DIV 1000)"]  # fmt: skip
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
    ("string", "string", [*CASED, *READ, *JSON, *MATCHED]),
    ("double", "double", NEAREST),
    *((one, other, QUOTIENTS) for one, other in product(DECIMALS, (*DECIMALS, "int", "bigint"))),
    *((kind, kind, PLACES) for kind in (*DECIMALS, *WHOLE)),
    *((kind, kind, NUMBERS_OF_TIMES) for kind in ("date", "timestamp", "timestamp_ntz")),
    ("timestamp", "timestamp", SINCE),
    ("date", "int", ["date_add(a, b)", "date_sub(a, b)"]),
    *((kind, kind, OF_NUMBERS) for kind in WHOLE),
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


TEXTS_OF_VALUES = [
    "", None, "0", "-0", "+7", " 12 ", "\t12\n", "\x0012\x7f", "\u00a012", "1.5", "1.", ".5", "+.5", "1e3", "1E-3",
    "1e400", "1e-400", "1d", "2F", "1L", "NaN", "nan", " NaN ", "Infinity", "-inf", "0x1p3", "1_000", "1 2", "٣", "127",
    "128",
    "2147483648", "-9223372036854775808", "9223372036854775808", "0" * 40 + "5", "true", "T", " no", "2024", "2024-2",
    "2024-2-9", "2024-02-29", "2024-02-30", "0000-01-01", "0001-01-01", "+2024-02-29", "12024-02-29", "2024-02-29 ",
    " 2024-02-29", "2024-02-29T", "2024-02-29 x", "2024-02-29\n", "2024-02-29 13:07", "2024-02-29 13:07Z",
    "2024-02-29 13:07:05", "2024-02-29T13:07:05.25Z", "2024-02-29T13:07:05.1234567", "2024-02-29 24:00:00",
    "2024-02-29 23:59:60", "2024-02-29T13:07:05+02:00", "2024-02-29T13:07+02:00", "2024-02-29T13:07:05-18:00",
    "2024-02-29T13:07:05 Europe/Paris", "29.02.2024", "epoch", "13:07:05", '{"a":1}', '{"a":1.0}', '{"a":"1"}',
    '{"a":1,"a":2}', '{"a":null,"a":2}', '{"a":1,}', '{"a":NaN}', "{'a':1}", '{"a":1} x', '[{"a":1}]', '{"a":[1.50]}',
    '{"a":["😀"]}', '{"a":"\\u00e9"}', '{"b":{"a":true},"c":false}', '{"a":2147483648}', '{"a":"x', '{"a":-0}',
    '{"a":1e5}',
    r'{"a":"x\n\"y\/"}', r'{"a":["\n"]}', '{"a":"\t"}', 'a\tb"c\\\n', "a\x01",
    "İ", "ß", "ŉ", "ΑΣ", "ΣΑ", "ﬁ", "ǅ", "ΐ", "Ა", "\u1c89", "e\u0301", "\U0001f600a", "a\r\n", "b\n", "b\u0085",
    "a\u2028",
    "a,b", "a|b", "aab abb", "A b\u00a0",
]  # fmt: skip
"""Texts that look like values of other types, or whose characters have odd cases, widths or meanings."""


@pytest.mark.parametrize("texts", [CASED, MATCHED, READ, JSON], ids=["cases", "patterns", "casts", "json"])
def test_odd_texts_have_the_values_of_spark(spark: SparkSession, texts: list[str]) -> None:
    check_odd_texts(spark, texts)


def check_odd_texts(spark: SparkSession, texts: list[str]) -> None:
    """Compare expressions over odd texts; each has a translation."""
    rows = pa.table({
        "n": range(len(TEXTS_OF_VALUES)), "a": TEXTS_OF_VALUES, "b": [*TEXTS_OF_VALUES[1:], "x"],
    })  # fmt: skip
    found = compared(spark, rows, [("n", "bigint"), ("a", "string"), ("b", "string")], texts)
    assert not {*texts} - {*found.here}
    assert not found.differ, found.differ[:10]


def test_near_halves_are_rounded_as_in_spark(spark: SparkSession) -> None:
    """Halves of a place, and the numbers beside them, are rounded by the digits that Java writes."""
    check_near_halves(spark)


def check_near_halves(spark: SparkSession) -> None:
    """Compare the rounding of numbers at and beside halves of a place."""
    halves = [(n * 10 + 5) / 10**places for places in range(1, 10) for n in (0, 1, 2, 10, 33, 100, 1234, 99999)]
    beside = [math.nextafter(half, to) for half in halves for to in (0, math.inf)]
    numbers = [sign * number for number in (*halves, *beside, 1e14, 2.0**52 + 0.5, 1e17) for sign in (1, -1)]
    rows = pa.table({"n": range(len(numbers)), "a": numbers})
    found = compared(spark, rows, [("n", "bigint"), ("a", "double")], NEAREST)
    assert not {*NEAREST} - {*found.here}
    assert not found.differ, found.differ[:10]


ELEMENTS = [
    "a[0]", "a[1]", "a[i]", "element_at(a, 1)", "element_at(a, 3)", "array_contains(a, 'a')", "array_contains(a, k)",
    "transform(a, x -> upper(x))", "transform(a, x -> concat(x, k))", "transform(a, x -> 6 DIV length(x))",
    "filter(a, x -> x <> 'a')", "array_distinct(a)", "transform(a, x -> transform(a, y -> concat(x, y)))",
    "map('a', i, 'b', 2)['a']", "map('a', i, 'b', 2)['b']", "m['a']", "m[k]", "element_at(m, 'b')",
]  # fmt: skip


def test_elements_are_those_of_spark(spark: SparkSession) -> None:
    arrays = [None, [], ["a"], [None], ["b", None, "b", "a", None], ["", "é", "ß"]]
    maps = [None, [], [("a", 1)], [("b", None), ("a", 2)], [("", 3)], [("é", 4)]]
    rows = [(array, at, key) for array in range(len(arrays)) for at in (None, -1, 0, 1, 4) for key in (None, "a", "ß")]
    table = pa.table({
        "n": range(len(rows)), "a": pa.array([arrays[n] for n, _, _ in rows], pa.list_(pa.string())),
        "m": pa.array([maps[n] for n, _, _ in rows], pa.map_(pa.string(), pa.int32())),
        "i": pa.array([at for _, at, _ in rows], pa.int32()), "k": pa.array([key for _, _, key in rows], pa.string()),
    })  # fmt: skip
    kinds = [("n", "bigint"), ("a", "array<string>"), ("m", "map<string,int>"), ("i", "int"), ("k", "string")]
    found = compared(spark, table, kinds, ELEMENTS)
    assert not {*ELEMENTS} - {*found.here}
    assert not found.differ, found.differ[:10]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("timestamp", [*TIME, *INSTANT, *PARTS, *EXTRACTED[:-1], *WRITTEN[:6]]),
        ("string", [*TEXT, "trim(a)", "rtrim(a)", *CASED, *READ, *JSON, *MATCHED]),
        ("timestamp", [*NUMBERS_OF_TIMES, *SINCE]),
        ("bigint", OF_NUMBERS),
        ("double", [*ROUNDED, *NEAREST, "CAST(a AS INT)", "floor(a)", "ceil(a)"]),
        ("decimal(10,2)", [*QUOTIENTS, *PLACES]),
        ("decimal(10,2)", [text for text in DIGITS if text not in ("CAST(a AS DECIMAL(3, 0))", "floor(a)")]),
    ],
)
def test_listed_functions_are_translated(kind: str, texts: list[str]) -> None:
    """The comparison with Spark covers every kind of expression."""
    scope = scope_of({name: Value(name, kind) for name in "ab"})
    for text in texts:
        assert scope.value(parsed(text)).sql
