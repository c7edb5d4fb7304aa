"""What is known of an expression without its values."""

from __future__ import annotations

import pytest

from rowtime.expr.conditions import never_fails
from rowtime.expr.facts import Kind
from rowtime.sql.script import parse_expression

KINDS = {"n": Kind.INTEGER, "d": Kind.DECIMAL, "s": Kind.TEXT, "t": Kind.TIMESTAMP, "b": Kind.BOOLEAN}


@pytest.mark.parametrize(
    "text",
    [
        "n",
        "n = 10",
        "n < d AND NOT (s = 'x')",
        "b OR s IS NULL",
        "n IN (1, 2.5)",
        "n BETWEEN 1 AND d",
        "s <=> NULL",
        "t < t",
    ],
)
def test_comparisons_within_a_kind_never_fail(text: str) -> None:
    assert never_fails(parse_expression(text), KINDS)


@pytest.mark.parametrize(
    "text",
    [
        "10 / n",
        "n + 1 = 2",
        "s = 1",
        "n IN (1, 'x')",
        "t > '2024'",
        "unknown = 1",
        "CAST(s AS INT) = 1",
        "b AND 1 / n > 0",
    ],
)
def test_expressions_that_spark_casts_or_computes_may_fail(text: str) -> None:
    assert not never_fails(parse_expression(text), KINDS)
