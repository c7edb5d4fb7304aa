"""Which declared columns fit the fields of records: how each field is read, or why it cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from rowtime.expr.store_assignment import always_fits, is_nested, may_assign, same_type, type_of
from rowtime.operators.contract import quoted
from rowtime.sql.generate import literal

_TIMES: Final = ("TIMESTAMP", "BIGINT", "INT", "STRING")
"""Types of a field that may give the rowtime: an instant, µs since 1970, or a text of either."""
_PARTS: Final = {exp.DType.ARRAY: 1, exp.DType.MAP: 2}


@dataclass(frozen=True)
class Misfit:
    """A column that does not fit a schema, in words; ``column`` is empty if it is not a declared one."""

    column: str
    what: str
    hint: str


def misfits(columns: Sequence[tuple[str, str]], rowtime: str | None, types: Mapping[str, str]) -> Iterator[Misfit]:
    """Yield the declared columns whose field's type fits no value; a missing field is NULL, and fits."""
    for name, kind in columns:
        given = types.get(name)
        if given is None or (rowtime is not None and name == rowtime and given in _TIMES and kind in _TIMES):
            continue
        if not fits(given, kind):
            hint = f"Declare {name} {given}, and cast in the query."
            yield Misfit(name, f"the field {name} is {given}, which does not fit {kind}", hint)
    given = types.get(rowtime or "")
    if rowtime is not None and given is not None and given not in _TIMES:
        hint = "Name a field that is a timestamp, a whole number of µs or a text: rowtime.column '…'."
        yield Misfit(rowtime, f"rowtime.column names {rowtime}, which is {given}, not a time", hint)


def absent(columns: Sequence[tuple[str, str]], rowtime: str | None, types: Mapping[str, str]) -> Iterator[Misfit]:
    """Yield the declared columns for which there is no field."""
    fields = ", ".join(types)
    wanted = [*(name for name, _ in columns), *([rowtime] if rowtime is not None else [])]
    for name in dict.fromkeys(wanted):
        if name not in types:
            near = next((field_name for field_name in types if field_name.lower() == name.lower()), None)
            hint = f"Did you mean {near}?" if near else f"Its fields are {fields}. Leave the column out, or name one."
            yield Misfit(name, f"there is no field {name}", hint)


def fits(given: str, kind: str) -> bool:
    """Return True if a field's values may fit a column's type; parts of nested ones must always fit."""
    if same_type(given, kind) or not (is_nested(given) or is_nested(kind)):
        return same_type(given, kind) or may_assign(given, kind) is True
    given_type, declared_type = type_of(given), type_of(kind)
    return (
        given_type is not None and declared_type is not None and _inside("x", given_type, declared_type, 0) is not None
    )


def converted(path: str, given: str, kind: str) -> str:
    """Return SQL: the value of a field as the declared type, NULL if it does not fit; struct fields by name."""
    if same_type(given, kind):
        return path
    given_type, declared_type = type_of(given), type_of(kind)
    cast = (
        _inside(path, given_type, declared_type, 0)
        if is_nested(kind) and given_type is not None and declared_type is not None
        else None
    )
    return f"try_cast({path} AS {kind})" if cast is None else cast


def _inside(path: str, given: exp.DataType, kind: exp.DataType, depth: int) -> str | None:
    """Return SQL: a value as another type, if every value fits."""
    if given.this is exp.DType.STRUCT and kind.this is exp.DType.STRUCT:
        return _fields(path, given, kind, depth)
    if given.this is kind.this and kind.this in _PARTS:
        return _elements(path, given, kind, depth)
    given_text, declared_text = _text(given), _text(kind)
    if same_type(given_text, declared_text):
        return path
    return (
        f"CAST({path} AS {declared_text})"
        if not is_nested(declared_text) and always_fits(given_text, declared_text)
        else None
    )


def _fields(path: str, given: exp.DataType, kind: exp.DataType, depth: int) -> str | None:
    """Return SQL: a struct of another one's fields, by name."""
    kinds = {part.name: part.args["kind"] for part in given.expressions}
    members: list[str | None] = []
    for part in kind.expressions:
        wanted, kind_of_part = part.args["kind"], kinds.get(part.name)
        inner = field_of(path, part.name)
        value = (
            f"CAST(NULL AS {_text(wanted)})" if kind_of_part is None else _inside(inner, kind_of_part, wanted, depth)
        )
        members.append(None if value is None else f"{literal(part.name)}, {value}")
    if None in members:
        return None
    return f"IF({path} IS NULL, NULL, named_struct({', '.join(filter(None, members))}))"


def _elements(path: str, given: exp.DataType, kind: exp.DataType, depth: int) -> str | None:
    """Return SQL: an array or a map with elements of other types."""
    names = [f"x{depth}", f"y{depth}"][: _PARTS[kind.this]]
    pairs = zip(names, given.expressions, kind.expressions, strict=True)
    inner = [_inside(name, one, other, depth + 1) for name, one, other in pairs]
    if None in inner:
        return None
    if kind.this is exp.DType.ARRAY:
        return f"transform({path}, {names[0]} -> {inner[0]})"
    pair = f"({', '.join(names)}) ->"
    return f"transform_values(transform_keys({path}, {pair} {inner[0]}), {pair} {inner[1]})"


def _text(kind: exp.DataType) -> str:
    return kind.sql(dialect="spark")


def field_of(record: str, name: str) -> str:
    """Return SQL: a field of a record."""
    return f"{record}.{quoted(name)}"
