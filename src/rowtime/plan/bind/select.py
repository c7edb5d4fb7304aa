"""Binds queries: SELECT STREAM, UNION ALL and sub-queries become operators.

One class handles one query text. It collects the query's problems, so that all of them can be reported. A rule refuses
with a place and a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from rowtime.core.columns import PASSED_ROWTIME, PROMOTED_TIME, ROWTIME
from rowtime.core.errors import Problem, Refused
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.many_rows import has_aggregates
from rowtime.expr.ranges import within
from rowtime.operators.contract import Column, Operator
from rowtime.operators.events.stitch import Stitch
from rowtime.operators.gates.tsort import TSort
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.rows.first_rows import unknown_at_first
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item, Select, unchanged
from rowtime.operators.sorts.sort_by import SortBy
from rowtime.operators.sorts.sort_by_values import SortByValues
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.bind.clauses import bind_with, limited, plain, refuse_later, spread_unbounded_state
from rowtime.plan.bind.event_time import meeting
from rowtime.plan.bind.from_clause import FromClause
from rowtime.plan.bind.group_plan import GroupPlan, WithinGroup
from rowtime.plan.bind.grouping_sets import has_sets, union_of_sets, without_clock
from rowtime.plan.bind.groups import Grouping
from rowtime.plan.bind.join_times import PromotedInputs
from rowtime.plan.bind.lateral_views import has_laterals, without_laterals
from rowtime.plan.bind.lifetime_groups import LifetimeGrouping
from rowtime.plan.bind.lifetimes import alike, emitted, refuse_in_select
from rowtime.plan.bind.lifted import LiftedGroups
from rowtime.plan.bind.named_entries import with_entries
from rowtime.plan.bind.numbering import sorted_first
from rowtime.plan.bind.orders import Sort, ascending, bind_sort, clocks_after, equal_to_rowtime, gates_of, is_clock
from rowtime.plan.bind.over import Windowing
from rowtime.plan.bind.panes import PaneGrouping, has_panes
from rowtime.plan.bind.qualify import qualified, refuse_in_where
from rowtime.plan.bind.rowtime_columns import or_left_out, selected, where_given
from rowtime.plan.bind.scope import From, Scope
from rowtime.plan.bind.select_list import items_of
from rowtime.plan.bind.sources import Binder, BoundQuery, Sources
from rowtime.plan.bind.spark_windows import without_spark_windows
from rowtime.plan.bind.subqueries import (
    Subqueries,
    has_group_subqueries,
    has_subqueries,
    has_subqueries_below,
    with_subqueries_below,
)
from rowtime.plan.bind.tables import Tables
from rowtime.plan.bind.union_order import common, distinct_union, flat, sorted_union
from rowtime.plan.bind.windows import refuse_outside
from rowtime.sql.nodes import recognizes
from rowtime.sql.places import place_of, refuse_at


@dataclass
class QueryBinder:
    """Binds the queries of one text; ``sources`` gives the operators of names."""

    text: str
    sources: Sources
    trying: bool = False
    """Whether this only tests if a rewrite would be accepted."""

    def bind(self, query: exp.Expr, name: str) -> BoundQuery:
        """Return the operators of a query; ``name`` names the gates in it. Raises ``Refused``."""
        query = plain(query)
        spread_unbounded_state(query)
        bind_with(self, query, name)
        bare = self._bare(query, name)
        bare = replace(bare, node=self.sources.enforced(bare.node, name))
        bound = emitted(self.text, self.sources, query, bare, name)
        return limited(self, query, bound, name)

    def binds(self, query: exp.Expr, name: str) -> bool:
        """Return True if a rewrite of a query binds, and no rewrite is being tried."""
        return not self.trying and self.refusal(query, name) is None

    def refusal(self, query: exp.Expr, name: str) -> Refused | None:
        """Return why a rewrite of a query does not bind; it has a catalog and operators of its own."""
        try:
            self._apart().bind(query, name)
        except Refused as refused:
            return refused
        return None

    def _bare(self, query: exp.Expr, name: str) -> BoundQuery:
        """Bind a query without the clauses around it."""
        if isinstance(query, exp.Union):
            return self._union(query, name)
        if not isinstance(query, exp.Select):
            hint = "Write a LEFT ANTI JOIN b ON … for EXCEPT, and a LEFT SEMI JOIN b ON … for INTERSECT."
            raise refuse_at(self.text, query, "R114", "a query must be a SELECT, a UNION ALL or a UNION", hint)
        query = without_spark_windows(with_listed_groups(query), self.text)
        if (rewritten := self._rewritten(query, name)) is not None:
            return self._bare(rewritten, name)
        if has_sets(query):
            return self._of_sets(query, name)
        if has_subqueries(query):
            query = self._subqueries(query, name).joined()
        try:
            return _SelectBinder(self, query, name).bind()
        except PromotedInputs as again:
            return self._bare(again.query, name)

    def _rewritten(self, query: exp.Select, name: str) -> exp.Select | None:
        """Return the plain query for one with elements of a value, with QUALIFY or with sub-queries in its groups."""
        if has_laterals(query):
            return without_laterals(query, self.text, lambda inner: self._columns(inner, name))
        if has_subqueries_below(query):
            return with_subqueries_below(query, self.text)
        if query.args.get("qualify"):
            names_of = partial(self._names, name=name)
            return qualified(query, self.text, names_of, self._subqueries(query, name).outside)
        if has_group_subqueries(query) and not has_sets(query):
            return LiftedGroups(query, self._subqueries(query, name).outside).filtered()
        return None

    def _subqueries(self, query: exp.Select, name: str) -> Subqueries:
        apart = self._apart()
        tables = Tables(self.text, apart.sources)
        return Subqueries(self.text, query, tables.columns, lambda inner: self._apart().bind(inner, name).node)

    def _of_sets(self, query: exp.Select, name: str) -> BoundQuery:
        """Bind a query that groups by several sets."""
        try:
            return self._bare(union_of_sets(query, self.text, lambda inner: self._names(inner, name)), name)
        except Refused as refused:
            if all(problem.code != "R104" for problem in refused.problems):
                raise
        raise without_clock(query, self.text, lambda rewritten: self.binds(rewritten, name))

    def _distinct(self, query: exp.Union, name: str) -> BoundQuery:
        """Bind UNION as SELECT STREAM DISTINCT of everything from the UNION ALL."""
        refuse_later(self.text, query)
        try:
            return self.bind(distinct_union(query, lambda inner: self._names(inner, name)), name)
        except Refused as refused:
            if all(problem.code != "R104" for problem in refused.problems):
                raise
        what = "UNION drops duplicates, and no column here tells when all equal rows have arrived"
        hint = (
            "Write UNION ALL; or select the same function of ROWTIME in each, as in FLOOR(s.ROWTIME TO HOUR) AS "
            "hour; then equal rows go out once, at its end."
        )
        raise refuse_at(self.text, query, "R109", what, hint)

    def _union(self, query: exp.Union, name: str) -> BoundQuery:
        if query.args.get("distinct"):
            return self._distinct(query, name)
        refuse_later(self.text, query)
        if query.args.get("order"):
            return self.bind(sorted_union(query, self.text, lambda inner: self._names(inner, name)), name)
        parts = [self.bind(part, f"{name}.{n}") for n, part in enumerate(flat(query), 1)]
        widths = {len(part.node.emits().columns) for part in parts}
        if len(widths) > 1:
            hint = "Select the same number of columns on each side."
            raise refuse_at(self.text, query, "R115", "the inputs of UNION ALL have different numbers of columns", hint)
        alike(self.text, query, [part.node for part in parts])
        inputs = tuple(part.node for part in parts)
        met = meeting(self.sources.fresh, inputs, name)
        if met is not None:
            return BoundQuery(met, common(parts))
        return BoundQuery(UnionAll(self.sources.fresh(f"{name}.union"), inputs), common(parts))

    def _names(self, query: exp.Expr, name: str) -> tuple[str, ...]:
        """Return the names of its columns."""
        return tuple(column.name for column in self._columns(query, name))

    def _columns(self, query: exp.Expr, name: str) -> tuple[Column, ...]:
        """Return the columns of a query, bound with operators of its own."""
        return self._apart().bind(query, name).node.emits().columns

    def _apart(self) -> QueryBinder:
        """Return a binder with operators of its own, which knows the names of WITH."""
        named = {key: query for key, query in self.sources.bound.items() if "." in key}
        return QueryBinder(self.text, Sources(self.sources.catalog, bound=named), trying=True)


Build = Callable[[], BoundQuery]  # makes the operators, once nothing is refused


class _SelectBinder:
    """Binds one SELECT: source, filter, promotion, groups, select list, in this order."""

    def __init__(self, binder: Binder, query: exp.Select, name: str) -> None:
        self.binder, self.query, self.name = binder, query, name
        self.text, self.sources = binder.text, binder.sources

    def bind(self) -> BoundQuery:
        self._refuse_unsupported()
        return self.over(FromClause(self.binder, self.query, self.name).bind())

    def over(self, source: From) -> BoundQuery:
        """Return the query over its input."""
        columns = {column.lower() for part in source.inputs for column, _ in part.columns} | {"rowtime"}
        self.query = with_entries(self.query, columns, {part.alias.lower() for part in source.inputs})
        refuse_in_where(self.query, self.text, source)
        steps = None if self._groups() or is_lifetimes(source.node) else sorted_first(self.query, self.text, source)
        if steps is not None:
            for step in steps[:-1]:
                below = _SelectBinder(self.binder, step, f"{self.name}.sorted").over(source)
                below = replace(below, node=self.sources.enforced(below.node, f"{self.name}.sorted"))
                source = From.one(below.node, source.inputs[0].alias, below.lineage)
            return _SelectBinder(self.binder, steps[-1], self.name).over(source)
        scope = Scope(
            self.text,
            source,
            gate=lambda: self.sources.fresh(self.name),
            binds=lambda q: self.binder.binds(q, self.name),
        )
        if is_lifetimes(scope.input):
            refuse_in_select(self.query, scope)
        build = self._built(scope, self._where(scope))
        if scope.problems:
            raise Refused(*or_left_out(self.query, scope))
        return build()

    def _where(self, scope: Scope) -> exp.Expr | None:
        """Return the condition of WHERE, bound."""
        where = self.query.args.get("where")
        if where is None:
            return None
        condition = scope.bind(where.this)
        if scope.promises:
            scope.refuse("R102", "WHERE cannot contain MONOTONIC", where, "Promise it in a sub-query.")
        refuse_outside(scope, where)
        if has_aggregates(condition):
            scope.refuse("R116", "WHERE cannot contain an aggregate", where, "Use HAVING.")
        scope.row_facts |= {column: within(fact, column, condition) for column, fact in scope.facts.items()}
        scope.source = replace(scope.source, lineage=where_given(scope.source.lineage, condition))
        name = unknown_at_first(condition, scope.input)
        if name is not None:
            what = f"WHERE drops the first row: {name} is NULL there, so the condition is neither true nor false"
            hint = "Replace the value of an empty frame: COALESCE(MAX(t) OVER (…), t)."
            self.sources.warnings.append(Problem("R166", what, place_of(self.text, where), hint, warns=True))
        return condition

    def _built(self, scope: Scope, condition: exp.Expr | None) -> Build:
        if is_lifetimes(scope.input) and self.query.args.get("distinct"):
            self.query = self.query.copy()
            self.query.set("distinct", None)
            build = self._built(scope, condition)
            return lambda: BoundQuery(Stitch(self.sources.fresh(f"{self.name}.distinct"), build().node))
        if not self._groups():
            return self._plain(scope, condition)
        if not is_lifetimes(scope.input):
            return self._grouped(scope, condition)
        grouping = LifetimeGrouping(self.query, scope).plan()
        below = self._filtered(scope, scope.input, condition)
        return lambda: BoundQuery(grouping(self.sources.fresh(f"{self.name}.group"), below))

    def _refuse_unsupported(self) -> None:
        query = self.query
        if query.args.get("stream") is not True:
            hint = f"Write SELECT STREAM{' DISTINCT' if query.args.get('distinct') else ''}."
            raise refuse_at(self.text, query, "R105", "a stream cannot be read as a table", hint)
        later = query
        if query.args.get("keys_expire") and (recognizes(query) or not self._groups()):
            later = query.copy()  # rows in windows are checked above them
            later.set("keys_expire", None)
        refuse_later(self.text, later)

    def _groups(self) -> bool:
        query = self.query
        listed = [e for e in query.expressions if has_aggregates(e)]
        clauses = ("group", "having", "distinct", "windowed")
        return bool(listed) or any(query.args.get(clause) for clause in clauses)

    # -- without groups ---------------------------------------------------------------

    def _plain(self, scope: Scope, where: exp.Expr | None) -> Build:
        windowing = Windowing(self.query, scope, lambda what: self.sources.fresh(f"{self.name}.{what}"))
        items, promoted = items_of(self.query, scope)
        sort = bind_sort(self.query, scope, promoted)
        gate = sort or Sort(0, ())
        windowing.check(self.query)
        hidden: tuple[Item, ...] = ()
        if (promoted is not None or sort is not None) and gate.value is None:
            time = promoted if promoted is not None else exp.null()
            hidden = (Item(Column(PROMOTED_TIME), time), *gate.items)

        def build() -> BoundQuery:
            source, condition = self._checked(scope, where)
            if windowing.has_windows:
                used = columns_in([item.expression for item in (*items, *hidden, *gate.items)])
                source = self._filtered(scope, source, condition)
                source, condition = windowing.build(self.sources, source, self.name, used), None
            if gate.value is not None:
                return self._sorted(source, items, condition, gate, clocks_after(gate, scope, items))
            if not hidden:
                clocks = {item.column.name: (item, scope.inlined(item.expression)) for item in items}
                lineage = {name: at for name, (item, at) in clocks.items() if is_clock(scope, item, at)}
                lineage |= selected(items, scope.source.lineage)
                return BoundQuery(Select(self.sources.fresh(f"{self.name}.select"), source, items, condition), lineage)
            below = Select(self.sources.fresh(f"{self.name}.select"), source, items, condition, hidden)
            name = self.sources.fresh(self.name)
            follows = None if sort is not None or promoted is None else ascending(scope, promoted)
            sorting = TSort(name, below, gate.within, gate.names, gate.ways, sort is not None, follows=follows)
            sorting = replace(sorting, early=gate.early, resync=gate.resync, ahead=gate.ahead)
            return BoundQuery(sorting, equal_to_rowtime(promoted, items, scope.columns))

        return build

    def _sorted(
        self,
        source: Operator,
        items: tuple[Item, ...],
        where: exp.Expr | None,
        sort: Sort,
        clocks: Mapping[str, exp.Expr],
    ) -> BoundQuery:
        """Bind ORDER BY m, k…: the select list with the keys, at the ends of m."""
        value = sort.value
        assert value is not None
        by_value = (value,) if sort.closer is not None else ()
        below = Select(self.sources.fresh(f"{self.name}.select"), source, items, where, (*sort.items, *by_value))
        name = self.sources.fresh(f"{self.name}.order")
        if sort.closer is None:
            self.sources.compared.add(name)
            return BoundQuery(SortBy(name, below, value, sort.names, sort.ways, sort.stamp, tuple(clocks)), clocks)
        gates, of = gates_of(source, sort.closer), value.expression
        return BoundQuery(SortByValues(name, below, of, sort.closer, gates, sort.names, sort.ways, sort.stamp))

    def _checked(self, scope: Scope, where: exp.Expr | None) -> tuple[Operator, exp.Expr | None]:
        """Return the input with the checks of MONOTONIC after WHERE; and the rest of WHERE."""
        source = scope.input
        if not scope.promises:
            return source, where
        source = self._filtered(scope, source, where)
        for number, (name, value) in enumerate(scope.promises.values(), 1):
            source = Ordered(name, source, value, more=number < len(scope.promises))
        return self.sources.enforced(source, self.name), None

    def _filtered(self, scope: Scope, source: Operator, where: exp.Expr | None) -> Operator:
        if where is None:
            return source
        return Select(self.sources.fresh(f"{self.name}.where"), source, unchanged(scope.columns), where)

    # -- with groups ------------------------------------------------------------------

    def _grouped(self, scope: Scope, where: exp.Expr | None) -> Build:
        if has_panes(self.query):
            if self.query.args.get("order"):
                scope.refuse("R190", "ORDER BY of panes is not supported yet", self.query.args["order"])
            return self._in_panes(scope, where)
        grouping = Grouping(self.query, scope)
        plan = grouping.bind()

        def build() -> BoundQuery:
            if plan.endless:
                self._warn(grouping.growth())
            source, condition = self._checked(scope, where)
            if plan.within is not None:
                source = self._promoted(scope, source, plan, plan.within, condition)
            else:
                source = self._filtered(scope, source, condition)
                source = scope.windows.above(source, plan.keys, self.name)
            return BoundQuery(plan.build(self.name, source, self.sources.fresh), plan.lineage())

        return build

    def _in_panes(self, scope: Scope, where: exp.Expr | None) -> Build:
        grouping = PaneGrouping(self.query, scope).plan()

        def build() -> BoundQuery:
            assert grouping is not None
            source = self._filtered(scope, *self._checked(scope, where))
            return BoundQuery(grouping(self.sources.fresh(self.name), source))

        return build

    def _warn(self, growth: str) -> None:
        what = f"the groups of {self.name} are kept until the stream ends, {growth}: their rows come with its end"
        hint = "Group by something that ascends as well. Then each group goes out and is dropped."
        self.sources.warnings.append(Problem("R185", what, place_of(self.text, self.query), hint, warns=True))

    def _promoted(
        self, scope: Scope, source: Operator, plan: GroupPlan, within: WithinGroup, where: exp.Expr | None
    ) -> Operator:
        """Bind GROUP BY … WITHIN: a T-sort that refuses rows by the end of their group."""
        if scope.windows.hops:
            source = scope.windows.above(self._filtered(scope, source, where), plan.keys, self.name, gate=True)
            where = None
        items = unchanged(source.emits().columns if scope.windows.hops else scope.columns)
        columns = columns_in(item.expression for item in (*plan.keys, *plan.aggregates))
        own = (Item(Column(PASSED_ROWTIME), col(ROWTIME)),) if PASSED_ROWTIME in columns else ()
        below = Select(self.sources.fresh(f"{self.name}.select"), source, items, where, (*within.hidden, *own))
        return TSort(self.sources.fresh(self.name), below, within.micros, sorts=False, by_group=True, before=bool(own))


def with_listed_groups(query: exp.Select) -> exp.Select:
    """Return the query with its entries in place of ALL; other queries as they are.

    A column with this name has to be quoted, or to have its input before it.
    """
    group = query.args.get("group")
    if group is None or len(group.expressions) != 1 or not _is_all(group.expressions[0]):
        return query
    query = query.copy()
    entries = [entry.unalias() for entry in query.expressions if not has_aggregates(entry)]
    query.set("group", exp.Group(expressions=[entry.copy() for entry in entries]) if entries else None)
    return query


def _is_all(key: exp.Expr) -> bool:
    plain = isinstance(key, exp.Column) and not key.table and not key.this.args.get("quoted")
    return plain and key.name.upper() == "ALL"
