"""The Spark SQL of expressions, computed by Spark itself."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.errors import Refused
from rowtime.sql.generate import to_spark
from rowtime.sql.script import parse_expression
from tests.sql.case_files import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = """
    TIMESTAMP '2024-02-29 23:59:59.999999' AS rowtime, TIMESTAMP '2024-02-29 12:00:00' AS ts,
    TIMESTAMP '1969-12-31 23:59:58' AS ev, 7 AS seq, 8 AS uid, 3 AS pos, -3 AS neg, 5 AS dn, 4 AS sdn,
    2.5D AS amt, 'abcdef' AS tag, 6 AS qty
"""
AS_SPARK_HAS_IT = [
    *("to_timestamp('2024-01-01 10:00:00')", "element_at(array(1, 2), 1)", "date_add(DATE '2024-01-31', 1)"),
    *("datediff(DATE '2024-03-01', DATE '2024-02-01')", "trunc(DATE '2024-03-09', 'MM')", "weekofyear(ts)"),
    *(
        "dayofweek(ts)",
        "date_format(ts, 'yyyy-MM-dd HH')",
        "unix_timestamp(ts)",
        "from_unixtime(0)",
        "add_months(ts, 1)",
    ),
    *("regexp_extract(tag, '(b)(c)', 2)", "split(tag, 'c')[0]", "concat_ws('-', tag, 'x')", "instr(tag, 'c')"),
    *(
        "locate('c', tag)",
        "lpad(tag, 9, '*')",
        "substring(tag, 2, 3)",
        "substr(tag, -2)",
        "nvl(NULL, 1)",
        "if(seq > 1, 2, 3)",
    ),
    *(
        "greatest(seq, uid)",
        "round(amt, 0)",
        "bround(amt)",
        "ln(amt)",
        "log10(amt)",
        "log(2, 8)",
        "pmod(-7, 3)",
        "-7 % 3",
    ),
    *("7 DIV 2", "7 / 2", "1 / 3.0", "2BD", "1.5", "1e2", "X'1F'", "'a\\nb'", "'it''s'", "r'a\\n'", "tag LIKE 'a%'"),
    *("tag RLIKE '^a'", "seq IN (1, 7)", "seq BETWEEN 1 AND 9", "seq <=> NULL", "NOT (seq > 1 AND uid < 2)", "~seq"),
    *("try_cast('x' AS INT)", "CAST('7' AS BIGINT)", "array_sort(array(3, 1))", "filter(array(1, 2), x -> x > 1)"),
    *("named_struct('a', 1).a", "map('a', 1)['a']", "sha2(tag, 256)", "timestamp_micros(1)", "make_date(2024, 1, 2)"),
    *("timestampadd(HOUR, 1, ts)", "timestampdiff(MINUTE, ev, ts)", "last_day(ts)", "extract(DOW FROM ts)"),
    *("date_part('minute', rowtime)", "from_json('{\"a\":1}', 'a INT').a", "coalesce(NULL, 2)", "nullif(1, 1)"),
    *("ts + INTERVAL '1:30' MINUTE TO SECOND", "ts + INTERVAL '1 hour 30 minutes'", "ts + INTERVAL '2' WEEK"),
    *(
        "rowtime - ts",
        "CAST(rowtime AS DATE)",
        "initcap(tag)",
        "translate(tag, 'ab', 'xy')",
        "bit_count(seq)",
        "hash(tag)",
    ),
]


def value(spark: SparkSession, sql: str) -> Any:
    """The value, with timestamps as text: Python's datetimes depend on the machine's zone."""
    frame = spark.sql(f"SELECT {sql} AS v FROM (SELECT {COLUMNS})")
    if frame.schema["v"].dataType.typeName() == "timestamp":
        frame = frame.selectExpr("CAST(v AS STRING) AS v")
    return frame.first()["v"]  # type: ignore[index]


def rowtime_value(spark: SparkSession, expression: str) -> Any:
    return value(spark, to_spark(parse_expression(expression)))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("FLOOR(TIMESTAMP '2024-02-29 13:48:23.1234' TO SECOND)", "2024-02-29 13:48:23"),
        ("FLOOR(TIMESTAMP '2024-02-29 13:48:23.123456' TO MILLISECOND)", "2024-02-29 13:48:23.123"),
        ("FLOOR(TIMESTAMP '2024-02-29 13:48:23' TO WEEK)", "2024-02-26 00:00:00"),
        ("FLOOR(TIMESTAMP '2024-02-29 13:48:23' TO QUARTERS)", "2024-01-01 00:00:00"),
        ("CEIL(TIMESTAMP '2024-02-29 13:48:23' TO QUARTER)", "2024-04-01 00:00:00"),
        ("CEIL(TIMESTAMP '2024-02-26 00:00:00' TO WEEK)", "2024-02-26 00:00:00"),
        ("CEIL(TIMESTAMP '2024-02-26 00:00:00.000001' TO WEEK)", "2024-03-04 00:00:00"),
        ("CEIL(TIMESTAMP '2024-01-31 10:00:00' TO MONTH)", "2024-02-01 00:00:00"),
        ("CEIL(TIMESTAMP '2024-01-01 00:00:00' TO YEAR)", "2024-01-01 00:00:00"),
        ("CEIL(TIMESTAMP '1969-12-31 23:59:59.999999' TO DAY)", "1970-01-01 00:00:00"),
        ("CEIL(DATE '2024-01-15' TO MONTH)", "2024-02-01 00:00:00"),
        ("CEIL(ts + INTERVAL '1' SECOND TO HOUR)", "2024-02-29 13:00:00"),
        ("STEP(TIMESTAMP '1969-12-31 23:59:59.999999' BY INTERVAL '1' DAY)", "1969-12-31 00:00:00"),
        ("STEP(TIMESTAMP '1970-01-01 00:00:00' BY INTERVAL '1' DAY)", "1970-01-01 00:00:00"),
        ("STEP(TIMESTAMP '0001-01-01 00:00:00' BY INTERVAL '1' HOUR)", "0001-01-01 00:00:00"),
        ("STEP(TIMESTAMP '2024-02-29 13:48:23' BY INTERVAL '1:30' MINUTE TO SECOND)", "2024-02-29 13:48:00"),
        ("STEP(TIMESTAMP '2024-12-29 13:48:23' BY INTERVAL '5' MONTH)", "2024-08-01 00:00:00"),
        ("STEP(TIMESTAMP '1969-12-29 13:48:23' BY INTERVAL '5' MONTH)", "1969-08-01 00:00:00"),
        ("STEP(TIMESTAMP '1968-12-29 13:48:23' BY INTERVAL '1-0' YEAR TO MONTH)", "1968-01-01 00:00:00"),
        ("STEP(DATE '2024-03-01' BY INTERVAL '2' DAY)", "2024-02-29 00:00:00"),
        ("STEP(7.25 BY 0.5)", Decimal("7.0")),
        ("STEP(-7.25 BY 0.5)", Decimal("-7.5")),
        ("STEP(CAST(-0.3 AS DOUBLE) BY 0.25)", -0.5),
        ("STEP(CAST('-Infinity' AS DOUBLE) BY 3)", float("-inf")),
        ("STEP(2.5D BY 1)", 2.0),
        ("STEP(-(1 + CAST(1.5 AS DOUBLE)) BY 1)", -3.0),
        ("FLOOR(ts + INTERVAL '1' DAY TO DAY)", "2024-03-01 00:00:00"),
        ("STEP(1 - 2 BY 2 + 3)", -5),
        ("STEP(9223372036854775807 BY 10)", 9223372036854775800),
        ("SUBSTRING('abc' FROM 0 FOR 2)", "ab"),
        ("SUBSTRING('abc' FROM 1 FOR 2)", "ab"),
        ("SUBSTRING('abc' FROM 2)", "bc"),
        ("EXTRACT(YEAR FROM TIMESTAMP '2024-02-29 13:48:23')", 2024),
        ("MONOTONIC(3 + 4)", 7),
        ('"seq" + `uid`', 15),
    ],
)
def test_edges_of_steps_and_units(spark: SparkSession, expression: str, expected: object) -> None:
    found = rowtime_value(spark, expression)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("expression", AS_SPARK_HAS_IT)
def test_everything_else_has_the_meaning_of_spark(spark: SparkSession, expression: str) -> None:
    assert rowtime_value(spark, expression) == value(spark, expression)


@pytest.mark.parametrize("case", load("monotonicity.yaml")["cases"], ids=lambda case: case["expression"])
def test_spark_understands_every_expression_of_the_case_file(spark: SparkSession, case: dict[str, Any]) -> None:
    text = to_spark(parse_expression(case["expression"]))
    if not text.startswith("TUMBLE"):  # a group function: binding replaces it
        spark.sql(f"SELECT {text} AS v FROM (SELECT {COLUMNS})").schema  # noqa: B018 - analysis happens here


@pytest.mark.parametrize("expression", ["CURRENT_ROW_TIMESTAMP", "f(TABLE s)", "STEP(ts BY INTERVAL seq SECOND)"])
def test_nodes_that_binding_replaces_have_no_text(expression: str) -> None:
    with pytest.raises(Refused):
        to_spark(parse_expression(expression))


def test_floating_steps_never_fall(spark: SparkSession) -> None:
    """If a <= b then STEP(a BY n) <= STEP(b BY n), in floating point too."""
    step = to_spark(parse_expression("STEP(CAST(x AS DOUBLE) BY 0.1)"))
    falls = spark.sql(f"""
        SELECT COUNT(*) AS n FROM (
          SELECT v < LAG(v) OVER (ORDER BY x) AS falls FROM (
            SELECT x, {step} AS v FROM (SELECT CAST(id - 20000 AS DOUBLE) / 7000 AS x FROM range(40000))))
        WHERE falls""").first()
    assert falls is not None
    assert falls["n"] == 0
