"""The column list of a pump: columns of its target, each with a value of the query's select list by position.

Semantics 10: columns are assigned by position and take the names of the target, so names in the query do not count.
ROWTIME in the list promotes the value at its position; ROWTIME in the query is, by position, also the value of a
column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp

from rowtime.core.columns import ROWTIME_NAME
from rowtime.core.errors import Place, refuse

if TYPE_CHECKING:
    from rowtime.plan.bind.stream_defs import StreamDef
    from rowtime.sql.statements import CreatePump

T = TypeVar("T")
Entries = list[exp.Expr]


def by_place(pump: CreatePump, stream: StreamDef | None) -> CreatePump:
    """Return the pump with a query that gives its values by position, each under a unique name.

    ``INSERT INTO s (ROWTIME, a) SELECT STREAM t, a`` is ``INSERT INTO s (a) SELECT STREAM t AS ROWTIME, a``. If the
    query has an item for each column, and ROWTIME is one of them, it is the value of the column at its position. Two
    items with one name get the names of their columns. Each SELECT of a UNION ALL is handled by itself. Raises
    ``Refused`` (R119, R132, R222).
    """
    _refuse_twice(pump, stream)
    pump = _with_rowtime(pump, stream)
    names = _names(pump, stream)
    return replace(pump, query=_in_each(pump.query, lambda query: _told_apart(query, names)))


def is_rowtime_entry(entry: exp.Expr) -> bool:
    """Return True for ROWTIME in a select list, and for a value promoted to it."""
    return isinstance(entry, exp.Column | exp.Alias) and entry.alias_or_name.upper() == ROWTIME_NAME


def place_in_list(pump: CreatePump, number: int) -> Place:
    """Return the place of a column in the list after the target; without a list, that of the pump."""
    return pump.column_places[number] if pump.column_places else pump.place


def _names(pump: CreatePump, stream: StreamDef | None) -> list[str]:
    return list(pump.columns) or ([name for name, _ in stream.columns] if stream is not None else [])


def _refuse_twice(pump: CreatePump, stream: StreamDef | None) -> None:
    """Refuse (R119) a list that names a column twice."""
    listed = [name.upper() for name in pump.columns]
    again = next((number for number, name in enumerate(listed) if name in listed[:number]), None)
    if again is not None:
        once = [ROWTIME_NAME] * (ROWTIME_NAME in listed) + ([name for name, _ in stream.columns] if stream else [])
        what = f"the list of columns of {pump.target} names {pump.columns[again]} twice"
        hint = f"Name each at most once; there are: {', '.join(once)}."
        raise refuse("R119", what, hint, place_in_list(pump, again))


# -- ROWTIME ------------------------------------------------------------------------------


def _with_rowtime(pump: CreatePump, stream: StreamDef | None) -> CreatePump:
    names, listed = _names(pump, stream), [name.upper() for name in pump.columns]
    if ROWTIME_NAME not in listed:
        return replace(pump, query=_in_each(pump.query, lambda query: _as_values(query, names)))
    at = listed.index(ROWTIME_NAME)
    for query in _selects(pump.query):
        _check_promotes(pump, query, at)
    columns, places = _without(pump.columns, at), _without(pump.column_places, at)
    query = _in_each(pump.query, lambda query: _promoting(query, pump.columns, at))
    return replace(pump, query=query, columns=columns, column_places=places)


def _check_promotes(pump: CreatePump, query: exp.Query, at: int) -> None:
    entries = _explicit(query)
    if entries is None:
        hint = "Promote it in a query that lists its columns, for example SELECT STREAM t AS ROWTIME, a FROM (…) AS q."
        what = "ROWTIME is in the list of columns, and the query does not list its columns one by one"
        raise refuse("R222", what, hint, place_in_list(pump, at))
    if len(entries) != len(pump.columns):
        what = f"the list has {len(pump.columns)} columns ({', '.join(pump.columns)}), the query gives {len(entries)}"
        raise refuse("R132", what, "Select one column for each, in this order.", pump.place)


def _as_values(query: exp.Query, names: Sequence[str]) -> exp.Query:
    """Give ROWTIME, if there is an item for each column, the name of the column at its position."""
    entries = _explicit(query)
    if entries is None or len(entries) != len(names) or not any(map(is_rowtime_entry, entries)):
        return query
    return _with_entries(query, _values(entries, names))


def _promoting(query: exp.Query, columns: Sequence[str], at: int) -> exp.Query:
    """Promote the value at the position of ROWTIME, unless it is ROWTIME itself."""
    entries = list(query.expressions)
    is_bare = is_rowtime_entry(entries[at]) and not isinstance(entries[at], exp.Alias)
    time = [] if is_bare else [_named(entries[at], ROWTIME_NAME)]
    return _with_entries(query, [*time, *_values(_without(entries, at), _without(columns, at))])


def _values(entries: Sequence[exp.Expr], names: Sequence[str]) -> Entries:
    """Return the items; those that are ROWTIME get the name of their column, a promoted value stays."""
    values = [_named(e, name) if is_rowtime_entry(e) else e for e, name in zip(entries, names, strict=True)]
    promoted = [entry for entry in entries if is_rowtime_entry(entry) and isinstance(entry, exp.Alias)]
    return [*values, *promoted]


# -- duplicate names ----------------------------------------------------------------------


def _told_apart(query: exp.Query, names: Sequence[str]) -> exp.Query:
    """Give items with one name the names of the columns at their positions."""
    entries = _explicit(query) or []
    values = [entry for entry in entries if not is_rowtime_entry(entry)]
    called = Counter(entry.alias_or_name.lower() for entry in values if entry.alias_or_name)
    if len(values) != len(names) or all(number == 1 for number in called.values()):
        return query
    taken = {name for name, number in called.items() if number == 1}
    to = {id(entry): name for entry, name in zip(values, names, strict=True) if called[entry.alias_or_name.lower()] > 1}
    renamed: Entries = []
    for entry in entries:
        if id(entry) in to:
            name = _free(to[id(entry)], taken)
            taken.add(name.lower())
            entry = _named(entry, name)  # noqa: PLW2901 - with its new name
        renamed.append(entry)
    return _with_entries(query, renamed)


def _free(name: str, taken: set[str]) -> str:
    number, candidate = 2, name
    while candidate.lower() in taken:
        number, candidate = number + 1, f"{name}_{number}"
    return candidate


# -- queries ------------------------------------------------------------------------------


def _selects(query: exp.Query) -> Iterator[exp.Query]:
    """Yield the SELECTs of a UNION ALL, from left to right; else the query itself."""
    if isinstance(query, exp.SetOperation):
        yield from _selects(query.this)
        yield from _selects(query.expression)
    else:
        yield query.this if isinstance(query, exp.Subquery) else query


def _in_each(query: exp.Query, change: Callable[[exp.Query], exp.Query]) -> exp.Query:
    """Return the query with each of its SELECTs changed."""
    parts = ("this", "expression") if isinstance(query, exp.SetOperation) else ("this",)
    if not isinstance(query, exp.SetOperation | exp.Subquery):
        return change(query)
    changed = query.copy()
    for part in parts:
        changed.set(part, _in_each(changed.args[part], change))
    return changed


def _explicit(query: exp.Query) -> Entries | None:
    """Return the select list of a SELECT that lists its columns one by one."""
    entries = list(query.expressions) if isinstance(query, exp.Select) else []
    return entries if entries and not any(entry.is_star for entry in entries) else None


def _named(entry: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(entry.unalias().copy(), name, quoted=True)


def _with_entries(query: exp.Query, entries: Sequence[exp.Expr]) -> exp.Query:
    changed = query.copy()
    changed.set("expressions", [entry.copy() for entry in entries])
    return changed


def _without(values: Sequence[T], at: int) -> tuple[T, ...]:
    return (*values[:at], *values[at + 1 :])
