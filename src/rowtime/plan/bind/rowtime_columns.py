"""Columns that give the rowtime of a stream: the option ``rowtime.column``.

Such a column equals the rowtime of each row that has it. A row without it has an arrival time instead (semantics 2.4),
so the column is the rowtime, as a promoted one is, only if the stream refuses such rows (NOT NULL). Otherwise a
condition that is true only for rows that have it says as much about the rowtimes (`over_rowtimes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.core.columns import ROWTIME
from rowtime.core.errors import Problem
from rowtime.expr.conditions import col
from rowtime.expr.grids import on_grid
from rowtime.operators.rows.select import Item
from rowtime.operators.streams.arrival_times import named_rowtime
from rowtime.plan.bind.join_range import Clause, between, comparisons
from rowtime.plan.bind.scope import From, Scope
from rowtime.plan.bind.stream_defs import StreamDef
from rowtime.plan.bind.windows import renamed_window
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import IfGiven, Windowed


def rowtime_column(stream: StreamDef) -> dict[str, exp.Expr]:
    """Return the declared column that gives the rowtime, and what it is: the rowtime, or that or NULL."""
    wanted = named_rowtime((stream.format, stream.options)).lower()
    name = next((name for name, kind in stream.columns if name.lower() == wanted and kind.upper() == "TIMESTAMP"), "")
    if not name or stream.shape is not None:  # the rowtime of an event is its start
        return {}
    return {name: col(ROWTIME) if name in stream.required else IfGiven(this=col(ROWTIME))}


def is_rowtime(at: exp.Expr | None) -> bool:
    """Return True for a column that equals the rowtime of each row, or of each row that has the column."""
    value = at.this if isinstance(at, IfGiven) else at
    return value is not None and on_grid(value) == col(ROWTIME)


def rowtime_named(column: exp.Column, inputs: Sequence[From]) -> exp.Column:
    """Return ``a.ROWTIME`` for a column of a that equals it, else the column."""
    name, table = column.name.lower(), column.text("table").lower()
    of = [
        (source, one, known.name)
        for source in inputs
        for one in source.shown
        for shown, known in one.columns
        if shown.lower() == name and table in ("", one.alias.lower())
    ]
    if len(of) != 1:
        return column
    [(source, one, inner)] = of
    earlier = source.own.get(inner) == one.rowtime and inner not in source.optional
    if not earlier and source.lineage.get(inner) != col(ROWTIME):
        return column
    rowtime = exp.column("ROWTIME", table=one.alias)
    rowtime.meta.update(column.meta)
    return rowtime


def selected(items: Sequence[Item], lineage: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
    """Return the entries of a select list that are such columns, of rows that may lack them; or edges of windows."""
    columns = [(item.expression.unnest().name, item.column.name) for item in items if _is_column(item.expression)]
    known = [(new, lineage.get(old)) for old, new in columns]
    given: dict[str, exp.Expr] = {new: at for new, at in known if isinstance(at, IfGiven)}
    names = {ROWTIME: ROWTIME, **dict(columns)}
    return given | {new: renamed_window(at, names) for new, at in known if isinstance(at, Windowed)}


def where_given(lineage: Mapping[str, exp.Expr], condition: exp.Expr) -> dict[str, exp.Expr]:
    """Return what the columns are in the rows that satisfy a condition, which may need them."""
    needed = {name for part in comparisons(condition) for name in _needed(part)}
    return {name: at.this if isinstance(at, IfGiven) and name in needed else at for name, at in lineage.items()}


def or_left_out(query: exp.Select, scope: Scope) -> list[Problem]:
    """Return the problems of a query; if it is accepted without the rows that lack such columns, the hint says so."""
    lacking = {name for name, at in scope.source.lineage.items() if isinstance(at, IfGiven)}
    listed = [(one.alias, name) for one in scope.source.shown for name, column in one.columns if column.name in lacking]
    used = {column.name.lower() for column in query.find_all(exp.Column)}
    joined = len(scope.source.shown) > 1
    columns = [exp.column(name, table=alias if joined else None) for alias, name in listed if name.lower() in used]
    if not columns:
        return scope.problems
    tests = [exp.Not(this=exp.Is(this=column, expression=exp.null())) for column in columns]
    rewritten = query.copy().where(*tests, copy=False)
    if not scope.binds(rewritten):
        return scope.problems
    names, tested = (
        " and ".join(map(to_rowtime, columns)),
        " AND ".join(f"{to_rowtime(one)} IS NOT NULL" for one in columns),
    )
    hint = (
        f"{names} gives the rowtime, but rows without it have an arrival time instead. Declare {names} NOT NULL, or "
        f"leave these rows out: WHERE {tested}."
    )
    return [replace(scope.problems[0], hint=hint), *scope.problems[1:]]


def _needed(part: exp.Expr) -> Iterator[str]:
    """Yield the columns that are not NULL where a condition is true: of IS NOT NULL, or a side of a comparison."""
    if isinstance(part, exp.Not) and isinstance(is_null := part.this.unnest(), exp.Is):
        sides = [is_null.this] if isinstance(is_null.expression, exp.Null) else []
    else:
        sides = [part.this, part.expression] if isinstance(part, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE) else []
    yield from (side.unnest().name for side in sides if _is_column(side))


def over_rowtimes(clause: Clause, condition: exp.Expr) -> exp.Expr:
    """Return a condition on a join with the rowtime in place of columns that equal it.

    A comparison of columns that equal the rowtime or are NULL stays, and the same comparison of the rowtimes, which
    follows from it, is added.
    """
    for column in list(condition.find_all(exp.Column)):
        if column.name in clause.same and column.name not in clause.optional:
            column.set("this", exp.to_identifier(clause.same[column.name], quoted=True))
    if clause.tabled or not clause.optional:
        return condition
    left, [right] = clause.timed
    implied = []
    for part in comparisons(condition):
        timed = part.transform(lambda node: _rowtime_of(node, clause))
        if timed != part and between([timed], left, right).known:
            timed.meta.update(part.meta)
            implied.append(timed)
    return exp.and_(condition, *implied, copy=False) if implied else condition


def _rowtime_of(node: exp.Expr, clause: Clause) -> exp.Expr:
    named = isinstance(node, exp.Column) and node.name in clause.optional
    return col(clause.same[node.name]) if named else node


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Column)
