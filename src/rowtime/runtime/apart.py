"""Separates rows by a column of their own: those that pass, and those that a gate refuses.

Positions are not looked up, so rows need no place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from rowtime.core.columns import DUE, ORIGIN, POSITION, ROUTE, ROWTIME, WRITER
from rowtime.core.columns import MALFORMED as BROKEN
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import Delta, quoted
from rowtime.operators.gates.rejected import shown_as
from rowtime.runtime.refusal import Rejection

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.sinks.sink import Sink
    from rowtime.runtime.tick import RunningTick

MALFORMED: Final = "MALFORMED"
BEHIND: Final = "OUT_OF_ORDER"


@dataclass(frozen=True)
class Apart:
    """The accepted rows, and the refused ones as in ``name.rejected``; with their numbers."""

    accepted: Frame
    refused: Rejection | None
    counts: dict[str, int]


def apart(rows: Frame, broken: str, reason: str = MALFORMED, clock: str = ROWTIME) -> Apart:
    """Refuse the rows in which the column ``broken`` is not NULL.

    ``clock``: SQL of the time that refuses a row, by default its own; the text of ``broken`` goes to ``raw_record``.
    """
    wrong = pc.is_valid(rows.toArrow()[broken])
    total, many = rows.count(), pc.sum(wrong).as_py() or 0
    fits, refused = rows.chosen(pc.invert(wrong)).drop(broken), rows.chosen(wrong) if many else None
    counts = {"in": total, "accepted": total - many}
    if refused is None:
        return Apart(fits, None, counts)
    return Apart(fits, _rejection(refused, broken, reason, clock), {**counts, reason: many})


def _rejection(rows: Frame, broken: str, reason: str, clock: str) -> Rejection:
    own = [f"{quoted(name)} AS {quoted(shown_as(name))}" for name in rows.columns if not name.startswith("__")]
    writer, position = ORIGIN if ORIGIN[0] in rows.columns else (WRITER, POSITION)
    rejected = rows.selectExpr(
        *own, f"'{reason}' AS reason", f"{ROWTIME} AS refused_time", f"{clock} AS refused_by", f"{writer} AS writer",
        f"{position} AS position", f"{broken} AS raw_record", f"{clock} AS {ROWTIME}", WRITER, POSITION,
        f"unix_micros({clock}) AS {DUE}",
        f"0 AS {ROUTE}",
    )  # fmt: skip
    return Rejection(rejected, rejected.schema)


def above(tick: RunningTick, node: Sink, delta: Delta, floor: int) -> Delta:
    """Return the rows of a pump after a log's takeover, at ``floor`` (µs UTC) or above; refuse others.

    Semantics 2.3. The writer's clock in the log is that of the former pump. A row below it is ``OUT_OF_ORDER``, in the
    ledger as ``<pump>.takeover``. The gate is there until the pump's own bound has reached that clock.
    """
    bound = tick.control(node).bound
    if delta.rows is None or max(delta.lowest, BEGINNING if bound is None else bound) >= floor:
        return delta
    gate = f"{node.name.removesuffix('.sink')}.takeover"
    broken = f"CASE WHEN unix_micros({ROWTIME}) < {floor}L THEN 'below what the target has' END AS {BROKEN}"
    split = apart(delta.rows.selectExpr("*", broken), BROKEN, BEHIND, f"timestamp_micros({floor}L)")
    if split.refused is None:
        return delta
    refused = split.counts[BEHIND]
    # Count only refused rows: how many rows pass while the gate is there depends on the cut into ticks.
    tick.turn_away(gate, split.refused, {"in": refused, "accepted": 0, BEHIND: refused})
    return replace(delta, rows=split.accepted, peek=None, files=None)
