"""Oracle of ``gate.rejected``: refused rows as a stream; the rowtime is that of the refusing clock (semantics 4)."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.feed import FIRST_INSTANT, LAST_INSTANT, Bound, Feed, Leave, Refusal, Row, Values, clock_of, has_left


def rejected(refused: Feed, gate: Feed, shown: Callable[[Refusal], Values]) -> Feed:
    """``refused`` has the refusals of each writer as values of rows; ``gate`` has the accepted rows."""
    out = {}
    for writer, items in gate.items():
        refusals = [row.values["refusal"] for row in refused.get(writer, ()) if isinstance(row, Row)]
        rows = [Row(min(max(r.by, FIRST_INSTANT), LAST_INSTANT), shown(r)) for r in refusals]
        out[writer] = [*rows, Bound(clock_of(items)), *([Leave()] if has_left(items) else [])]
    return out
