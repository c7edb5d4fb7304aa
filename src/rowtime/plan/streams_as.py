"""CREATE STREAM … AS SELECT: a stream with the columns of a query, and a pump that fills it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rowtime.core.errors import Refused, refuse
from rowtime.operators.contract import Column
from rowtime.plan.bind.catalog import Catalog
from rowtime.plan.bind.emit import as_rows
from rowtime.plan.bind.pump_edge import pump_name
from rowtime.plan.bind.sources import Binder, BoundQuery
from rowtime.plan.plain_types import types_of
from rowtime.sql.statements import ColumnDef, CreatePump, CreateStream


def pump_of(statement: CreateStream) -> CreatePump:
    """Return the pump of a stream that has a query."""
    assert statement.query is not None
    return CreatePump(
        name=None,
        target=statement.name,
        query=statement.query,
        replace=statement.replace,
        place=statement.place,
        text=statement.text,
        schemas=statement.schemas,
    )


def with_columns(statement: CreateStream, binder: Binder) -> CreateStream:
    """Return the definition with the columns of its query. Raises ``Refused`` (R148) if only Spark knows a type."""
    assert statement.query is not None
    name = pump_name(pump_of(statement))
    bound = BoundQuery(as_rows(binder.sources.fresh, binder.bind(statement.query.copy(), name).node, name))
    bound = binder.sources.renamed(bound, f"{name}.renamed", statement.renamed, statement.name.place)
    columns = bound.node.emits().of_users
    if not all(column.type for column in columns):
        plain = types_of(statement.query, binder, name)
        plain = plain if len(plain) == len(columns) else [""] * len(columns)
        columns = tuple(replace(column, type=column.type or kind) for column, kind in zip(columns, plain, strict=True))
    if not all(column.type for column in columns):
        raise _untyped(statement, columns)
    place = statement.name.place
    return replace(statement, columns=tuple(ColumnDef(column.name, column.type, place=place) for column in columns))


def stand_in(catalog: Catalog, statement: CreateStream) -> None:
    """Register the column names of a refused query, without a pump, so that queries of the stream are still checked."""
    catalog.pumps.pop(pump_name(pump_of(statement)), None)
    assert statement.query is not None
    names: Sequence[str] = statement.renamed or statement.query.named_selects
    catalog.stand_in(replace(statement, columns=tuple(ColumnDef(name, "") for name in names if name != "*")))


def made_later(catalog: Catalog, statement: CreateStream, define: Callable[[CreateStream], None]) -> None:
    """Let the catalog define a stream on first use: its query may read definitions that come later."""

    def make() -> None:
        try:
            define(statement)
        except Refused as refused:
            stand_in(catalog, statement)
            if all(problem.warns for problem in refused.problems):
                catalog.unread[statement.name.text.lower()] = refused
            raise

    catalog.makers[statement.name.text.lower()] = make


def _untyped(statement: CreateStream, columns: Sequence[Column]) -> Refused:
    unknown = [column.name for column in columns if not column.type]
    of = f"type of {unknown[0]} is" if len(unknown) == 1 else f"types of {', '.join(unknown)} are"
    what = f"the {of} known only to Spark, which does not run yet when a stream is defined"
    listed = ", ".join(f"{column.name} {column.type or '…'}" for column in columns)
    form = f"CREATE STREAM {statement.name} ({listed}) AS SELECT STREAM …"
    return refuse(
        "R148", what, f"List the columns with types: {form}. Or cast them in the query.", statement.name.place
    )
