"""The select list of a query without groups: its columns, and the promotion to ROWTIME."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from rowtime.expr.conditions import col
from rowtime.expr.monotonicity import prove
from rowtime.operators.contract import Column
from rowtime.operators.rows.select import Item
from rowtime.plan.bind.orders import is_rowtime, refuse_untimed
from rowtime.plan.bind.scope import Scope, type_of
from rowtime.plan.bind.struct_stars import fields_of, hint_of
from rowtime.plan.bind.windows import refuse_outside


def items_of(query: exp.Select, scope: Scope) -> tuple[tuple[Item, ...], exp.Expr | None]:
    """Return the select list without ROWTIME, and the expression promoted to it, if any."""
    items: list[Item] = []
    promoted: exp.Expr | None = None
    for entry in query.expressions:
        if entry.is_star:
            items.extend(_star(scope, entry))
            continue
        refuse_outside(scope, entry)
        bound = scope.bind(entry.unalias())
        name = _name(entry, bound, len(items))
        if name.lower() == "rowtime":
            promoted = None if is_rowtime(bound) else bound
            refuse_untimed(scope, bound, scope.facts, entry)
            continue
        items.append(_item(scope, name, bound))
    scope.refuse_twice(query, items)
    scope.refuse_unkept(query, items)
    return tuple(items), promoted


def _item(scope: Scope, name: str, bound: exp.Expr) -> Item:
    return Item(Column(name, type_of(scope.columns, bound), prove(bound, scope.facts).fact), bound)


def _star(scope: Scope, entry: exp.Expr) -> list[Item]:
    table = entry.text("table") if isinstance(entry, exp.Column) else ""
    listed = scope.starred(table)
    fields = fields_of(scope, entry) if isinstance(entry, exp.Column) and not listed else []
    if fields:
        return [_item(scope, name, scope.bind(value)) for name, value in fields]
    if not listed:
        none = "there is no column besides the lifetime, which * leaves out"
        hint = hint_of(scope, entry) if isinstance(entry, exp.Column) else ""
        scope.refuse("R103", f"there is no stream {table} here" if table else none, entry, hint)
    by_name = {column.name: column for column in scope.columns}  # a join does not keep the order of its inputs
    return [
        Item(Column(name, fact=prove(c, scope.facts).fact), c)
        if isinstance(c, exp.Expr)
        else Item(replace(by_name[c.name], name=name), col(c.name))
        for name, c in listed
    ]


def _name(entry: exp.Expr, bound: exp.Expr, number: int) -> str:
    if isinstance(entry, exp.Alias):
        return entry.alias
    if isinstance(entry, exp.Column):
        return entry.name if not is_rowtime(bound) else "ROWTIME"
    return f"_c{number}"
