"""Spark computes what has no translation, once for each different value, and rows on the driver stay there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from conformance.edge_values import VALUES
from rowtime.frames import catalyst
from rowtime.frames.kinds import arrow_of, spark_type
from rowtime.frames.local import LocalFrame, is_local
from rowtime.frames.queries import Uncomputed
from rowtime.runtime.session import derive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXTS = ("upper(a)", "initcap(a)", "md5(a)", "regexp_extract(a, '([a-z])', 1)", "split(a, '')", "a RLIKE 'a'",
         "from_json(a, 'x INT')", "try_cast(a AS INT)", "CASE WHEN a = 'a' THEN lower(a) ELSE a END",
         "transform(split(a, ''), x -> upper(x))")  # fmt: skip
NUMBERS = (
    "round(a, 1)",
    "bround(a / 3, 1)",
    "sqrt(abs(a / 2))",
    "hex(a DIV 2)",
    "format_number(a, 1)",
    "named_struct('x', a)",
)
BY_KIND = {
    "string": TEXTS,
    "int": NUMBERS,
    "bigint": (*NUMBERS, "CAST(a AS STRING) RLIKE '7'"),
    "double": ("round(a, 1)", "sqrt(a)", "format_number(a, 2)"),
    "float": ("round(a, 1)", "sqrt(a)"),
    "decimal(10,2)": ("round(a, 1)", "sqrt(a)", "a * 1.5E0"),
    "date": ("last_day(a)", "dayofweek(a)", "datediff(a, DATE '2024-01-01')", "date_format(a, 'E')"),
    "timestamp": ("date_format(a, 'EEE HH')", "unix_timestamp(a)", "make_dt_interval(1) IS NULL OR a > current_date()"),
    "boolean": ("CAST(a AS STRING) || upper('x')", "if(a, md5('x'), NULL)"),
}  # fmt: skip


def both(spark: SparkSession, values: list[Any], kind: str) -> tuple[LocalFrame, DataFrame]:
    """The values as column ``a`` and, in another order, as ``b``; each twice."""
    values = [*values, *values]
    table = pa.table({"a": pa.array(values, arrow_of(kind)), "b": pa.array(values[::-1], arrow_of(kind))})
    local = LocalFrame.of(spark, table, [("a", kind), ("b", kind)])
    assert local is not None
    return local, spark.createDataFrame(table, schema=f"a {kind}, b {kind}")


@pytest.mark.parametrize("kind", BY_KIND)
def test_values_are_those_of_spark(spark: SparkSession, kind: str) -> None:
    session = derive(spark)
    local, rows = both(session, VALUES[kind], kind)
    failed = 0
    for text in BY_KIND[kind]:
        try:
            expected = rows.selectExpr("b", f"{text} AS `v 1`", "a AS c").toArrow()
        except PySparkException:  # an edge value for which the expression fails
            failed += 1
            continue
        for _ in range(2):  # the second time, of the values that are kept
            found = local.selectExpr("b", f"{text} AS `v 1`", "a AS c")
            assert is_local(found), text
            kind_of_value = rows.selectExpr(f"{text} AS v").schema["v"].dataType.simpleString()
            assert found.schema["v 1"].dataType.simpleString() == kind_of_value
            assert repr(found.toArrow().to_pylist()) == repr(expected.to_pylist()), text
    assert failed <= 1


def test_different_values_are_computed_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    session = derive(spark)
    rows: list[int] = []
    frame = catalyst._frame

    def counted(of: SparkSession, part: catalyst.Part, table: pa.Table) -> DataFrame:
        rows.append(table.num_rows)
        return frame(of, part, table)

    monkeypatch.setattr(catalyst, "_frame", counted)
    local, _ = both(session, ["x", "y", None], "string")
    for _ in range(2):
        assert local.selectExpr("initcap(a) AS u").toArrow()["u"].to_pylist() == ["X", "Y", None] * 2
    more, _ = both(session, ["y", "z"], "string")
    assert more.where("initcap(a) = 'Z'").toArrow()["a"].to_pylist() == ["z"] * 2
    assert more.selectExpr("initcap(a) AS u", "md5(b) AS m").toArrow()["u"].to_pylist() == ["Y", "Z"] * 2
    assert [count for count in rows if count] == [3, 2, 1, 2]  # 0: the type


def test_other_expressions_are_left_to_spark(spark: SparkSession) -> None:
    session = derive(spark)
    session.udf.register("doubled", lambda text: text and text * 2, "string")
    local, _ = both(session, ["x", "y"], "string")
    for text in (
        "doubled(a)",
        "md5(doubled(a))",
        "rand()",
        "uuid()",
        "monotonically_increasing_id()",
    ):
        assert not is_local(local.selectExpr(f"{text} AS v")), text
        assert not local.can(text), text
    assert local.can("initcap(a)", "a || b")
    assert not local.can("no_function(a)")


def test_a_value_that_fails_is_nobodys(spark: SparkSession) -> None:
    local, _ = both(derive(spark), ["1", "x"], "string")
    failing = "CAST(initcap(a) AS INT)"
    with pytest.raises(Uncomputed):
        local.selectExpr(f"{failing} AS v")
    with pytest.raises(Uncomputed):
        local.computed([failing])
    assert local.computed(["initcap(a)"]).columns == ["a", "b"]
    sheltered = local.selectExpr(f"CASE WHEN a <> 'x' THEN {failing} END AS v")
    assert sheltered.toArrow()["v"].to_pylist() == [1, None, 1, None]


def test_no_rows_have_types(spark: SparkSession) -> None:
    empty = LocalFrame.empty(derive(spark), [("a", "string"), ("n", "decimal(10,2)")])
    found = empty.selectExpr("initcap(a) AS u", "round(n, 1) AS r")
    assert is_local(found)
    assert (found.dtypes, found.count()) == ([("u", "string"), ("r", "decimal(10,1)")], 0)
    assert spark_type("decimal(10,1)") == found.schema["r"].dataType
