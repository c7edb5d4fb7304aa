"""ROW_NUMBER in another order than the stream's, within windows that end: the rows are sorted first.

``ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC)`` is what other systems write for the
first n of a window. It counts, in stream order, the rows of a sub-query ``ORDER BY window_start, n DESC``.
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


def sorted_first(query: exp.Select, text: str, source: From) -> tuple[exp.Select, exp.Select] | None:
    """What sorts the rows of ``source``, and what then numbers them; ``None`` for queries that number nothing else."""
    calls = [call for entry in query.expressions for call in entry.find_all(exp.Window)]
    if not all(isinstance(call.this, exp.RowNumber) for call in calls) or len(source.inputs) > 1:
        return None
    named = {window.name.lower(): window for window in query.args.get("windows") or []}
    try:
        windows = {resolved(call, named) for call in calls}
    except NoWindow:
        return None  # it is refused when it is bound
    closing = _closing(windows.pop(), Scope(text, source)) if len(windows) == 1 else None
    return None if closing is None else (_sorting(query, *closing), _numbering(query, closing[1]))


def _closing(window: Window, scope: Scope) -> tuple[exp.Expr, Window] | None:
    """The key that closes a window in which the rows have another order than the stream."""
    if window.spec is not None or not window.order:
        return None
    first, *others = window.order
    if not others and not first.args.get("desc") and _ascends(first.this, scope):
        return None
    return next(((key, window) for key in window.keys if _ascends(key, scope)), None)


def _ascends(node: exp.Expr, scope: Scope) -> bool:
    """True for an ascending function of the rowtime."""
    at = scope.inlined(scope.bind(node))
    return columns_in([at]) == {ROWTIME} and is_value(at) and prove(at, scope.facts).order.direction > 0


def _sorting(query: exp.Select, key: exp.Expr, window: Window) -> exp.Select:
    lead = exp.Ordered(this=key.copy(), nulls_first=True)
    order = exp.Order(expressions=[lead, *(part.copy() for part in window.order)])
    return exp.Select(expressions=[exp.Star()], stream=True, where=query.args.get("where"), order=order)


def _numbering(query: exp.Select, window: Window) -> exp.Select:
    numbered = query.copy()
    numbered.set("where", None)
    period = [*window.keys, exp.column("ROWTIME")]  # by the rowtime, what is kept of past windows is forgotten
    for call in [call for entry in numbered.expressions for call in entry.find_all(exp.Window)]:
        call.replace(exp.Window(this=call.this.copy(), partition_by=[key.copy() for key in period]))
    return numbered
