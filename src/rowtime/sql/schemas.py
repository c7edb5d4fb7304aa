"""SET SCHEMA and SET PATH: a schema for unqualified names.

A name that a statement defines after ``SET SCHEMA 'app'`` begins with ``app.``. A name that a statement reads or
changes may belong to this schema, to one of the path, or to none. That depends on which objects exist, so the statement
keeps its schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from rowtime.sql import statements as st

REJECTED = "rejected"
_DEFINED = st.CreateStream | st.CreateView | st.CreateTable | st.CreatePump


def in_schemas(statements: Iterable[st.Statement]) -> tuple[st.Statement, ...]:
    """Put the names that statements define into their schemas, and give them the schemas for other names."""
    schema, path, renamed = "", tuple[str, ...](), list[st.Statement]()
    for statement in statements:
        if isinstance(statement, st.SetSchema):
            schema = statement.schema
        elif isinstance(statement, st.SetPath):
            path = statement.path
        searched = tuple(dict.fromkeys((schema, *path) if schema else path))
        if schema and isinstance(statement, _DEFINED) and statement.name is not None:
            statement = replace(statement, name=_within(schema, statement.name))  # noqa: PLW2901 - with its full name
        if searched:
            statement = _patterns(replace(statement, schemas=searched), schema)  # noqa: PLW2901 - the same
        renamed.append(statement)
    return tuple(renamed)


def looked_up(statement: st.Statement, is_there: Callable[[str, bool], bool], reads: Mapping[str, int]) -> st.Statement:
    """Return the statement with the full names of objects that exist in one of its schemas; other names stay.

    ``is_there`` says whether something has a name in lower case: a pump, or (False) anything else. ``reads``: how many
    leading arguments of a function are names of streams. Changes the queries of the statement in place.
    """
    if not statement.schemas:
        return statement

    def full(name: str, *, pump: bool) -> str:
        if "." in name or name == "*":
            return name
        candidates = (f"{schema}.{name}" for schema in statement.schemas)
        return next((candidate for candidate in candidates if is_there(candidate.lower(), pump)), name)

    def renamed(name: st.Name, *, pump: bool = False) -> st.Name:
        return replace(name, text=full(name.text, pump=pump))

    for query in _queries(statement):
        for table in _tables(query):
            _rename(table, full)
        for column in _arguments(query, reads):
            _rename(column, full)
    changes: dict[str, Any] = {}
    match statement:
        case st.CreatePump():
            changes["target"] = renamed(statement.target)
        case st.InsertValues() | st.SetBound() | st.SetIdle() | st.EndStream():
            changes["stream"] = renamed(statement.stream)
        case st.AlterPump():
            changes["pumps"] = tuple(renamed(pump, pump=True) for pump in statement.pumps)
        case st.TakeOver():
            changes["pump"] = renamed(statement.pump, pump=True)
        case st.Drop() if statement.kind not in ("FUNCTION", "SERVER"):  # these belong to no schema
            changes["name"] = renamed(statement.name, pump=statement.kind == "PUMP")
        case st.CreateStream() if statement.shape is not None and statement.shape.imports is not None:
            lender = full(statement.shape.imports, pump=False)
            changes["shape"] = replace(statement.shape, imports=lender)
    return replace(statement, **changes)


def _within(schema: str, name: st.Name) -> st.Name:
    return name if "." in name.text else replace(name, text=f"{schema}.{name.text}")


def _patterns(statement: st.Statement, schema: str) -> st.Statement:
    """Expand ``ALTER PUMP *`` after SET SCHEMA to the pumps of the schema."""
    if not schema or not isinstance(statement, st.AlterPump):
        return statement
    pumps = (replace(pump, text=f"{schema}.*") if pump.text == "*" else pump for pump in statement.pumps)
    return replace(statement, pumps=tuple(pumps))


def _queries(statement: st.Statement) -> Sequence[exp.Query]:
    query = getattr(statement, "query", None)
    return [] if query is None else [query]


def _tables(query: exp.Query) -> Iterator[exp.Table]:
    """Yield the tables that a query reads and that no WITH of it, or of an enclosing query, defines."""
    for table in list(query.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier) and not _is_of_with(table, table.parts[0].name.lower()):
            yield table


def _is_of_with(read: exp.Expr, name: str) -> bool:
    """Return True for a name of WITH; inside WITH only the definitions before it count."""
    below, above, inside = read, read.parent, read
    while above is not None:
        clause = above.args.get("with_")
        names = [cte.alias.lower() for cte in clause.expressions] if clause is not None else []
        if name in (names[: clause.expressions.index(inside)] if clause is below else names):
            return True
        inside, below, above = below, above, above.parent
    return False


def _arguments(query: exp.Query, reads: Mapping[str, int]) -> Iterator[exp.Column]:
    """Yield the streams that functions on lifetimes read: ``EXTEND(s, …)``, ``CLIP(TO_POINT(s), t)``."""
    for call in query.find_all(exp.Anonymous):
        if isinstance(call.parent, exp.Table | exp.Anonymous | exp.From | exp.Join):
            for argument in call.expressions[: reads.get(call.name.upper(), 0)]:
                if isinstance(argument, exp.Column) and not _is_of_with(argument, argument.parts[0].name.lower()):
                    yield argument


def _rename(named: exp.Table | exp.Column, full: Callable[..., str]) -> None:
    """Put the schema before ``orders`` and ``orders.rejected``."""
    parts = named.parts
    refused = len(parts) == 2 and parts[1].name.lower() == REJECTED  # noqa: PLR2004 - a name and that word
    if len(parts) > 1 and not refused:
        return
    name = parts[0].name
    full_name = full(name, pump=False)
    full_name = full(name, pump=True) if refused and full_name == name else full_name
    if full_name == name:
        return
    schema = exp.to_identifier(full_name.removesuffix(f".{name}"), quoted=True)
    around = ("table", "db") if isinstance(named, exp.Column) else ("db", "catalog")
    named.set(around[refused], schema)
