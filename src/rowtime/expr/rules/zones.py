"""Local times: they go back when clocks do, but a local date falls only in few zones, and long ago (semantics 6)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from sqlglot import exp

from rowtime.core.java_zones import last_fall
from rowtime.core.time import END, MIN_MICROS, to_micros, to_text
from rowtime.expr.facts import Fact, Kind
from rowtime.expr.order import Order
from rowtime.expr.rules.table import Conclusion, Parts, none, rule

_OLD: Final = to_micros(datetime(1900, 1, 1, tzinfo=UTC))
"""Falls before it count only for times before it (semantics 6): that of Alaska, in 1867. Groups end after it anyway."""


@rule("FROM_UTC_TIMESTAMP")
def _local(node: exp.Expr, parts: Parts) -> Conclusion:
    m, zone = parts.of(node.expressions[0]), node.expressions[1].unnest()
    if not m.kind.time or not (isinstance(zone, exp.Literal) and zone.is_string):
        return none("FROM_UTC_TIMESTAMP has a rule for a time and a zone that is given as text", Kind.TIMESTAMP)
    fall = last_fall(zone.name)
    if fall is None:
        return none(f"{zone.name} is no time zone that is known here", Kind.TIMESTAMP)
    if fall >= END:
        return none(f"the local date of {zone.name} falls each year", Kind.TIMESTAMP)
    counts = fall >= _OLD or (m.high is not None and m.high < _OLD)
    if counts and fall > MIN_MICROS and (m.low is None or m.low < fall):
        what = f"the local date of {zone.name} fell back until {to_text(fall)}"
        return none(f"{what}; it ascends if WHERE or CHECK says that the time is not earlier", Kind.TIMESTAMP)
    local = Fact(Order.NONE, Kind.TIMESTAMP, days=m.order.loosened())
    return Conclusion(local, "a local time goes back when clocks do; its date and FLOOR(… TO DAY) have a rule")
