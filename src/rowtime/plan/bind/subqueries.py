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

from rowtime.expr.many_rows import has_aggregates, is_aggregate
from rowtime.operators.contract import Operator
from rowtime.plan.bind.correlation import (
    Inner,
    Tables,
    conjuncts_of,
    in_one_select,
    listed_for,
    placed,
    read,
    table_of,
    with_inputs,
)
from rowtime.sql.generate import to_rowtime
from rowtime.sql.numbers import whole_number
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


# Sub-queries in what groups are made of: their answers are columns of each row, below the groups.
#
# ``SELECT SUM(IF(x IN (…), 1, 0)) FROM s GROUP BY k`` is ``SELECT SUM(IF(asked_0, 1, 0)) FROM (SELECT *, x IN (…) AS
# asked_0 FROM s) AS s GROUP BY k``. So are keys with sub-queries, and the select list of DISTINCT.

_NAME = "asked_{}"


def has_subqueries_below(query: exp.Select) -> bool:
    """True if a query asks for another one in an aggregate, in a key of its groups or in the list of DISTINCT."""
    return next(_parts(query), None) is not None


def with_subqueries_below(query: exp.Select, text: str) -> exp.Select:
    """The query over its input with the answers.

    Raises ``Refused`` (R190) if there are several inputs, or if a query stands where it is not a value.
    """
    rewritten = query.copy()
    _spell_out_keys(rewritten)
    source = rewritten.args["from_"].this
    first = next(_parts(rewritten))
    if (
        rewritten.args.get("joins")
        or rewritten.args.get("laterals")
        or not source.alias_or_name
        or source.args.get("over")
    ):
        inner = first.find(exp.Query) or first
        hint = "Read the inputs in a sub-query with a name, and group that: FROM (SELECT STREAM … FROM a JOIN b …) AS j"
        what = "a sub-query in groups of a join is not supported"
        raise refuse_at(text, inner, "R190", what, hint)
    calls: list[exp.Expr] = []
    whole = [*rewritten.expressions, *(part for clause in ("group", "having") if (part := rewritten.args.get(clause)))]
    for part in [*_parts(rewritten)]:
        calls.extend(call.copy() for call in _subqueries(part) if call not in calls)
    for entry in whole:
        _replace(entry, calls)
    for left in _parts(rewritten):
        hint = "If the query gives one value, put it in parentheses, as in f((SELECT … FROM …))."
        raise refuse_at(text, left.find(exp.Query) or left, "R190", "a query without parentheses is not a value", hint)
    entries: list[exp.Expr] = [exp.Star()]
    for number, call in enumerate(calls):
        name = exp.to_identifier(_NAME.format(number))
        entries.append(
            exp.Alias(this=exp.paren(call.copy()) if isinstance(call, exp.Subquery) else call.copy(), alias=name)
        )
    inner_query = exp.Select(expressions=entries, from_=exp.From(this=source.copy()), stream=True)
    alias = exp.TableAlias(this=exp.to_identifier(source.alias_or_name, quoted=True))
    rewritten.set("from_", exp.From(this=exp.Subquery(this=inner_query, alias=alias)))
    return rewritten


def _parts(query: exp.Select) -> Iterator[exp.Expr]:
    """The expressions over single rows that ask for another query."""
    if query.args.get("from_") is None:
        return
    group, having = query.args.get("group"), query.args.get("having")
    rows = [
        *(_entry(query, key) or key for key in (group.expressions if group else ())),
        *(query.expressions if query.args.get("distinct") else ()),
    ]
    yield from (part for part in rows if part.find(exp.Query))
    for entry in (*query.expressions, *((having,) if having else ())):
        for call in entry.find_all(exp.Expr):
            outside = is_aggregate(call) and call.find_ancestor(exp.Query) in (None, query)
            if outside and call.find(exp.Query) and not isinstance(call.find_ancestor(exp.Window), exp.Window):
                yield call


