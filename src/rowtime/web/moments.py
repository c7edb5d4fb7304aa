"""A moment: what the pages need of one journal entry, so that thousands of them fit into memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowtime.core.clock import least
from rowtime.core.time import BEGINNING
from rowtime.state.journal import Entry

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a pipeline stood after a tick. Instants are µs UTC; counts are those since the checkpoint began.

    ``bounds``: the least clock of each operator. ``totals``: the ledger, by gate. ``held``: rows, by operator.
    ``written``: rows, by sink. ``cost``: what the entry records of its tick's duration, if it does.
    """

    tick: int
    at: int
    bounds: Mapping[str, int]
    totals: Mapping[str, Counts]
    held: Mapping[str, int]
    written: Mapping[str, int]
    cost: Mapping[str, Any] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, entry: Entry) -> Moment:
        """What an entry says."""
        controls = entry.get("control", {})
        return cls(
            entry["tick"],
            entry["at"],
            {_name(name): least(clocks.values()) for name, clocks in entry.get("clocks", {}).items()},
            {_name(name): {_name(why): n for why, n in counts.items()} for name, counts in entry["totals"].items()},
            held_by(entry),
            {_name(name): control["sequence"] for name, control in controls.items() if "sequence" in control},
            entry.get("cost"),
        )

    def bound(self, operator: str) -> int:
        """The bound of an operator; BEGINNING where it had none."""
        return self.bounds.get(operator, BEGINNING)

    def count(self, gate: str, what: str = "accepted") -> int:
        """How many rows a gate has had of a kind."""
        return self.totals.get(gate, {}).get(what, 0)

    def refused(self, gate: str) -> int:
        """How many rows a gate has refused."""
        return sum(self.reasons(gate).values())

    def reasons(self, gate: str) -> dict[str, int]:
        """The rows that a gate has refused, by reason."""
        return {why: n for why, n in self.totals.get(gate, {}).items() if why not in ("in", "accepted") and n}


def held_by(entry: Entry) -> dict[str, int]:
    """The rows that each operator holds after an entry."""
    found: dict[str, int] = {}
    for key, rows in entry.get("held", {}).items():
        name = _name(key.rsplit("/", 1)[0])
        found[name] = found.get(name, 0) + rows
    return found


def _name(name: str) -> str:
    """Names repeat in every entry."""
    return sys.intern(name)
