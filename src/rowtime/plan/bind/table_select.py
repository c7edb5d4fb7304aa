"""Binds a sub-query's SELECT … FROM table WHERE … GROUP BY … HAVING … over a static table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.core.errors import Refused
from rowtime.expr.many_rows import has_aggregates, is_aggregate
from rowtime.operators.contract import Column
from rowtime.operators.rows.select import Item
from rowtime.operators.streams.table_select import TableSelect
from rowtime.plan.bind.scope import From, Scope, type_of
from rowtime.plan.bind.sources import Sources
from rowtime.plan.bind.tables import Tables, check_unchanging
from rowtime.plan.bind.windows import refuse_outside


class TableSelectBinder:
    """The query ``item`` over one static table, as the input of a join; its columns have names of their own."""

    def __init__(self, text: str, sources: Sources, name: str, item: exp.Subquery) -> None:
        self.text, self.sources = text, sources
        self.name, self.item, self.query = f"{name}.{item.alias}", item, item.this
        source = self.query.args["from_"].this
        table = Tables(text, sources).static(source)
        assert table is not None
        check_unchanging(text, table, source)
        rows = From.one(table, source.alias_or_name, {})
        inputs = tuple(replace(source_of, rowtime="") for source_of in rows.inputs)
        self.scope = Scope(text, replace(rows, inputs=inputs))

    def bind(self) -> From:
        """Return the operator under the name of the sub-query. Raises ``Refused``."""
        query, scope = self.query, self.scope
        where: exp.Expr | None = query.args["where"].this if query.args.get("where") else None
        condition = None if where is None else self._bound(where)
        if where is not None and condition is not None and has_aggregates(condition):
            scope.refuse("R116", "WHERE cannot contain an aggregate", where, "Use HAVING.")
        values = [self._item(entry) for entry in query.expressions]
        group = query.args.get("group")
        keys = [self._bound(key) for key in (group.expressions if group else ())]
        having = self._bound(query.args["having"].this) if query.args.get("having") else None
        shown = [item.expression for item in values] + ([having] if having is not None else [])
        grouped = bool(keys) or having is not None or any(map(has_aggregates, shown))
        if grouped:
            self._check_grouped([*query.expressions, *([query.args["having"].this] if having else [])], shown, keys)
        elif query.args.get("distinct"):
            keys, grouped = [item.expression for item in values], True
        if scope.promises:
            scope.refuse("R102", "MONOTONIC is about streams, and this is a table", self.item, "Leave it out.")
        if scope.problems:
            raise Refused(*scope.problems)
        once = self.item.meta.get("once")
        name = self.sources.fresh(self.name)
        node = TableSelect(name, scope.input, tuple(values), condition, tuple(keys), having, grouped, once)
        source = From.one(node, self.item.alias, {})
        return replace(source, inputs=tuple(replace(part, rowtime="", hidden=True) for part in source.inputs))

    def _bound(self, node: exp.Expr) -> exp.Expr:
        refuse_outside(self.scope, node)
        return self.scope.bind(node)

    def _item(self, entry: exp.Expr) -> Item:
        bound = self._bound(entry.unalias())
        return Item(Column(entry.alias, type_of(self.scope.columns, bound)), bound)

    def _check_grouped(self, given: Sequence[exp.Expr], bound: Sequence[exp.Expr], keys: Sequence[exp.Expr]) -> None:
        for node, value in zip(given, bound, strict=True):
            if (column := _loose(value, keys)) is not None:
                what = f"{self.scope.shown(column)} is neither grouped nor aggregated"
                self.scope.refuse("R106", what, node, "Write MAX of it, or add it to GROUP BY.")


def _loose(value: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Expr | None:
    """Return a column that is neither in an aggregate nor a key."""
    if value in keys or is_aggregate(value):
        return None
    if isinstance(value, exp.Column):
        return value
    return next((loose for part in value.iter_expressions() if (loose := _loose(part, keys)) is not None), None)
