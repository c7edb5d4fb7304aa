"""Fields of structs by name: what a declared type does not have is refused before Spark runs.

As in Spark, ``items.sku`` of an array lists the field of each element, and ``m.k`` of a map is the value of a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rowtime.expr.facts import Kind, kind_of
from rowtime.operators.contract import Column
from rowtime.plan.bind.suggestions import suggestion
from rowtime.sql.dialect import Rowtime
from rowtime.sql.generate import to_rowtime

_Type = exp.DataType.Type
_WITHOUT_FIELDS = (
    *exp.DataType.NUMERIC_TYPES, *exp.DataType.TEXT_TYPES, *exp.DataType.TEMPORAL_TYPES, _Type.BOOLEAN, _Type.BINARY,
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """What is wrong with a part of an expression, such as a field that a type does not have, and what to write."""

    node: exp.Expr
    what: str
    hint: str
    code: str = "R103"


def fields_in(kind: exp.DataType | None) -> list[tuple[str, exp.DataType]]:
    """Return the fields of a struct; none for another type."""
    if kind is None or kind.this is not exp.DataType.Type.STRUCT:
        return []
    return [(field.name, field.args["kind"]) for field in kind.expressions if isinstance(field, exp.ColumnDef)]


def missing_fields(bound: exp.Expr, columns: Sequence[Column]) -> Iterator[Fault]:
    """Yield the fields in an expression over these columns that the declared types do not have.

    The parameters of a lambda may be called like columns, so what is inside of one is left to Spark.
    """
    declared = {column.name: column.type for column in columns if column.type}
    for dot in bound.find_all(exp.Dot):
        if not dot.find_ancestor(exp.Lambda) and isinstance(dot.expression, exp.Identifier):
            field = _missing(_type_of(dot.this, declared), dot)
            if field is not None:
                yield field


def path_of(node: exp.Expr) -> list[str]:
    """Return the names of a column and of the fields inside of it, in lower case; none for another expression."""
    inner = node.unnest()
    if isinstance(inner, exp.Dot) and (before := path_of(inner.this)):
        return [*before, inner.expression.name.lower()]
    return [inner.name.lower()] if isinstance(inner, exp.Column) else []


def type_inside(node: exp.Expr, column: Column) -> str:
    """Return the type text of a column or of a field inside of it; empty if only Spark knows it."""
    kind = _type_of(node, {column.name: column.type} if column.type else {}) if isinstance(node, exp.Dot) else None
    return column.type if not isinstance(node, exp.Dot) else "" if kind is None else kind.sql("spark")


def kind_of_field(node: exp.Expr, columns: Sequence[Column]) -> Kind:
    """Return the kind of a field of these columns; ``OTHER`` for anything else, and if only Spark knows it."""
    kind = _type_of(node, {c.name: c.type for c in columns if c.type}) if isinstance(node, exp.Dot) else None
    return Kind.OTHER if kind is None else kind_of(kind.sql("spark"))


def _missing(kind: exp.DataType | None, dot: exp.Dot) -> Fault | None:
    name, of = dot.expression.name, _shown(dot.this)
    inner = kind.expressions[0] if kind is not None and kind.this is _Type.ARRAY and kind.expressions else kind
    if inner is None:
        return None
    if inner.this in _WITHOUT_FIELDS:
        what = f"{of} has no fields: its {'elements are' if inner is not kind else 'type is'} {inner.sql('spark')}"
        return Fault(dot.expression, what, f"Write {of}.")
    fields = [field for field, _ in fields_in(inner)]
    if not fields or name.lower() in {field.lower() for field in fields}:
        return None
    return Fault(dot.expression, f"there is no field {name} in {of}", suggestion(name, fields))


def _shown(node: exp.Expr) -> str:
    """Return a column or a field as a query writes it."""
    inner = node.unnest()
    if isinstance(inner, exp.Dot):
        return f"{_shown(inner.this)}.{_shown(inner.expression)}"
    named = isinstance(inner, exp.Column | exp.Identifier)
    return inner.name if named and inner.name.isidentifier() else to_rowtime(inner)


def _type_of(node: exp.Expr, declared: dict[str, str]) -> exp.DataType | None:
    """Return the type of a column, or of what is inside of it; ``None`` if only Spark knows it."""
    inner = node.unnest()
    if isinstance(inner, exp.Column):
        text = declared.get(inner.name)
        return exp.DataType.build(text, dialect=Rowtime) if text else None
    if isinstance(inner, exp.Bracket):
        return _element(_type_of(inner.this, declared))
    return _field(_type_of(inner.this, declared), inner.expression.name) if isinstance(inner, exp.Dot) else None


def _element(kind: exp.DataType | None) -> exp.DataType | None:
    if kind is None or kind.this not in (_Type.ARRAY, _Type.MAP) or not kind.expressions:
        return None
    element: exp.DataType = kind.expressions[-1]
    return element


def _field(kind: exp.DataType | None, name: str) -> exp.DataType | None:
    if kind is not None and kind.this is _Type.MAP:
        return _element(kind)
    if kind is not None and kind.this is _Type.ARRAY and kind.expressions:
        inner = _field(kind.expressions[0], name)
        return None if inner is None else exp.DataType(this=_Type.ARRAY, expressions=[inner], nested=True)
    return next((of for field, of in fields_in(kind) if field.lower() == name.lower()), None)
