"""Turns a query of groups into one over a sub-query of the groups, so that windows, filters and joins can be above."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from rowtime.expr.many_rows import is_aggregate
from rowtime.plan.bind.correlation import conjuncts_of
from rowtime.plan.bind.windows import is_edge

_NAME = "qualify_{}"  # of a column that only the query above reads
Outside = Callable[[exp.Expr], Sequence[exp.Column]]
"""Returns the columns of a sub-query that belong to the outer query."""
AROUND = ("qualify", "limit", "with_", "emit", "emit_changes", "emit_final", "unbounded_state")
"""The clauses of a query that belong to the whole, whatever is inside."""


class Lifted:
    """A query whose select list gets additional columns, for use above it."""

    def __init__(self, query: exp.Select) -> None:
        self.query = query
        self._taken = {entry.alias_or_name.lower() for entry in query.expressions}
        listed = [entry for entry in query.expressions if entry.alias_or_name and not entry.is_star]
        self._known = {entry.unalias(): entry.alias_or_name for entry in reversed(listed) if not _is_time(entry)}

    def column(self, node: exp.Expr) -> exp.Expr:
        """Return the column of the query for an expression."""
        if node not in self._known:
            number = next(n for n in range(len(self._taken) + 1) if _NAME.format(n) not in self._taken)
            name = _NAME.format(number)
            self._known[node.copy()] = name
            self._taken.add(name)
            self.query.append("expressions", exp.alias_(node.copy(), name, quoted=True))
        column = exp.column(self._known[node], quoted=True)
        column.meta.update(next((part.meta for part in node.walk() if part.meta.get("start") is not None), {}))
        return column

    def listed(self, node: exp.Expr, names: Sequence[str]) -> exp.Expr | None:
        """Return the item's column that a name means."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        return next((exp.column(name, quoted=True) for name in names if name.lower() == node.name.lower()), None)


