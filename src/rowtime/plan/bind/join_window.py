"""Binds the window of an input of a join: ``a OVER (RANGE INTERVAL '1' MINUTE PRECEDING)``."""

from __future__ import annotations

from sqlglot import exp

from rowtime.core.errors import Refused
from rowtime.operators.joins.join import EVER
from rowtime.plan.bind.frames import UNBOUNDED
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.places import refuse_at

_EXAMPLE = "For example OVER (RANGE INTERVAL '1' MINUTE PRECEDING)"


def window_of(text: str, query: exp.Select, item: exp.Expr) -> int | None:
    """How long the rows of an input stay in its window, µs; ``None`` without OVER."""
    over = item.args.get("over")
    if over is None:
        return None
    spec = over.args.get("spec")
    if over.args.get("partition_by") or over.args.get("order"):
        what = "a join window has neither PARTITION BY nor ORDER BY"
        raise _refused(text, "R153", what, over, "Rows meet by the condition in ON; leave it out.")
    start = spec.args.get("start") if spec is not None else None
    if spec is None or spec.args.get("kind") != "RANGE" or spec.args.get("end") != "CURRENT ROW":
        what = f"a join window is RANGE … PRECEDING, not {to_rowtime(over).removeprefix('ROWS OVER ')}"
        raise _refused(text, "R153", what, over, f"{_EXAMPLE}; rows that follow are those of the other side.")
    if start == "CURRENT ROW":
        return 0
    if isinstance(start, exp.Expr) and spec.args.get("start_side") == "PRECEDING":
        return _micros(text, start)
    if start != UNBOUNDED or not query.args.get("unbounded_state"):
        what = "a join window without a lower end would keep every row for ever"
        raise _refused(text, "R153", what, over, f"{_EXAMPLE}.")
    return EVER


def _micros(text: str, node: exp.Expr) -> int:
    try:
        span = span_of(node)
    except ValueError as wrong:
        raise _refused(text, "R122", str(wrong), node) from None
    if not isinstance(span, Duration) or span.micros < 0:
        what = "a join window is a duration that is not negative"
        raise _refused(text, "R122", what, node, "For example INTERVAL '1' MINUTE.")
    return span.micros


def _refused(text: str, code: str, message: str, node: exp.Expr, hint: str = "") -> Refused:
    return refuse_at(text, node, code, message, hint)
