"""Values in a join condition that depend on one side alone: they are computed once per row, below the join.

A row for which the value cannot be computed is refused there, once, and not once per row of the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.core.columns import ROWTIME
from rowtime.expr.conditions import col, columns_in, never_fails
from rowtime.operators.contract import Column, Operator
from rowtime.operators.rows.select import Item, extended
from rowtime.plan.bind.scope import type_of

Renamed = tuple[tuple[str, str], ...]
"""Columns of a side: their names in its input and in the join."""


def computed_below(
    node: Operator, columns: Renamed, on: exp.Expr | None, name: Callable[[], str], column: str
) -> tuple[Operator, Renamed, exp.Expr | None]:
    """Return the side with columns for the values in ``on`` that may fail and need only it; and ``on`` over these.

    ``name`` names the operator; ``column`` with a number names a column.
    """
    if on is None:
        return node, columns, on
    below = {new: old for old, new in columns} | {ROWTIME: ROWTIME}
    columns_below = {column.name: column for column in node.emits().columns}
    kinds = {new: columns_below[old].known.kind for new, old in below.items() if old in columns_below}
    whole, parts = exp.Paren(this=on.copy()), list[exp.Expr]()

    def lift(part: exp.Expr) -> None:
        names = columns_in([part])
        if not names or isinstance(part, exp.Column) or (names <= below.keys() and never_fails(part, kinds)):
            return
        if not names <= below.keys():
            for inner in list(part.iter_expressions()):
                lift(inner)
            return
        if part not in parts:
            parts.append(part.copy())
        part.replace(col(f"{column}{parts.index(part) + 1}"))

    lift(whole.this)
    if not parts:
        return node, columns, on
    items = [_item(f"{column}{n}", part, below, node) for n, part in enumerate(parts, 1)]
    projection = extended(name(), node, *items)
    return projection, (*columns, *((item.column.name, item.column.name) for item in items)), whole.this


def _item(name: str, part: exp.Expr, below: dict[str, str], node: Operator) -> Item:
    value = part.copy()
    for column in [value] if isinstance(value, exp.Column) else value.find_all(exp.Column):
        column.set("this", exp.to_identifier(below[column.name], quoted=True))
    columns: Sequence[Column] = node.emits().columns
    return Item(replace(Column(name), type=type_of(columns, value)), value)