def _entry(query: exp.Select, key: exp.Expr) -> exp.Expr | None:
    """The entry of the select list with a sub-query that a key of the groups means by its number or name."""
    place, listed = whole_number(key), query.expressions
    if place is not None and 1 <= place <= len(listed):
        named = [listed[place - 1]]
    else:
        plain = isinstance(key, exp.Column) and not key.table
        named = [entry for entry in listed if plain and entry.alias.lower() == key.name.lower()]
    return next((entry.unalias() for entry in named if entry.find(exp.Query)), None)


def _spell_out_keys(query: exp.Select) -> None:
    group = query.args.get("group")
    for key in list(group.expressions) if group else ():
        if (entry := _entry(query, key)) is not None:
            key.replace(entry.copy())


def _subqueries(part: exp.Expr) -> Iterator[exp.Expr]:
    """The tests and values that are sub-queries, from outside."""
    tests = (exp.In, exp.Exists, exp.Subquery)
    for node in part.find_all(exp.In, exp.Exists, exp.Subquery, exp.EQ, exp.NEQ):
        several = isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.expression, exp.Any | exp.All)
        of_query = isinstance(node, exp.Exists | exp.Subquery) or several or node.args.get("query") is not None
        if of_query and not _within(node, part, tests):
            yield node


def _within(node: exp.Expr, part: exp.Expr, kinds: tuple[type[exp.Expr], ...]) -> bool:
    """True if a node is inside another one of these, which is inside ``part``."""
    while node is not part and node.parent is not None:
        node = node.parent
        if isinstance(node, kinds) and (not isinstance(node, exp.In) or node.args.get("query") is not None):
            return True
        if isinstance(node, exp.Any | exp.All):
            return True
    return False


def _replace(node: exp.Expr, calls: list[exp.Expr]) -> None:
    """Put columns in place of what is asked for."""
    for part in list(node.iter_expressions()):
        if part in calls:
            column = exp.column(_NAME.format(calls.index(part)))
            part.replace(placed(column, part))
        else:
            _replace(part, calls)


# Sub-queries of a static table as values in expressions: one value, or the truth of IN and EXISTS.
#
# The value is a column of a LEFT JOIN with a query over the table, in which every row finds at most one row. IN and
# EXISTS use counts: how many rows are equal, how many there are, and how many of them are not NULL.

Pair = tuple[exp.Expr, exp.Expr]
"""An equality: the expression over the table, and the one over the outer row."""
_ZERO = ("COUNT", "COUNT_IF")
_NULL = ("MAX", "MIN", "SUM", "AVG", "MAX_BY", "MIN_BY", "BOOL_AND", "BOOL_OR", "EVERY", "SOME", "ANY")
"""Aggregates by their value for no rows: 0 or NULL."""


