"""An expression fails for the same rows on the driver and in Spark, whatever an optimizer could make of it."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from conformance.edge_values import VALUES
from conformance.engines import compared
from rowtime.frames import queries
from rowtime.frames.attempted import attempted
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of
from rowtime.frames.queries import SAFE, Uncomputed, restrict
from rowtime.operators.rows.collations import grouped
from tests.frames.in_spark import in_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("tinyint", "smallint", "int", "bigint", "decimal(10,2)", "decimal(34,2)", "decimal(38,2)")
EDGES: dict[str, list[Any]] = {
    **VALUES,
    "decimal(34,2)": [None, 0, 10**32 - 1, 1 - 10**32, 3],
    "decimal(38,2)": [None, 0, 10**36 - 1, 1 - 10**36, 3],
}
COMPUTED = ("a + {}", "a - {}", "a * 2", "- a", "{} - a", "a DIV 0", "a DIV -1", "a % 0", "a / 0", "abs(a)", "- a - {}")
SIGNS = ("= 0", "<> 0", "< 5", "<= 5", "> 0", ">= -3", "<=> 5", "BETWEEN 0 AND 5", "IN (0, 5)", "NOT IN (1)", "IS NULL",
         "= 3000000000", "> 0 OR TRUE")  # fmt: skip
AROUND = ("{}", "CASE WHEN {} THEN 1 ELSE 1 END", "IF({}, 1, 2)", "COALESCE({}, FALSE)", "NOT ({})", "{} OR b = 0",
          "b <> 0 AND {}")  # fmt: skip
FAILING = ("a + {0} > 0", "a + {0} < 5", "- a - {0} = 4", "-{0} - a <> 3", "a * {0} <=> 5", "a + {0} BETWEEN 0 AND 5",
           "(a + {0}) IS NULL", "a + {0} = 5 AND a + {0} = 6", "a + {0} > 0 OR TRUE", "a * {0} = 5 OR n = 1",
           "IF(a + {0} > 0, TRUE, TRUE)", "COALESCE(a + {0} > 0, TRUE)")  # fmt: skip
OFF = frozenset({
    "aggregate_function_rewriter", "aggregate_reuse", "common_aggregate", "common_subexpressions",
    "common_subplan", "compressed_materialization", "cte_filter_pusher", "cte_inlining", "deliminator",
    "distinct_aggregate_rewrite", "duplicate_groups", "empty_result_pullup", "expression_rewriter", "extension",
    "filter_pullup", "filter_pushdown", "grouping_sets", "in_clause", "join_elimination", "join_filter_pushdown",
    "join_order", "late_materialization", "limit_pushdown", "materialized_cte", "outer_join_simplification",
    "partial_aggregate_pushdown", "partitioned_execution", "projection_placement", "projection_pullup",
    "redundant_order_keys", "regex_range", "remote_pushdown", "reorder_filter", "row_group_pruner",
    "sampling_pushdown", "scalar_fn_pushdown", "statistics_propagation", "top_n", "top_n_window_elimination",
    "type_pushdown", "unnest_rewriter", "window_rewriter", "window_self_join",
})  # fmt: skip
"""Steps that are off: some change which rows fail, and nothing measured is slower without the others."""


def _texts(kind: str) -> list[str]:
    """Return each computed value beside each sign, and in turn inside of each other expression."""
    great = {"tinyint": "127Y", "smallint": "32767S", "int": "2147483647", "bigint": "9223372036854775807"}.get(
        kind, "1"
    )
    return [
        AROUND[(n + len(kind)) % len(AROUND)].format(f"{of.format(great)} {sign}")
        for n, (of, sign) in enumerate(product(COMPUTED, SIGNS))
    ]


@pytest.mark.parametrize("kind", [pytest.param(k, marks=() if k == "int" else pytest.mark.slow) for k in KINDS])
def test_arithmetic_that_is_compared_has_the_values_and_failures_of_spark(spark: SparkSession, kind: str) -> None:
    rows = list(product(EDGES[kind], (0, 1)))
    table = pa.table({
        "n": range(len(rows)),
        "a": pa.array([a for a, _ in rows], arrow_of(kind)),
        "b": pa.array([b for _, b in rows], pa.int32()),
    })  # fmt: skip
    found = compared(spark, table, [("n", "bigint"), ("a", kind), ("b", "int")], _texts(kind))
    assert found.here or kind == "decimal(38,2)"
    assert not found.differ, found.differ[:10]


@pytest.mark.parametrize("few", [20_000, 0], ids=["few rows", "many rows"])
def test_a_row_that_fails_in_spark_fails_on_the_driver(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """In a filter, a select list, a count, a key and a join, over the driver's own connections."""
    monkeypatch.setattr(queries, "FEW_ROWS", few)
    frame = Frame.of(spark, pa.table({"n": [1, 2], "a": [2**63 - 1, 5]}), [("n", "bigint"), ("a", "bigint")])
    assert frame is not None
    texts = [text.format("9223372036854775807L") for text in FAILING]
    other = frame.selectExpr("n AS m")
    computed = in_spark(frame).where("n = 1")
    assert computed.select(*(attempted(spark, [text]) for text in texts[:6])).collect() == [(None,) * 6]
    for text in texts:
        for what in (
            frame.selectExpr(f"{text} AS x"),
            frame.where(text),
            frame.where(f"NOT ({text})").select("n"),
            grouped(frame, [], [f"count_if({text}) AS c"]),
            grouped(frame, [], [f"count({text}) AS c"]),
            grouped(frame.selectExpr(f"{text} AS k", "n"), ["k"], ["count(*) AS c"]),
            frame.joined(other, f"n = m AND ({text})", "inner"),
            frame.joined(other, f"n = m AND ({text})", "left"),
        ):
            with pytest.raises(Uncomputed):
                what.toArrow()


