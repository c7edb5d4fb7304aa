"""The driver gives expressions and aggregates the types of Spark, so that a start need not ask it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - Spark's name
from pyspark.sql import types as spark_types

from conformance.edge_values import VALUES
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import holds, spark_type, type_text
from rowtime.frames.typed import beside, groups, schema_of, type_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NESTED = ["binary", "decimal(38,10)", "decimal(36,36)", "array<int>", "map<string,int>", "struct<x: int, `y z`: date>"]
KINDS = [*VALUES, *NESTED]
AGGREGATES = [
    *(f"{name}(a)" for name in ("count", "sum", "avg", "min", "max", "first", "last", "first_value", "last_value")),
    *(f"{name}(a)" for name in ("any_value", "collect_list", "array_agg", "mean", "collect_set", "stddev", "mode")),
    *("first(a) IGNORE NULLS", "last_value(a) IGNORE NULLS", "first(a, true)", "max_by(a, b)", "min_by(b, a)"),
    *("max_by(a, b, 2)", "count(DISTINCT a)", "avg(DISTINCT a)", "collect_list(DISTINCT a)", "count(a, b)"),
    *("avg(a) FILTER (WHERE b > 1)", "collect_list(a) FILTER (WHERE b > 1)", "first(a) FILTER (WHERE b > 1)"),
    *("sum(a) FILTER (WHERE b)", "count(*)", "count_if(a)", "bool_and(a)", "sum(a + b)", "avg(a + 1)"),
    *("max(CASE WHEN a > 1 THEN b END)", "count(a IS NULL)", "avg(NULL)", "collect_list(NULL)", "first(NULL)"),
]  # fmt: skip
KNOWN = {
    "bigint": ["sum(a)", "avg(a)", "first(a) IGNORE NULLS", "avg(a) FILTER (WHERE b > 1)", "avg(a + 1)"],
    "decimal(10,2)": ["sum(a)", "avg(a)"],
    "decimal(36,36)": ["avg(a)"],
    "double": ["avg(a)", "max_by(a, b)"],
    "float": ["avg(a)"],
    "string": ["count(DISTINCT a)", "collect_list(a) FILTER (WHERE b > 1)"],
    "array<int>": ["first(a)", "array_agg(a)"],
    "map<string,int>": ["last(a)", "any_value(a)"],
}


def _frame(spark: SparkSession, kind: str) -> Frame:
    return Frame.empty(spark, [("a", kind), ("b", "bigint")])


def _in_spark(frame: Frame, text: str) -> str | None:
    try:
        return frame.nothing.selectExpr(f"{text} AS x").schema[0].dataType.simpleString()
    except AnalysisException:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_aggregates_have_the_types_of_spark(spark: SparkSession, kind: str) -> None:
    frame = _frame(spark, kind)
    known = {text: of for text in AGGREGATES if (of := type_of(frame, text)) is not None}
    assert {*KNOWN.get(kind, []), "count(a)", "count(*)"} <= {*known}
    assert {text: spark_type(of).simpleString() for text, of in known.items()} == {
        text: _in_spark(frame, text) for text in known
    }


@pytest.mark.parametrize(
    "text",
    ["sum(count(a))", "sum(a) + b", "max(sum(a) OVER (ORDER BY b))", "avg(sum(a))", "first(max(a))", "sum(a) + 1",
     "count(a) FILTER (WHERE max(b) > 1)"],
)  # fmt: skip
def test_aggregates_of_aggregates_and_beside_columns_are_left_to_spark(spark: SparkSession, text: str) -> None:
    assert type_of(_frame(spark, "bigint"), text) is None


def test_empty_groups_and_rows_have_the_columns_of_spark(spark: SparkSession) -> None:
    frame = Frame.empty(spark, [("a", "decimal(10,2)"), ("b", "bigint"), ("k", "string")])
    calls = {"n": "count(1)", "m": "avg(a)", "l": "collect_list(k)", "x.y": "max(b)"}
    others = {"m": "avg(a)", "s": "stddev(a)", "i": "max(initcap(k))"}  # of which Spark is asked
    columns, more = spark_types.StructType(frame.schema.fields), frame.selectExpr("b + 1 AS c")
    for items in (calls, others):
        whole = frame.nothing.groupBy("k", "b").agg(*(F.expr(call).alias(name) for name, call in items.items())).schema
        of_calls = whole.fields[2:]
        assert _texts(groups(frame, ["k", "b"], items).schema) == _texts(whole)
        assert _texts(groups(frame, [], items).schema) == _texts(of_calls)
        assert _texts(beside(frame, items).schema) == _texts([*columns, *of_calls])
        assert _texts(beside(frame, items, more).schema) == _texts([*more.schema, *of_calls])
        assert _texts(schema_of(frame, items)) == _texts(of_calls)
    assert beside(frame, {}).fields == frame.fields


def _texts(schema: Iterable[spark_types.StructField]) -> list[tuple[str, str]]:
    return [(field.name, type_text(field.dataType)) for field in schema]


TYPES = [
    "decimal(10,2)", "decimal(38,0)", "decimal", "decimal(4)", "dec", "array<int>", "ARRAY<INT>", "array<real>",
    "ARRAY<STRUCT<`a`: bigint, `B c`: string>>", "map<string,int>", "map<string,array<decimal(5, 2)>>",
    "map<int,map<int,date>>", "struct<a:int,b:timestamp>", "STRUCT<A: INT, `x.y`: DECIMAL(3, 1)>", "struct<>",
    "struct<a:int NOT NULL>", "struct<a:int COMMENT 'x'>", "struct<a: varchar(3)>", "array<char(4)>", "array<binary>",
    "struct<a: timestamp_ntz, b:timestamp_ltz>", "array<void>", "array<interval day>", "struct<`a``b`: int>",
    "struct<a short, b byte>", "array<string collate utf8_lcase>", "array<variant>", "struct<time: int, date: date>",
    "array<numeric(4)>", "array<time>", "struct<int: int, array: array<int>>", "struct<`int>`: int>",
]  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_read_as_spark_reads_it(spark: SparkSession, text: str) -> None:
    assert spark_type(text) == spark_types._parse_datatype_string(text)


@pytest.mark.parametrize(
    "text", ["array<text>", "array<timestamp(3)>", "array<varchar>", "array<uuid>", "array<bool>", "array<hugeint>"]
)
def test_a_type_that_spark_does_not_know_is_refused(spark: SparkSession, text: str) -> None:
    from pyspark.errors import ParseException

    with pytest.raises(ParseException):
        spark_type(text)


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_columns_on_the_driver_do_not_need_spark(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_types, "_parse_datatype_string", None)
    assert holds(kind)
    assert isinstance(spark_type.__wrapped__(kind), spark_types.DataType)
