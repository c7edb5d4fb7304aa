"""Sub-queries in expressions, as joins: IN and EXISTS in WHERE are semi joins, NOT IN and NOT EXISTS are anti joins.

``WHERE x IN (SELECT c FROM t)`` is ``SEMI JOIN t ON x = t.c``. ``x NOT IN (…)`` keeps a row if x differs from all of
them, so a row is dropped if x = c is true or NULL for one. For a static table the join reads a query of its own, which
is computed once. A stream is joined directly, within a range of time, and events while both are alive. For other places
see `table_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from rowtime.expr.many_rows import has_aggregates
from rowtime.operators.contract import Operator
from rowtime.plan.bind.correlation import (
    Inner,
    Tables,
    conjuncts_of,
    in_one_select,
    listed_for,
    read,
    table_of,
    with_inputs,
)
from rowtime.plan.bind.table_values import TableValues
from rowtime.sql.places import refuse_at


def has_subqueries(query: exp.Select) -> bool:
    """Return True if a query has a sub-query in its WHERE, in ON of an inner join or in its select list."""
    parts = (*query.expressions, *_where(query), *(part for _, part in _of_joins(query)))
    return any(part.find(exp.Query) is not None for part in parts)


def has_group_subqueries(query: exp.Select) -> bool:
    """Return True if a query has a sub-query in the select list or HAVING of its groups."""
    having = query.args.get("having")
    parts = (*query.expressions, *([having] if having is not None else []))
    plain = not query.args.get("distinct") and not query.args.get("windowed")
    return plain and _groups(query) and any(part.find(exp.Query) for part in parts)


@dataclass
class Subqueries:
    """The sub-queries of one SELECT; ``bound`` binds a query by itself."""

    text: str
    query: exp.Select
    tables: Tables
    bound: Callable[[exp.Expr], Operator]
    joins: list[exp.Join] = field(default_factory=list)

    def joined(self) -> exp.Select:
        """Return the query with joins in place of sub-queries, as far as possible; itself if there are none.

        Raises ``Refused`` if a sub-query cannot be joined.
        """
        if self.query.args.get("from_") is None:
            return self.query
        rewritten, values = _with_where(self.query), TableValues(self.text, self._fresh, self.joins)
        for part in (*_where(rewritten), *rewritten.expressions):
            for node in [*part.find_all(exp.Query)]:
                if not isinstance(node, exp.Subquery) and _stands(node, part):
                    in_one_select(node, self.tables)
        conditions = [exp.Paren(this=part.copy()) for part in _where(rewritten) if not self._filters(part)]
        for part in (*conditions, *(() if _groups(rewritten) else rewritten.expressions)):
            for node in [*part.find_all(exp.In, exp.Exists)]:
                inner = _query(node)
                if inner is not None and self._is_test(node, inner, part):
                    node.replace(values.test(self._read(inner), node))
            for node in [*_values(part)]:
                node.replace(values.value(self._read(node), node))
        if not self.joins:
            return self.query
        if not (source := self.query.args["from_"].this).alias_or_name:
            what = "what is compared with a sub-query has no name"
            raise refuse_at(self.text, source, "R151", what, "Give each input a name of its own with AS.")
        rewritten.set(
            "where", exp.Where(this=exp.and_(*(condition.this for condition in conditions))) if conditions else None
        )
        rewritten.set("joins", [*(rewritten.args.get("joins") or []), *self.joins])
        return rewritten

    def outside(self, node: exp.Expr) -> list[exp.Column]:
        """Return the columns in a sub-query that belong to this query."""
        return self._read(node).outside

    def _read(self, node: exp.Expr) -> Inner:
        return read(self.text, node, self.tables, self.bound)

    def _filters(self, part: exp.Expr) -> bool:
        """Replace a condition by a join, and return True, if that is possible."""
        node, negated = part, False
        while isinstance(node, exp.Not):
            node, negated = node.this.unnest(), not negated
        values: list[exp.Expr] = []
        if isinstance(node, exp.In):
            values = [*node.this.expressions] if isinstance(node.this, exp.Tuple) else [node.this]
        elif isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.expression, exp.Any | exp.All):
            if isinstance(node, exp.EQ) is isinstance(node.expression, exp.All):
                return False  # = ALL and <> ANY
            values, negated = [node.this], negated is isinstance(node, exp.EQ)
        inner = _query(node)
        if inner is None or any(value.find(exp.Query) for value in values):
            return False
        self.joins.append(self._join(self._read(inner), values, node, negated=negated))
        return True

    def _join(self, inner: Inner, values: Sequence[exp.Expr], node: exp.Expr, *, negated: bool) -> exp.Join:
        listed = listed_for(inner, values, node) if values else []
        kind = "ANTI" if negated else "SEMI"
        if inner.is_static:
            if inner.grouped and inner.correlated:
                raise inner.refused(
                    "GROUP BY or an aggregate together with a reference to the outer row", inner.correlated[0]
                )
            derived = inner.derived(self._fresh("in" if values else "exists"))
            columns = [derived.column(entry) for entry in listed]
            for entry in inner.listed() if inner.grouped and not values else ():  # a group may have no rows
                derived.column(entry.unalias())
            tests = [*_equal(values, columns, negated=negated), *map(derived.above, inner.correlated)]
            on = exp.and_(*tests) if tests else exp.true()
            return exp.Join(this=derived.subquery(None), kind=kind, on=on)
        if inner.grouped or inner.query.args.get("distinct"):
            raise inner.refused("GROUP BY, DISTINCT or an aggregate", inner.query)
        columns = [inner.named(entry, self._outside) for entry in listed]
        values = [with_inputs(value, lambda _: self._outside) for value in values]
        tests = _equal(values, columns, negated=negated)
        tests += [inner.named(part, self._outside) for part in inner.conditions]
        join = exp.Join(this=inner.source.copy(), kind=kind, on=exp.and_(*tests) if tests else exp.true())
        join.meta["subquery"] = True
        return join

    @property
    def _outside(self) -> str:
        """Return the name of the query's input, if there is one."""
        return "" if self.query.args.get("joins") else str(self.query.args["from_"].this.alias_or_name)

    def _is_test(self, node: exp.Expr, inner: exp.Expr, part: exp.Expr) -> bool:
        """Return True for a test of a table that is a part of another expression."""
        single = not isinstance(node, exp.In) or not isinstance(node.this, exp.Tuple)
        return single and _stands(node, part) and table_of(inner, self.tables) is not None

    def _fresh(self, word: str) -> str:
        """Return a name for a join input that no other input has."""
        taken = {table.alias_or_name.lower() for table in self.query.find_all(exp.Table, exp.Subquery)}
        taken |= {join.this.alias_or_name.lower() for join in self.joins}
        return next(f"{word}{n}" for n in range(1, len(taken) + 2) if f"{word}{n}" not in taken)


