"""QUALIFY: a filter above the windows of a query, which may be windows over its groups.

``SELECT a FROM s QUALIFY ROW_NUMBER() OVER w <= 3`` is ``SELECT a FROM (SELECT a, ROW_NUMBER() OVER w AS n FROM s)
WHERE n <= 3``; over groups, the windows are in a query of their own above them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from rowtime.expr.many_rows import has_aggregates
from rowtime.plan.bind.lifted import AROUND, Lifted, LiftedGroups, Outside, changed
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


def _condition(node: exp.Expr, below: Lifted, names: Sequence[str]) -> exp.Expr:
    """Return a condition over the query's columns: those that it lists, its windows, and the others it needs."""
    if (listed := below.listed(node, names)) is not None:
        return listed
    if isinstance(node, exp.Window | exp.Column):
        return below.column(node)
    return changed(node, lambda part: _condition(part, below, names))
