# ruff: noqa: E501 - tables of expressions
"""The soundness search: no value that Spark computes breaks a rule of monotonicity."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rowtime.expr.order import Order
from rowtime.plan.check import prove_text
from rowtime.runtime.session import derive
from rowtime.sql.script import parse_expression
from tests.expr.soundness import FACTS, Search

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = bool(os.environ.get("ROWTIME_LONG"))

NUMBERS = ["i", "u", "l", "p", "n", "z", "k", "d", "s", "e", "c", "q", "f", "g", "h", "w"]
BEYOND_INT = ["f", "g", "h", "w"]  # some values do not fit an INT
TIMES = ["day", "t", "ts", "back", "ROWTIME"]
ONE_NUMBER = [
    "+ {m}", "- {m}", "{m} + 3", "3 - {m}", "{m} - 2.5", "{m} * 5", "{m} * -5", "{m} * 0", "{m} * 0.25", "{m} * 1e3", "{m} / 5",
    "{m} / -7", "{m} / 0.3", "5 / {m}", "-5 / {m}", "0 / {m}", "{m} DIV 5", "{m} DIV -3", "100 DIV {m}", "{m} * {m}",
    "{m} + {m}", "{m} - {m}", "ABS({m})", "POWER({m}, 2)", "POWER({m}, 3)", "POWER({m}, -1)", "POWER({m}, 0.5)",
    "POWER(2, {m})", "POWER(0.5, {m})", "EXP({m})", "EXPM1({m})", "SQRT({m})", "CBRT({m})", "LN({m})", "LOG(2, {m})",
    "LOG10({m})", "LOG(0.5, {m})", "LOG1P({m})", "SIGN({m})", "ATAN({m})", "TANH({m})", "SINH({m})", "DEGREES({m})",
    "RADIANS({m})", "ROUND({m})", "ROUND({m}, -1)", "ROUND({m}, 1)", "BROUND({m}, 0)", "RINT({m})", "FLOOR({m})", "CEIL({m})",
    "STEP({m} BY 10)", "WIDTH_BUCKET({m}, 0, 100, 7)", "WIDTH_BUCKET({m}, 100, 0, 7)", "SHIFTRIGHT({m}, 2)",
    "CAST({m} AS BIGINT)", "CAST({m} AS DOUBLE)", "CAST({m} AS FLOAT)", "CAST({m} AS DECIMAL(20, 1))",
    "CAST({m} AS STRING)", "CAST(CAST({m} AS BIGINT) AS DOUBLE)", "- CAST({m} AS DOUBLE)", "GREATEST({m}, 3)", "LEAST({m}, 3, 100)", "COALESCE({m}, 0)", "{m} > 3", "{m} <= 3", "NOT ({m} > 3)",
    "CASE WHEN {m} > 3 THEN {m} ELSE 3 END", "CASE WHEN {m} < 3 THEN 3 ELSE {m} END", "IF({m} >= 10, 2, 1)",
    "CASE WHEN {m} > 100 THEN 3 WHEN {m} > 10 THEN 2 ELSE 1 END", "CASE WHEN {m} > 10 THEN 1 WHEN {m} > 100 THEN 3 ELSE 0 END",
    "MOD({m}, 15)", "PMOD({m}, 7)", "NULLIF({m}, 0)", "TRY_CAST({m} AS INT)", "SIN({m})",
]  # fmt: skip
ONE_INT = ["CAST({m} AS INT)", "CAST(CAST({m} AS INT) AS DOUBLE)", "{m} * INTERVAL '1' SECOND"]
ONE_TIME = [
    "FLOOR({t} TO %s)", "CEIL({t} TO %s)", "DATE_TRUNC('%s', {t})", "TRUNC({t}, '%s')", "TIMESTAMPADD(%s, 1, {t})",
    "TIMESTAMPDIFF(%s, TIMESTAMP '2000-02-29 12:00:00', {t})", "{t} + INTERVAL '1' %s", "{t} - INTERVAL '3' %s",
    "EXTRACT(%s FROM {t})",
]  # fmt: skip
UNITS = ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"]
OTHER_TIME = [
    "STEP({t} BY INTERVAL '7' MINUTE)", "STEP({t} BY INTERVAL '1' DAY)", "CAST({t} AS DATE)", "CAST({t} AS TIMESTAMP)",
    "CAST({t} AS BIGINT)", "CAST({t} AS STRING)", "TO_DATE({t})", "DATE({t})", "YEAR({t})", "YEAROFWEEK({t})", "LAST_DAY({t})",
    "EXTRACT(YEAROFWEEK FROM {t})", "NEXT_DAY({t}, 'MON')", "UNIX_MICROS({t})", "UNIX_MILLIS({t})", "UNIX_SECONDS({t})",
    "UNIX_TIMESTAMP({t})", "UNIX_DATE({t})", "DATE_ADD({t}, 3)", "DATE_SUB({t}, 3)", "ADD_MONTHS({t}, 1)", "ADD_MONTHS({t}, -13)",
    "DATEDIFF({t}, DATE '2000-02-29')", "DATEDIFF(DATE '2000-02-29', {t})", "{t} - TIMESTAMP '1970-01-01 00:00:00'",
    "TIMESTAMP '2030-01-01 00:00:00' - {t}", "MONTHS_BETWEEN({t}, DATE '2000-02-29')",
    "{t} + k * INTERVAL '1' SECOND", "{t} + MAKE_DT_INTERVAL(k, 1)", "ADD_MONTHS({t}, k)", "5 / YEAR({t})", "{t} > TIMESTAMP '2020-01-01 00:00:00'",
    "DATE_FORMAT({t}, 'yyyy-MM-dd HH:mm:ss.SSS')", "DATE_FORMAT({t}, 'yyyyMM')", "DATE_FORMAT(FLOOR({t} TO HOUR), 'yyyy/MM/dd HH')", "DATE_FORMAT({t}, 'yyyy-dd')",
    "TIMESTAMP_TO_CHAR('yyyy-MM-dd HH:mm:ss.SSS', {t})", "TIMESTAMP_TO_CHAR('MM/dd', {t})", "CHAR_TO_TIMESTAMP('yyyy', DATE_FORMAT({t}, 'yyyy'))",
    "CHAR_TO_DATE('yyyy', DATE_FORMAT({t}, 'yyyy'))", "(({t} - TIMESTAMP '1970-01-01 00:00:00') MINUTE)", "((TIMESTAMP '2030-01-01 00:00:00' - {t}) DAY TO SECOND)",
    "FLOOR(FLOOR({t} TO MINUTE) TO HOUR)", "CEIL(FLOOR({t} TO MINUTE) TO MONTH)", "GREATEST({t}, TIMESTAMP '2000-01-01 00:00:00')",
]  # fmt: skip
OTHERS = [
    "i + l", "i + d", "i - d", "d - i", "u - s", "p * z", "z * e", "p * n", "p * p", "n * n", "z / p", "e / p", "p / n", "i / p",
    "c * q", "h * p", "h * h", "w * z", "f + g", "f + i", "g - d", "k DIV p", "e DIV p", "p ^ 2", "ts - t", "t - back",
    "MAKE_DATE(k, 2, 28)", "MAKE_DATE(2024, k, 1)", "MAKE_TIMESTAMP(k, 1, 1, 0, 0, 0)", "MAKE_DT_INTERVAL(k, p)", "MAKE_YM_INTERVAL(k, 3)",
    "TIMESTAMP_SECONDS(i)", "TIMESTAMP_MILLIS(l)", "TIMESTAMP_MICROS(l)", "DATE_FROM_UNIX_DATE(k)", "GREATEST(i, u)", "GREATEST(u, 3)",
    "LEAST(i, l)", "GREATEST(i, d)", "SUBSTRING(tag FROM 0 FOR 3)", "SUBSTRING(tag FROM 1 FOR 2)", "SUBSTRING(tag FROM 2)", "LEFT(tag, 3)",
    "SUBSTRING(tag FROM 0)", "UPPER(tag)", "REGEX_REPLACE(tag, 'a', 'b', 1, 0)", "TRIM(tag)", "tag || 'x'", "'x' || tag", "CONCAT('a', 'b', tag)", "CAST(tag AS STRING)",
    "i > d", "i > 0 AND l > 0", "i > 0 OR d < 0", "i > 0 AND d > 0", "CASE WHEN i > 0 THEN l ELSE 0 END", "CASE WHEN yes THEN i ELSE 0 END",
    "x * 0", "xf * 0", "xf * 0.0", "x / 0 IS NULL", "CASE WHEN i > 3 THEN 5 WHEN l > 3 THEN 4 ELSE 2 END",
    "CASE WHEN i > 3 THEN d ELSE 3 END", "CASE WHEN d > 3 THEN 1 ELSE 2 END", "CAST(i > 3 AS INT)", "CAST(FLOOR(f) AS BIGINT) * 2 + 1",
]  # fmt: skip
TABLE = sorted({
    *(form.format(m=m) for form in ONE_NUMBER for m in NUMBERS),
    *(form.format(m=m) for form in ONE_INT for m in NUMBERS if m not in BEYOND_INT),
    *(form.format(t=t) % unit for form in ONE_TIME for t in TIMES for unit in UNITS),
    *(form.format(t=t) for form in OTHER_TIME for t in TIMES),
    *OTHERS,
})  # fmt: skip


FEW = tuple(f" {name} " for name in ("l", "p", "f", "h", "c", "t", "day"))
AT_THE_ENDS = (
    TABLE if LONG else [text for text in TABLE if any(name in f" {re.sub('[^a-z]', ' ', text)} " for name in FEW)]
)


PARTS = 8


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, PARTS))])
def test_no_rule_of_the_table_is_broken(spark: SparkSession, part: int) -> None:
    pairs, listed = 0, TABLE[part::PARTS]
    for seed in range(20 if LONG else 1):
        search = Search(derive(spark), seed, 2_000 if LONG else 150, wide=False)
        assert search.broken(listed) == []
        assert len(search.errors) < len(listed) // 50, search.errors
        pairs += search.pairs
    print(f"{pairs} pairs of neighbours, {len(listed)} expressions")
    assert pairs >= 20_000


@pytest.mark.slow
def test_no_rule_is_broken_at_the_ends_of_the_types(spark: SparkSession) -> None:
    for seed in range(20 if LONG else 1):
        search = Search(derive(spark), seed, 500 if LONG else 60, wide=True)
        assert search.broken(AT_THE_ENDS) == []
        assert search.pairs > 5_000


def test_the_table_has_only_proved_expressions() -> None:
    orders = [prove_text(text, FACTS).order for text in TABLE]
    assert sum(order.moves for order in orders) > 500
    assert orders.count(Order.NONE) > 100


@pytest.mark.parametrize(
    ("expression", "claimed"),
    [
        ("MOD(i, 15)", Order.ASCENDING),
        ("FLOOR(g)", Order.STRICTLY_ASCENDING),
        ("d", Order.ASCENDING),
        ("i", Order.CONSTANT),
    ],
)
def test_a_wrong_rule_is_found(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, expression: str, claimed: Order
) -> None:
    from rowtime.expr.facts import Fact
    from rowtime.expr.proof import Proof
    from tests.expr import soundness

    monkeypatch.setattr(
        soundness, "prove_text", lambda text, _columns: Proof(parse_expression(text), Fact(claimed), "planted")
    )
    assert len(Search(derive(spark), 1, 300, wide=False).broken([expression])) == 1


@st.composite
def nested(draw: Callable[..., object], depth: int = 3) -> str:
    """A random expression over random columns."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return str(draw(st.sampled_from([*NUMBERS, "x", "xf"])))
    inner = nested(depth - 1)
    form = draw(st.sampled_from([
        *(f for f in ONE_NUMBER if "INTERVAL" not in f), "{m} + {o}", "{m} - {o}", "{m} * {o}", "{m} / {o}", "GREATEST({m}, {o})",
        "LEAST({m}, {o})", "CASE WHEN {m} > 3 THEN {o} ELSE 3 END", "COALESCE({m}, {o})", "IF({m} > {o}, 1, 0)",
    ]))  # fmt: skip
    return str(form).format(m=f"({draw(inner)})", o=f"({draw(inner)})")


@settings(
    max_examples=40 if LONG else 1, deadline=None, derandomize=not LONG, database=None,
    phases=[Phase.generate], suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(st.lists(nested(), min_size=150, max_size=250), st.integers(0, 1000))
def _never_unsound(search: Callable[[int], Search], expressions: list[str], seed: int) -> None:
    assert search(seed).broken(expressions) == []


def test_random_nested_expressions_are_never_unsound(spark: SparkSession) -> None:
    session = derive(spark)
    made: list[Search] = []

    def search(seed: int) -> Search:
        made.append(Search(session, seed, 100, wide=False))
        return made[-1]

    _never_unsound(search)
    assert sum(one.pairs for one in made) > 300