class LiftedGroups:
    """A query with windows or sub-queries over its groups, as one over the groups, which are named ``alias``."""

    def __init__(self, query: exp.Select, outside: Outside) -> None:
        self._query, self._outside = query, outside
        self.alias, self._has_subqueries = _fresh(query), False
        group = query.args.get("group")
        self._keys = [] if group is None else [key.copy() for key in group.expressions]
        groups = query.copy()
        for clause in (*AROUND, "windows"):
            groups.set(clause, None)
        groups.set("unbounded_state", query.args.get("unbounded_state"))
        self._entries = [_named(entry, number) for number, entry in enumerate(_untimed(query))]
        times = [entry.copy() for entry in query.expressions if _is_time(entry)]
        plain = [entry.copy() for entry in self._entries if not entry.find(exp.Window, exp.Query)]
        groups.set("expressions", [*times, *plain])
        self._below, self._names = Lifted(groups), [entry.alias for entry in plain]

    def qualified(self) -> exp.Select:
        """Return the query with QUALIFY above the groups."""
        query, names = self._query_above(), [entry.alias for entry in self._entries]
        query.set("qualify", exp.Qualify(this=self._filter(self._query.args["qualify"].this.copy(), names)))
        return self._with_name(query) if self._has_subqueries else query  # without sub-queries it needs no name

    def filtered(self) -> exp.Select:
        """Return the query with a WHERE above the groups for the HAVING conditions that have sub-queries."""
        having = self._below.query.args.get("having")
        conditions = conjuncts_of(having.this) if having is not None else []
        above = [self._above(exp.Paren(this=part.copy())) for part in conditions if part.find(exp.Query)]
        below = [exp.paren(part.copy()) for part in conditions if not part.find(exp.Query)]
        self._below.query.set("having", exp.Having(this=exp.and_(*below)) if below else None)
        query = self._query_above()
        query.set("where", exp.Where(this=exp.and_(*above)) if above else None)
        return self._with_name(query)

    def _query_above(self) -> exp.Select:
        entries = [exp.alias_(self._above(entry.this.copy()), entry.alias, quoted=True) for entry in self._entries]
        query = exp.Select(expressions=entries, stream=True)
        windows = [self._window(window.copy()) for window in self._query.args.get("windows") or []]
        query.set("windows", windows or None)
        query.set("from_", exp.From(this=exp.Subquery(this=self._below.query)))
        return query

    def _with_name(self, query: exp.Select) -> exp.Select:
        """Return the query with a name for its input, so that sub-queries can name columns of the groups."""
        query.args["from_"].this.set("alias", exp.TableAlias(this=self._name))
        return query

    @property
    def _name(self) -> exp.Identifier:
        return exp.to_identifier(self.alias)

    def _filter(self, node: exp.Expr, names: Sequence[str]) -> exp.Expr:
        if (listed := self._below.listed(node, names)) is not None:
            return listed
        above = self._above(node) if isinstance(node, exp.Window) or self._is_value(node) else None
        return above or changed(node, lambda part: self._filter(part, names))

    def _is_value(self, node: exp.Expr) -> bool:
        return node in self._keys or is_aggregate(node) or isinstance(node, exp.Column) or is_edge(node)

    def _above(self, node: exp.Expr) -> exp.Expr:
        """Return an expression over the groups: keys and aggregates are columns of them, windows stay."""
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Query):
            return self._subquery(node)
        return self._part(node) if self._is_value(node) else changed(node, self._above)

    def _subquery(self, query: exp.Expr) -> exp.Expr:
        """Return a sub-query with columns of the groups in place of the outer query's."""
        self._has_subqueries = True
        outside = self._outside(query)
        calls = [call for call in query.find_all(exp.Expr) if is_aggregate(call) and _is_of(call, outside)]
        inside = {id(part) for call in calls for part in call.find_all(exp.Column)}
        for node in (*calls, *(column for column in outside if id(column) not in inside)):
            lifted = self._part(node)
            lifted.set("table", self._name)
            node.replace(lifted)
        return query

    def _window(self, window: exp.Window) -> exp.Window:
        self._call(window.this)
        window.set("partition_by", [self._part(key) for key in window.args.get("partition_by") or []])
        for key in window.args["order"].expressions if window.args.get("order") else []:
            key.set("this", self._part(key.this))
        return window

    def _part(self, node: exp.Expr) -> exp.Expr:
        """Return the column of the groups for an expression; a name that is not a key may be that of an item."""
        listed = self._below.listed(node, self._names)
        return listed if listed is not None and node not in self._keys else self._below.column(node)

    def _call(self, call: exp.Expr) -> None:
        """Replace the arguments of the call before OVER, which is not an aggregate of the groups itself."""
        for part in list(call.iter_expressions()):
            if part is call.this and isinstance(call, exp.Filter | exp.IgnoreNulls):
                self._call(part)
            elif not isinstance(part, exp.Identifier) and (above := self._above(part)) is not part:
                part.replace(above)


def _is_of(call: exp.Expr, columns: Sequence[exp.Column]) -> bool:
    """Return True if an aggregate reads only these columns."""
    read = [*call.find_all(exp.Column)]
    return bool(read) and all(any(column is candidate for candidate in columns) for column in read)


def _fresh(query: exp.Select) -> str:
    """Return a name that no input of a query has."""
    taken = {table.alias_or_name.lower() for table in query.find_all(exp.Table, exp.Subquery)}
    return next(name for name in (f"groups{n}" for n in range(1, len(taken) + 2)) if name not in taken)


def _is_time(entry: exp.Expr) -> bool:
    return entry.alias_or_name.upper() == "ROWTIME"


def _untimed(query: exp.Select) -> list[exp.Expr]:
    return [entry for entry in query.expressions if not _is_time(entry)]


def _named(entry: exp.Expr, number: int) -> exp.Alias:
    """Return an item with its present name."""
    name = exp.to_identifier(entry.alias_or_name or f"_c{number}", quoted=True)
    return exp.Alias(this=entry.unalias().copy(), alias=name)


def changed(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return a node with each part changed."""
    for part in list(node.iter_expressions()):
        replacement = change(part)
        if replacement is not part:
            part.replace(replacement)
    return node
