"""``st.*``: the fields of a struct, each as a column of its own, if the type of the struct is declared."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rowtime.operators.contract import Column
from rowtime.plan.bind.scope import Scope
from rowtime.plan.bind.struct_fields import fields_in
from rowtime.sql.dialect import Rowtime
from rowtime.sql.places import unlocated
from rowtime.sql.script import parse_expression


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
