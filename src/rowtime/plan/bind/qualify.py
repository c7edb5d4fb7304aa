"""QUALIFY: a filter above the windows of a query, which may be windows over its groups.

``SELECT a FROM s QUALIFY ROW_NUMBER() OVER w <= 3`` is ``SELECT a FROM (SELECT a, ROW_NUMBER() OVER w AS n FROM s)
WHERE n <= 3``; over groups, the windows stand in a query of their own above them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from rowtime.expr.many_rows import has_aggregates, is_aggregate
from rowtime.sql.places import refuse_at

_NAME = "qualify_{}"  # of a column that only the filter reads
_AROUND = ("qualify", "limit", "with_", "emit", "emit_changes", "emit_final", "unbounded_state")  # of the whole


def qualified(query: exp.Select, text: str, names_of: Callable[[exp.Expr], Sequence[str]]) -> exp.Select:
    """The query that QUALIFY means; ``names_of`` binds a query and names its columns. Raises ``Refused`` (R187)."""
    clause = query.args["qualify"]
    if not any(part.find(exp.Window) for part in (clause, *query.expressions)):
        hint = "Write WHERE, or HAVING for groups; QUALIFY is for windows: QUALIFY ROW_NUMBER() OVER (…) <= 3."
        raise refuse_at(text, clause, "R187", "QUALIFY without a window", hint)
    if query.args.get("distinct"):
        hint = "Filter in a sub-query, and write SELECT STREAM DISTINCT around it."
        raise refuse_at(text, clause, "R187", "QUALIFY beside DISTINCT", hint)
    if query.args.get("group") or query.args.get("having") or any(map(has_aggregates, query.expressions)):
        query = _Groups(query).query()
    inner = query.copy()
    for words in _AROUND:
        inner.set(words, None)
    shown = names_of(inner)
    lifted = _Lifted(inner)
    condition = _condition(query.args["qualify"].this.copy(), lifted, shown)
    source = exp.From(this=exp.Subquery(this=inner))
    listed: list[exp.Expr] = [exp.column(name, quoted=True) for name in shown]
    return exp.Select(expressions=listed, from_=source, where=exp.Where(this=condition), stream=True)


class _Lifted:
    """A query, to whose select list columns are added for what is asked of it above."""

    def __init__(self, query: exp.Select) -> None:
        self.query = query
        self._taken = {entry.alias_or_name.lower() for entry in query.expressions}
        listed = [entry for entry in query.expressions if entry.alias_or_name and not entry.is_star]
        self._known = {entry.unalias(): entry.alias_or_name for entry in reversed(listed) if not _is_time(entry)}

    def column(self, node: exp.Expr) -> exp.Expr:
        """The column of the query for an expression."""
        if node not in self._known:
            number = next(n for n in range(len(self._taken) + 1) if _NAME.format(n) not in self._taken)
            name = _NAME.format(number)
            self._known[node.copy()] = name
            self._taken.add(name)
            self.query.append("expressions", exp.alias_(node.copy(), name, quoted=True))
        found = exp.column(self._known[node], quoted=True)
        found.meta.update(next((part.meta for part in node.walk() if part.meta.get("start") is not None), {}))
        return found

    def listed(self, node: exp.Expr, names: Sequence[str]) -> exp.Expr | None:
        """The column that a name means which an entry has."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        return next((exp.column(name, quoted=True) for name in names if name.lower() == node.name.lower()), None)


def _condition(node: exp.Expr, below: _Lifted, names: Sequence[str]) -> exp.Expr:
    """A condition over the columns of the query: those that it lists, its windows, and what else it has."""
    if (listed := below.listed(node, names)) is not None:
        return listed
    if isinstance(node, exp.Window | exp.Column):
        return below.column(node)
    return _changed(node, lambda part: _condition(part, below, names))


class _Groups:
    """A query with windows over its groups, as one over a sub-query of the groups."""

    def __init__(self, query: exp.Select) -> None:
        self._query = query
        group = query.args.get("group")
        self._keys = [] if group is None else [key.copy() for key in group.expressions]
        groups = query.copy()
        for clause in (*_AROUND, "windows"):
            groups.set(clause, None)
        groups.set("unbounded_state", query.args.get("unbounded_state"))
        self._entries = [_named(entry, number) for number, entry in enumerate(_untimed(query))]
        times = [entry.copy() for entry in query.expressions if _is_time(entry)]
        plain = [entry.copy() for entry in self._entries if not entry.find(exp.Window)]
        groups.set("expressions", [*times, *plain])
        self._below, self._names = _Lifted(groups), [entry.alias for entry in plain]

    def query(self) -> exp.Select:
        entries = [exp.alias_(self._above(entry.this.copy()), entry.alias, quoted=True) for entry in self._entries]
        made = exp.Select(expressions=entries, stream=True)
        names = [entry.alias for entry in self._entries]
        made.set("qualify", exp.Qualify(this=self._filter(self._query.args["qualify"].this.copy(), names)))
        windows = [self._window(window.copy()) for window in self._query.args.get("windows") or []]
        made.set("windows", windows or None)
        made.set("from_", exp.From(this=exp.Subquery(this=self._below.query)))
        return made

    def _filter(self, node: exp.Expr, names: Sequence[str]) -> exp.Expr:
        if (listed := self._below.listed(node, names)) is not None:
            return listed
        above = self._above(node) if isinstance(node, exp.Window) or self._is_value(node) else None
        return above or _changed(node, lambda part: self._filter(part, names))

    def _is_value(self, node: exp.Expr) -> bool:
        return node in self._keys or is_aggregate(node) or isinstance(node, exp.Column)

    def _above(self, node: exp.Expr) -> exp.Expr:
        """An expression over the groups: keys and aggregates are columns of them, windows stay."""
        if isinstance(node, exp.Window):
            return self._window(node)
        return self._part(node) if self._is_value(node) else _changed(node, self._above)

    def _window(self, window: exp.Window) -> exp.Window:
        self._call(window.this)
        window.set("partition_by", [self._part(key) for key in window.args.get("partition_by") or []])
        for key in window.args["order"].expressions if window.args.get("order") else []:
            key.set("this", self._part(key.this))
        return window

    def _part(self, node: exp.Expr) -> exp.Expr:
        """The column of the groups for an expression; what is no key may be the name of an entry."""
        listed = self._below.listed(node, self._names)
        return listed if listed is not None and node not in self._keys else self._below.column(node)

    def _call(self, call: exp.Expr) -> None:
        """The arguments of what stands before OVER, which itself is no aggregate of the groups."""
        for part in list(call.iter_expressions()):
            if part is call.this and isinstance(call, exp.Filter | exp.IgnoreNulls):
                self._call(part)
            elif not isinstance(part, exp.Identifier) and (changed := self._above(part)) is not part:
                part.replace(changed)


def _is_time(entry: exp.Expr) -> bool:
    return entry.alias_or_name.upper() == "ROWTIME"


def _untimed(query: exp.Select) -> list[exp.Expr]:
    return [entry for entry in query.expressions if not _is_time(entry)]


def _named(entry: exp.Expr, number: int) -> exp.Alias:
    """An entry with the name that it has anyway."""
    name = exp.to_identifier(entry.alias_or_name or f"_c{number}", quoted=True)
    return exp.Alias(this=entry.unalias().copy(), alias=name)


def _changed(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    for part in list(node.iter_expressions()):
        changed = change(part)
        if changed is not part:
            part.replace(changed)
    return node
