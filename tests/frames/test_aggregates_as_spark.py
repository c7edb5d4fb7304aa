"""Every translated aggregate has the value that Spark has, over groups of the edge values of each type."""

from __future__ import annotations

import itertools
import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from sqlglot import exp

from conformance.edge_values import VALUES
from rowtime.frames import translated
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of
from rowtime.frames.queries import Uncomputed
from rowtime.frames.values import Scope, Value
from tests.frames.in_spark import in_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = ("tinyint", "smallint", "int", "bigint", "double", "float", "decimal(10,2)", "decimal(5,4)")
MOMENTS = ("stddev", "std", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "median")
SHARES = ("0", "0.25", "0.5", "0.9", "1")
OF_NUMBERS = [
    *(f"{name}(a)" for name in MOMENTS),
    "regr_count(a, b)",
    *(f"percentile(a, {share})" for share in SHARES),
    *(f"percentile_cont({share}) WITHIN GROUP (ORDER BY a {way})" for share in SHARES for way in ("ASC", "DESC")),
    "stddev(a) FILTER (WHERE n % 2 = 0)",
    "regr_count(a, b) FILTER (WHERE n <> 1)",
    "median(a) FILTER (WHERE n > 3)",
]
WHOLE = ["avg(a)", "mean(a)", "bit_and(a)", "bit_or(a)", "bit_xor(a)", "avg(a) FILTER (WHERE n > 3)", "avg(DISTINCT a)"]
SUMS = ["sum(a)", "sum(DISTINCT a)", "sum(a) FILTER (WHERE n % 3 = 0)"]
ANY = ["count(DISTINCT a)", "count(DISTINCT a, n % 3)", "count(a) FILTER (WHERE n > 2)"]
LOGICAL = [f"{name}(a)" for name in ("bool_and", "bool_or", "every", "some")]
LISTED = {
    **{kind: [*ANY, *OF_NUMBERS] for kind in NUMBERS},
    **{kind: [*ANY, "mode(a, true)"] for kind in ("string", "date", "timestamp", "timestamp_ntz")},
    "boolean": [*ANY, *LOGICAL, "mode(a, true)", "bool_or(a) FILTER (WHERE n > 2)"],
}
for _kind in ("tinyint", "smallint", "int", "decimal(10,2)", "decimal(5,4)"):
    LISTED[_kind] += [*SUMS, "mode(a, true)"]
for _kind in ("tinyint", "smallint", "int", "bigint"):
    LISTED[_kind] += WHOLE
LISTED["double"] += ["avg(a)", "sum(a)"]
EXTREMES = ["min(a)", "max(a)", "max(a) FILTER (WHERE n > 2)", "max_by(a, n)", "min_by(a, n)"]
LISTED["float"] += ["avg(a)", *EXTREMES]
LISTED["double"] += EXTREMES
_EXACT = "CAST(sum({0}CAST(a AS DECIMAL(38, 0))){1} AS DOUBLE) / count({0}a){1}"
EXACTLY = {
    f"{name}({every}a){condition}": _EXACT.format(every, condition)
    for name in ("avg", "mean")
    for every in ("", "DISTINCT ")
    for condition in ("", " FILTER (WHERE n > 3)")
}
"""Averages of BIGINT, of which Spark adds DOUBLEs; ours are of exact sums."""
NOT_TRANSLATED = {"count(DISTINCT a, n % 3)": ("double", "float")}
COLUMNS = [("k", "int"), ("n", "int"), ("b", "int")]


def groups_of(kind: str) -> pa.Table:
    """Groups of no value, of one, of two, of equal ones, of all, and random ones."""
    values, chance = VALUES[kind], random.Random(kind)
    groups = [[None], [None, None], *([value] for value in values), *map(list, itertools.combinations(values, 2))]
    groups += [[value] * 3 for value in values] + [[*values]]
    groups += [[chance.choice(values) for _ in range(chance.randrange(3, 9))] for _ in range(20)]
    finite = [value for value in values if not isinstance(value, float) or math.isfinite(value)]
    groups += [[chance.choice(finite) for _ in range(chance.randrange(3, 9))] for _ in range(20)]
    rows = [(k, n, value) for k, group in enumerate(groups) for n, value in enumerate(group)]
    return pa.table({
        "k": pa.array([k for k, _, _ in rows], pa.int32()),
        "n": pa.array([n for _, n, _ in rows], pa.int32()),
        "b": pa.array([None if n % 5 == 4 else (n * k) % 7 for k, n, _ in rows], pa.int32()),
        "a": pa.array([value for _, _, value in rows], arrow_of(kind)),
    })  # fmt: skip


