"""What a tick did, for progress and displays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rowtime.runtime.intake import Taken


@dataclass(frozen=True)
class TickReport:
    """What a tick did: rows taken per stream, its ledger, how long its parts took (seconds)."""

    tick: int
    taken: Mapping[str, int]
    ledger: Mapping[str, Mapping[str, int]]
    written: Mapping[str, int]
    seconds: Mapping[str, float]
    jobs: tuple[str, ...] = ()
    noted: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    """By stream, files that were set aside, or have changed after they were read."""


def rows_read(taken: Taken, counts: Mapping[str, int]) -> int:
    """How many rows a tick has read from a source; ``counts`` are those of its gate.

    The source knows at most how many rows there are in text that is yet to be decoded; the gate counts them.
    """
    known = None if taken.source.decodes else taken.part.rows
    return counts.get("in", 0) if known is None else known
