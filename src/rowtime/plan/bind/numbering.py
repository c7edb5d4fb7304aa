"""ROW_NUMBER and RANK in another order than the stream's, within windows that close: the rows are sorted first.

``ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC)`` is the usual SQL for the first n rows of a
window. It counts, in stream order, the rows of a sub-query ``ORDER BY window_start, n DESC``. RANK is the number of the
first row with the same keys, DENSE_RANK the number of rows whose keys differ from the row before.
"""

from __future__ import annotations

from sqlglot import exp

from rowtime.core.columns import ROWTIME
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


_RANKS = (exp.Rank, exp.DenseRank)
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
    window, taken = closing[1], {column.name.lower() for column in source.node.emits().columns}
    begins = next(name for n in range(len(taken) + 1) if (name := _BEGINS.format(n)) not in taken)
    ranked = any(isinstance(call.this, _RANKS) for call in calls)
    between = (_beginning(window, begins),) if ranked else ()
    return _sorting(query, *closing), *between, _numbering(query, window, begins)


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
    made = exp.If(this=exp.Not(this=exp.paren(same)), true=_over(exp.RowNumber(), window), false=exp.null())
    return exp.Select(expressions=[exp.Star(), exp.alias_(made, name, quoted=True)], stream=True)


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