def _where(query: exp.Select) -> list[exp.Expr]:
    return conjuncts_of(query.args["where"].this) if query.args.get("where") else []


def _of_joins(query: exp.Select) -> list[tuple[exp.Join, exp.Expr]]:
    """Return the conditions of inner joins, which could be in WHERE instead."""
    inner = [join for join in query.args.get("joins") or [] if not join.side and join.kind in ("", "INNER")]
    return [(join, part) for join in inner if join.args.get("on") for part in conjuncts_of(join.args["on"])]


def _with_where(query: exp.Select) -> exp.Select:
    """Return the query with the sub-queries of inner joins moved to WHERE."""
    copied = query.copy()
    for join in {id(join): join for join, part in _of_joins(copied) if part.find(exp.Query)}.values():
        parts = conjuncts_of(join.args["on"])
        stay = [exp.paren(part.copy()) for part in parts if not part.find(exp.Query)]
        moved = [exp.paren(part.copy()) for part in parts if part.find(exp.Query)]
        join.set("on", exp.and_(*stay) if stay else exp.true())
        where = copied.args.get("where")
        kept = [exp.paren(where.this.copy())] if where else []
        copied.set("where", exp.Where(this=exp.and_(*kept, *moved)))
    return copied


def _groups(query: exp.Select) -> bool:
    """Return True if the select list is over groups, which cannot read another input."""
    clauses = ("group", "having", "distinct", "windowed")
    return any(query.args.get(clause) for clause in clauses) or any(map(has_aggregates, query.expressions))


def _query(node: exp.Expr) -> exp.Expr | None:
    """Return the sub-query of a test."""
    inner = node.args.get("query") if isinstance(node, exp.In) else None
    if isinstance(node, exp.Exists):
        inner = node.this
    elif isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.expression, exp.Any | exp.All):
        inner = node.expression.this
    return inner if isinstance(inner, exp.Query) else None


def _stands(node: exp.Expr, part: exp.Expr) -> bool:
    """Return True if a node is in an expression itself, and not in a sub-query."""
    above = node.find_ancestor(exp.Query)
    return above is None or above is part.find_ancestor(exp.Query)


def _values(part: exp.Expr) -> Iterator[exp.Subquery]:
    """Yield the sub-queries in an expression that stand for one value."""
    for node in part.find_all(exp.Subquery):
        of_test = isinstance(node.parent, exp.In) and node.arg_key == "query"
        if not of_test and not isinstance(node.parent, exp.Exists | exp.Any | exp.All) and _stands(node, part):
            yield node


def _equal(values: Sequence[exp.Expr], columns: Sequence[exp.Expr], *, negated: bool) -> list[exp.Expr]:
    """Return equalities of values with columns; ``negated``: also true if they may be equal, because one is NULL."""
    conditions: list[exp.Expr] = []
    for value, column in zip(values, columns, strict=True):
        copied = value.copy() if isinstance(value, exp.Column) else exp.paren(value.copy())
        same: exp.Expr = exp.EQ(this=copied, expression=column)
        unknown = exp.Is(this=exp.paren(same.copy()), expression=exp.null())
        conditions.append(exp.paren(exp.or_(same, unknown)) if negated else same)
    return conditions