def near(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def differences(spark: SparkSession, kind: str, text: str) -> list[tuple[Any, Any, Any]]:
    """Groups for which an aggregate differs from Spark's: the key, the value here, and the value there."""
    table = groups_of(kind)
    rows = Frame.of(spark, table, [*COLUMNS, ("a", kind)])
    assert rows is not None
    found = rows.grouped(["k"], [f"{text} AS v"])
    assert found is not None, f"{text} of {kind} has no translation"
    theirs = EXACTLY.get(text, text) if kind == "bigint" else text
    sparks, own = in_spark(rows).coalesce(1).groupBy("k").agg(_expr(theirs)).toArrow(), found.toArrow()
    assert own.schema.field("v").type == sparks.schema.field("v").type
    here, there = (dict(zip(of["k"].to_pylist(), _plain(of["v"]), strict=True)) for of in (own, sparks))
    assert here.keys() == there.keys()
    return [(k, here[k], there[k]) for k in here if not near(here[k], there[k])]


def _plain(values: pa.ChunkedArray) -> list[Any]:
    """Times as numbers, because Python has no year 0."""
    return (values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values).to_pylist()


def _expr(text: str) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return F.expr(text).alias("v")


CASES = [(kind, text) for kind, texts in LISTED.items() for text in texts if kind not in NOT_TRANSLATED.get(text, ())]


@pytest.mark.parametrize("kind", [*LISTED])
def test_an_aggregate_has_the_value_of_spark(spark: SparkSession, kind: str) -> None:
    for _, text in (case for case in CASES if case[0] == kind):
        try:
            assert not differences(spark, kind, text), text
        except Uncomputed:
            assert kind == "double", f"{text} of {kind}"  # a deviation beyond DOUBLE, which Spark computes


@pytest.mark.parametrize("call", ["count(*)", "sum(n)", "max(a)", "sum(a * 0)", "skewness(n)"])
def test_groups_by_a_float_are_those_of_spark(spark: SparkSession, call: str) -> None:
    table = groups_of("float")
    rows = Frame.of(spark, table, [*COLUMNS, ("a", "float")])
    assert rows is not None
    ours = rows.grouped(["a"], [f"{call} AS v"])
    assert ours is not None
    theirs = spark.createDataFrame(table).coalesce(1).sortWithinPartitions("n").groupBy("a").agg(_expr(call))
    assert sorted(map(repr, ours.toArrow().to_pylist())) == sorted(map(repr, theirs.toArrow().to_pylist()))


@pytest.mark.parametrize(
    "text",
    ["percentile(a, 0.5, n)", "percentile(a, array(0.5))", "stddev(DISTINCT a)", "mode(a)", "skewness(a)",
     "percentile_disc(0.5) WITHIN GROUP (ORDER BY a)", "corr(a, b)", "covar_pop(a, b)", "percentile(a, n)"],
)  # fmt: skip
def test_others_are_sparks(spark: SparkSession, text: str) -> None:
    rows = Frame.of(spark, groups_of("int"), [*COLUMNS, ("a", "int")])
    assert rows is not None
    assert rows.grouped_here(["k"], [f"{text} AS v"]) is None


@pytest.mark.parametrize("kind", ["string", "date", "boolean"])
def test_only_numbers_are_counted_in_pairs(spark: SparkSession, kind: str) -> None:
    rows = Frame.of(spark, groups_of(kind), [*COLUMNS, ("a", kind)])
    assert rows is not None
    assert rows.grouped_here(["k"], ["regr_count(a, n) AS v"]) is None
    assert rows.grouped_here(["k"], ["regr_count(n, b) AS v"]) is not None


def test_a_planted_fault_is_found(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(node: exp.Expr, scope: Scope) -> Value:
        return Value(f"var_samp({scope.value(node.this).sql})", "double")

    monkeypatch.setitem(translated._RULES, exp.VariancePop, wrong)
    translated._scope.cache_clear()
    assert differences(spark, "int", "var_pop(a)")
    translated._scope.cache_clear()
