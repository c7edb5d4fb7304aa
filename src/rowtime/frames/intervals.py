"""Intervals of days and time, as numbers, and times rounded down to one."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from rowtime.frames.values import NUMBER, READS, Scope, Value, only
from rowtime.frames.words import Untranslated

UNITS: Final = {
    "MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6, "WEEK": 7 * 86400 * 10**6,
}  # fmt: skip
_MONDAY: Final = 4 * 86400 * 10**6  # µs from 1970-01-01, a Thursday, to the Monday after it
_CALENDAR: Final = ("MONTH", "QUARTER", "YEAR")
_PARTS: Final = re.compile(r"(-?[0-9]+)[.]([0-9]{1,6})")


def micros(node: exp.Interval) -> int:
    """Return an interval in µs; raises ``Untranslated`` for one of months, and for another form."""
    only(node, READS[exp.Interval])
    unit = node.args.get("unit")
    size = UNITS.get(unit.name.upper().removesuffix("S")) if isinstance(unit, exp.Var) else None
    text = node.this.name if isinstance(node.this, exp.Literal) else ""
    parts = _PARTS.fullmatch(text)
    if size == UNITS["SECOND"] and parts is not None:
        return int(f"{parts[1]}{parts[2]:0<6}")
    if size is None or not NUMBER.fullmatch(text):
        raise Untranslated(node.sql())
    return size * int(text)


def truncated(node: exp.Expr, scope: Scope) -> Value:
    """Translate DATE_TRUNC of a time."""
    of, unit = scope.value(node.this), node.args["unit"].name.upper()
    if of.type != "timestamp":
        raise Untranslated(of.type)
    if unit in _CALENDAR:
        return Value(f"CAST(date_trunc('{unit.lower()}', {of.sql}) AS TIMESTAMP)", of.type)
    size = UNITS.get(unit)
    if size is None:
        raise Untranslated(unit)
    shift = _MONDAY if unit == "WEEK" else 0
    us = f"epoch_us({of.sql})"
    return Value(f"make_timestamp({us} - ((({us} - {shift}) % {size}) + {size}) % {size})", of.type)
