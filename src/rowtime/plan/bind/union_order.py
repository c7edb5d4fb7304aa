"""ORDER BY of a UNION ALL, as a SELECT of everything from it; UNION is such a SELECT DISTINCT.

The inputs of a T-sort promote their times; then the union is sorted, before its rows get their new ROWTIME.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from rowtime.core.columns import PROMOTED, ROWTIME
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.grids import on_grid, spelled
from rowtime.plan.bind.sources import BoundQuery
from rowtime.sql.generate import to_rowtime
from rowtime.sql.places import refuse_at


def flat(query: exp.Expr) -> list[exp.Expr]:
    """Return the inputs of nested UNION ALLs, from left to right."""
    query = query.unnest()
    if isinstance(query, exp.Union) and not query.args.get("distinct") and not query.args.get("order"):
        return [*flat(query.this), *flat(query.expression)]
    return [query]


_AROUND = ("limit", "with_", "emit", "emit_changes", "emit_final")  # clauses of the whole


def distinct_union(query: exp.Union, names_of: Callable[[exp.Expr], Sequence[str]]) -> exp.Select:
    """Return the SELECT DISTINCT that a UNION means; ``names_of`` binds a query and names its columns."""
    inner = query.copy()
    order = inner.args.pop("order", None)
    for around in (*_AROUND, "distinct"):
        inner.set(around, None)
    select = _select([_column(name) for name in names_of(inner)], inner, order)
    select.set("distinct", exp.Distinct())
    select.set("unbounded_state", query.args.get("unbounded_state"))
    return select


def sorted_union(query: exp.Union, text: str, names_of: Callable[[exp.Expr], Sequence[str]]) -> exp.Select:
    """Return the SELECT that a sorted UNION ALL means; ``names_of`` binds a query and names its columns."""
    inner = query.copy()
    order = inner.args.pop("order")
    for around in _AROUND:
        inner.set(around, None)
    first = order.expressions[0]
    if first.args.get("within") is None:
        return _select([_column(name) for name in names_of(inner)], inner, order)
    led = _promoted(inner, first, text)
    for part in flat(inner):
        for entry in part.expressions:
            if entry.alias.lower() == "rowtime":
                entry.set("alias", exp.to_identifier(PROMOTED))
    first.set("this", _column(PROMOTED, led))
    others = [_column(name) for name in names_of(inner) if name != PROMOTED]
    time = exp.alias_(_column(PROMOTED), "ROWTIME")
    return _select([time, *others], inner, order)


def _promoted(query: exp.Expr, first: exp.Expr, text: str) -> exp.Expr:
    """Return the sort expression: ROWTIME as each input promotes it."""
    led: exp.Expr = first.this
    by_rowtime = isinstance(led, exp.Column) and led.name.lower() == "rowtime"
    for part in flat(query):
        entry = next((e for e in part.expressions if isinstance(e, exp.Alias) and e.alias.lower() == "rowtime"), None)
        if entry is None or (led != entry.this and not by_rowtime):
            what = "a T-sort of a UNION ALL must give its sort expression the name ROWTIME in each input"
            hint = f"Select {to_rowtime(led)} AS ROWTIME in each; then ORDER BY ROWTIME WITHIN … sorts by it."
            raise refuse_at(text, part, "R121", what, hint)
    return led


def _select(entries: Sequence[exp.Expr], inner: exp.Expr, order: exp.Expr | None) -> exp.Select:
    source = exp.From(this=exp.Subquery(this=inner))
    return exp.Select(expressions=list(entries), from_=source, order=order, stream=True)


def _column(name: str, at: exp.Expr | None = None) -> exp.Column:
    column = col(name)
    if at is not None:
        column.meta.update(next((part.meta for part in at.walk() if part.meta), {}))
    return column


def common(parts: Sequence[BoundQuery]) -> Mapping[str, exp.Expr]:
    """Return the columns that are the same function of the rowtime in all inputs, and so in the union."""
    names = [part.node.emits().names for part in parts]
    lineage = {}
    for place, name in enumerate(names[0]):
        ways = [part.lineage.get(own[place]) for part, own in zip(parts, names, strict=True)]
        known = [way for way in ways if way is not None and columns_in([way]) == {ROWTIME}]
        if len(known) < len(ways):
            continue
        if len({*map(spelled, known)}) == 1:
            known = known[:1]
        if any(way != known[0] for way in known):  # other rowtimes may occur in each input, but they may be as far off
            known = [on_grid(way) for way in known]
        if all(way == known[0] for way in known):
            lineage[name] = known[0]
    return lineage
