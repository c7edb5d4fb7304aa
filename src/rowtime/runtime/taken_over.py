"""The gate of a pump that has taken a log over: no row goes back behind what its writer has shown (SPEC 2.3, 10).

The writer's clock in the log is that of the pump before. A row below it is ``OUT_OF_ORDER``, in the ledger as
``<pump>.takeover``; rows at it or above go on. The gate is there until the pump's own bound has reached that clock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowtime.core.columns import MALFORMED, ROWTIME
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import Delta
from rowtime.runtime.apart import apart

if TYPE_CHECKING:
    from rowtime.operators.sinks.sink import Sink
    from rowtime.runtime.tick import RunningTick

REASON: Final = "OUT_OF_ORDER"


def above(tick: RunningTick, node: Sink, delta: Delta, floor: int) -> Delta:
    """The rows at ``floor`` (µs UTC) or above; the others are refused."""
    bound = tick.control(node).bound
    if delta.rows is None or max(delta.lowest, BEGINNING if bound is None else bound) >= floor:
        return delta
    gate = f"{node.name.removesuffix('.sink')}.takeover"
    broken = f"CASE WHEN unix_micros({ROWTIME}) < {floor}L THEN 'below what the target has' END AS {MALFORMED}"
    found = apart(delta.rows.selectExpr("*", broken), MALFORMED, delta.count, REASON, f"timestamp_micros({floor}L)")
    if found.refused is None:
        return delta
    refused = found.counts[REASON]
    # Only what it refuses: how many rows pass while it stands there depends on the cut into ticks.
    tick.turn_away(gate, found.refused, {"in": refused, "accepted": 0, REASON: refused})
    return replace(delta, rows=found.accepted, peek=None, files=None)
