"""Every operator has a rule that says which rows made its rows, or is known to have none."""

from __future__ import annotations

from rowtime.operators import OPERATORS, EventStream, Stream, Table, TableFunctionCall
from rowtime.operators.contract import Operator

WITHOUT = {Stream, EventStream, Table, TableFunctionCall}


def test_every_operator_has_a_rule_or_none_is_possible() -> None:
    ruled = {node for node in OPERATORS if node.link is not Operator.link}
    assert ruled | WITHOUT == set(OPERATORS)
    assert not ruled & WITHOUT
