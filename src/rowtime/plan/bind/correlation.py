"""Analyses a sub-query in an expression: what it reads, and how it refers to the outer query.

A name inside means a column of the sub-query's input, if that has one; else a column of the outer query, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from rowtime.core.errors import Refused
from rowtime.expr.many_rows import has_aggregates
from rowtime.operators.contract import Operator
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.sql.numbers import whole_number
from rowtime.sql.places import refuse_at

Bound = Callable[[exp.Expr], Operator]
Tables = Callable[[exp.Expr], Sequence[str] | None]
"""The columns of a table or of a query over tables; ``None`` for everything else."""
_KNOWN = frozenset({"expressions", "from_", "where", "group", "having", "distinct", "stream", "kind"})
_WORDS = {"joins": "a join", "limit": "LIMIT", "order": "ORDER BY", "laterals": "LATERAL VIEW", "with_": "WITH"}
_WHOLE = "whole"
_PLAIN = (
    "A sub-query reads one table or stream, and may have WHERE. If it reads a table, it may also have GROUP BY and "
    "HAVING."
)
_VIEW = "Put it into a view, and read that: CREATE VIEW v AS SELECT STREAM …; … IN (SELECT STREAM k FROM v …)."


def instead_of(query: exp.Query, *, events: bool) -> str:
    """Return what to write instead of a sub-query where none is possible; ``events``: the query reads events."""
    if events:
        return (
            "Join instead: a JOIN b ON …, for each pair; a LEFT SEMI JOIN b ON …, for a with any b; "
            "or a LEFT ANTI JOIN b ON …, for a without any b."
        )
    if isinstance(query.parent, exp.Any | exp.All):
        return (
            "Compare with one value of a static table: x > (SELECT MAX(y) FROM t); only = ANY and <> ALL are supported."
        )
    if isinstance(query.find_ancestor(exp.Join, exp.Select), exp.Join):
        return (
            "Select its answer below the join: FROM (SELECT STREAM *, x IN (…) AS known FROM s) AS s LEFT JOIN … "
            "ON … AND s.known."
        )
    return (
        "Write it in WHERE, and combine it with other conditions by AND; or write LEFT JOIN t ON t.k = s.k, "
        "and test for t.k IS NOT NULL."
    )


@dataclass(frozen=True)
class Inner:
    """A sub-query ``query`` over one ``source``, whose columns are ``columns`` (in lower case)."""

    text: str
    query: exp.Select
    source: exp.Expr
    columns: Sequence[str]
    is_static: bool

    @property
    def alias(self) -> str:
        """Return the name of the source inside."""
        return str(self.source.alias_or_name)

    @property
    def grouped(self) -> bool:
        """Return True if its rows are groups."""
        clauses = self.query.args.get("group") or self.query.args.get("having")
        return bool(clauses) or any(map(has_aggregates, self.query.expressions))

    @cached_property
    def conditions(self) -> list[exp.Expr]:
        """Return the conditions of its WHERE that AND joins."""
        where = self.query.args.get("where")
        return conjuncts_of(where.this) if where else []

    @property
    def correlated(self) -> list[exp.Expr]:
        """Return the conditions that refer to the outer query."""
        return [part for part in self.conditions if any(not self._own(column) for column in _columns(part))]

    @property
    def outside(self) -> list[exp.Column]:
        """Return the columns in it that belong to the outer query."""
        inside = {id(column) for column in self.source.find_all(exp.Column)}
        return [column for column in _columns(self.query) if id(column) not in inside and not self._own(column)]

    def asks(self, node: exp.Expr) -> bool:
        """Return True if an expression reads a column of the source."""
        return any(map(self._own, _columns(node)))

    def owns(self, node: exp.Expr) -> bool:
        """Return True if it reads columns of the source and no others."""
        return self.asks(node) and all(map(self._own, _columns(node)))

    def _own(self, column: exp.Column) -> bool:
        names = [part.name.lower() for part in column.parts]
        named = len(names) > 1 and names[0] == self.alias.lower()
        return named or names[0] in self.columns or (names == ["rowtime"] and not self.is_static)

    def listed(self) -> list[exp.Expr]:
        """Return its select list, with ``*`` expanded."""
        stars = [entry.is_star for entry in self.query.expressions]
        return [exp.column(name, quoted=True) for name in self.columns] if any(stars) else [*self.query.expressions]

    def named(self, node: exp.Expr, outside: str) -> exp.Expr:
        """Return an expression with input names before columns; ``outside``: the outer query's input, if it has one."""

        def name(column: exp.Column) -> str:
            return self.alias if self._own(column) else outside

        return with_inputs(node, name)

    def refused(self, what: str, node: exp.Expr) -> Refused:
        """Return the refusal of a construct that a sub-query cannot have."""
        hint = _PLAIN if self.is_static else _VIEW
        return refuse_at(self.text, node, "R190", f"{what} in a sub-query within an expression is not supported", hint)

    def derived(self, alias: str) -> Derived:
        """Return the sub-query's rows of a table as the input ``alias`` of a join."""
        return Derived(self, alias, [key.copy() for key in self._keys])

    @property
    def _keys(self) -> Iterator[exp.Expr]:
        """Yield GROUP BY; a number or an alias of the select list means that item."""
        group, listed = self.query.args.get("group"), self.query.expressions
        for key in group.expressions if group else ():
            place = whole_number(key)
            aliased = [e for e in listed if isinstance(key, exp.Column) and e.alias.lower() == key.name.lower()]
            if place is not None and 1 <= place <= len(listed):
                yield listed[place - 1].unalias()
            else:
                yield key if not aliased or self._own(key) else aliased[0].unalias()


