"""Conditions that lose the first rows: a window over an empty frame is NULL, and WHERE does not accept NULL.

Semantics 7.4: views that split early and late rows need COALESCE for the first row. A query without it runs, so this is
a warning.
"""

from __future__ import annotations

from sqlglot import exp

from rowtime.operators.contract import Operator

_ANSWERED = (exp.Coalesce, exp.Case, exp.If, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nvl2, exp.Subquery)


def unknown_at_first(condition: exp.Expr, below: Operator) -> str | None:
    """Return the column of ``below`` that makes a condition NULL while a frame is empty; ``None`` if there is none."""
    if isinstance(condition, exp.Column):
        return condition.name if below.null_at_first(condition.name) else None
    if isinstance(condition, _ANSWERED):
        return None
    unknown = [unknown_at_first(part, below) for part in condition.iter_expressions()]
    if isinstance(condition, exp.Or) and None in unknown:
        return None
    return next((name for name in unknown if name is not None), None)
