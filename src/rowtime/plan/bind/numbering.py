"""ROW_NUMBER and RANK in another order than the stream's, within windows that close: the rows are sorted first.

``ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC)`` is the usual SQL for the first n rows of a
window. It counts, in stream order, the rows of a sub-query ``ORDER BY window_start, n DESC``. RANK is the number of the
first row with the same keys, DENSE_RANK the number of rows whose keys differ from the row before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.core.columns import ROWTIME, ROWTIME_NAME
from rowtime.expr.conditions import columns_in
from rowtime.expr.monotonicity import prove
from rowtime.plan.bind.frames import NoWindow, Window, resolved
from rowtime.plan.bind.scope import From, Scope
from rowtime.plan.bind.windows import is_value

HINT = (
    "Number the rows of windows that end, PARTITION BY window_start, window_end of TABLE(TUMBLE(TABLE s, "
    "DESCRIPTOR(ROWTIME), INTERVAL '1' HOUR)); or gather them in groups: SLICE(SORT_ARRAY(COLLECT_LIST(v), FALSE), "
    "1, 3), and LAST(v) for the last one."
)
OF_A_JOIN = (
    "Join in a sub-query, and number its rows: SELECT STREAM *, ROW_NUMBER() OVER (PARTITION BY FLOOR(j.ROWTIME TO "
    "HOUR) ORDER BY v DESC) AS n FROM (SELECT STREAM … JOIN …) AS j."
)

_RANKS = (exp.Rank, exp.DenseRank)
_WINDOW = "closing_key_{}"  # the key of the window: after sorting, it is the rowtime less a width
_OWN = "own_rowtime_{}"  # the rowtime of a row, which sorting replaces by the end of its window
_BEGINS = "ranks_begin_{}"  # the number of each row whose keys differ from those of the row before


def sorted_first(query: exp.Select, text: str, source: From) -> tuple[exp.Select, ...] | None:
    """Return the query that sorts the rows of ``source``, and the one that numbers them; ``None`` for other queries."""
    calls = [call for entry in query.expressions for call in entry.find_all(exp.Window)]
    if not all(isinstance(call.this, (exp.RowNumber, *_RANKS)) for call in calls) or len(source.inputs) > 1:
        return None
    named = {window.name.lower(): window for window in query.args.get("windows") or []}
    try:
        windows = {resolved(call, named) for call in calls}
    except NoWindow:
        return None  # refused when it is bound
    closing = _closing(windows.pop(), Scope(text, source)) if len(windows) == 1 else None
    if closing is None:
        return None
    (key, window), taken = closing, {column.name.lower() for column in source.node.emits().columns}
    begins, own, closed = (
        next(name for n in range(len(taken) + 1) if (name := form.format(n)) not in taken)
        for form in (_BEGINS, _OWN, _WINDOW)
    )
    ranked = any(isinstance(call.this, _RANKS) for call in calls)
    sorting, numbered = _sorting(query, key, window), _listing(query, [name for name, _ in source.inputs[0].columns])
    if _asks_for_rowtime(query, key, window):
        sorting.append("expressions", exp.alias_(exp.column(ROWTIME_NAME), own, quoted=True))
        sorting.append("expressions", exp.alias_(key.copy(), closed, quoted=True))
        numbered.set("expressions", [_with_key(entry, key, closed) for entry in numbered.expressions])
        order = tuple(_with_own(part, own) for part in window.order)
        window = replace(window, keys=tuple(_with_own(part, own) for part in window.keys), order=order)
        numbered.set("expressions", [_with_own(entry, own) for entry in numbered.expressions])
    between = (_beginning(window, begins),) if ranked else ()
    return sorting, *between, _numbering(numbered, window, begins)


def _listing(query: exp.Select, names: Sequence[str]) -> exp.Select:
    """Return the query with the columns of the input in place of ``*``: below, there are more columns."""
    listing, entries = query.copy(), list[exp.Expr]()
    for entry in listing.expressions:
        if isinstance(entry, exp.Star) or (isinstance(entry, exp.Column) and entry.is_star and len(entry.parts) < 3):  # noqa: PLR2004 - an input and *
            star = entry if isinstance(entry, exp.Star) else entry.this
            without = {excepted.name.lower() for excepted in star.args.get("except_") or ()}
            entries += [exp.column(name, quoted=True) for name in names if name.lower() not in without]
        else:
            entries.append(entry)
    listing.set("expressions", entries)
    return listing


def _asks_for_rowtime(query: exp.Select, key: exp.Expr, window: Window) -> bool:
    """Return True if a query uses the rowtime of its rows for more than the ``key`` that closes the window."""
    entries = [entry for entry in query.expressions if not _is_rowtime(entry)]
    columns = [
        column for entry in entries for column in entry.find_all(exp.Column) if not column.find_ancestor(exp.Window)
    ]
    columns += [one for part in window.keys if part is not key for one in part.find_all(exp.Column)]
    columns += [one for part in window.order for one in part.find_all(exp.Column)]
    return any(map(_is_rowtime, columns))


def _with_key(entry: exp.Expr, key: exp.Expr, name: str) -> exp.Expr:
    """Return an entry of the select list that has a name, with a column in place of the key of the window."""
    copied = entry.copy()
    keys = [part for part in copied.find_all(type(key)) if part == key and not part.find_ancestor(exp.Window)]
    for part in keys if isinstance(copied, exp.Alias) else ():
        part.replace(exp.column(name, quoted=True))
    return copied


def _with_own(node: exp.Expr, own: str) -> exp.Expr:
    """Return an expression with the own rowtime of a row in place of the one that sorting gave it."""
    if _is_rowtime(node):
        return node  # the rowtime of the result
    whole = exp.Paren(this=node.copy())
    for column in [candidate for candidate in whole.find_all(exp.Column) if _is_rowtime(candidate)]:
        column.replace(exp.column(own, quoted=True))
    expression: exp.Expr = whole.this
    return expression


def _is_rowtime(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.name.upper() == ROWTIME_NAME


def _closing(window: Window, scope: Scope) -> tuple[exp.Expr, Window] | None:
    """Return the key that closes a window in which the rows have another order than the stream."""
    if window.spec is not None or not window.order:
        return None
    first, *others = window.order
    if not others and not first.args.get("desc") and _ascends(first.this, scope):
        return None
    return next(((key, window) for key in window.keys if _ascends(key, scope)), None)


def _ascends(node: exp.Expr, scope: Scope) -> bool:
    """Return True for an ascending function of the rowtime."""
    at = scope.inlined(scope.bind(node))
    return columns_in([at]) == {ROWTIME} and is_value(at) and prove(at, scope.facts).order.direction > 0


def _sorting(query: exp.Select, key: exp.Expr, window: Window) -> exp.Select:
    lead = exp.Ordered(this=key.copy(), nulls_first=True)
    order = exp.Order(expressions=[lead, *(part.copy() for part in window.order)])
    return exp.Select(expressions=[exp.Star()], stream=True, where=query.args.get("where"), order=order)


def _beginning(window: Window, name: str) -> exp.Select:
    """Return all columns, and the number of each row whose keys differ from those of the row before it."""
    keys = exp.Anonymous(this="STRUCT", expressions=[part.this.copy() for part in window.order])
    before = _over(exp.Lag(this=keys.copy()), window)
    same = exp.NullSafeEQ(this=before, expression=keys)
    number = exp.If(this=exp.Not(this=exp.paren(same)), true=_over(exp.RowNumber(), window), false=exp.null())
    return exp.Select(expressions=[exp.Star(), exp.alias_(number, name, quoted=True)], stream=True)


def _numbering(query: exp.Select, window: Window, begins: str) -> exp.Select:
    numbered = query.copy()
    numbered.set("where", None)
    kinds = {exp.Rank: exp.Max, exp.DenseRank: exp.Count}
    for call in [call for entry in numbered.expressions for call in entry.find_all(exp.Window)]:
        kind = kinds.get(type(call.this))
        function = call.this.copy() if kind is None else kind(this=exp.column(begins, quoted=True))
        call.replace(_over(function, window))
    return numbered


def _over(call: exp.Expr, window: Window) -> exp.Window:
    """Return a call over the rows of a window up to this one, in their order."""
    period = [*window.keys, exp.column("ROWTIME")]  # with the rowtime, state of past windows is dropped
    return exp.Window(this=call, partition_by=[key.copy() for key in period])
