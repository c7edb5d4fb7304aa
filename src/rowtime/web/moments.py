"""A moment: the part of a journal entry that the pages need, so that thousands of them fit into memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rowtime.core.clock import least
from rowtime.core.time import BEGINNING
from rowtime.state.costs import KEY
from rowtime.state.journal import Entry

Counts = Mapping[str, int]
_SIZE: Final = 5  # the index of the bytes in a stored segment


@dataclass(frozen=True, slots=True)
class Moment:
    """Describes a pipeline after a tick. Instants are µs UTC; counts are those since the checkpoint began.

    ``bounds``: the least clock of each operator. ``totals``: the ledger, by gate. ``held`` and ``sizes``: rows and
    bytes of state, by operator. ``written``: rows, by sink. ``stored``: the entry's record of its tick's cost, in the
    form for `state.costs`.
    """

    tick: int
    at: int
    bounds: Mapping[str, int]
    totals: Mapping[str, Counts]
    held: Mapping[str, int]
    written: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=dict)
    stored: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Entry) -> Moment:
        """Return the moment of an entry."""
        controls = entry.get("control", {})
        return cls(
            entry["tick"],
            entry["at"],
            {_name(name): least(clocks.values()) for name, clocks in entry.get("clocks", {}).items()},
            {_name(name): {_name(why): n for why, n in counts.items()} for name, counts in entry["totals"].items()},
            held_by(entry),
            {_name(name): control["sequence"] for name, control in controls.items() if "sequence" in control},
            _sizes(entry),
            {name: entry[name] for name in ("tick", KEY) if name in entry},
        )

    def bound(self, operator: str) -> int:
        """Return the bound of an operator; BEGINNING if it had none."""
        return self.bounds.get(operator, BEGINNING)

    def times(self, gate: str) -> tuple[int, int] | None:
        """Return the least and greatest time of the rows that a gate accepted in this tick, if recorded."""
        times = self.stored.get(KEY, {}).get("times", {}).get(gate)
        return (times[0], times[1]) if times else None

    def count(self, gate: str, what: str = "accepted") -> int:
        """Return how many rows of a kind a gate has had."""
        return self.totals.get(gate, {}).get(what, 0)

    def refused(self, gate: str) -> int:
        """Return how many rows a gate has refused."""
        return sum(self.reasons(gate).values())

    def reasons(self, gate: str) -> dict[str, int]:
        """Return the rows that a gate has refused, by reason."""
        return {why: n for why, n in self.totals.get(gate, {}).items() if why not in ("in", "accepted") and n}


NOTHING: Final = Moment(-1, 0, {}, {}, {}, {})
"""Before the first tick."""


def held_by(entry: Entry) -> dict[str, int]:
    """Return the rows that each operator holds after an entry."""
    counts: dict[str, int] = {}
    for key, rows in entry.get("held", {}).items():
        name = _name(key.rsplit("/", 1)[0])
        counts[name] = counts.get(name, 0) + rows
    return counts


def _sizes(entry: Entry) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for key, segments in entry.get("segments", {}).items():
        name = _name(key.rsplit("/", 1)[0])
        size = sum(segment[_SIZE] for segment in segments if len(segment) > _SIZE)
        if size:
            sizes[name] = sizes.get(name, 0) + size
    return sizes


def _name(name: str) -> str:
    """Intern a name, because names repeat in every entry."""
    return sys.intern(name)
