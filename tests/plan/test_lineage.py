"""Every operator has a rule for the sources of its rows, or is known to have none."""

from __future__ import annotations

from rowtime.operators.contract import Operator
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.every import OPERATORS
from rowtime.operators.rows.table_function import TableFunctionCall
from rowtime.operators.streams.stream import Stream
from rowtime.operators.streams.table import Table

WITHOUT = {Stream, EventStream, Table, TableFunctionCall}


def test_every_operator_has_a_rule_or_none_is_possible() -> None:
    ruled = {node for node in OPERATORS if node.link is not Operator.link or node.same_below is not None}
    assert ruled | WITHOUT == set(OPERATORS)
    assert not ruled & WITHOUT
