"""Literal numbers in a statement, as in LIMIT 10 or SAMPLE(…, 2.5)."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from sqlglot import exp


def number_of(node: object) -> Decimal | None:
    """Return the value of a literal number that is not negative; ``None`` for anything else."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    try:
        value = Decimal(node.name)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def whole_number(node: object) -> int | None:
    """Return the value of a literal made of digits alone; ``None`` for anything else."""
    value = number_of(node)
    written_out = value is not None and isinstance(node, exp.Literal) and node.name.isdecimal()
    return int(value) if value is not None and written_out else None
