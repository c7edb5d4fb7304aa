"""Numeric literals in statements."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlglot import exp

from rowtime.sql.numbers import number_of, whole_number


@pytest.mark.parametrize(("text", "number", "whole"), [
    ("10", Decimal(10), 10), ("0", Decimal(0), 0), ("2.5", Decimal("2.5"), None), ("1e2", Decimal(100), None),
    ("²", None, None), ("nan", None, None), ("inf", None, None),
])  # fmt: skip
def test_a_literal_number_has_the_value_of_its_text(text: str, number: Decimal | None, whole: int | None) -> None:
    literal = exp.Literal.number(text)
    assert (number_of(literal), whole_number(literal)) == (number, whole)


@pytest.mark.parametrize(
    "node", [exp.Literal.string("10"), exp.Neg(this=exp.Literal.number("10")), exp.column("a"), None]
)
def test_anything_else_is_not_a_number(node: object) -> None:
    assert number_of(node) is None
    assert whole_number(node) is None
