"""Intervals of days and time, as numbers."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from rowtime.frames.values import NUMBER, READS, only
from rowtime.frames.words import Untranslated

UNITS: Final = {
    "MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6, "WEEK": 7 * 86400 * 10**6,
}  # fmt: skip
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
