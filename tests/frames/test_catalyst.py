"""Spark computes what has no translation, once for each different value, and rows on the driver stay there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from conformance.edge_values import VALUES
from rowtime.frames import catalyst
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of, spark_type
from rowtime.frames.queries import Uncomputed
from rowtime.frames.words import Untranslated
from rowtime.runtime.session import derive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXTS = ("soundex(a)", "initcap(a)", "hex(a)", "regexp_extract(a, '(?<!b)([a-z])', 1)", "split(a, '')",
         "a RLIKE '(?<!b)a'", "from_json(a, 'x DATE')", "try_cast(a AS FLOAT)",
         "CASE WHEN a = 'a' THEN reverse(a) ELSE a END", "transform(split(a, ''), x -> initcap(x))")  # fmt: skip
NUMBERS = (
    "bround(a, 1)",
    "bround(a / 3, 1)",
    "cbrt(abs(a / 2))",
    "hex(a DIV 2)",
    "format_number(a, 1)",
    "named_struct('x', bin(a))",
)
BY_KIND = {
    "string": TEXTS,
    "int": NUMBERS,
    "bigint": (*NUMBERS, "CAST(a AS STRING) RLIKE '(?<!1)7'"),
    "double": ("bround(a, 1)", "cbrt(a)", "format_number(a, 2)"),
    "float": ("round(a, 1)", "sqrt(a)"),
    "decimal(10,2)": ("bround(a, 1)", "cbrt(a)", "a * 1.5E0"),
    "date": ("last_day(a)", "trunc(a, 'MM')", "months_between(a, DATE '2024-01-01')", "date_format(a, 'E')"),
    "timestamp": ("date_format(a, 'EEE HH')", "date_part('WEEK', a)",
                  "make_dt_interval(1) IS NULL OR a > current_date()"),
    "boolean": ("CAST(a AS STRING) || soundex('x')", "if(a, hex('x'), NULL)"),
}  # fmt: skip


def both(spark: SparkSession, values: list[Any], kind: str) -> tuple[Frame, DataFrame]:
    """The values as column ``a`` and, in another order, as ``b``; each twice."""
    values = [*values, *values]
    table = pa.table({"a": pa.array(values, arrow_of(kind)), "b": pa.array(values[::-1], arrow_of(kind))})
    local = Frame.of(spark, table, [("a", kind), ("b", kind)])
    assert local is not None
    return local, spark.createDataFrame(table, schema=f"a {kind}, b {kind}")


@pytest.mark.parametrize("kind", BY_KIND)
def test_values_are_those_of_spark(spark: SparkSession, kind: str) -> None:
    session = derive(spark)
    local, rows = both(session, VALUES[kind], kind)
    failed = 0
    for text in BY_KIND[kind]:
        assert not local.translates(text), text
        try:
            expected = rows.selectExpr("b", f"{text} AS `v 1`", "a AS c").toArrow()
        except PySparkException:  # an edge value for which the expression fails
            failed += 1
            continue
        for _ in range(2):  # the second time, of the values that are kept
            found = local.selectExpr("b", f"{text} AS `v 1`", "a AS c")
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
    assert more.selectExpr("initcap(a) AS u", "hex(b) AS m").toArrow()["u"].to_pylist() == ["Y", "Z"] * 2
    assert [count for count in rows if count] == [3, 2, 1, 2]  # 0: the type


def test_what_differs_from_time_to_time_is_refused(spark: SparkSession) -> None:
    local, _ = both(derive(spark), ["x", "y"], "string")
    for text in (
        "rand()",
        "uuid()",
        "monotonically_increasing_id()",
    ):
        with pytest.raises(Untranslated):
            local.selectExpr(f"{text} AS v")
        assert not local.can(text), text
    assert local.can("initcap(a)", "a || b")
    assert not local.can("no_function(a)")


@pytest.mark.parametrize(
    "text",
    ["date_trunc(day, a)", "date_trunc(`Day`, a)", "date_trunc(IF(n > 1, day, 'HOUR'), a)", "trunc(b, day)",
     "date_trunc(s.day, a)", "concat(date_trunc(day, a), ' day')", "date_trunc('day', a)", "date_trunc('none', a)"],
)  # fmt: skip
def test_a_column_with_the_name_of_a_unit_is_read(spark: SparkSession, text: str) -> None:
    session = derive(spark)
    at = [datetime(2024, 2, 29, 13, 7, n, tzinfo=UTC) for n in range(4)]
    units = ["MONTH", "YEAR", "day", "x"]
    table = pa.table({
        "a": pa.array(at, pa.timestamp("us", "UTC")), "b": pa.array([of.date() for of in at]), "day": units,
        "n": pa.array(range(4), pa.int32()), "s": pa.array([{"day": of} for of in units[::-1]]),
    })  # fmt: skip
    kinds = [("a", "timestamp"), ("b", "date"), ("day", "string"), ("n", "int"), ("s", "struct<day: string>")]
    local = Frame.of(session, table, kinds)
    assert local is not None
    found = local.selectExpr(f"{text} AS v").toArrow()["v"].to_pylist()
    rows = session.createDataFrame(table, schema=", ".join(f"{name} {kind}" for name, kind in kinds))
    assert found == rows.selectExpr(f"{text} AS v").toArrow()["v"].to_pylist()
    assert len(set(map(str, found))) > 1 or "'" in text


def test_functions_of_the_user_are_values(spark: SparkSession) -> None:
    session = derive(spark)
    session.udf.register("doubled", lambda text: text * 2, "string")  # it raises for NULL
    session.udf.register("three", lambda: 3, "int")
    local, _ = both(session, ["x", "y", None], "string")
    assert local.can("doubled(a)", "hex(doubled(a))")
    some = local.where("a IS NOT NULL")
    values = some.selectExpr("hex(doubled(doubled(a) || a)) = hex(doubled(a || a || a)) AS s", "doubled(a) || '-' AS d")
    assert values.toArrow().to_pydict() == {"s": [True] * 4, "d": ["xx-", "yy-"] * 2}
    assert some.selectExpr("three() + 1 AS n").toArrow()["n"].to_pylist() == [4] * 4


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
    empty = Frame.empty(derive(spark), [("a", "string"), ("n", "decimal(10,2)")])
    found = empty.selectExpr("initcap(a) AS u", "round(n, 1) AS r")
    assert (found.dtypes, found.count()) == ([("u", "string"), ("r", "decimal(10,1)")], 0)
    assert spark_type("decimal(10,1)") == found.schema["r"].dataType