@dataclass
class Derived:
    """The query over the table of a sub-query, with the columns that a join asks for."""

    inner: Inner
    alias: str
    group: list[exp.Expr]
    entries: list[exp.Expr] = field(default_factory=list)

    def column(self, value: exp.Expr) -> exp.Expr:
        """Return the column for an expression over the table."""
        if value not in self.entries:
            self.entries.append(value.copy())
        column = exp.column(f"c{self.entries.index(value) + 1}", table=self.alias)
        return placed(column, value)

    def above(self, part: exp.Expr) -> exp.Expr:
        """Return a condition with columns of this query in place of those of the table."""
        whole = exp.Paren(this=part.copy())
        for column in [candidate for candidate in _columns(whole) if self.inner._own(candidate)]:  # noqa: SLF001 - its own part
            parts = column.parts
            first = 2 if len(parts) > 1 and parts[0].name.lower() == self.inner.alias.lower() else 1
            reference = self.column(exp.column(parts[first - 1].copy()))
            for field_name in parts[first:]:
                reference = exp.Dot(this=exp.paren(reference), expression=field_name.copy())
            column.replace(placed(reference, column))
        expression: exp.Expr = whole.this
        return expression

    def subquery(self, once: tuple[str, ...] | None) -> exp.Subquery:
        """Return the query for a join; ``once``: the columns that identify a row, if only one row is allowed."""
        own = [part.copy() for part in self.inner.conditions if part not in self.inner.correlated]
        entries = [exp.alias_(value, f"c{n}") for n, value in enumerate(self.entries or [exp.Literal.number(1)], 1)]
        query = exp.Select(expressions=entries, from_=exp.From(this=self.inner.source.copy()))
        query.set("where", exp.Where(this=exp.and_(*own)) if own else None)
        query.set("group", exp.Group(expressions=self.group) if self.group else None)
        for clause in ("having", "distinct"):
            given = self.inner.query.args.get(clause)
            query.set(clause, given.copy() if given else None)
        subquery = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(self.alias)))
        placed(subquery, self.inner.query)
        subquery.meta.update({"derived": True, "once": once})
        return subquery


