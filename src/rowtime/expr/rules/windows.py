"""Running aggregates over the whole stream, and the promise MONOTONIC."""

from __future__ import annotations

from sqlglot import exp

from rowtime.expr.facts import Fact, Kind
from rowtime.expr.order import Order
from rowtime.expr.rules.table import Conclusion, Parts, none, rule
from rowtime.sql.nodes import Earliest, Monotonic

_RUNNING = {exp.Max: Order.ASCENDING, exp.Min: Order.DESCENDING, exp.Count: Order.ASCENDING}


@rule(Monotonic)
def _promised(node: exp.Expr, parts: Parts) -> Conclusion:
    m = parts.of(node.this)
    if m.order is Order.CONSTANT:
        return Conclusion(m, "a constant stays constant")
    return Conclusion(Fact(Order.ASCENDING, m.kind), "MONOTONIC promises it, and each row is checked")


@rule(Earliest)
def _of_many(node: exp.Expr, parts: Parts) -> Conclusion:
    return none(
        "a row is in several windows, and a later row is in windows that begin before some of them",
        parts.of(node.this).kind,
    )


@rule(exp.Window)
def _running(node: exp.Expr, parts: Parts) -> Conclusion:
    call = node.this
    kind = (
        parts.of(call.this).kind
        if isinstance(call.this, exp.Expr) and not isinstance(call.this, exp.Star)
        else Kind.OTHER
    )
    if isinstance(call, exp.Count | exp.RowNumber):
        kind = Kind.INTEGER
    if node.args.get("partition_by"):
        return none("each partition has its own running value", kind)
    if not _unbounded(node):
        return none("only a frame from the beginning to the current row has a running value", kind)
    if isinstance(call, exp.RowNumber):
        return Conclusion(Fact(Order.STRICTLY_ASCENDING, kind).within(1, None), "the number of the row")
    order = _RUNNING.get(type(call))
    if order is None:
        return none("this running aggregate may rise and fall", kind)
    return Conclusion(
        Fact(order, kind),
        f"a running {type(call).__name__.upper()} never {'falls' if order.direction > 0 else 'rises'}",
    )


def _unbounded(node: exp.Expr) -> bool:
    spec = node.args.get("spec")
    if spec is None:
        return True
    begins = (
        str(spec.args.get("start")).upper() == "UNBOUNDED" and str(spec.args.get("start_side")).upper() == "PRECEDING"
    )
    end, side = spec.args.get("end"), str(spec.args.get("end_side") or "").upper()
    return begins and (end is None or str(end).upper() == "CURRENT ROW" or side == "PRECEDING")
