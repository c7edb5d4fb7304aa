"""Static tables by their names, and queries over them alone: views, WITH, and sub-queries without STREAM.

Spark computes such a query once, so it may be anything that Spark can compute of tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.qualify import qualify

from rowtime.core.errors import Refused
from rowtime.expr.monotonicity import non_deterministic
from rowtime.operators.contract import Column, Operator
from rowtime.operators.streams.spark_query import READ, SparkQuery
from rowtime.operators.streams.table import Table
from rowtime.operators.streams.table_versions import refreshed
from rowtime.plan.bind.correlation import without_schema
from rowtime.plan.bind.ledger import system_stream
from rowtime.plan.bind.sources import OURS, Binder, BoundQuery, Sources, full_name
from rowtime.plan.bind.stream_defs import duration
from rowtime.sql.dialect import Rowtime
from rowtime.sql.generate import to_rowtime
from rowtime.sql.places import refuse_at
from rowtime.sql.statements import CreateTable

_OF_STREAMS = ("emit", "windowed", "keys_expire", "unbounded_state", "on_error_stop", "match")
_MOST_VIEWS = 100  # that a query may name, one in another


@dataclass(frozen=True)
class Tables:
    """The tables that ``sources`` knows; ``text`` is the script."""

    text: str
    sources: Sources

    def static(self, item: exp.Expr) -> Operator | None:
        """Return the operator of a table, or of a query over tables; ``None`` for everything else."""
        statement = self._statement(item) if isinstance(item, exp.Table) else None
        if statement is not None and isinstance(item, exp.Table):
            return self._table(full_name(item), statement)
        query = self._query(item)
        return None if query is None else self._computed(item, query)

    def columns(self, item: exp.Expr) -> Sequence[str] | None:
        """Return the columns of a table or of a query over tables, ``None`` for all else. Raises ``Refused``."""
        if isinstance(item, exp.Table) and (statement := self._statement(item)) is not None:
            return [column.name for column in statement.columns]
        try:
            node = self.static(item)
        except Refused as refused:
            if any(problem.code != "R103" for problem in refused.problems):
                raise
            return None  # it may have columns of the query outside
        return None if node is None else node.emits().names

    def is_static(self, query: exp.Expr) -> bool:
        """Return True if a query reads tables and nothing else."""
        return self._query(exp.Subquery(this=query)) is not None

    def bind_view(self, binder: Binder, name: str) -> None:
        """Bind a view that nothing may read, so that its problems are found. Raises ``Refused``."""
        view = self.sources.catalog.views[name]
        if self.is_static(view.query):
            self.static(exp.Table(this=_quoted(name)))
        elif name not in self.sources.bound:
            self.sources.named(binder, name, view.query)

    def _statement(self, item: exp.Table) -> CreateTable | None:
        """Return the definition of a table of the script or of the session."""
        name, catalog = full_name(item), self.sources.catalog
        ours = system_stream(name) is not None or (item.text("db") and item.name.lower() == "rejected")
        return catalog.tables.get(name) if ours else catalog.table(name)

    def _table(self, name: str, statement: CreateTable) -> Operator:
        key, bound = f"{OURS}table {name}", self.sources.bound
        if key not in bound:
            columns = tuple(Column(column.name, column.type) for column in statement.columns)
            source = ((statement.using or "").lower(), statement.options)
            refresh = duration(statement.refresh, "REFRESH EVERY", statement.place) or 0
            bound[key] = BoundQuery(Table(self.sources.fresh(name), name, columns, source, refresh))
        return bound[key].node

    def _query(self, item: exp.Expr) -> exp.Expr | None:
        """Return the query over tables that an input is, with views in their place; ``None`` for everything else."""
        query = item.this if isinstance(item, exp.Subquery) else self._view(item)
        if not isinstance(query, exp.Query):
            return None
        subquery = exp.Subquery(this=query.copy())
        for _ in range(_MOST_VIEWS):
            viewed = next(
                ((part, view) for part in self._read(subquery) if (view := self._view(part)) is not None), None
            )
            if viewed is None:
                break
            viewed[0].replace(_named(viewed[1], viewed[0]))
        streams = any(part.args.get(word) for part in subquery.find_all(exp.Query) for word in ("stream", *_OF_STREAMS))
        names = [*self._read(subquery)]
        static = bool(names) and not streams and all(self._statement(part) is not None for part in names)
        return subquery.this if static else None

    def _view(self, item: exp.Expr) -> exp.Expr | None:
        """Return the query of a view, with the names of its columns, if it might be one of tables."""
        view = self.sources.catalog.views.get(full_name(item)) if isinstance(item, exp.Table) else None
        if view is None or view.event_time is not None or view.shape is not None or view.query.args.get("stream"):
            return None
        if not view.columns:
            return view.query
        names = [exp.to_identifier(name, quoted=True) for name in view.columns]
        alias = exp.TableAlias(this=exp.to_identifier("viewed"), columns=names)
        return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=view.query, alias=alias)))

    @staticmethod
    def _read(query: exp.Expr) -> Iterator[exp.Table]:
        """What a query reads by name, but for the names of its own WITH."""
        own = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
        for table in query.find_all(exp.Table):
            if len(table.parts) > 1 or table.name.lower() not in own:
                yield table

    def _computed(self, item: exp.Expr, query: exp.Expr) -> Operator:
        """Return the operator of a query over tables. Raises ``Refused``."""
        copied, tables, schema = query.copy(), list[Operator](), dict[str, Any]()
        for select in copied.find_all(exp.Select):
            sources = [select.args.get("from_"), *(select.args.get("joins") or [])]
            for source in [join_source.this for join_source in sources if join_source is not None]:
                without_schema(select, source)
        for read in [*self._read(copied)]:
            table = self.static(read)
            assert table is not None
            check_unchanging(self.text, table, read)
            if table not in tables:
                tables.append(table)
            name = READ.format(tables.index(table))
            schema[name] = {column.name: column.type for column in table.emits().columns}
            if not read.alias:
                read.set("alias", exp.TableAlias(this=exp.to_identifier(read.name, quoted=True)))
            read.set("this", exp.to_identifier(name))
            read.set("db", None)
        names = self._names(item, copied, schema)
        self._check(query)
        alias = exp.TableAlias(this=exp.to_identifier("computed"), columns=[_quoted(name) for name in names])
        whole = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=copied, alias=alias)))
        key = f"{OURS}query {to_rowtime(whole)}"
        if key not in self.sources.bound:
            name = self.sources.fresh(f"{tables[0].name}.query")
            columns = tuple(map(Column, names))
            self.sources.bound[key] = BoundQuery(SparkQuery(name, tuple(tables), whole, columns))
        return self.sources.bound[key].node

    def _check(self, query: exp.Expr) -> None:
        for part in query.walk():
            if non_deterministic(part):
                what = f"{to_rowtime(part)} gives another result each time it is called"
                hint = "The result of a stream may depend only on its input; use a column instead."
                raise refuse_at(self.text, part, "R111", what, hint)
            limited = isinstance(part, exp.Query) and (part.args.get("limit") or part.args.get("offset"))
            if limited and not part.args.get("order"):
                hint = "Choose the rows: ORDER BY k LIMIT 10."
                raise refuse_at(self.text, part, "R186", "LIMIT of a table without ORDER BY", hint)

    def _names(self, item: exp.Expr, query: exp.Expr, schema: dict[str, Any]) -> list[str]:
        """Return the names of the columns. Raises ``Refused`` (R103) if a column is not there."""
        try:
            qualified = qualify(query.copy(), dialect=Rowtime, schema=schema, quote_identifiers=False)
        except OptimizeError as wrong:
            what = str(wrong).partition(" Line:")[0].rstrip(".")
            listed = ", ".join(dict.fromkeys(name for columns in schema.values() for name in columns))
            raise refuse_at(self.text, item, "R103", what, f"There are: {listed}.") from wrong
        except SqlglotError as wrong:
            raise refuse_at(self.text, item, "R190", f"this query of tables is not understood: {wrong}") from wrong
        assert isinstance(qualified, exp.Query)
        names = list(qualified.named_selects)
        if twice := next((name for name in names if names.count(name) > 1), None):
            hint = "Give one of them another name with AS."
            raise refuse_at(self.text, item, "R119", f"the query has two columns {twice}", hint)
        return names


def check_unchanging(text: str, table: Operator, source: exp.Expr) -> None:
    """Raise ``Refused`` (R190) for a table that is read again."""
    if refreshed(table):
        what = f"a sub-query of {source.name}, a table with REFRESH EVERY, is not supported"
        hint = "Join it: JOIN t ON …; SEMI JOIN t ON … for IN and EXISTS, ANTI JOIN t ON … for NOT EXISTS."
        raise refuse_at(text, source, "R190", what, hint)


def _named(query: exp.Expr, table: exp.Table) -> exp.Subquery:
    """Return the query of a view in place of the view."""
    given = table.args.get("alias")
    alias = given.copy() if given is not None else exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
    return exp.Subquery(this=query.copy(), alias=alias)


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
