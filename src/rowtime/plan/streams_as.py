"""CREATE STREAM … AS SELECT: a stream with the columns of a query, and a pump that fills it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from rowtime.core.errors import Refused, refuse
from rowtime.expr.facts import Kind, kind_of
from rowtime.operators.contract import Column
from rowtime.plan.bind.catalog import Catalog
from rowtime.plan.bind.emit import as_rows
from rowtime.plan.bind.pump_edge import pump_name
from rowtime.plan.bind.pump_list import is_rowtime_entry
from rowtime.plan.bind.sources import Binder, BoundQuery
from rowtime.sql.nodes import Step
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


_AROUND: Final = ("group", "having", "order", "limit", "distinct", "qualify", "emit", "emit_changes", "emit_final")
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+)(?:, *(\d+))?\)", re.IGNORECASE)
_MOST: Final = 38  # digits of a DECIMAL
_MORE: Final[Mapping[type[exp.Expr], tuple[int, int]]] = {exp.Sum: (10, 0), exp.Avg: (4, 4)}
"""How many digits, in all and after the decimal point, Spark adds to those of a DECIMAL."""


# -- types of items that are known without Spark: columns, rounded times, common aggregates


def types_of(query: exp.Query, binder: Binder, name: str) -> list[str]:
    """Return the type of each item but ROWTIME, empty if only Spark knows it; nothing for a list with ``*``."""
    if not isinstance(query, exp.Select) or any(entry.is_star for entry in query.expressions):
        return []
    types = _PlainTypes(query, binder, name)
    return [types.of(entry.unalias()) for entry in query.expressions if not is_rowtime_entry(entry)]


@dataclass
class _PlainTypes:
    """The types of the expressions in one SELECT."""

    query: exp.Select
    binder: Binder
    name: str
    columns: dict[str, str] = field(default_factory=dict)

    def of(self, node: exp.Expr) -> str:
        """Return the type of an expression; empty if it is not known here."""
        node, kind = node.unnest(), ""
        match node:
            case exp.Column():
                kind = self._column(node)
            case exp.Cast():
                kind = str(node.args["to"].sql("spark"))
            case exp.Count():
                kind = "BIGINT"
            case exp.Sum() | exp.Avg():
                kind = _summed(type(node), self.of(node.this))
            case exp.Floor() | exp.Ceil() if node.args.get("to") is not None:
                kind = "TIMESTAMP"
            case exp.Max() | exp.Min() | exp.First() | exp.Last() | exp.Filter() | exp.Window() | Step():
                kind = self.of(node.this)
        return kind

    def _column(self, column: exp.Column) -> str:
        """Return a column's type, as in a query without groups over the same inputs."""
        text = column.sql()
        if text not in self.columns:
            plain = self.query.copy()
            for part in _AROUND:
                plain.set(part, None)
            plain.set("expressions", [exp.alias_(column.copy(), "c")])
            try:
                node = self.binder.bind(plain, f"{self.name}.{len(self.columns)}").node
                self.columns[text] = node.emits().columns[0].type
            except Refused:
                self.columns[text] = ""
        return self.columns[text]


def _summed(kind: type[exp.Expr], of: str) -> str:
    if (match := _DECIMAL.fullmatch(of)) is not None:
        more, behind = _MORE[kind]
        return f"DECIMAL({min(int(match[1]) + more, _MOST)}, {min(int(match[2] or 0) + behind, _MOST)})"
    if kind_of(of) not in (Kind.INTEGER, Kind.FLOAT):
        return ""
    return "BIGINT" if kind is exp.Sum and kind_of(of) is Kind.INTEGER else "DOUBLE"
