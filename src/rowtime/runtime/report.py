"""The report of a tick, for progress and displays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rowtime.runtime.intake import Taken
from rowtime.runtime.sources.contract import Backlog
from rowtime.state.costs import Left, TickCost
from rowtime.state.segments import Kept

if TYPE_CHECKING:
    from rowtime.runtime.tick import RunningTick


@dataclass(frozen=True)
class TickReport:
    """The report of a tick: rows taken per stream, its ledger, rows delivered per sink, its cost."""

    tick: int
    taken: Mapping[str, int]
    ledger: Mapping[str, Mapping[str, int]]
    written: Mapping[str, int]
    cost: TickCost
    jobs: tuple[str, ...] = ()
    noted: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    """By stream, files that were set aside, or have changed after they were read."""
    backlogs: Mapping[str, Backlog] = field(default_factory=dict)
    """By stream, the unread rest when the tick chose its range, if known."""
    kept: Mapping[str, Kept] = field(default_factory=dict)
    """State after the tick, by operator and kind."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """The journal entry of the tick before it."""


def report_of(running: RunningTick, taken: Mapping[str, Taken], before: Mapping[str, Any]) -> TickReport:
    """Return the report of a finished tick; ``before``: the entry of the tick before it."""
    cost = cost_so_far(running, taken, complete=True)
    return TickReport(
        running.number,
        cost.rows_in,
        {name: dict(counts) for name, counts in running.ledger.items()},
        cost.rows_out,
        cost,
        tuple(running.jobs),
        {name: note for name, part in taken.items() if (note := part.part.detail.get("noted"))},
        backlogs_of(taken),
        running.kept(),
        before,
    )


def backlogs_of(taken: Mapping[str, Taken]) -> dict[str, Backlog]:
    """Return the unread rest, by stream, if known."""
    return {name: part.part.backlog for name, part in taken.items() if part.part.backlog is not None}


def cost_so_far(running: RunningTick, taken: Mapping[str, Taken], *, complete: bool = False) -> TickCost:
    """Return the cost of a tick up to now."""
    counts = running.ledger.values()
    refused = sum(n for gate in counts for reason, n in gate.items() if reason not in ("in", "accepted"))
    rows_in = {name: rows_read(part, running.ledger.get(name, {})) for name, part in taken.items()}
    rows_out = {name: staged["count"] - staged.get("gathered", 0) for name, staged in running.outputs.items()}
    cost = running.meter.cost(running.number, rows_in, rows_out, refused, complete=complete)
    return replace(cost, left={name: Left(backlog.left, backlog.unit) for name, backlog in backlogs_of(taken).items()})


def rows_read(taken: Taken, counts: Mapping[str, int]) -> int:
    """Return how many rows a tick has read from a source; ``counts`` are those of its gate.

    The source knows only an upper limit for text that is not decoded yet; the gate counts the rows.
    """
    count = None if taken.source.decodes else taken.rows
    return counts.get("in", 0) if count is None else count
