"""Which declared columns fit the fields of records: what is read of each field, or why none can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rowtime.expr.store_assignment import always_fits, is_nested, may_assign, same_type
from rowtime.operators.contract import quoted

_TIMES = ("TIMESTAMP", "BIGINT", "INT", "STRING")
"""Types of a field that may give the rowtime: an instant, µs since 1970, or a text of either."""


@dataclass(frozen=True)
class Misfit:
    """A column that a schema does not fit, in words; ``column`` is empty where it is no declared one."""

    column: str
    what: str
    hint: str


def misfits(columns: Sequence[tuple[str, str]], rowtime: str | None, types: Mapping[str, str]) -> Iterator[Misfit]:
    """The declared columns whose field has a type of which no value fits; a field that is missing is NULL, and fits."""
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
        yield Misfit(rowtime, f"rowtime.column names {rowtime}, which is {given} and no time", hint)


def absent(columns: Sequence[tuple[str, str]], rowtime: str | None, types: Mapping[str, str]) -> Iterator[Misfit]:
    """The declared columns for which there is no field."""
    there = ", ".join(types)
    wanted = [*(name for name, _ in columns), *([rowtime] if rowtime is not None else [])]
    for name in dict.fromkeys(wanted):
        if name not in types:
            near = next((one for one in types if one.lower() == name.lower()), None)
            hint = f"Did you mean {near}?" if near else f"Its fields are {there}. Leave the column out, or name one."
            yield Misfit(name, f"there is no field {name}", hint)


def fits(given: str, kind: str) -> bool:
    """True if values of a field of a type may be those of a column; parts of nested ones have to fit always."""
    if same_type(given, kind):
        return True
    return always_fits(given, kind) if is_nested(given) or is_nested(kind) else may_assign(given, kind) is True


def converted(path: str, given: str, kind: str) -> str:
    """SQL: the value of a field as the declared type, NULL where it does not fit."""
    return path if same_type(given, kind) else f"try_cast({path} AS {kind})"


def field_of(record: str, name: str) -> str:
    """SQL: a field of a record."""
    return f"{record}.{quoted(name)}"