def read(text: str, node: exp.Expr, tables: Tables, bound: Bound) -> Inner:
    """Analyse a sub-query; raises ``Refused`` (R105, R190) unless it is one SELECT over one input."""
    query = in_one_select(node.unnest(), tables)
    source = query.args.get("from_") if isinstance(query, exp.Select) else None
    if not isinstance(query, exp.Select) or source is None:
        what = "a sub-query within an expression must be one SELECT with a FROM"
        raise refuse_at(text, node, "R190", f"{what}; others are not supported", _PLAIN)
    item = source.this
    table = table_of(query, tables)
    everything = exp.Select(expressions=[exp.Star()], from_=source.copy(), stream=True)
    tests = node.parent
    while isinstance(tests, exp.Paren | exp.Subquery):
        tests = tests.parent
    is_value = not isinstance(tests, exp.In | exp.Exists | exp.Any | exp.All)  # for which no stream is possible
    if table is None and query.args.get("stream") is not True and not is_value:
        limit = "" if is_lifetimes(bound(everything)) else _limit(query, tests)
        raise refuse_at(text, query, "R105", "a stream cannot be read as a table", f"Write SELECT STREAM{limit}.")
    without_schema(query, item)
    columns = table if table is not None else bound(everything).emits().names
    inner = Inner(text, query, item, [column.lower() for column in columns], table is not None)
    more = next((clause for clause, value in query.args.items() if value and clause not in _KNOWN), None)
    if more is not None:
        raise inner.refused(_WORDS.get(more, more.upper()), query)
    nested = next(
        (part.find(exp.Query) for part in (*query.expressions, *inner.conditions) if part.find(exp.Query)), None
    )
    if nested is not None:
        what = "a sub-query inside a sub-query within an expression is not supported"
        hint = "Write it next to the other one: WHERE x IN (SELECT k FROM t) AND y IN (SELECT k FROM u); or join both."
        raise refuse_at(text, nested, "R190", what, hint)
    return inner


def _limit(query: exp.Select, tests: exp.Expr | None) -> str:
    """Return what to add to a sub-query of a stream whose WHERE does not mention time.

    Nothing for a WHERE with a range over columns: these may be event times, which a join can promote (R152).
    """
    outer = tests.find_ancestor(exp.Select) if tests is not None else None
    where, around = query.args.get("where"), outer.args.get("from_") if outer is not None else None
    if around is None or (where is not None and any(c.name.lower() == "rowtime" for c in where.find_all(exp.Column))):
        return ""
    ranges = () if where is None else where.find_all(exp.Between, exp.GT, exp.GTE, exp.LT, exp.LTE)
    if any(len({*part.find_all(exp.Column)}) > 1 for part in ranges):
        return ""
    inside, outside = query.args["from_"].this.alias_or_name, around.this.alias_or_name
    limit = f"{inside}.ROWTIME BETWEEN {outside}.ROWTIME - INTERVAL '1' HOUR AND {outside}.ROWTIME"
    return f", and limit the time between the rows in its WHERE: {limit}"


def without_schema(query: exp.Select, source: exp.Expr) -> None:
    """Name columns by the last part of the name of their input alone: ``app.t.item`` is ``t.item``."""
    path = [part.name.lower() for part in source.parts] if isinstance(source, exp.Table) else []
    if len(path) < 2 or source.args.get("alias"):  # noqa: PLR2004 - a schema and a name
        return
    for column in query.find_all(exp.Column):
        parts = column.parts
        if [part.name.lower() for part in parts[: len(path)]] == path and len(parts) > len(path):
            kept = [part.copy() for part in parts[len(path) - 1 :]]
            for place, part in zip(
                ("this", "table", "db", "catalog"), [*reversed(kept), None, None, None], strict=False
            ):
                column.set(place, part)


def is_derived(join: exp.Join) -> bool:
    """Return True for a sub-query's rows of a table."""
    return bool(join.this.meta.get("derived"))


def is_subquery(join: exp.Join) -> bool:
    """Return True for a join that stands for a sub-query of a table or a stream."""
    return is_derived(join) or bool(join.meta.get("subquery"))


