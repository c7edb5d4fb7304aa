"""Every operator has a rule that says which rows made its rows, or is known to have none."""

from __future__ import annotations

from rowtime.operators import OPERATORS, EventStream, Stream, Table, TableFunctionCall
from rowtime.plan.lineage import RULES

WITHOUT = {Stream, EventStream, Table, TableFunctionCall}


def test_every_operator_has_a_rule_or_none_is_possible() -> None:
    ruled = {node for node in OPERATORS for kinds, _ in RULES if issubclass(node, kinds)}
    assert ruled | WITHOUT == set(OPERATORS)
    assert not ruled & WITHOUT