@dataclass(frozen=True)
class TableValues:
    """Makes ``joins`` and their columns; ``fresh`` names their inputs."""

    text: str
    fresh: Callable[[str], str]
    joins: list[exp.Join]

    def value(self, inner: Inner, node: exp.Expr) -> exp.Expr:
        """Return the replacement of a sub-query that is one value. Raises ``Refused`` (R159, R190)."""
        listed = inner.listed()
        if len(listed) != 1:
            what = f"a sub-query that is used as a value needs one column, and this one has {len(listed)} columns"
            raise refuse_at(self.text, node, "R159", what, "Select one column.")
        if not inner.is_static:
            what = "a sub-query of a stream cannot be used as a value"
            hint = "Join its last row: LEFT JOIN b FOR SYSTEM_TIME AS OF a.ROWTIME ON a.k = b.k; events: LEFT JOIN b."
            raise refuse_at(self.text, node, "R190", what, hint)
        value, pairs = listed[0].unalias(), self._pairs(inner)
        if not inner.grouped or not pairs:
            derived = inner.derived(self.fresh("value"))
            keys = [derived.column(mine) for mine, _ in pairs]
            column = derived.column(value)
            self._join(derived.subquery(tuple(key.name for key in keys)), keys, pairs)
            return placed(exp.paren(column), node)
        if inner.query.args.get("group") or inner.query.args.get("having"):
            raise inner.refused("GROUP BY together with a reference to the outer row", inner.correlated[0])
        whole = exp.Paren(this=value.copy())
        calls = [part for part in whole.find_all(exp.Expr) if is_aggregate(part) and not _in_aggregate(part)]
        for call, column in zip(calls, self._aggregates(inner, pairs, calls), strict=True):
            call.replace(column)
        return placed(whole, node)

    def test(self, inner: Inner, node: exp.Expr) -> exp.Expr:
        """Return the truth of IN or EXISTS: true, false, or NULL if a NULL may be the value. Raises ``Refused``."""
        if inner.grouped:
            raise inner.refused("GROUP BY or an aggregate, beside OR or outside of WHERE,", inner.query)
        every, pairs = exp.Count(this=exp.Star()), self._pairs(inner)
        if isinstance(node, exp.Exists):
            [count] = self._aggregates(inner, pairs, [every])
            return placed(exp.paren(_some(count)), node)
        value = node.this
        [column] = listed_for(inner, [value], node)
        count, known_count = self._aggregates(inner, pairs, [every, exp.Count(this=column.copy())])
        [equal] = self._aggregates(inner, [*pairs, (column, exp.paren(value.copy()))], [every])
        is_null = exp.Is(this=exp.paren(value.copy()), expression=exp.null())
        unknown = exp.or_(is_null, exp.GT(this=count.copy(), expression=known_count))
        cases = [
            exp.If(this=_some(equal), true=exp.true()),
            exp.If(this=exp.and_(_some(count), unknown), true=exp.cast(exp.null(), "BOOLEAN")),
        ]
        return placed(exp.paren(exp.Case(ifs=cases, default=exp.false())), node)

    def _pairs(self, inner: Inner) -> list[Pair]:
        """Return the sub-query's conditions on the outer row: equalities."""
        copies = []
        for part in inner.correlated:
            sides = [(part.this, part.expression), (part.expression, part.this)] if isinstance(part, exp.EQ) else []
            pair = next(
                (candidate for candidate in sides if inner.owns(candidate[0]) and not inner.asks(candidate[1])), None
            )
            if pair is None:
                what = "a sub-query that is used as a value can compare with the outer row by equality only"
                raise refuse_at(
                    self.text,
                    part,
                    "R190",
                    what,
                    f"Write WHERE {inner.alias}.k = s.k, with one column from each query.",
                )
            copies.append((pair[0].copy(), pair[1].copy()))
        return copies

    def _join(self, source: exp.Subquery, keys: Sequence[exp.Expr], pairs: Sequence[Pair]) -> None:
        tests = [exp.EQ(this=outer.copy(), expression=key.copy()) for key, (_, outer) in zip(keys, pairs, strict=True)]
        self.joins.append(exp.Join(this=source, side="LEFT", on=exp.and_(*tests) if tests else exp.true()))

    def _aggregates(self, inner: Inner, pairs: Sequence[Pair], calls: Sequence[exp.Expr]) -> list[exp.Expr]:
        """Return aggregates of the rows that belong to an outer row; without rows, COUNT is 0 and others are NULL."""
        derived, values = inner.derived(self.fresh("value")), []
        keys = [derived.column(mine) for mine, _ in pairs]
        derived.group = [mine.copy() for mine, _ in pairs]
        for call in calls:
            name = _function(call)
            if name not in (*_ZERO, *_NULL):
                what = f"{to_rowtime(call)} of the rows that belong to an outer row is not supported"
                raise refuse_at(self.text, call, "R190", what, "Use COUNT, SUM, AVG, MIN or MAX.")
            column = derived.column(call)
            zero = [exp.Literal.number(0)]
            values.append(exp.Coalesce(this=column, expressions=zero) if name in _ZERO else column)
        self._join(derived.subquery(None), keys, pairs)
        return values


def _some(count: exp.Expr) -> exp.Expr:
    return exp.GT(this=count.copy(), expression=exp.Literal.number(0))


def _function(call: exp.Expr) -> str:
    """Return the name of an aggregate, without expressions around it."""
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.WithinGroup):
        call = call.this
    if isinstance(call, exp.Anonymous):
        return call.name.upper()
    return call.sql_name().upper() if isinstance(call, exp.Func) else ""


def _in_aggregate(call: exp.Expr) -> bool:
    return call.parent is not None and is_aggregate(call.parent)
