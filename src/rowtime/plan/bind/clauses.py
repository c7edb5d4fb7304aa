"""Binds the clauses around a query: WITH before it, LIMIT and WITH UNBOUNDED STATE after it.

Clauses that are parsed but not implemented yet are refused here, never ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from rowtime.core.errors import Problem, Refused
from rowtime.operators.order.limit import Limit
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.plan.bind.correlation import placed
from rowtime.plan.bind.lateral_views import OF_JSON
from rowtime.plan.bind.panes import has_panes
from rowtime.plan.bind.sources import Binder, BoundQuery
from rowtime.plan.bind.tables import Tables
from rowtime.sql.dialect import Rowtime
from rowtime.sql.nodes import Panes
from rowtime.sql.numbers import whole_number
from rowtime.sql.places import NAMED, place_of, refuse_at
from rowtime.sql.statements import Statement

_AROUND = ("order", "limit", "offset", "with_")
_PLACING = "Write ORDER BY; a query cannot choose where its rows are computed."
_LATER = {
    "emit_every": ("EMIT EVERY", "Use it with GROUP BY over PANES."),
    "sort": ("SORT BY", _PLACING),
    "cluster": ("CLUSTER BY", _PLACING),
    "distribute": ("DISTRIBUTE BY", _PLACING),
    "locks": ("FOR UPDATE", "Leave it out."),
    "keys_expire": ("KEYS EXPIRE AFTER", "It is for windows with PARTITION BY. Here, group by time as well."),
}
_LATER_INPUT = {
    "sample": ("TABLESAMPLE", "Choose rows by a key: WHERE PMOD(HASH(k), 10) = 0."),
    "pivots": ("PIVOT", "Write one column for each value: SUM(v) FILTER (WHERE k = 'a') AS a."),
}


def _inputs_later(text: str, query: exp.Expr) -> Iterator[Problem]:
    """Yield the problems of clauses behind the input."""
    source = query.args.get("from_")
    if source is None:
        return
    for key, (words, form) in _LATER_INPUT.items():
        hint, clause = form, source.this.args.get(key)
        if clause and key == "pivots" and clause[0].args.get("unpivot"):
            hint = "Make a row of each column: FROM s LATERAL VIEW EXPLODE(MAP('a', a, 'b', b)) x AS name, value."
            yield Problem("R190", "UNPIVOT is not supported", place_of(text, source.this), hint)
        elif clause:
            yield Problem("R190", f"{words} is not supported yet", place_of(text, source.this), hint)


def refuse_later(text: str, query: exp.Expr) -> None:
    """Refuse the clauses that are parsed but not implemented yet."""
    problems = []
    for key, (words, hint) in _LATER.items():
        part = query.args.get(key)
        if part and not (key == "emit_every" and has_panes(query)):
            node = part[0] if isinstance(part, list) else part if isinstance(part, exp.Expr) else query
            problems.append(Problem("R190", f"{words} is not supported yet", place_of(text, node), hint))
    problems += _inputs_later(text, query)
    for entry in (item for item in query.expressions if isinstance(item, exp.Aliases)):
        names = ", ".join(name.sql(Rowtime) for name in entry.expressions)
        hint = f"Write it after the input: FROM … LATERAL VIEW {entry.this.sql(Rowtime)} x AS {names}."
        if entry.this.name.upper() == "JSON_TUPLE":
            hint = f"Select each value: {OF_JSON}."
        problems.append(Problem("R190", "an entry with several names is not supported", place_of(text, entry), hint))
    final = query.args.get("emit_final")
    if final is not None and (query.args.get("emit_changes") or query.args.get("emit_every")):
        what = "a query emits either final rows only or early rows as well, not both"
        problems.append(Problem("R191", what, place_of(text, final), "Leave out one of the two EMIT clauses."))
    elif final is not None and any(panes.args.get("discard_age") for panes in query.find_all(Panes)):
        what = "panes with a DISCARD AGE emit again for late rows, so their first rows are not final"
        problems.append(Problem("R191", what, place_of(text, final), "Leave out DISCARD AGE, or this EMIT."))
    if problems:
        raise Refused(*problems)


def plain(query: exp.Expr) -> exp.Expr:
    """Return a query without its parentheses; clauses after them make a query of its own."""
    while isinstance(query, exp.Subquery):
        behind = {key: query.args[key] for key in _AROUND if query.args.get(key)}
        if behind:
            source = exp.From(this=exp.Subquery(this=query.this))
            return exp.Select(expressions=[exp.Star()], from_=source, stream=True, **behind)
        query = query.this
    return query


def spread_unbounded_state(query: exp.Expr) -> None:
    """Apply WITH UNBOUNDED STATE to sub-queries too, but not to the views that the query names."""
    if query.args.get("unbounded_state"):
        for part in query.find_all(exp.Select, exp.SetOperation):
            part.set("unbounded_state", value=True)


def bind_with(binder: Binder, query: exp.Expr, name: str) -> None:
    """Bind WITH x AS (…): views of this query. Each is bound once; from here on the name means it."""
    clause = query.args.get("with_")
    if clause is None:
        return
    if clause.args.get("recursive"):
        what = "WITH RECURSIVE is not supported: the query would read its own result"
        raise refuse_at(binder.text, clause, "R123", what, "Write WITH without RECURSIVE.")
    seen: set[str] = set()
    for cte in clause.expressions:
        key = cte.alias.lower()
        if key in seen:
            raise refuse_at(binder.text, cte, "R203", f"there are two queries {key} in WITH")
        seen.add(key)
        unique = f"{name}.{key}".lower()
        if unique in binder.sources.catalog.views or binder.sources.catalog.stream(unique) is not None:
            what = f"the query {key} of WITH goes by {unique}, which is a stream or view"
            raise refuse_at(binder.text, cte, "R203", what, "Give it another name.")
        if Tables(binder.text, binder.sources).is_static(cte.this):
            _put_in_place(query, cte)
            continue
        bound = binder.bind(cte.this, unique)
        columns = [identifier.name for identifier in cte.args["alias"].args.get("columns") or ()]
        place = place_of(binder.text, cte)
        binder.sources.bound[unique] = binder.sources.renamed(bound, f"{unique}.renamed", columns, place)
        for table in list(_named(query, key)):
            _rename(table, unique)


def _named(query: exp.Expr, name: str) -> Iterator[exp.Table]:
    """Yield the places where a query reads a name that no query inside it defines anew."""
    for table in query.find_all(exp.Table):
        read = table.text("db") or table.name
        above = table.parent
        while above is not None and above is not query and not _defines(above, name):
            above = above.parent
        if read.lower() == name and above is query:
            yield table


def _put_in_place(query: exp.Expr, cte: exp.CTE) -> None:
    """Read a query over tables where its name stands."""
    names = cte.args["alias"].args.get("columns") or []
    for table in list(_named(query, cte.alias.lower())):
        alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
        given = table.args.get("alias")
        columns = (given.args.get("columns") if given is not None else None) or names
        alias.set("columns", [name.copy() for name in columns] or None)
        table.replace(placed(exp.Subquery(this=cte.this.copy(), alias=alias), table))


def _defines(node: exp.Expr, name: str) -> bool:
    clause = node.args.get("with_")
    return clause is not None and any(cte.alias.lower() == name for cte in clause.expressions)


def _rename(table: exp.Table, unique: str) -> None:
    field = "db" if table.text("db") else "this"
    old = table.args[field]
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
    new = exp.to_identifier(unique, quoted=True)
    new.meta.update(old.meta)
    new.meta.setdefault(NAMED, old.name)
    table.set(field, new)


def limited(binder: Binder, query: exp.Expr, bound: BoundQuery, name: str) -> BoundQuery:
    """Return the query up to its LIMIT; OFFSET is refused."""
    offset = query.args.get("offset")
    if offset is not None:
        what = "OFFSET is not supported for streams: the rows that it skips would depend on where the stream began"
        raise refuse_at(binder.text, offset, "R186", what, "Leave it out; LIMIT n gives the first n rows.")
    limit = query.args.get("limit")
    if limit is None:
        return bound
    if is_lifetimes(bound.node):
        hint = "Use it in a query over a view that EMITs the events as rows."
        raise refuse_at(binder.text, limit, "R193", "LIMIT is not supported for events, which have lifetimes", hint)
    number = limit.args.get("expression") or limit.args.get("count")
    count = whole_number(number)
    if count is None:
        raise refuse_at(binder.text, limit, "R186", "LIMIT takes a whole number", "For example LIMIT 10.")
    node = Limit(binder.sources.fresh(f"{name}.limit"), bound.node, count)
    return BoundQuery(binder.sources.enforced(node, name), bound.lineage)


def asks_to_stop(statement: Statement) -> bool:
    """Return True for ON ERROR STOP: a row that cannot be computed ends the run."""
    query = getattr(statement, "query", None)
    return isinstance(query, exp.Expr) and bool(query.args.get("on_error_stop"))