NOTHING = "(CASE WHEN b = 1 THEN a END)"
BESIDE_NULL = [
    f"{NOTHING} % (a + 1)", f"{NOTHING} DIV (a + 1)", f"{NOTHING} / (a + 1)", "mod(NULLIF(b, 0), - (a + 1))",
    f"CAST({NOTHING} AS STRING) || CAST(a + 1 AS STRING)",
    f"concat(CAST({NOTHING} AS STRING), 'x', CAST(a + 1 AS STRING))",
]  # fmt: skip


def test_what_fails_beside_null_fails_where_spark_computes_it(spark: SparkSession) -> None:
    """Spark computes a divisor before the dividend, and all texts of CONCAT."""
    table = pa.table({"n": [0, 1], "a": pa.array([2**31 - 1] * 2, pa.int32()), "b": pa.array([0, 0], pa.int32())})
    found = compared(spark, table, [("n", "bigint"), ("a", "int"), ("b", "int")], BESIDE_NULL)
    assert [*found.here] == BESIDE_NULL
    assert not found.differ, found.differ
    assert (found.failed, found.given_up) == (2 * len(BESIDE_NULL), [])


@pytest.mark.parametrize("text", [
    "(a + 1) + CAST(NULL AS INT)", "(a + 1) % nullif(1, 1)", "CAST(a + 1 AS STRING) || NULL", "NULL * (a + 1)",
    "(a + 1) - (CASE WHEN FALSE THEN 1 END)", "startswith(CAST(a + 1 AS STRING), CAST(NULL AS STRING))",
    "replace(CAST(a + 1 AS STRING), 'a', NULL)",
])  # fmt: skip
def test_a_null_that_is_no_column_leaves_an_expression_to_spark(spark: SparkSession, text: str) -> None:
    """DuckDB computes nothing beside it, so what fails in Spark would be NULL."""
    assert not Frame.empty(spark, [("a", "int")]).translates(text)


def test_a_product_of_decimals_has_all_its_digits(spark: SparkSession) -> None:
    great = Decimal("-99999999.99")
    table = pa.table({"n": [0], "a": pa.array([great], arrow_of("decimal(10,2)")), "b": pa.array([10**9], pa.int32())})
    texts = ["a * a", "a * 0.999999999", "a * b", "b * a", "a * a * 2"]
    found = compared(spark, table, [("n", "bigint"), ("a", "decimal(10,2)"), ("b", "int")], texts)
    assert [*found.here] == texts
    assert (found.differ, found.given_up, found.failed) == ([], [], 0)


def test_an_empty_binary_literal_is_left_to_spark(spark: SparkSession) -> None:
    frame = Frame.empty(spark, [("a", "binary"), ("c", "boolean"), ("t", "array<string>")])
    for text in (
        "concat(a, X'')",
        "a = X''",
        "if(c, a, X'')",
        "nullif(a, X'') IS NULL",
        "array_join(t, ',', X'')",
        "trim(BOTH X'' FROM 'x')",
    ):
        assert not frame.translates(text)


def test_each_step_of_the_optimizer_is_known() -> None:
    """A new release of DuckDB may have more; each stays off until it is known what it does to rows that fail."""
    known = {name for (name,) in duckdb.sql("SELECT name FROM duckdb_optimizers()").fetchall()}
    assert known == {*SAFE, *OFF}
    [(off,)] = restrict(duckdb.connect()).sql("SELECT current_setting('disabled_optimizers')").fetchall()
    assert {*off.split(",")} == OFF
