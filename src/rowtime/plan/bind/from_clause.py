"""Binds FROM: the inputs of a SELECT, as one operator under one name; also a SELECT from a static table in a join."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.core.errors import Refused, refuse
from rowtime.expr.many_rows import has_aggregates, is_aggregate
from rowtime.operators.contract import Column, Operator
from rowtime.operators.panes.current_bound import CurrentBound
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item
from rowtime.operators.streams.table import is_table
from rowtime.operators.streams.table_select import TableSelect
from rowtime.plan.bind.as_of import refuse_as_of
from rowtime.plan.bind.buffers import BUFFERS, buffered
from rowtime.plan.bind.correlation import is_subquery
from rowtime.plan.bind.event_time import declared_by, lost_at, over_fires
from rowtime.plan.bind.functions import bind_call, called, input_of
from rowtime.plan.bind.join_range import window_of
from rowtime.plan.bind.joins import Joins
from rowtime.plan.bind.lifetime_functions import altering, bind_altering
from rowtime.plan.bind.lifetime_joins import LifetimeJoins, is_inner, starts_of
from rowtime.plan.bind.match_clause import MatchClause, ordered_input, refuse_events
from rowtime.plan.bind.panes import has_panes
from rowtime.plan.bind.periods import Periods, split_off
from rowtime.plan.bind.scope import From, Scope, is_current_bound, type_of
from rowtime.plan.bind.sources import Binder, BoundQuery, Sources, full_name
from rowtime.plan.bind.tables import Tables, check_unchanging
from rowtime.plan.bind.window_tables import WINDOW_TABLES, WindowTable
from rowtime.plan.bind.windows import refuse_outside
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import MatchRecognize
from rowtime.sql.places import place_of, refuse_at

_AS_OF = "Write FROM a JOIN b FOR SYSTEM_TIME AS OF a.ROWTIME ON a.k = b.k."
_EVENTS = "Leave FOR SYSTEM_TIME out."


class FromClause:
    """The FROM of the SELECT ``query``."""

    def __init__(self, binder: Binder, query: exp.Select, name: str) -> None:
        self.binder, self.query, self.name = binder, query, name
        self.text, self.sources = binder.text, binder.sources
        self.joins = Joins(binder, query, name)

    def bind(self) -> From:
        """Return the input of the query."""
        source = self.query.args.get("from_")
        if source is None:
            raise refuse_at(self.text, self.query, "R117", "SELECT STREAM needs a FROM")
        clauses = self.query.args.get("joins") or []
        if source.this.args.get("over") and not clauses:
            hint = "Write OVER after an aggregate: SUM(x) OVER (RANGE INTERVAL '1' MINUTE PRECEDING)."
            place = place_of(self.text, source.this.args["over"])
            raise refuse("R153", "a window on an input is allowed in a JOIN only", hint, place)
        refuse_as_of(self.text, source.this, "a stream as of a time is allowed in a JOIN only", _AS_OF)
        periods = Periods(self.binder, self.name)
        bound, starts = self._windowed(source.this), starts_of(self.query)
        about = split_off(self.query) if clauses or is_lifetimes(bound.node) else []
        own = [clause for clause in clauses if not is_subquery(clause)]
        if not own:
            bound, about = periods.filtered(bound, about), []
        for clause in own:
            last = clause is own[-1] and is_inner(clause)
            bound, about = self._joined(bound, clause, starts, about, last=last)
        bound = periods.filtered(bound, about)
        for clause in clauses[len(own) :]:  # sub-queries; those over events after WHERE
            bound, _ = self._joined(bound, clause, starts, [], last=False)
        if has_panes(self.query):
            bound = replace(bound, node=over_fires(self.sources.fresh, bound.node))
        return with_bound(self.sources.fresh, self.query, self.text, bound, self.name)

    def _joined(
        self, left: From, clause: exp.Join, starts: Collection[str], about: list[exp.Expr], *, last: bool
    ) -> tuple[From, list[exp.Expr]]:
        """Join a further input; return the conditions on lifetimes in ``about`` that the ``last`` ON did not take."""
        right = self._windowed(clause.this)
        if not is_lifetimes(left.node) and not is_lifetimes(right.node):
            return self.joins.bind(left, right, clause), about
        refuse_as_of(self.text, clause.this, "events are joined while both are alive, not as of a time", _EVENTS)
        meets = about if last and not is_table(right.node) else []
        join = LifetimeJoins(self.binder, self.name, starts).bind(left, right, clause, meets)
        return join, [] if meets else about

    def _windowed(self, item: exp.Expr) -> From:
        """Return an input with its window; a table is possible only in a join."""
        if isinstance(item, exp.Subquery) and item.meta.get("derived"):
            return TableSelectBinder(self.text, self.sources, self.name, item).bind()
        table = Tables(self.text, self.sources).static(item)
        named = isinstance(item, exp.Table) and full_name(item) not in self.sources.catalog.views
        if table is not None and not named and not self.query.args.get("joins"):
            hint = "Join it with a stream, or use it in a sub-query of an expression."
            raise refuse_at(self.text, item, "R124", "a query over tables cannot be read as a stream", hint)
        if table is not None and self.query.args.get("joins"):
            if item.args.get("over"):
                hint = "Leave out OVER; each row of the stream is joined with the whole table."
                raise refuse_at(self.text, item.args["over"], "R153", "a table cannot have a window", hint)
            return self._table(table, item)
        window = window_of(self.text, self.query, item)
        bound = self._input(item)
        return replace(bound, inputs=tuple(replace(source, window=window) for source in bound.inputs))

    def _table(self, table: Operator, item: exp.Expr) -> From:
        """Return a static table, perhaps with new names for its columns: ``JOIN t AS u (a, b)``."""
        bound, alias = From.one(table, item.alias_or_name, {}), item.args.get("alias")
        [columns] = [source.columns for source in bound.inputs]
        new = [identifier.name for identifier in alias.args.get("columns") or ()] if alias is not None else []
        if new and len(new) != len(columns):
            names = ", ".join(name for name, _ in columns)
            hint = "Give a name to each of them."
            raise refuse_at(self.text, item, "R118", f"the table has {len(columns)} columns: {names}", hint)
        named = tuple((to, column) for to, (_, column) in zip(new, columns, strict=True)) if new else columns
        return replace(bound, inputs=tuple(replace(source, columns=named, rowtime="") for source in bound.inputs))

    def _matched(self, item: MatchRecognize) -> From:
        """Return the matches of a pattern in an input."""
        source = ordered_input(self.binder, item, self.name) or self._input(item.this)
        refuse_events(self.binder, item, source)
        bound = MatchClause(self.binder, item, source, self.query, self.name).bind()
        return self._renamed(bound.node, item, bound.lineage)

    def _input(self, item: exp.Expr) -> From:
        if isinstance(item, MatchRecognize):
            return self._matched(item)
        altered = altering(item)
        if altered is not None:
            return self._renamed(bind_altering(self.binder, altered, self.name), item, {})
        call = called(item)
        if call is not None:
            bound = self._called(call, item)
            return self._renamed(bound.node, item, bound.lineage)
        if isinstance(item, exp.Subquery):
            bound = self.binder.bind(item.this, f"{self.name}.{item.alias_or_name or 'sub'}")
            node, lineage = bound.node, bound.lineage
        elif isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            node, lineage = self.sources.table(self.binder, item)
        else:
            hint = "Name a stream or a view: FROM s."
            raise refuse_at(self.text, item, "R190", f"{to_rowtime(item)} is not a stream", hint)
        return self._renamed(node, item, lineage)

    def _called(self, call: exp.Anonymous, item: exp.Expr) -> BoundQuery:
        """Return a window, or a table function over a query or a stream, whose rows it sees in the order of arrival."""
        if call.name.upper() in WINDOW_TABLES:
            window = WindowTable(self.binder, call, self.name).bind()
            if any(map(is_lifetimes, window.node.inputs)):
                what = f"{call.name} after FROM is for rows, and these are events with lifetimes"
                raise refuse_at(self.text, call, "R193", what, "Group by TUMBLE(size), HOP(hop, size) or SNAPSHOT().")
            return window
        place = place_of(self.text, call)
        name = f"{self.name}.{item.alias or call.name.lower()}"
        source = self._read(call, next(iter(call.expressions), None), f"{name}.cursor")
        if is_lifetimes(source):
            hint = "Read a view that EMITs the events as rows."
            raise refuse("R193", f"{call.name} reads rows, and these are events with lifetimes", hint, place)
        if call.name.upper() in BUFFERS:
            others = [self._read(call, part, f"{name}.permits") for part in call.expressions[1:] if input_of(part)]
            endless = bool(self.query.args.get("unbounded_state"))
            return BoundQuery(buffered(self.sources, call, [source, *others], self.name, place, endless=endless))
        operator = bind_call(call, self.sources.catalog.functions, source, self.sources.fresh(name), place)
        return BoundQuery(self.sources.enforced(operator, name))

    def _read(self, call: exp.Anonymous, argument: exp.Expr | None, name: str) -> Operator:
        """Return the stream, view or query that is an argument of a table function."""
        given = input_of(argument)
        if isinstance(given, exp.Table):
            return self.sources.table(self.binder, given)[0]
        if isinstance(given, exp.Query):
            return self.binder.bind(given, name).node
        hint = f"Write STREAM({call.name}(CURSOR(query), …)), or TABLE({call.name}(TABLE s, …))."
        raise refuse_at(self.text, call, "R141", f"{call.name} needs a query or a stream to read", hint)

    def _renamed(self, node: Operator, item: exp.Expr, lineage: Mapping[str, exp.Expr]) -> From:
        alias: exp.Expr | None = item.args.get("alias")
        name = item.alias_or_name
        if alias is None or not alias.args.get("columns"):
            return From.one(node, name, lineage)
        new = [identifier.name for identifier in alias.args["columns"]]
        bound = self.sources.renamed(BoundQuery(node, lineage), f"{self.name}.renamed", new, place_of(self.text, alias))
        return From.one(bound.node, name, bound.lineage)


def with_bound(fresh: Callable[[str], str], query: exp.Select, text: str, source: From, name: str) -> From:
    """Return the query's input, with the bound if it is used. Raises ``Refused`` (R170) if there is none."""
    calls = [call for call in query.find_all(exp.Anonymous) if is_current_bound(call)]
    calls = [call for call in calls if call.find_ancestor(exp.Query) is query]
    if not calls:
        return source
    if calls[0].expressions:
        raise refuse_at(text, calls[0], "R170", "CURRENT_BOUND takes no argument", "Write CURRENT_BOUND().")
    source = replace(source, node=over_fires(fresh, source.node))
    event = declared_by(source.node)
    if event is None:
        why = lost_at(source.node)
        what = "CURRENT_BOUND() is the bound of an event time, and these rows have no event time"
        hint = (
            "Read a view that declares one: CREATE VIEW v EVENT TIME (t, LAG INTERVAL '10' SECOND) AS SELECT …. "
            "The bound of a stream before a row is the ROWTIME of the row."
        )
        raise refuse("R170", f"{what}; {why}" if why else what, hint, place_of(text, calls[0]))
    return replace(source, node=CurrentBound(fresh(f"{name}.current_bound"), source.node, event))


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
