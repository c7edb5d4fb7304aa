"""Local times: they go back when clocks do, but a local date falls only in few zones, and long ago (semantics 6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from sqlglot import exp

from rowtime.core.java_zones import is_fixed, last_fall
from rowtime.core.time import DAY, END, MIN_MICROS, to_micros, to_text
from rowtime.expr.facts import Fact, Kind
from rowtime.expr.order import Order
from rowtime.expr.rules.table import Conclusion, Parts, none, rule

_OLD: Final = to_micros(datetime(1900, 1, 1, tzinfo=UTC))
"""Falls before it count only for times before it (semantics 6): that of Alaska, in 1867. Groups end after it anyway."""


@rule("FROM_UTC_TIMESTAMP")
def _from_utc(node: exp.Expr, parts: Parts) -> Conclusion:
    return _local(parts.of(node.expressions[0]), node.expressions[1].unnest(), "FROM_UTC_TIMESTAMP")


@rule("CONVERT_TIMEZONE")
def _converted(node: exp.Expr, parts: Parts) -> Conclusion:
    *zones, time = (part.unnest() for part in node.expressions)
    if not zones or not all(_is_text(zone) and is_fixed(zone.name) for zone in zones[:-1]):  # one alone: from UTC
        return none("CONVERT_TIMEZONE has a rule from UTC or another fixed offset", Kind.TIMESTAMP)
    m = parts.of(time)
    if any(zone.name.upper() not in ("UTC", "Z") for zone in zones[:-1]):  # the instant is up to 18 hours away
        m = replace(m, low=None if m.low is None else m.low - DAY, high=None if m.high is None else m.high + DAY)
    return _local(m, zones[-1], "CONVERT_TIMEZONE")


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _local(m: Fact, zone: exp.Expr, function: str) -> Conclusion:
    """Return what is known of the local time of m, a time of a fixed offset."""
    if not m.kind.time or not _is_text(zone):
        return none(f"{function} has a rule for a time and a zone that is given as text", Kind.TIMESTAMP)
    if is_fixed(zone.name):  # if a ≤ b then a + offset ≤ b + offset
        return Conclusion(Fact(m.order, Kind.TIMESTAMP), f"{zone.name} is always as far from UTC")
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
