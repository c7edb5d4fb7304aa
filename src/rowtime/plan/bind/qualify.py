"""QUALIFY: a filter above the windows of a query, which may be windows over its groups.

``SELECT a FROM s QUALIFY ROW_NUMBER() OVER w <= 3`` is ``SELECT a FROM (SELECT a, ROW_NUMBER() OVER w AS n FROM s)
WHERE n <= 3``; over groups, the windows are in a query of their own above them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from rowtime.expr.many_rows import has_aggregates
from rowtime.plan.bind.lifted import AROUND, Lifted, LiftedGroups, Outside, changed
from rowtime.plan.bind.scope import From
from rowtime.sql.generate import to_rowtime
from rowtime.sql.places import refuse_at


def qualified(
    query: exp.Select, text: str, names_of: Callable[[exp.Expr], Sequence[str]], outside: Outside
) -> exp.Select:
    """Return the query that QUALIFY means; ``names_of`` binds a query and names its columns. Raises R187."""
    clause = query.args["qualify"]
    if not any(part.find(exp.Window) for part in (clause, *query.expressions)):
        hint = "Write WHERE, or HAVING for groups; QUALIFY is for windows: QUALIFY ROW_NUMBER() OVER (…) <= 3."
        raise refuse_at(text, clause, "R187", "QUALIFY without a window", hint)
    if query.args.get("distinct"):
        hint = "Filter in a sub-query, and write SELECT STREAM DISTINCT around it."
        raise refuse_at(text, clause, "R187", "QUALIFY beside DISTINCT", hint)
    if (inner_query := clause.find(exp.Query)) is not None:
        hint = (
            "Number the rows below: SELECT STREAM … FROM (SELECT STREAM …, ROW_NUMBER() OVER (…) AS n …) AS r WHERE …."
        )
        raise refuse_at(text, inner_query, "R190", "a sub-query in QUALIFY is not supported", hint)
    if query.args.get("group") or query.args.get("having") or any(map(has_aggregates, query.expressions)):
        query = LiftedGroups(query, outside).qualified()
    inner = query.copy()
    for words in AROUND:
        inner.set(words, None)
    shown = names_of(inner)
    lifted = Lifted(inner)
    condition = _condition(query.args["qualify"].this.copy(), lifted, shown)
    source = exp.From(this=exp.Subquery(this=inner))
    listed: list[exp.Expr] = [exp.column(name, quoted=True) for name in shown]
    return exp.Select(expressions=listed, from_=source, where=exp.Where(this=condition), stream=True)


def refuse_in_where(query: exp.Select, text: str, source: From) -> None:
    """Refuse (R103) the alias of a window in WHERE, which filters the rows before there are windows."""
    windows = {entry.alias.lower() for entry in query.expressions if entry.alias and entry.find(exp.Window)}
    windows -= {name.lower() for part in source.inputs for name, _ in part.columns}
    where = query.args.get("where")
    if where is None or not windows:
        return
    for term in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        for column in term.find_all(exp.Column):
            if not column.table and column.name.lower() in windows:
                what = f"{column.name} is a window of the select list, which WHERE cannot filter by"
                hint = f"Write it after WHERE, as QUALIFY {to_rowtime(term.unnest())}."
                raise refuse_at(text, column, "R103", what, hint)


def _condition(node: exp.Expr, below: Lifted, names: Sequence[str]) -> exp.Expr:
    """Return a condition over the query's columns: those that it lists, its windows, and the others it needs."""
    if (listed := below.listed(node, names)) is not None:
        return listed
    if isinstance(node, exp.Window | exp.Column):
        return below.column(node)
    return changed(node, lambda part: _condition(part, below, names))