def table_of(query: exp.Expr, tables: Tables) -> Sequence[str] | None:
    """Return the columns of the static table that a query reads."""
    source = query.unnest().args.get("from_")
    return tables(source.this) if source is not None else None


def in_one_select(query: exp.Expr, tables: Tables) -> exp.Expr:
    """Put a query over tables that is more than a SELECT over one input into the FROM of such a SELECT, in its place.

    If only conditions without a column of the outer row have queries inside, these conditions go there.
    """
    if not isinstance(query, exp.Query) or not _is_more(query):
        return query
    whole = _in_parentheses(query.copy(), _WHOLE)
    if tables(whole) is not None:
        return _replaced(query, exp.Select(expressions=[exp.Star()], from_=exp.From(this=whole)))
    source = query.args.get("from_")
    if not isinstance(query, exp.Select) or source is None or not source.this.alias_or_name:
        return query
    parts = conjuncts_of(query.args["where"].this) if query.args.get("where") else []
    inside = [part for part in parts if part.find(exp.Query)]
    below = exp.Select(expressions=[exp.Star()], from_=source.copy(), stream=query.args.get("stream"))
    below.set("where", exp.Where(this=exp.and_(*(part.copy() for part in inside))) if inside else None)
    given = _in_parentheses(below, source.this.alias_or_name)
    if not inside or (not query.args.get("stream") and tables(given) is None):
        return query
    source.set("this", given)
    left = [part.copy() for part in parts if part not in inside]
    query.set("where", exp.Where(this=exp.and_(*left)) if left else None)
    return query


def _is_more(query: exp.Expr) -> bool:
    """Return True for a query that is more than a SELECT over one input, or has other queries in its expressions."""
    if not isinstance(query, exp.Select):
        return True
    if any(query.args.get(clause) for clause in (*_WORDS, "qualify", "windows", "offset")):
        return True
    clauses = (query.args.get(clause) for clause in ("where", "having", "group"))
    return any(part is not None and part.find(exp.Query) for part in (*query.expressions, *clauses))


def _in_parentheses(query: exp.Expr, name: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))


def _replaced(query: exp.Expr, derived: exp.Select) -> exp.Select:
    placed(derived, query)
    query.replace(derived)
    return derived


def listed_for(inner: Inner, values: Sequence[exp.Expr], node: exp.Expr) -> list[exp.Expr]:
    """Return the columns that IN compares with ``values``; raises ``Refused`` (R159)."""
    listed = inner.listed()
    if len(values) != len(listed):
        what = f"IN compares {len(values)} value{'s' * (len(values) > 1)} with {len(listed)} columns of the sub-query"
        raise refuse_at(inner.text, node, "R159", what, "Select one column for each value before IN.")
    return [entry.unalias() for entry in listed]


def conjuncts_of(condition: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a condition that AND joins, also inside parentheses."""
    node = condition.unnest()
    return [*conjuncts_of(node.this), *conjuncts_of(node.expression)] if isinstance(node, exp.And) else [node]


def with_inputs(node: exp.Expr, name: Callable[[exp.Column], str]) -> exp.Expr:
    """Return an expression with input names before columns that have none; an empty name adds nothing."""
    whole = exp.Paren(this=node.copy())
    for column in _columns(whole):
        if len(column.parts) == 1 and (alias := name(column)):
            column.set("table", exp.to_identifier(alias))
    expression: exp.Expr = whole.this
    return expression


def placed(node: exp.Expr, origin: exp.Expr) -> exp.Expr:
    """Return a node with the place of another one."""
    meta = next((part.meta for part in origin.walk() if part.meta.get("start") is not None), {})
    node.meta.update({key: meta[key] for key in ("line", "col", "start", "end") if key in meta})
    return node


def _columns(node: exp.Expr) -> list[exp.Column]:
    return [column for column in node.find_all(exp.Column) if not isinstance(column.this, exp.Star)]
