"""Functions of a pane and its fire in a select list, as expressions over the columns of a fire (semantics 8.4)."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from rowtime.core.columns import FIRE_CHANGE, FIRE_INDEX, LAST_FIRE, PANE
from rowtime.sql.script import parse_expression

START, END_OF, TIMING, INDEX = FACTS = ("PANE_START", "PANE_END", "PANE_TIMING", "PANE_INDEX")
SIGN: Final = f"CASE WHEN `{FIRE_CHANGE}` = 0 THEN 'RETRACT' ELSE 'INSERT' END"
_TEXTS: Final = {
    START: "timestamp_micros(`{pane}` - {duration})",
    END_OF: "timestamp_micros(`{pane}`)",
    TIMING: "CASE WHEN `{last}` < `{pane}` THEN 'EARLY' "
    "WHEN `{index}` = 0 OR `{last}` = `{pane}` THEN 'COMPLETE' ELSE 'LATE' END",
    INDEX: "`{index}`",
}


def pane_fact(name: str, duration: int) -> exp.Expr:
    """Return a function of panes of this ``duration`` (µs), by name."""
    return parse_expression(_TEXTS[name].format(pane=PANE, index=FIRE_INDEX, last=LAST_FIRE, duration=duration))
