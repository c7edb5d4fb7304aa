"""Aggregates that only Spark knows: it computes them for the rows of a group, and the tick stays where it is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from conformance.edge_values import VALUES
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of
from rowtime.frames.spark_groups import tried_groups
from rowtime.runtime.executors.executor import Executor, InProcess, SparkJob
from rowtime.runtime.executors.tasks import Tasks
from tests.runtime.test_values_of_spark import SQL, TICKS, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM = SQL[: SQL.index("CREATE STREAM minutes")]
MANY = """
SELECT STREAM FLOOR(a.ROWTIME TO MINUTE) AS m, k, COUNT(*) AS c, SKEWNESS(x * x) AS s, KURTOSIS(x) + MAX(x) AS o,
  APPROX_PERCENTILE(x, 0.5, 100) AS p, APPROX_COUNT_DISTINCT(url) AS d, COVAR_SAMP(x, x * x) AS v,
  COUNT(DISTINCT INITCAP(url)) AS t, BITMAP_CONSTRUCT_AGG(BITMAP_BIT_POSITION(LENGTH(url))) AS b
FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE), k;
"""
EQUAL = """
SELECT STREAM FLOOR(a.ROWTIME TO MINUTE) AS m, k,
  CORR(x, CAST(CASE WHEN ev < TIMESTAMP '2024-01-01 00:02:00' THEN 1 ELSE x * x END AS DECIMAL(20, 6))) AS r
FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE), k;
"""
BIT = """
SELECT STREAM FLOOR(a.ROWTIME TO MINUTE) AS m, k,
  HEX(BITMAP_CONSTRUCT_AGG(CASE WHEN x = 3 THEN 40000 ELSE 1 END)) AS b, SKEWNESS(x) AS s
FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE), k HAVING COUNT(*) > 1;
"""
CALLS = (
    "skewness(a)", "kurtosis(a)", "corr(a, b)", "covar_pop(a, b)", "regr_r2(a, b)", "approx_percentile(a, 0.5, 10)",
    "approx_count_distinct(a)", "histogram_numeric(a, 3)", "count_min_sketch(n, 0.5d, 0.5d, 1)",
    "max(n) + skewness(a) FILTER (WHERE n % 2 = 0)", "collect_list(CASE WHEN n > 2 THEN a END)",
)  # fmt: skip


@pytest.mark.parametrize("how", [InProcess(), SparkJob()])
def test_a_task_computes_with_aggregates_that_catalyst_computes_in_its_job(
    spark: SparkSession, tmp_path: Path, how: Executor
) -> None:
    tasks = Tasks(how)
    driver = run(spark, tmp_path / "driver", STREAM + MANY)
    sent = run(spark, tmp_path / "sent", STREAM + MANY, tasks=tasks)
    assert sum(len(rows) for _, rows in driver["rows"]) == 12
    assert driver["rows"] == sent["rows"]
    assert tasks.needs == ""
    if isinstance(how, SparkJob):
        assert sent["jobs"][1:] == [1] * (TICKS - 1)  # in the first tick, expressions over groups are met


@pytest.mark.parametrize("query", [EQUAL, BIT], ids=["correlation", "bitmap"])
@pytest.mark.parametrize("how", [InProcess(), pytest.param(SparkJob(), marks=pytest.mark.slow)])
def test_a_group_whose_aggregate_fails_is_refused(
    spark: SparkSession, tmp_path: Path, how: Executor, query: str
) -> None:
    tasks = Tasks(how)
    sent = run(spark, tmp_path / "sent", STREAM + query, tasks=tasks)
    assert 0 < sum(gate.get("MALFORMED", 0) for gate in sent["totals"].values()) <= 4, sent["totals"]
    driver = run(spark, tmp_path / "driver", STREAM + query)
    assert driver["rows"] == sent["rows"]
    assert driver["totals"] == sent["totals"]
    assert tasks.needs == ""


FAILING = (
    "bitmap_construct_agg(n)", "avg(d)", "hll_sketch_estimate(hll_union_agg(h))", "sum(n)",
    "sum(d)", "max(n)", "bitmap_construct_agg(n) FILTER (WHERE n < 40000)",
)  # fmt: skip


@pytest.mark.parametrize("many", [3, pytest.param(7, marks=pytest.mark.slow)])
def test_aggregates_that_are_tried_are_those_of_each_group_alone(spark: SparkSession, many: int) -> None:
    chance = random.Random(many)
    numbers = [1, 2, 3, 50_000, 2**63 - 1]
    sketch = "to_binary(CASE WHEN n = 1 THEN '00' ELSE hex(CAST(n AS STRING)) END) AS h"
    fields = [("k", "int"), ("n", "bigint"), ("d", "decimal(38,0)"), ("h", "binary")]
    rows = [(chance.randrange(many), chance.choice(numbers)) for _ in range(4 * many)] + [(many, 1), (many + 1, None)]
    given = spark.createDataFrame(rows, "k int, n bigint").selectExpr(
        "k", "n", "CAST(n * CAST(5E18 AS DECIMAL(19, 0)) AS DECIMAL(38, 0)) AS d", sketch
    )
    frame = Frame.of(spark, given.toArrow(), fields)
    assert frame is not None
    for call in FAILING:
        ours = tried_groups(frame, ["k"], [f"{call} AS v", "count(*) AS c"], ["v"]).toArrow().to_pylist()
        alone = {row["k"]: _value(given.where(f"k = {row['k']}"), call) for row in ours}
        assert {row["k"]: row["v"] for row in ours} == alone, call


def _value(rows: DataFrame, call: str) -> dict[str, Any] | None:
    try:
        return {"c0": rows.coalesce(1).selectExpr(f"{call} AS v").toArrow()["v"][0].as_py()}
    except (PySparkException, Py4JJavaError):
        return None


@pytest.mark.parametrize("kind", ["double", "bigint", "decimal(10,2)"])
def test_groups_have_the_aggregates_of_spark(spark: SparkSession, kind: str) -> None:
    chance = random.Random(kind)
    values = [None, *VALUES[kind]]
    rows: list[dict[str, Any]] = [
        {"k": chance.choice([None, 1, 2, 3, 4]), "a": chance.choice(values), "b": chance.choice(values), "n": n}
        for n in range(60)
    ]
    fields = [("k", "int"), ("a", kind), ("b", kind), ("n", "int")]
    schema = pa.schema([(name, arrow_of(of)) for name, of in fields])
    table = pa.Table.from_pylist(sorted(rows, key=lambda row: chance.random()), schema)
    frame = Frame.of(spark, table, fields)
    assert frame is not None
    given = spark.createDataFrame(table).coalesce(1)
    for call in CALLS:
        ours = frame.grouped(["k"], [f"{call} AS v", "count(*) AS c"])
        assert ours is not None, call
        names = [name for name in ("a", "b", "n") if f"{name}" in call.replace("skewness", "").replace("max", "")]
        theirs = given.sortWithinPartitions(*names).groupBy("k").agg(*map(_expr, (f"{call} AS v", "count(*) AS c")))
        assert _sorted(ours.toArrow()) == _sorted(theirs.toArrow()), call


def _expr(text: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(text)


def _sorted(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))
