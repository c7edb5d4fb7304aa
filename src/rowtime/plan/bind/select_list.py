"""The select list of a query without groups: its columns, the fields of ``st.*``, and the promotion to ROWTIME."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.expr.conditions import col
from rowtime.expr.monotonicity import prove
from rowtime.operators.contract import Column
from rowtime.operators.rows.select import Item
from rowtime.plan.bind.orders import is_rowtime, refuse_untimed
from rowtime.plan.bind.scope import Scope, type_of
from rowtime.plan.bind.struct_fields import fields_in
from rowtime.plan.bind.windows import refuse_outside
from rowtime.sql.dialect import Rowtime
from rowtime.sql.places import unlocated
from rowtime.sql.script import parse_expression


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


def fields_of(scope: Scope, entry: exp.Column) -> list[tuple[str, exp.Expr]]:
    """Return names and expressions of the fields that ``st.*``, ``s.st.*`` or ``st.part.*`` lists.

    None if this is not a column, or only Spark knows its type.
    """
    path = [part.name for part in entry.parts[:-1]]
    kind = _type(scope, path)
    for name in path[_columns_from(scope, path) :]:
        kind = next((k for n, k in fields_in(kind) if n.lower() == name.lower()), None)
    # The places stay those of the item, to which errors point.
    return [(name, _located(_field([*path, name]), entry)) for name, _ in fields_in(kind)]


def hint_of(scope: Scope, entry: exp.Column) -> str:
    """Return a hint for the fields of a column whose type only Spark knows; empty if there is no such column."""
    path = [part.name for part in entry.parts[:-1]]
    number = _columns_from(scope, path)
    listed = {name.lower(): column for name, column in scope.starred(path[0] if number > 1 else "")}
    column = listed.get(path[number - 1].lower())
    if column is None or (isinstance(column, Column) and column.type):
        return ""
    shown = ".".join(path)
    return f"If it is a struct, name its fields: {shown}.a, {shown}.b. Only those of a declared type are known here."


def _columns_from(scope: Scope, path: Sequence[str]) -> int:
    """Return how many names of a path identify the column."""
    return 2 if len(path) > 1 and scope.starred(path[0]) else 1


def _type(scope: Scope, path: Sequence[str]) -> exp.DataType | None:
    number = _columns_from(scope, path)
    listed = scope.starred(path[0] if number > 1 else "")
    for name, column in listed:
        if name.lower() == path[number - 1].lower() and isinstance(column, Column) and column.type:
            return exp.DataType.build(column.type, dialect=Rowtime)
    return None


def _field(path: Sequence[str]) -> exp.Expr:
    return unlocated(parse_expression(".".join(f"`{name.replace('`', '``')}`" for name in path)))


def _located(expression: exp.Expr, entry: exp.Column) -> exp.Expr:
    meta = next((part.meta for part in entry.walk() if part.meta.get("start") is not None), {})
    for part in expression.find_all(exp.Identifier):
        part.meta.update(meta)
    return expression
