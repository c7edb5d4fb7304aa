"""The input and the result of the clock pass of a gate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from rowtime.core.columns import ARRIVAL
from rowtime.kernels.blame import Raise
from rowtime.operators.contract.lateness import Lateness

READMITTED = "readmitted"  # the writer of early rows that are admitted later


def beyond_arrival(time: str, limit: int | None) -> str | None:
    """Return Spark SQL: rows whose ``time`` is at least this far (µs) above their arrival; ``None`` without a limit."""
    return None if limit is None else f"unix_micros({time}) - unix_micros({ARRIVAL}) >= {limit}L"


@dataclass(frozen=True)
class Gate:
    """The settings with which the clock pass refuses rows exactly.

    A row at ``time`` (column; µs after reading) is refused if and only if time + ``within`` < the mark of its writer:
    the greatest of the earlier times and bounds. ``bounds`` are items (writer, position, µs). ``floors``: a row below
    it is late whatever the mark.
    """

    time: str
    within: int
    reason: str
    marks: Mapping[str, int]
    bounds: Sequence[tuple[str, int, int]] = ()
    floors: Mapping[str, int] = field(default_factory=dict)
    bound_column: str | None = None
    malformed_column: str | None = None
    """A row for which it is not null is MALFORMED; it does not move the mark, whatever its time."""
    far: str | None = None
    """SQL: which rows are EARLY whatever the mark; they do not move it."""
    batched: bool = False
    """All rows of a tick are judged by the mark before it: they have no order."""
    missing: str = "NULL_ROWTIME"
    """The reason of a row without a time."""
    judged: str | None = None
    """Another column that is compared with the mark instead of the time (the end of a group)."""
    early: int | None = None
    """A row above the mark by more than this (µs) is EARLY and does not raise it (the guard)."""
    resync: int = 0
    """The number of later rows near an early one that make it count after all; 0: it never counts.

    See `kernels.guard`. Re-admitted rows need no others: the first of them is judged by its floor.
    """
    present: Collection[str] = ()
    """The writers that may send more rows, so that open rows stay open."""
    guarded: str = "true"
    """SQL: which rows may be EARLY."""
    lifted: str = "false"
    """SQL: which times the guard raises to the mark if they are below it; the end bound raises none."""
    started: Collection[str] | None = None
    """The writers that have had an accepted row, so that further ones may be judged; ``None``: all that have a mark."""
    behind: int = 0
    """The number of last rows that do not count for the mark yet."""
    recent: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The times of these rows from before the tick, oldest first."""
    raised: Mapping[str, Raise] = field(default_factory=dict)
    """The last row of each writer that raised its mark by more than the tolerance."""

    @property
    def of_time(self) -> bool:
        """Return True if event times are judged, not the values of an ordered column."""
        return self.reason != "BROKEN_ORDER"


@dataclass(frozen=True)
class Verdict:
    """The decisions of a gate about one tick's rows.

    ``refused`` has columns ``__w``, ``__p``, ``reason``, ``mark`` (µs), or is ``None``; ``marks`` the mark of each
    writer afterwards, ``recent`` the times that do not count for it yet.
    """

    refused: pa.Table | None
    counts: Mapping[str, int]
    marks: Mapping[str, int]
    lowest: int
    highest: int
    recent: Mapping[str, list[int]] = field(default_factory=dict)
    raised: Mapping[str, Raise] = field(default_factory=dict)
    lateness: Lateness = field(default_factory=Lateness)
    """Of the rows that the mark made late."""
    started: Collection[str] = ()
    held: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The positions of each writer's last rows, if they are not judged yet."""
    mean: float | None = field(default=None, compare=False)
    """The mean time of the accepted rows (µs), for display: its last digits depend on the cut."""
