"""Conditions that lose the first rows: what a window says over an empty frame is NULL, and WHERE takes no NULL.

SPEC 7.4: the views that split early and late rows need COALESCE for the first row. A query
without it runs, so this is a warning.
"""

from __future__ import annotations

from sqlglot import exp

from rowtime.kernels.window_functions import Count, Distinct, Nth
from rowtime.operators.contract import Operator
from rowtime.operators.over import Over
from rowtime.operators.over_calls import Call
from rowtime.operators.select import Select

_ANSWERED = (exp.Coalesce, exp.Case, exp.If, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nvl2, exp.Subquery)


def unknown_at_first(condition: exp.Expr, below: Operator) -> str | None:
    """The column of ``below`` by which a condition is NULL while a frame is empty; ``None`` if there is none."""
    if isinstance(condition, exp.Column):
        return condition.name if _traced(condition.name, below) else None
    if isinstance(condition, _ANSWERED):
        return None
    found = [unknown_at_first(part, below) for part in condition.iter_expressions()]
    if isinstance(condition, exp.Or) and None in found:
        return None
    return next((name for name in found if name is not None), None)


def _traced(name: str, node: Operator) -> bool:
    """True if a column comes from a call whose frame may be empty, with nothing between that answers a NULL."""
    if isinstance(node, Over):
        call = next((call for call in node.calls if call.column.name == name), None)
        return _may_be_empty(call) if call is not None else _traced(name, node.input)
    if isinstance(node, Select):
        item = next((item for item in node.items if item.column.name == name), None)
        return item is not None and unknown_at_first(item.expression, node.input) is not None
    return len(node.inputs) == 1 and name in node.inputs[0].emits().names and _traced(name, node.inputs[0])


def _may_be_empty(call: Call) -> bool:
    if isinstance(call.function, Count | Distinct):
        return False
    few = isinstance(call.function, Nth) and call.function.n > 1
    return few or call.frame.upper > 0 or not call.frame.own
